"""Lengths and speeds, kilometres, and who stays who, on paths whose answers are known."""

import numpy as np
import pytest

import privtraj as pt
from privtraj import datasets, metrics
from privtraj.columns.precision import kilometres
from privtraj.metrics.table import Score

BOUNDS = [(-1.5, 1.5)] * 2


def lines(n, times, seed=0):
    """Paths (n, T, 2) along straight lines, with the lengths (n,) of their velocities."""
    velocity = np.random.default_rng(seed).standard_normal((n, 2))
    return np.asarray(times)[None, :, None] * velocity[:, None], np.linalg.norm(velocity, axis=1)


def test_straight_lines_have_their_lengths_and_speeds_at_any_times():
    times = np.array([0.0, 0.5, 2.0, 3.0])
    paths, speed = lines(7, times)
    np.testing.assert_allclose(metrics.path_lengths(paths), 3 * speed)
    np.testing.assert_allclose(metrics.speeds(paths, times=times), np.repeat(speed, 3))


def test_distances_are_in_shares_of_the_box_where_there_is_one():
    paths, speed = lines(5, [0.0, 0.1])
    np.testing.assert_allclose(metrics.path_lengths(paths, bounds=BOUNDS), speed / 10 / 3)
    wide = [(-15.0, 15.0), (-1.5, 1.5)]
    stretched = paths * np.array([10.0, 1.0])
    np.testing.assert_allclose(
        metrics.path_lengths(stretched, bounds=wide), metrics.path_lengths(paths, bounds=BOUNDS)
    )


def test_speeds_of_dates_are_per_hour():
    days = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")
    assert metrics.speeds(np.array([[0.0, 48.0]]), times=days) == pytest.approx([2.0])


def test_ratios_are_those_of_scaled_paths():
    paths = np.random.default_rng(0).standard_normal((50, 6, 2)).cumsum(axis=1)
    for ratio in (metrics.length_ratio, metrics.speed_ratio, metrics.fast_speed_ratio):
        assert ratio(paths, paths) == pytest.approx(1.0)
        assert ratio(3 * paths, paths) == pytest.approx(3.0)
        assert ratio(paths, 3 * paths) == pytest.approx(1 / 3)


def test_speed_quantiles_are_of_all_steps():
    real = np.stack([np.zeros(101), np.arange(101.0)], axis=1)  # 95 % of 101 steps: up to 95
    ours = real.copy()
    ours[95:, 1] *= 2
    assert metrics.speed_ratio(ours, real) == 1.0
    assert metrics.fast_speed_ratio(ours, real) == 2.0
    assert metrics.speed_ratio(ours, real, quantile=1.0) == 2.0
    assert metrics.speed_ratio(ours, real, quantile=0.94) == 1.0


def test_still_people_have_numbers():
    still, moving = np.ones((4, 3, 2)), lines(4, [0.0, 1.0, 2.0])[0]
    for ratio in (metrics.length_ratio, metrics.speed_ratio, metrics.fast_speed_ratio):
        assert ratio(still, still) == 1.0
        assert ratio(moving, still) == 1000.0
        assert ratio(still, moving) == 1 / 1000


def test_steps_from_and_to_an_absence_do_not_count():
    times = np.arange(6.0)
    paths, speed = lines(3, times)
    paths[1, 2] = np.nan
    paths[2, :5, 1] = np.nan  # absent in one feature is absent
    lengths = metrics.path_lengths(paths)
    np.testing.assert_allclose(lengths[:2], [5 * speed[0], 3 * speed[1]])
    assert np.isnan(lengths[2])
    np.testing.assert_allclose(metrics.speeds(paths), np.repeat(speed[:2], [5, 3]))
    whole, _ = lines(2, times)
    assert metrics.length_ratio(paths, whole) == pytest.approx(
        (5 * speed[0] + 3 * speed[1]) / (5 * speed[0] + 5 * speed[1])
    )
    assert metrics.speed_ratio(np.full((2, 6, 2), np.nan), whole) == 1 / 1000


def test_the_gap_of_a_ratio_does_not_depend_on_its_side():
    high, low = (Score("r", "r", v, 1.0, 4.0, "1").gap for v in (2.0, 0.5))
    assert high == low == pytest.approx(0.5)


def test_on_the_globe_lengths_and_speeds_are_kilometres():
    ways = np.array([[[0.0, 0.0, 5.0], [1.0, 0.0, 9.0], [1.0, 1.0, 1.0]]])  # a degree each
    degree = 6371.0088 * np.pi / 180
    np.testing.assert_allclose(metrics.path_lengths(ways, globe=(0, 1)), [2 * degree])
    found = metrics.speeds(ways, times=[0.0, 1.0, 3.0], globe=(0, 1))
    np.testing.assert_allclose(found, [degree, degree / 2])
    north = ways + np.array([0.0, 60.0, 0.0])  # where meridians are half as far apart
    assert metrics.path_lengths(north, globe=(0, 1))[0] == pytest.approx(1.5 * degree, rel=1e-4)
    swapped = metrics.path_lengths(ways[:, :, [1, 0, 2]], globe=(1, 0))
    np.testing.assert_allclose(swapped, [2 * degree])
    gone = np.where(np.arange(3)[:, None] == 2, np.nan, ways)
    assert metrics.path_lengths(gone, globe=(0, 1))[0] == pytest.approx(degree)


# On the ground ---------------------------------------------------------------------------------


PLACES = (pt.Number(13.0, 14.0, "lon"), pt.Number(0.0, 100.0, "age"), pt.Number(52.0, 53.0, "lat"))


