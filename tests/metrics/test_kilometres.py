"""Kilometres and speeds of an evaluation: what is known of places, and said of them."""

import numpy as np
import pytest

import privtraj as pt
from privtraj import metrics
from privtraj.columns.precision import kilometres

COLUMNS = (pt.Number(13.0, 14.0, "lon"), pt.Number(0.0, 100.0, "age"), pt.Number(52.0, 53.0, "lat"))


def walks(n, seed, scale):
    """Paths (n, 5, 3) in the unit cube."""
    rng = np.random.default_rng(seed)
    return np.clip(0.5 + np.cumsum(rng.normal(0, scale, (n, 5, 3)), axis=1), 0, 1)


def test_lengths_and_speeds_are_those_of_the_places():
    synthetic, real = walks(60, 0, 0.04), walks(80, 1, 0.02)
    times = 3600.0 * np.arange(5) / 2  # every half hour
    found = metrics.ground(synthetic, real, COLUMNS, times, "when", True)
    for side, paths in enumerate((synthetic, real)):
        places = np.array([13.0, 52.0]) + paths[..., [0, 2]]
        steps = kilometres(places[:, :-1], places[:, 1:])
        assert found.length[side] == pytest.approx(np.median(steps.sum(axis=1)))
        assert found.speed[side] == pytest.approx(np.median(2 * steps))
        assert found.fast[side] == pytest.approx(np.quantile(2 * steps, 0.95))
    assert found.length[0] > 1.5 * found.length[1]
    assert "km/h" in str(found)
    assert "of real people" in str(found)
    assert found.to_dict()["unit"] == "km/h"


def test_numbers_of_time_have_a_unit_of_their_own():
    found = metrics.ground(walks(9, 0, 0.1), walks(9, 1, 0.1), COLUMNS, np.arange(5.0), "h", False)
    assert found.unit == "km per unit of h"


@pytest.mark.parametrize(
    "columns",
    [
        (pt.Number(0, 1, "x"), pt.Number(0, 1, "age"), pt.Number(0, 1, "y")),
        (pt.Number(0, 1e6, "lon"), pt.Number(0, 1, "age"), pt.Number(0, 1e6, "lat")),
    ],
)
def test_other_places_have_no_kilometres(columns):
    paths, times = walks(9, 0, 0.1), np.arange(5.0)
    assert metrics.ground(paths, paths, columns, times, "hour", False) is None


def test_an_evaluation_of_places_says_kilometres():
    rng = np.random.default_rng(0)
    n, times = 120, np.arange(3.0)
    start = rng.normal([13.4, 52.5], 0.05, (n, 1, 2))
    way = start + 0.02 * times[:, None] * rng.normal(1, 0.2, (n, 1, 2))
    table = {
        "who": np.repeat(np.arange(n), 3),
        "hour": np.tile(times, n),
        "lon": way[..., 0].ravel(),
        "lat": way[..., 1].ravel(),
    }
    snaps = pt.Snapshots.from_table(
        table,
        time="hour",
        person="who",
        records_per_person=3,
        bins=times,
        bounds={"lon": (13, 14), "lat": (52, 53)},
    )
    model = pt.TrajectorySynthesizer(epsilon=8.0, delta=1e-3, seed=0).fit(snaps)
    found = metrics.evaluate(model, table, person="who", n=60)
    assert found.ground.unit == "km per unit of hour"
    steps = kilometres(way[:, :-1], way[:, 1:])
    assert found.ground.length[1] == pytest.approx(np.median(steps.sum(axis=1)), rel=0.1)
    assert str(found.ground) in str(found)
    assert found.to_dict()["ground"]["length"][0] == found.ground.length[0]
