"""Longitude and latitude: coasts and borders, what a window shows of them, ways in kilometres."""

import base64
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.path import Path
from scipy.spatial import KDTree

from privtraj.base.space import from_unit
from privtraj.columns.precision import kilometres
from privtraj.domain.domain import Domain
from privtraj.report import maps
from privtraj.report.maps import (
    FILE,
    FINEST,
    backdrops,
    draw_backdrop,
    framed,
    level_of,
    outlines,
    ways,
    window,
)
from privtraj.report.people import sampled

LARGEST = 350_000  # bytes of the package
ASSETS = files("privtraj.report") / "assets"
WORLD = (-180.0, 180.0, -90.0, 90.0)

LAND = {
    "Berlin": (13.4, 52.52), "Madrid": (-3.7, 40.42), "Nairobi": (36.82, -1.29),
    "Chicago, west": (-88.5, 41.9), "Alice Springs": (133.88, -23.7), "South Pole": (10, -89.5),
    "Chukotka, across the edge": (-175.0, 66.6), "La Paz": (-68.15, -16.5),
}  # fmt: skip
SEA = {
    "Atlantic": (-40, 30), "Pacific": (-150, 0), "North Sea": (3, 56.5), "Baltic": (19, 57),
    "Gulf of Mexico": (-90, 25), "across the edge": (179.9, 30), "North Pole": (0, 89.5),
    "Adriatic": (15.5, 43.0),
}  # fmt: skip


def on_land(found, places):
    """By the even-odd rule, as pictures are filled; places (2,) or (n, 2)."""
    rows = np.reshape(places, (-1, 2))
    rings = sum((Path(ring).contains_points(rows) for ring in found[0]), np.zeros(len(rows), int))
    return np.reshape(rings % 2 == 1, np.shape(places)[:-1])


@pytest.fixture(scope="module")
def world():
    return outlines(WORLD)


@pytest.mark.parametrize("name", LAND)
def test_land_is_land(world, name):
    assert on_land(world, LAND[name])
    assert on_land(outlines(around(LAND[name], 2)), LAND[name])


@pytest.mark.parametrize("name", SEA)
def test_sea_is_sea(world, name):
    assert not on_land(world, SEA[name])
    assert not on_land(outlines(around(SEA[name], 2)), SEA[name])


def around(place, half):
    lon, lat = place
    return lon - half, lon + half, max(lat - half, -90), min(lat + half, 90)


def test_longitudes_may_count_on_across_the_edge_of_the_world():
    fiji = outlines((175.0, 185.0, -20.0, -14.0))
    assert on_land(fiji, (178.0, -17.8))  # Viti Levu
    assert on_land(outlines((-185.0, -175.0, -20.0, -14.0)), (-182.0, -17.8))
    assert on_land(outlines((0.0, 360.0, -90.0, 90.0)), (240.0, 40.0))  # Nevada


BORDERS = {  # a town at the border, and how far from it the border is at most, km
    "Frankfurt (Oder)": (14.55, 52.345),
    "Kehl": (7.80, 48.575),
    "Niagara Falls": (-79.07, 43.09),
    "Chiasso": (9.03, 45.835),
}


@pytest.mark.parametrize("name", BORDERS)
def test_borders_are_near_their_towns(name):
    town = BORDERS[name]
    found = outlines(around(town, 0.5))
    away = min(to_line(town, line) for line in found[1])
    assert away < 3


def to_line(place, line):
    ways = [
        start + np.linspace(0, 1, 400)[:, None] * (end - start) for start, end in pairwise(line)
    ]
    return float(kilometres(np.concatenate(ways), place).min())


COASTS = {  # capes and harbours on the open sea
    "Cabo da Roca": (-9.500, 38.781),
    "Land's End": (-5.716, 50.066),
    "Cape of Good Hope": (18.474, -34.357),
    "Barcelona": (2.190, 41.376),
}