def walks(n, seed, scale):
    """Paths (n, 5, 3) in the unit cube."""
    rng = np.random.default_rng(seed)
    return np.clip(0.5 + np.cumsum(rng.normal(0, scale, (n, 5, 3)), axis=1), 0, 1)


def test_lengths_and_speeds_are_those_of_the_places():
    synthetic, real = walks(60, 0, 0.04), walks(80, 1, 0.02)
    times = 3600.0 * np.arange(5) / 2  # every half hour
    found = metrics.ground(synthetic, real, PLACES, times, "when", True)
    for side, paths in enumerate((synthetic, real)):
        places = np.array([13.0, 52.0]) + paths[..., [0, 2]]
        steps = kilometres(places[:, :-1], places[:, 1:])
        assert found.length[side] == pytest.approx(np.median(steps.sum(axis=1)))
        assert found.speed[side] == pytest.approx(np.median(2 * steps))
        assert found.fast[side] == pytest.approx(np.quantile(2 * steps, 0.95))
    assert found.length[0] > 1.5 * found.length[1]
    assert "km/h" in str(found)
    assert "of real people" in str(found)
    assert found.unit == "km/h"


def test_numbers_of_time_have_a_unit_of_their_own():
    found = metrics.ground(walks(9, 0, 0.1), walks(9, 1, 0.1), PLACES, np.arange(5.0), "h", False)
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


# Who stays who ---------------------------------------------------------------------------------


def autoregressive(n, times, keep, seed=0):
    """Paths (n, T, 1) with corr(x_i, x_j) = keep^|i - j| and a mean and spread of each time."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, times))
    for i in range(1, times):
        x[:, i] = keep * x[:, i - 1] + np.sqrt(1 - keep**2) * x[:, i]
    return (x * (1 + np.arange(times)) + 100 * np.arange(times))[..., None]


def test_an_autoregressive_process_has_its_powers():
    found = metrics.autocorrelation(autoregressive(40_000, 5, 0.8))
    assert found.shape == (4, 1)
    np.testing.assert_allclose(found[:, 0], 0.8 ** np.arange(1, 5), atol=0.02)  # 4 standard errors


def test_it_is_the_mean_of_pearsons_correlations():
    paths = np.random.default_rng(1).standard_normal((30, 4, 2)).cumsum(axis=1)
    found = metrics.autocorrelation(paths)
    for k in range(2):
        corr = np.corrcoef(paths[:, :, k].T)
        expected = [np.diagonal(corr, h).mean() for h in (1, 2, 3)]
        np.testing.assert_allclose(found[:, k], expected)


def test_uneven_times_are_compared_by_time():
    x = autoregressive(500, 4, 0.5)[..., 0]
    times = [0.0, 1.0, 2.0, 6.0]  # a mean gap of 2: lags 1, 1, 1, 2, 2 and 3 of it, rounded
    found = metrics.autocorrelation(x, times=times)[:, 0]
    corr = np.corrcoef(x.T)
    np.testing.assert_allclose(
        found,
        [
            np.mean([corr[0, 1], corr[1, 2], corr[0, 2]]),
            np.mean([corr[2, 3], corr[1, 3]]),  # 5 / 2 is rounded to the even 2
            corr[0, 3],
        ],
    )
    far = metrics.autocorrelation(x, times=[0.0, 0.1, 0.2, 9.0])
    assert np.isnan(far[1, 0])  # a mean gap of 3, and no lag near 6
    assert np.isfinite(metrics.autocorrelation_error(x, x[::2], times=[0.0, 0.1, 0.2, 9.0]))


def test_children_who_keep_their_scores_have_correlation_one_and_shuffled_ones_none():
    children = datasets.growth_paths(2000, [2.0, 6.0, 10.0, 14.0], seed=0)
    shuffled = metrics.randomly_coupled(children)
    assert np.abs(metrics.autocorrelation(shuffled)).max() < 0.1  # four standard errors
    assert metrics.autocorrelation_error(shuffled, children) > 0.9
    expected = np.abs(metrics.autocorrelation(shuffled) - metrics.autocorrelation(children))
    assert metrics.autocorrelation_error(shuffled, children) == pytest.approx(expected.max())


def test_still_people_and_people_who_do_not_differ():
    own = np.random.default_rng(0).random((20, 1, 1)).repeat(3, axis=1)
    np.testing.assert_allclose(metrics.autocorrelation(own), 1.0)  # everybody stays where they are
    same = np.full((20, 3, 1), 0.1)
    np.testing.assert_array_equal(metrics.autocorrelation(same), 0.0)
    assert metrics.autocorrelation_error(same, own) == pytest.approx(1.0)


def test_large_values_lose_nothing():
    x = autoregressive(300, 3, 0.7)
    np.testing.assert_allclose(
        metrics.autocorrelation(x + 1e9), metrics.autocorrelation(x), atol=1e-6
    )


def test_pairs_of_times_are_judged_by_the_people_who_are_there_at_both():
    x = autoregressive(400, 3, 0.6, seed=2)
    x[:150, 0] = np.nan
    x[350:, 2] = np.nan
    values = x[..., 0]
    both = [np.isfinite(values[:, [i, j]]).all(axis=1) for i, j in ((0, 1), (1, 2), (0, 2))]
    near = [
        np.corrcoef(values[some][:, [i, j]].T)[0, 1]
        for some, (i, j) in zip(both, ((0, 1), (1, 2), (0, 2)), strict=True)
    ]
    weights = [250, 350]
    expected = [np.average(near[:2], weights=weights), near[2]]
    np.testing.assert_allclose(metrics.autocorrelation(x)[:, 0], expected)
    nobody = np.full((5, 3, 1), np.nan)
    assert metrics.autocorrelation_error(nobody, x) == 0.0  # nothing to compare
