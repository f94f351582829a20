"""People who return: they wait, go, and are home when a period ends."""

import numpy as np
import pytest

import privtraj as pt
from privtraj.motion.process import Scale

HOMES = np.array([[0.2, 0.2], [0.8, 0.2], [0.2, 0.8]])
WORK = np.array([0.6, 0.6])
STOPS = np.array([0.0, 0.3, 0.5, 0.7, 1.0])
AWAY = (0.0, 0.2, 0.8, 0.3, 0.0)  # shares of the people who are at work
UNIT = Scale(np.array([[0.0, 1.0]] * 2), 0.0, 1.0)


def city(shares, people=600):
    """Clouds (K, n, 2) of people in three districts, of whom shares (K,) are at work; nobody knows
    who was who."""
    rng = np.random.default_rng(0)
    clouds = []
    for share in shares:
        home = HOMES[rng.permutation(np.arange(people) % 3)]
        places = np.where(np.arange(people)[:, None] < share * people, WORK, home)
        clouds.append(rng.permutation(places + rng.normal(0, 0.02, places.shape)))
    return np.stack(clouds)


@pytest.fixture(scope="module")
def paths():
    return pt.Cycle(1.0, trips=1.0).within(UNIT).rounds(city(AWAY), STOPS, None)


def at_work(places):
    return np.linalg.norm(places - WORK, axis=-1) < 0.2


def test_everybody_is_back_when_the_period_ends(paths):
    values, stops = paths
    np.testing.assert_array_equal(stops, STOPS)
    np.testing.assert_array_equal(values[:, 0], values[:, -1])
    assert at_work(values[:, 2]).any()


def test_the_released_shares_are_kept(paths):
    for k, share in enumerate(AWAY):
        assert at_work(paths[0][:, k]).mean() == pytest.approx(share, abs=0.08)


def test_people_wait_or_go(paths):
    """Least action would move everybody; here some stay from stop to stop, and
    whoever stays is at the very same place."""
    steps = np.linalg.norm(np.diff(paths[0], axis=1), axis=2)
    assert (steps == 0).mean() > 0.3
    read = np.linspace(0, 1, 400)
    process = pt.Cycle(1.0, trip=0.02).within(UNIT)
    moved = process.through(*paths, read, np.random.default_rng(1))
    np.testing.assert_allclose(moved[:, [0, -1]], paths[0][:, [0, -1]])
    speed = np.linalg.norm(np.diff(moved, axis=1), axis=2) / np.diff(read)
    assert (speed == 0).mean() > 0.9
    trip = steps[steps > 0].mean() / 0.02
    assert np.quantile(speed[speed > 0], 0.9) == pytest.approx(trip, rel=0.05)


def test_trips_are_made_in_the_middle_of_a_period_and_half_of_those_from_elsewhere_lead_home():
    """Where people always are alike, what they do is the process."""
    stops = np.linspace(0, 1, 17)
    paths, _ = pt.Cycle(1.0).within(UNIT).rounds(np.repeat(city([0.3]), 17, axis=0), stops, None)
    goes = np.linalg.norm(np.diff(paths, axis=1), axis=2) > 0
    early, midday = goes[:, :2].mean(), goes[:, 7:9].mean()
    assert early < midday / 5
    away = (paths[:, 7:9] != paths[:, :1]).any(axis=2)
    home = (paths[:, 8:10] == paths[:, :1]).all(axis=2)
    assert home[goes[:, 7:9] & away].mean() == pytest.approx(0.55, abs=0.1)


def test_whoever_reaches_less_far_works_nearer():
    shares = (0.0, 0.5, 0.0)
    here, far = np.array([0.2, 0.2]), np.array([0.8, 0.8])
    rng = np.random.default_rng(0)
    side = rng.random((3, 600, 1)) < 0.5  # two towns, a work place beside each
    out = (np.arange(600) < 300)[:, None] & (np.array(shares) > 0)[:, None, None]
    clouds = np.where(side, here, far) + out * np.array([0.15, -0.15])
    crossed = []
    for reach in (0.1, 10.0):
        process = pt.Cycle(1.0, reach=reach).within(UNIT)
        values, _ = process.rounds(clouds, np.array([0.0, 0.5, 1.0]), None)
        crossed.append((np.linalg.norm(values[:, 1] - values[:, 0], axis=1) > 0.4).mean())
    assert crossed[0] < 0.05 < crossed[1]


def test_several_periods_end_at_the_same_place():
    days = np.array([*AWAY[:-1], *AWAY])
    clock = np.linspace(0, 1, len(days))
    values, _ = pt.Cycle(12.0).within(Scale(UNIT.bounds, 3.0, 24.0)).rounds(city(days), clock, None)
    np.testing.assert_array_equal(values[:, 0], values[:, 4])
    np.testing.assert_array_equal(values[:, 0], values[:, 8])


def test_whoever_was_counted_once_stays():
    """One window, and curves through it."""
    knots = np.stack([city((0.3,))[0]] * 2)
    paths, stops = pt.Cycle(1.0).within(UNIT).rounds(knots, np.array([0.0, 1.0]), np.array([0, 1]))
    np.testing.assert_array_equal(paths[:, 0], paths[:, 1])
    assert list(stops) == [0.0, 1.0]


def test_a_model_samples_a_day_and_says_what_it_assumes(tmp_path, mobility_model):
    model = mobility_model.with_reference("cycle period=1")
    drawn = model.sample(500, np.linspace(0, 1, 101), seed=0).values
    assert np.median(np.linalg.norm(drawn[:, 0] - drawn[:, -1], axis=1)) < 1e-6
    model.save(tmp_path / "day.privtraj", not_private=True)
    again = pt.load(tmp_path / "day.privtraj")
    np.testing.assert_array_equal(again.sample(9, seed=1).values, model.sample(9, seed=1).values)
    wanted = 4 * len(model.knots)
    carried = model.carried(10**5, 50, wanted)
    assert not carried.spline
    assert 3 * len(model.knots) < len(carried.stops) <= wanted
    model.report(tmp_path / "day.html")
    assert "back after every period" in (tmp_path / "day.html").read_text("utf-8")


def test_whoever_waits_is_where_a_window_shows_them_until_it_ends():
    """Curves through the windows would be between town and work, where nobody is."""
    waiting, flowing = (fitted(reference) for reference in ("cycle period=1", "auto"))
    np.testing.assert_array_equal(waiting.particles[::2], waiting.particles[1::2])
    assert (waiting.particles[1:-1:2] != waiting.particles[2::2]).any()
    np.testing.assert_allclose(waiting.knots[1:-1:2], waiting.knots[2::2], atol=1e-5)

    def nowhere(model):
        places = np.stack([*HOMES, WORK])[:, None, None]
        return (np.linalg.norm(model.particles - places, axis=-1).min(axis=0) > 0.15).mean()

    assert nowhere(waiting) < nowhere(flowing) / 2


@pytest.fixture(scope="module")
def mobility_model():
    return fitted("auto")


def fitted(reference):
    rng = np.random.default_rng(3)
    times = rng.random(3000)
    out = rng.random(3000) < np.interp(times, STOPS, AWAY)
    home = HOMES[rng.integers(3, size=3000)]
    points = np.where(out[:, None], WORK, home) + rng.normal(0, 0.03, (3000, 2))
    snaps = pt.Snapshots.from_arrays(times, points, bounds=[(0, 1)] * 2, time_range=(0, 1))
    return pt.TrajectorySynthesizer(2.0, 1e-5, seed=0, reference=reference).fit(snaps)