@pytest.mark.parametrize("name", COASTS)
def test_coasts_are_true_to_two_kilometres(name):
    found = outlines(around(COASTS[name], 1))
    assert min(to_line(COASTS[name], closed(ring)) for ring in found[0]) < 2.5


def closed(ring):
    return np.concatenate([ring, ring[:1]])


def test_a_window_holds_what_is_in_it_and_nothing_else(world):
    rng = np.random.default_rng(1)
    drawn, shown = [], []
    for _ in range(25):
        west, south = rng.uniform(-180, 150), rng.uniform(-85, 60)
        window = (west, west + rng.uniform(1, 30), south, south + rng.uniform(1, 25))
        found = outlines(window)
        frame = np.array(framed(window))
        for line in (*found[0], *found[1]):
            assert (line >= frame[::2] - 1e-9).all()
            assert (line <= frame[1::2] + 1e-9).all()
        drawn.append(rng.uniform(window[::2], window[1::2], (40, 2)))
        shown.append(on_land(found, drawn[-1]))
    places, land = np.concatenate(drawn), np.concatenate(shown)
    # the world is drawn more coarsely: places that are well inside or outside agree
    far = to_corners(places, world) > 0.3
    assert far.mean() > 0.5
    np.testing.assert_array_equal(land[far], on_land(world, places[far]))


def to_corners(places, found):
    """(n,) degrees to the nearest corner of a coast, along the farther axis."""
    return KDTree(np.concatenate(found[0])).query(places, p=np.inf)[0]


def test_lines_that_cross_a_window_without_a_corner_in_it_are_there():
    found = outlines((26.0, 30.0, 21.5, 22.5))  # the border of Egypt and Sudan is a parallel
    assert len(found[1]) >= 1
    assert any(np.ptp(line[:, 0]) == pytest.approx(5.0) for line in found[1])
    assert on_land(found, (28.0, 22.1))


def test_in_the_middle_of_a_sea_there_is_nothing():
    window = (-41.0, -40.0, 30.0, 31.0)
    rng = np.random.default_rng(0)
    assert not on_land(outlines(window), rng.uniform(window[::2], window[1::2], (50, 2))).any()
    assert outlines((13.0, 13.5, 52.0, 52.5))[0]  # all of it land, without a coast


def test_coarse_maps_are_made_of_points_of_fine_ones(world):
    inside = (-10.0, 0.0, 35.0, 44.0)  # Iberia
    coarse, fine = (corners(found, inside) for found in (world, outlines((-11.0, 1.0, 34.0, 45.0))))
    assert 50 < len(coarse) < len(fine) / 2
    assert coarse <= fine
    np.testing.assert_array_equal(
        level_of(FINEST * np.array([1, 1.9, 2, 5, 1e9])), [0, 0, 1, 2, 15]
    )


def corners(found, inside):
    points = np.concatenate(found[0])
    low, high = np.array(inside[::2]), np.array(inside[1::2])
    kept = ((points > low) & (points < high)).all(axis=1)
    return set(map(tuple, points[kept].round(6)))


def test_the_file_is_small_and_says_where_it_is_from():
    assert (ASSETS / FILE).stat().st_size < LARGEST
    words = (ASSETS / "coastline.txt").read_text("utf-8")
    for needed in (
        "Natural Earth",
        "public domain",
        "world-atlas 2.0.2",
        "experiments/coastline.py",
    ):
        assert needed in words


# Pictures --------------------------------------------------------------------------------------

EUROPE = np.array([[-10.0, 30.0], [36.0, 60.0]])


@pytest.fixture(scope="module")
def model(made_model):
    return made_model(features=("lon", "lat"), bounds=EUROPE, dates=True, times=4)


