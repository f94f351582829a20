"""What kepler.gl, QGIS and Leaflet ask of a file, by their own rules, checked without them.

The rules are written down from kepler.gl 3.2 (`isTripGeoJsonField`, `parseTripGeoJsonTimestamp`),
GDAL 3.12 (GeoJSON driver, by which QGIS reads), Leaflet 1.9 (`L.GeoJSON`) and
Leaflet.TimeDimension 1.1 (`_getFeatureTimes`); files of this library were opened with all of them.
"""

import json
import re
from datetime import UTC, datetime

import numpy as np
import pytest

import privtraj as pt
from privtraj.base.errors import InputError
from privtraj.model.paths import Paths

TIMES = 1.7e9 + np.array([1800.0, 0.0, 3600.0])  # not in order
ISO = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?")
OGR = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")  # of GDAL


def trips(features=("lon", "lat", "speed"), dates=True, times=TIMES, present=None):
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
    paths = trips()
    made = read(paths, tmp_path / "a.trips.geojson")
    played = kepler_trip(made)
    assert played == [[1000 * t for t in sorted(TIMES)]] * 4
    lines = paths.to_geojson()["features"]
    for trip, line in zip(made["features"], lines, strict=True):
        both = zip(trip["geometry"]["coordinates"], line["geometry"]["coordinates"], strict=True)
        assert all(four[:3] == [*two, 0] for four, two in both)
        assert trip["properties"] == line["properties"]
    assert paths.to_geojson(kind="trips") == made


def test_kepler_plays_fractions_of_a_second():
    made = trips(times=1.7e9 + np.array([0.0, 0.25])).to_geojson(kind="trips")
    assert np.diff(kepler_trip(made)[0]) == pytest.approx([250])


def test_plain_lines_are_no_trips_and_numbers_cannot_be_played(tmp_path):
    with pytest.raises(AssertionError):
        kepler_trip(trips().to_geojson())
    with pytest.raises(InputError, match="'when' holds numbers and kepler"):
        trips(dates=False).save(tmp_path / "a.trips.geojson")
    assert list(tmp_path.iterdir()) == []


# QGIS --------------------------------------------------------------------------------------------


def test_points_have_one_field_of_dates_as_gdal_knows_them(tmp_path):
    made = read(trips(), tmp_path / "a.points.geojson")
    assert is_rfc_7946(made, "Point")
    assert len(made["features"]) == 12
    for feature in made["features"]:
        assert set(feature["properties"]) == {"path", "when", "speed"}
        assert OGR.fullmatch(feature["properties"]["when"])
    first = [datetime.fromisoformat(one["properties"]["when"]) for one in made["features"][:3]]
    assert sorted(moment.timestamp() for moment in first) == sorted(TIMES)
    assert {moment.utcoffset() for moment in first} == {UTC.utcoffset(None)}
    digits = {len(str(v).partition(".")[2]) for one in made["features"] for v in place(one)}
    assert max(digits) <= 6


def place(feature):
    return feature["geometry"]["coordinates"]


def test_gdal_reads_points_with_a_field_of_dates(tmp_path):
    pyogrio = pytest.importorskip("pyogrio", reason="GDAL comes with geopandas")
    paths = trips()
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
    values = np.where(there[..., None], trips().values, np.nan)
    paths = Paths(values, TIMES, ("lon", "lat", "speed"), "when", False, there)
    made = paths.to_geojson(kind="points")
    assert len(made["features"]) == 10
    assert [one["properties"]["path"] for one in made["features"]].count(0) == 1
    assert all(isinstance(one["properties"]["when"], float) for one in made["features"])
    assert len(paths.to_geojson()["features"]) == 3
    read(trips(times=TIMES[:1]), tmp_path / "one.points.geojson")


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
    paths = Paths(values, TIMES[:2], names, "when", True, columns=columns)
    known = [one["properties"] for one in read(paths, tmp_path / "a.points.geojson")["features"]]
    assert [one["sex"] for one in known] == ["M", "F"]
    assert [one["hb"] for one in known] == [None, 3.5]
    assert [one["born"] for one in known] == ["1970-01-01", "1970-01-02"]


# Leaflet -----------------------------------------------------------------------------------------


def test_lines_are_what_leaflet_and_its_time_dimension_read(tmp_path):
    made = read(trips(), tmp_path / "a.geojson")
    assert is_rfc_7946(made, "LineString")
    for feature in made["features"]:
        times = feature["properties"]["times"]  # one for each position, in order
        assert len(times) == len(place(feature)) == 3
        assert all(ISO.fullmatch(moment) for moment in times)  # Date.parse reads it, as UTC
        assert times == sorted(times)
