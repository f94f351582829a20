"""Longitudes and latitudes: which features they are, and how far apart places on the globe are."""

import numpy as np
import pytest

from privtraj.columns.precision import EARTH, KILOMETRES, degrees, kilometres, speed_unit

BERLIN, MUNICH, SYDNEY = (13.405, 52.52), (11.582, 48.135), (151.2093, -33.8688)


def test_distances_of_cities_are_those_of_atlases():
    assert kilometres(BERLIN, MUNICH) == pytest.approx(504, abs=2)
    assert kilometres(BERLIN, SYDNEY) == pytest.approx(16_090, rel=0.003)


def test_a_degree_is_shorter_along_a_parallel():
    for latitude in (0.0, 30.0, 60.0, -60.0):
        along = kilometres((10.0, latitude), (10.001, latitude))
        assert along == pytest.approx(0.001 * KILOMETRES * np.cos(np.radians(latitude)), rel=1e-6)
        assert kilometres((10.0, latitude), (10.0, latitude + 1)) == pytest.approx(KILOMETRES)


def test_halfway_around_across_the_edge_and_nowhere():
    assert kilometres((0, 0), (180, 0)) == pytest.approx(np.pi * EARTH)
    assert kilometres((179.5, 10), (-179.5, 10)) == pytest.approx(kilometres((0, 10), (1, 10)))
    assert kilometres(BERLIN, BERLIN) == 0
    assert np.isnan(kilometres((np.nan, 1), BERLIN))
    # a millimetre is not lost, as it would be with the arccosine
    assert kilometres((0, 50), (0, 50 + 1e-8)) == pytest.approx(1e-8 * KILOMETRES, rel=1e-5)


def test_it_is_the_angle_between_the_vectors():
    rng = np.random.default_rng(0)
    a, b = rng.uniform([-180, -90], [180, 90], (2, 200, 2))

    def vector(place):
        lon, lat = np.radians(place).T
        return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], 1)

    angle = np.arccos(np.clip((vector(a) * vector(b)).sum(axis=1), -1, 1))
    np.testing.assert_allclose(kilometres(a, b), EARTH * angle, atol=1e-3)


NAMED = {
    "short": (("lon", "lat"), (0, 1)),
    "other order": (("age", "Latitude", "LONGITUDE"), (2, 1)),
    "units": (("lng (deg)", "lat [degrees]"), (0, 1)),
    "a plane": (("x", "y"), None),
    "metres": (("lon (m)", "lat (m)"), None),
    "half": (("lon", "y"), None),
    "neither": (("height", "weight"), None),
}


@pytest.mark.parametrize(("features", "expected"), NAMED.values(), ids=NAMED)
def test_degrees_are_known_by_name(features, expected):
    assert degrees(features, np.tile([0.0, 10.0], (len(features), 1))) == expected


@pytest.mark.parametrize(
    ("lon", "lat", "known"),
    [
        ((170, 190), (-20, -10), True),  # across the 180th meridian
        ((0, 360), (-90, 90), True),
        ((-200, 200), (-10, 10), False),
        ((0, 4e5), (5e6, 6e6), False),
        ((0, 10), (80, 95), False),
    ],
)
def test_degrees_must_be_on_the_globe(lon, lat, known):
    assert (degrees(("lon", "lat"), np.array([lon, lat], float)) is not None) == known


def test_speeds_say_their_unit():
    assert speed_unit("when", True) == "km/h"
    assert speed_unit("hour", False) == "km per unit of hour"