def test_a_window_holds_the_box_and_is_wide_enough_for_any_picture():
    for bounds in (
        EUROPE,
        np.array([[13.0, 13.1], [52.0, 53.0]]),
        np.array([[0.0, 9.0], [5.0, 6.0]]),
    ):
        west, east, south, north = window(bounds)
        assert west <= bounds[0, 0] < bounds[0, 1] <= east
        assert south <= bounds[1, 0] < bounds[1, 1] <= north
        shrink = np.cos(np.radians(bounds[1].mean()))
        sides = (east - west) * shrink, north - south
        assert sides[0] == pytest.approx(sides[1], rel=1e-6) or north == 90
        assert max(sides) >= 2 * max(np.ptp(bounds[0]) * shrink, np.ptp(bounds[1])) - 1e-9
    assert window(np.array([[-180.0, 180.0], [-80.0, 80.0]])) == (-180, 180, -90, 90)


def test_a_page_holds_the_outlines_of_its_window(model):
    (made,) = backdrops(sampled(model), None)
    assert made["axes"] == (0, 1)
    for layer in made["layers"].values():
        points = np.frombuffer(base64.b64decode(layer["points"]), "<u2")
        assert len(points) == 2 * sum(layer["sizes"]) > 500
    assert len(made["layers"]["land"]["points"]) < 300_000


@pytest.mark.parametrize("kind", ["area", "network"])
def test_a_domain_is_behind_the_people(made_model, kind):
    shown = sampled(made_model(features=("x", "y"), bounds=EUROPE))
    (west, east), (south, north) = EUROPE
    ends = np.array([[west - 9, south], [east, south], [east, north]])
    edges = np.stack([ends, np.roll(ends, -1, axis=0)], axis=1)
    (made,) = backdrops(shown, Domain(kind, edges.reshape(-1, 4), "x", "y"))
    assert (made["axes"], made["globe"], list(made["layers"])) == ((0, 1), False, [kind])
    shares = np.frombuffer(base64.b64decode(made["layers"][kind]["points"]), "<u2") / 65535
    assert (shares.min(), shares.max()) == (0, 1)  # cut at the box
    assert len(shares) == 2 * sum(made["layers"][kind]["sizes"])


def test_other_features_have_no_map(made_model):
    shown = sampled(made_model(features=("x", "y"), bounds=EUROPE))
    assert backdrops(shown, None) == []
    assert ways(shown, "age", False) is None


def test_ways_are_kilometres_of_the_people_drawn(model):
    shown = sampled(model)
    found = ways(shown, model.time_name, True)
    places = from_unit(shown.people, shown.bounds)
    lengths = kilometres(places[:, :-1], places[:, 1:]).sum(axis=1)
    assert float(found["usual"]) == pytest.approx(np.median(lengths), rel=0.05)
    assert float(found["low"]) <= float(found["usual"]) <= float(found["high"])
    whole = lengths.sum() / (len(lengths) * (shown.times[-1] - shown.times[0]) / 3600)
    assert float(found["speed"]) == pytest.approx(whole, rel=0.3)  # the median of near the mean
    assert found["unit"] == "km/h"


def test_a_figure_keeps_its_limits_and_gets_land_and_sea():
    axes = Figure().add_subplot()
    axes.set(xlim=(-11, -7), ylim=(36, 42))
    draw_backdrop(axes)
    assert axes.get_xlim() == (-11, -7)
    assert axes.get_ylim() == (36, 42)
    (land,) = axes.patches
    assert land.get_path().contains_point((-8.0, 39.5))
    assert not land.get_path().contains_point((-10.5, 38.5))
    assert len(axes.collections) == 1  # borders
    assert np.allclose(
        axes.get_facecolor()[:3], [int(maps.SEA[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    )


def test_a_page_with_places_says_whose_map_it_is(reports):
    assert "Natural Earth" in reports("map")[1].html()
    assert "Natural Earth" not in reports("plane")[1].html()
    sizes = [len(reports(name)[1].html()) for name in ("map", "plane")]
    assert sizes[0] - sizes[1] < 150_000
