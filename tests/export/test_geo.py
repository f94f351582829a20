"""Paths on a map: GeoJSON, GeoPandas, GeoParquet, MovingPandas."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.columns.precision import axes
from privtraj.export import tables as export_tables
from privtraj.export.files import check_paths
from privtraj.model.paths import Paths

NEED = "maps need pip install 'privtraj[geo]'"
TIMES = np.array([1.7e9 + 0.25, 1.7e9, 1.8e9])  # not in order


def trips(features=("lon", "lat", "speed"), datetime=True, times=TIMES, n=4):
    values = np.random.default_rng(0).uniform(-90, 90, (n, len(times), len(features)))
    return Paths(values, np.asarray(times, float), tuple(features), "when", datetime)


# Which features are places ----------------------------------------------------------------------


NAMED = {
    "short": (("lat", "lon"), (1, 0)),
    "long": (("a", "longitude", "latitude"), (1, 2)),
    "lng": (("lng", "lat"), (0, 1)),
    "capitals": (("LAT", "Lon"), (1, 0)),
    "plane": (("y", "x"), (1, 0)),
    "both": (("x", "y", "lon", "lat"), (2, 3)),
}


@pytest.mark.parametrize(("features", "expected"), NAMED.values(), ids=NAMED)
def test_places_are_guessed_by_name(features, expected):
    assert axes(features) == expected


def test_places_can_be_named():
    assert axes(("näht", "breite", "lon"), x="näht", y="breite") == (0, 1)


WRONG = {
    "no longitude": (("lat", "speed"), {}, "named like a longitude .*x="),
    "no latitude": (("lon", "speed"), {}, "named like a latitude .*y="),
    "no such feature": (("lon", "lat"), {"x": "east"}, "x='east' is not a feature"),
    "one for both": (("lon", "lat"), {"y": "lon"}, "x and y are both 'lon'"),
}


@pytest.mark.parametrize(("features", "named", "message"), WRONG.values(), ids=WRONG)
def test_places_that_are_not_there(features, named, message):
    with pytest.raises(InputError, match=message):
        axes(features, **named)


@pytest.mark.parametrize(("feature", "value"), [(0, 180.5), (0, -181), (1, 90.5), (0, np.nan)])
def test_values_that_are_no_degrees_are_refused(feature, value):
    drawn = trips(("lon", "lat"))
    drawn.values[2, 1, feature] = value
    with pytest.raises(InputError, match=r"cannot be a l.*itude in degrees"):
        drawn.to_geojson()


# GeoJSON ----------------------------------------------------------------------------------------


def test_geojson_reads_back_with_values_and_times(tmp_path):
    drawn = trips(("lon", "lat", "speed (m/s)", "höhe.2"))
    drawn.save(tmp_path / "paths.geojson")
    assert [file.name for file in tmp_path.iterdir()] == ["paths.geojson"]
    found = json.loads((tmp_path / "paths.geojson").read_text("utf-8"))
    assert found == drawn.to_geojson()
    assert found["type"] == "FeatureCollection"
    order = np.argsort(TIMES)
    for path, feature in enumerate(found["features"]):
        assert feature["geometry"]["type"] == "LineString"
        line = drawn.values[path, order]
        line[:, :2] = line[:, :2].round(6)
        np.testing.assert_array_equal(feature["geometry"]["coordinates"], line[:, :2])
        properties = feature["properties"]
        np.testing.assert_array_equal(properties["speed (m/s)"], line[:, 2])
        np.testing.assert_array_equal(properties["höhe.2"], line[:, 3])
        assert properties["path"] == path
        assert properties["times"] == [
            "2023-11-14T22:13:20.000Z",
            "2023-11-14T22:13:20.250Z",
            "2027-01-15T08:00:00.000Z",
        ]


def test_geojson_of_numbers_keeps_numbers():
    found = trips(datetime=False, times=[0.5, 2.0]).to_geojson()
    assert found["features"][0]["properties"]["times"] == [0.5, 2.0]


def test_geopandas_reads_our_geojson(tmp_path):
    geopandas = pytest.importorskip("geopandas", reason=NEED)
    drawn = trips()
    drawn.save(tmp_path / "paths.geojson")
    lines = geopandas.read_file(tmp_path / "paths.geojson")
    assert lines.crs == "EPSG:4326"
    assert list(lines["path"]) == list(range(4))
    order = np.argsort(TIMES)
    for line, expected in zip(lines.geometry, drawn.values[:, order, :2], strict=True):
        np.testing.assert_allclose(line.coords, expected, atol=1e-6)


def test_a_line_needs_two_times():
    with pytest.raises(InputError, match="at least two times"):
        trips(times=[1.0], datetime=False).to_geojson()


def test_a_feature_named_as_a_property_does_not_hide_it():
    drawn = trips(("lon", "lat", "path"), datetime=False, times=[0.0, 1.0])
    for path, feature in enumerate(drawn.to_geojson()["features"]):
        assert feature["properties"]["path"] == path
        np.testing.assert_array_equal(feature["properties"]["path_"], drawn.values[path, :, 2])


# GeoPandas and GeoParquet -----------------------------------------------------------------------


def test_geopandas_is_the_long_table_with_points():
    pytest.importorskip("geopandas", reason=NEED)
    drawn = trips()
    frame = drawn.to_geopandas()
    assert list(frame.columns) == ["path", "when", "lon", "lat", "speed", "geometry"]
    assert frame.crs == "EPSG:4326"
    np.testing.assert_array_equal(frame["when"], np.tile(drawn.times, 4))
    np.testing.assert_array_equal(frame.geometry.x, drawn.values[:, :, 0].ravel())
    np.testing.assert_array_equal(frame.geometry.y, drawn.values[:, :, 1].ravel())


def test_other_reference_systems_are_taken_at_their_word():
    pytest.importorskip("geopandas", reason=NEED)
    metres = Paths(np.full((2, 2, 2), 5e5), np.arange(2.0), ("x", "y"), "t", False)
    with pytest.raises(InputError, match="crs="):
        metres.to_geopandas()
    assert metres.to_geopandas(crs="EPSG:32633").crs == "EPSG:32633"


@pytest.mark.parametrize("datetime", [False, True])
def test_geoparquet_reads_back(datetime, tmp_path):
    geopandas = pytest.importorskip("geopandas", reason=NEED)
    drawn = trips(("lon", "lat", "Höhe über.alles"), datetime)
    drawn.save(tmp_path / "paths.geoparquet")
    assert [file.name for file in tmp_path.iterdir()] == ["paths.geoparquet"]
    frame = geopandas.read_parquet(tmp_path / "paths.geoparquet")
    assert frame.crs == "EPSG:4326"
    assert frame.equals(drawn.to_geopandas())
    np.testing.assert_array_equal(frame["when"], np.tile(drawn.times, 4))
    np.testing.assert_array_equal(frame["Höhe über.alles"], drawn.values[:, :, 2].ravel())


def test_a_feature_named_geometry_is_kept():
    pytest.importorskip("geopandas", reason=NEED)
    drawn = trips(("lon", "lat", "geometry"))
    frame = drawn.to_geopandas()
    np.testing.assert_array_equal(frame.geometry.x, drawn.values[:, :, 0].ravel())
    np.testing.assert_array_equal(frame["geometry_"], drawn.values[:, :, 2].ravel())


# MovingPandas -----------------------------------------------------------------------------------


def _moving(drawn, **options):
    pytest.importorskip("movingpandas", reason=NEED)
    return drawn.to_movingpandas(**options)


def test_movingpandas_has_one_trajectory_per_path():
    drawn = trips()
    collection = _moving(drawn)
    assert len(collection) == 4
    order = np.argsort(TIMES)
    for path, trajectory in enumerate(collection):
        assert trajectory.id == path
        np.testing.assert_array_equal(trajectory.df.index, drawn.times[order])
        np.testing.assert_array_equal(trajectory.df.geometry.x, drawn.values[path, order, 0])
    assert collection.trajectories[0].get_length() > 0


def test_numbers_become_dates_from_a_public_origin():
    drawn = trips(datetime=False, times=[0.0, 0.5, 36.0])
    first = _moving(drawn, origin="2024-01-31", unit="hours").trajectories[0]
    expected = np.array(["2024-01-31T00:00", "2024-01-31T00:30", "2024-02-01T12:00"], "M8[us]")
    np.testing.assert_array_equal(first.df.index, expected)


ORIGINS = {
    "none": ({}, False, "say from when they count"),
    "no date": ({"origin": 3}, False, "origin must be a date"),
    "unit": ({"origin": "2024-01-01", "unit": "fortnights"}, False, "unit must be one of seconds"),
    "dates": ({"origin": "2024-01-01"}, True, "dates already"),
}


@pytest.mark.parametrize(("options", "datetime", "message"), ORIGINS.values(), ids=ORIGINS)
def test_origins_that_do_not_fit(options, datetime, message):
    with pytest.raises(InputError, match=message):
        _moving(trips(datetime=datetime, times=[0.0, 1.0]), **options)


# Before anything is spent -----------------------------------------------------------------------


@given(st.sampled_from([".csv", ".parquet", ".arrow", ".CSV"]))
def test_tables_take_any_feature(suffix):
    check_paths(Path(f"paths{suffix}"), ("height",), [(0, 500)], 2)


@pytest.mark.parametrize("suffix", [".geojson", ".geoparquet"])
def test_maps_are_checked_by_names_and_public_bounds(suffix, tmp_path):
    path = tmp_path / f"paths{suffix}"
    check_paths(path, ("lon", "lat"), [(-180, 180), (-90, 90)], 2)
    with pytest.raises(InputError, match="named like a longitude"):
        check_paths(path, ("height", "weight"), [(0, 1), (0, 1)], 2)
    with pytest.raises(InputError, match="'y' cannot be a latitude"):
        check_paths(path, ("x", "y"), [(0, 1), (0, 5000)], 2)


@pytest.mark.parametrize("method", ["to_geopandas", "to_movingpandas"])
def test_without_the_packages_one_sentence_says_what_to_install(method, monkeypatch):
    for module in ("geopandas", "movingpandas"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'privtraj\[geo\]'"):
        getattr(trips(), method)()


def test_a_failed_save_leaves_no_trace(tmp_path):
    with pytest.raises(InputError, match="named like"):
        trips(("height",)).save(tmp_path / "paths.geojson")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "paths.geojson").write_text("old")
    with pytest.raises(InputError, match="force=True"):
        trips().save(tmp_path / "paths.geojson")
    trips().save(tmp_path / "paths.geojson", force=True)
    assert (tmp_path / "paths.geojson").read_text() != "old"


# The command line -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A table of places and a model of it."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("town")
    places = {"hour": rng.uniform(0, 9, 400), "lon": rng.uniform(13, 14, 400)}
    table = pa.table(places | {"lat": rng.uniform(52, 53, 400), "speed": rng.uniform(0, 9, 400)})
    export_tables.write_table(table, folder / "town.csv")
    assert cli.main(_fit(folder, "--out", str(folder / "town.privtraj"))) == 0
    return folder


def _fit(folder, *rest, places=("lon", "lat")):
    bounds = {"lon": ["13", "14"], "lat": ["52", "53"], "speed": ["0", "9"]}
    features = [word for name in places for word in ("--feature", name, *bounds[name])]
    words = ["fit", str(folder / "town.csv"), "--time", "hour", "--time-range", "0", "9"]
    shape = ["--bins", "3", "--measure", "counts", "--particles", "24", "--steps", "4"]
    budget = ["--cells", "6", "--epsilon", "2", "--delta", "1e-4"]
    return [*words, *features, *shape, *budget, *rest]


@pytest.mark.parametrize("suffix", [".geojson", ".geoparquet", ".h5ad", ".csv"])
def test_sampling_to_every_format(suffix, town, tmp_path):
    if suffix != ".csv":
        package = {".geoparquet": "geopandas", ".h5ad": "anndata"}.get(suffix, "json")
        pytest.importorskip(package, reason=f"{suffix} needs {package}")
    out = tmp_path / f"paths{suffix}"
    assert cli.main(["sample", str(town / "town.privtraj"), "-n", "5", "--out", str(out)]) == 0
    assert list(tmp_path.iterdir()) == [out]
    if suffix == ".geojson":
        lines = json.loads(out.read_text())["features"]
        assert len(lines) == 5
        assert lines[0]["properties"]["times"] == [0.0, 4.5, 9.0]


def test_a_map_of_what_has_no_place_is_refused_before_anything_is_spent(town, tmp_path, capsys):
    out, paths = tmp_path / "m.privtraj", tmp_path / "paths.geojson"
    rest = ["--out", str(out), "--paths", str(paths)]
    assert cli.main(_fit(town, *rest, places=("speed", "lat"))) == 2
    assert "named like a longitude" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_fit_can_write_a_map(town, tmp_path):
    out, paths = tmp_path / "m.privtraj", tmp_path / "paths.geojson"
    assert cli.main(_fit(town, "--out", str(out), "--paths", str(paths), "-n", "3")) == 0
    assert len(json.loads(paths.read_text())["features"]) == 3
