"""Paths on a map and for other programs: GeoJSON, GeoPandas, GeoParquet, MovingPandas.

What kepler.gl, QGIS and Leaflet ask of a file is checked by their own rules, without them: those of
kepler.gl 3.2 (`isTripGeoJsonField`, `parseTripGeoJsonTimestamp`), GDAL 3.12 (GeoJSON driver, by
which QGIS reads), Leaflet 1.9 (`L.GeoJSON`) and Leaflet.TimeDimension 1.1 (`_getFeatureTimes`);
files of this library were opened with all of them.
"""

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.columns.precision import axes
from privtraj.export import tables as export_tables
from privtraj.export.files import check_paths
from privtraj.model.paths import Paths

# Files and objects -------------------------------------------------------------------------------

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


# Rules of other programs -------------------------------------------------------------------------

MOMENTS = 1.7e9 + np.array([1800.0, 0.0, 3600.0])  # not in order
ISO = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?")
OGR = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")  # of GDAL


def moving(features=("lon", "lat", "speed"), dates=True, times=MOMENTS, present=None):
    values = np.random.default_rng(0).uniform(-80, 80, (4, len(times), len(features)))
    return Paths(values, np.asarray(times), tuple(features), "when", dates, present)


def read(paths, file):
    paths.save(file)
    return json.loads(file.read_text("utf-8"))


def is_rfc_7946(collection, kind):
    """Required members alone, right types, two numbers in a position, no crs."""
    assert set(collection) == {"type", "features"}
    assert collection["type"] == "FeatureCollection"
    for feature in collection["features"]:
        assert set(feature) == {"type", "geometry", "properties"}
        assert feature["type"] == "Feature"
        assert feature["geometry"]["type"] == kind
        places = feature["geometry"]["coordinates"]
        for lon, lat in [places] if kind == "Point" else places:
            assert -180 <= lon <= 180
            assert -90 <= lat <= 90
    return True


# kepler.gl ---------------------------------------------------------------------------------------


def kepler_trip(collection):
    """Its three conditions of a trip layer, and the milliseconds at which positions are played."""
    lines = [feature["geometry"] for feature in collection["features"]]
    assert all(line["type"] == "LineString" for line in lines)  # 1
    assert all(len(position) >= 4 for line in lines for position in line["coordinates"])  # 2
    moments = [[position[3] for position in line["coordinates"]] for line in lines]
    assert all(isinstance(moment, int | float) for moment in moments[0])  # 3: seconds since 1970
    return [[1000 * moment for moment in line] for line in moments]


def test_kepler_plays_trips_at_their_times(tmp_path):
    paths = moving()
    made = read(paths, tmp_path / "a.trips.geojson")
    played = kepler_trip(made)
    assert played == [[1000 * t for t in sorted(MOMENTS)]] * 4
    lines = paths.to_geojson()["features"]
    for trip, line in zip(made["features"], lines, strict=True):
        both = zip(trip["geometry"]["coordinates"], line["geometry"]["coordinates"], strict=True)
        assert all(four[:3] == [*two, 0] for four, two in both)
        assert trip["properties"] == line["properties"]
    assert paths.to_geojson(kind="trips") == made


def test_kepler_plays_fractions_of_a_second():
    made = moving(times=1.7e9 + np.array([0.0, 0.25])).to_geojson(kind="trips")
    assert np.diff(kepler_trip(made)[0]) == pytest.approx([250])


def test_plain_lines_are_no_trips_and_numbers_cannot_be_played(tmp_path):
    with pytest.raises(AssertionError):
        kepler_trip(moving().to_geojson())
    with pytest.raises(InputError, match="'when' holds numbers and kepler"):
        moving(dates=False).save(tmp_path / "a.trips.geojson")
    assert list(tmp_path.iterdir()) == []


# QGIS --------------------------------------------------------------------------------------------


def test_points_have_one_field_of_dates_as_gdal_knows_them(tmp_path):
    made = read(moving(), tmp_path / "a.points.geojson")
    assert is_rfc_7946(made, "Point")
    assert len(made["features"]) == 12
    for feature in made["features"]:
        assert set(feature["properties"]) == {"path", "when", "speed"}
        assert OGR.fullmatch(feature["properties"]["when"])
    first = [datetime.fromisoformat(one["properties"]["when"]) for one in made["features"][:3]]
    assert sorted(moment.timestamp() for moment in first) == sorted(MOMENTS)
    assert {moment.utcoffset() for moment in first} == {UTC.utcoffset(None)}
    digits = {len(str(v).partition(".")[2]) for one in made["features"] for v in place(one)}
    assert max(digits) <= 6


def place(feature):
    return feature["geometry"]["coordinates"]


def test_gdal_reads_points_with_a_field_of_dates(tmp_path):
    pyogrio = pytest.importorskip("pyogrio", reason="GDAL comes with geopandas")
    paths = moving()
    paths.save(tmp_path / "a.points.geojson")
    paths.to_geopandas().to_file(tmp_path / "a.gpkg")
    for name in ("a.points.geojson", "a.gpkg"):
        info = pyogrio.read_info(tmp_path / name)
        kinds = dict(zip(info["fields"], info["ogr_types"], strict=True))
        assert kinds["when"] == "OFTDateTime"
        assert info["geometry_type"] == "Point"
        assert info["features"] == 12
        assert info["crs"] == "EPSG:4326"
    paths.save(tmp_path / "a.geojson")
    info = pyogrio.read_info(tmp_path / "a.geojson")
    assert (info["geometry_type"], info["features"]) == ("LineString", 4)


def test_points_of_numbers_who_comes_and_goes_and_one_time(tmp_path):
    there = np.ones((4, 3), dtype=bool)
    there[0, 1:] = False  # seen once: no line, but a point
    values = np.where(there[..., None], moving().values, np.nan)
    paths = Paths(values, MOMENTS, ("lon", "lat", "speed"), "when", False, there)
    made = paths.to_geojson(kind="points")
    assert len(made["features"]) == 10
    assert [one["properties"]["path"] for one in made["features"]].count(0) == 1
    assert all(isinstance(one["properties"]["when"], float) for one in made["features"])
    assert len(paths.to_geojson()["features"]) == 3
    read(moving(times=MOMENTS[:1]), tmp_path / "one.points.geojson")


def test_values_of_every_kind_are_json(tmp_path):
    columns = (
        pt.Number(-180, 180, "lon"),
        pt.Number(-90, 90, "lat"),
        pt.Category(["F", "M"], "sex"),
        pt.Number(0, 9, "hb", missing=True),
        pt.Date("1950-01-01", "2020-01-01", "born"),
    )
    values = np.array([[[10.0, 50.0, 1.0, np.nan, 0.0], [11.0, 51.0, 0.0, 3.5, 86400.0]]])
    names = tuple(column.name for column in columns)
    paths = Paths(values, MOMENTS[:2], names, "when", True, columns=columns)
    known = [one["properties"] for one in read(paths, tmp_path / "a.points.geojson")["features"]]
    assert [one["sex"] for one in known] == ["M", "F"]
    assert [one["hb"] for one in known] == [None, 3.5]
    assert [one["born"] for one in known] == ["1970-01-01", "1970-01-02"]


# Leaflet -----------------------------------------------------------------------------------------


def test_lines_are_what_leaflet_and_its_time_dimension_read(tmp_path):
    made = read(moving(), tmp_path / "a.geojson")
    assert is_rfc_7946(made, "LineString")
    for feature in made["features"]:
        times = feature["properties"]["times"]  # one for each position, in order
        assert len(times) == len(place(feature)) == 3
        assert all(ISO.fullmatch(moment) for moment in times)  # Date.parse reads it, as UTC
        assert times == sorted(times)
