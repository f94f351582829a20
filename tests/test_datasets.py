"""Generators and loaders: shapes, statistics, and what the files must look like."""

import numpy as np
import pytest

from privtraj import datasets
from privtraj.base.errors import InputError

# Three modes ----------------------------------------------------------------------------------


def test_three_modes_means_and_variance():
    times, points = datasets.three_modes(9000, times=[0.0, 0.25, 1.0], seed=1)
    assert times.shape == (27000,)
    assert points.shape == (27000, 2)
    start, early, end = (points[times == u] for u in (0.0, 0.25, 1.0))
    np.testing.assert_allclose(start.mean(0), [-1, 0], atol=0.005)
    np.testing.assert_allclose(end.mean(0), [1, 0], atol=0.005)
    np.testing.assert_allclose(start.var(0), 0.005, rtol=0.06)
    half = np.sqrt(0.5)
    for centre in ([-half, half], [-0.5, 0], [-half, -half]):
        near = early[np.linalg.norm(early - centre, axis=1) < 0.3]
        assert len(near) == pytest.approx(3000, abs=5)
        np.testing.assert_allclose(near.mean(0), centre, atol=0.01)


def test_three_modes_are_equal_in_number():
    times, points = datasets.three_modes(11, times=7, seed=0)
    middle = points[times == 0.5]
    counts = [(middle[:, 1] > 0.5).sum(), (np.abs(middle[:, 1]) < 0.5).sum()]
    counts.append(11 - sum(counts))
    assert sorted(counts) == [3, 4, 4]


def test_three_modes_stay_in_their_bounds():
    _, points = datasets.three_modes(3000, seed=2)
    (low, high), _ = datasets.THREE_MODES_BOUNDS
    assert ((points > low) & (points < high)).all()


@pytest.mark.parametrize("dimensions", [3, 8])
def test_rotation_keeps_distances_and_noise_fills_every_dimension(dimensions):
    paths = datasets.three_modes_paths(6000, times=3, dimensions=dimensions, seed=1)
    flat = datasets.three_modes_paths(6000, times=3, seed=1)
    assert paths.shape == (6000, 3, dimensions)
    for mode in range(3):
        rows, plane = paths[mode::3], flat[mode::3]
        np.testing.assert_allclose(rows.var(0), 0.005, rtol=0.15)
        step = np.linalg.norm(rows.mean(0)[1] - rows.mean(0)[0])
        assert step == pytest.approx(np.linalg.norm(plane.mean(0)[1] - plane.mean(0)[0]), abs=0.02)


def test_the_rotation_does_not_depend_on_the_sample():
    _, small = datasets.three_modes(300, times=2, seed=1, dimensions=5)
    _, large = datasets.three_modes(3000, times=2, seed=2, dimensions=5)
    np.testing.assert_allclose(small[:300].mean(0), large[:3000].mean(0), atol=0.03)
    _, other = datasets.three_modes(3000, times=2, seed=2, dimensions=5, rotation_seed=1)
    assert np.abs(other[:3000].mean(0) - large[:3000].mean(0)).max() > 0.1


def test_paths_stay_on_their_mode():
    paths = datasets.three_modes_paths(300, times=11, seed=3)
    assert (paths[0::3, 3:8, 1] > 0.4).all()
    assert (np.abs(paths[1::3, :, 1]) < 0.4).all()
    assert (paths[2::3, 3:8, 1] < -0.4).all()
    noise = paths[1::3, :, 1]
    assert abs(np.corrcoef(noise.T)[np.triu_indices(11, 1)].mean()) < 0.05


@pytest.mark.parametrize(
    "arguments", [{"times": [0.5, 1.5]}, {"times": []}, {"times": [[0.5]]}, {"dimensions": 1}]
)
def test_three_modes_mistakes(arguments):
    with pytest.raises(InputError):
        datasets.three_modes(10, **arguments)


# Known processes ------------------------------------------------------------------------------


def test_an_ornstein_uhlenbeck_path_follows_its_mean():
    """Mean m' = 6 (c - m) solved numerically; variance tends to .4^2 / 12."""
    times = np.linspace(0, 1, 9)
    paths = datasets.process_paths("ornstein-uhlenbeck", 20_000, times, seed=1)
    mean, dt = np.array([-0.8, 0.0]), 1 / 4096
    expected = [mean]
    for k in range(4096):
        t = k * dt
        mean = mean + dt * 6 * (np.array([1.6 * t - 0.8, 0.6 * np.sin(2 * np.pi * t)]) - mean)
        if (k + 1) % 512 == 0:
            expected.append(mean)
    np.testing.assert_allclose(paths.mean(axis=0), expected, atol=0.01)
    np.testing.assert_allclose(paths[:, -1].var(axis=0), 0.16 / 12, rtol=0.05)


def test_a_double_well_splits_people_evenly_and_they_stay():
    paths = datasets.process_paths("double-well", 4000, [0.0, 0.7, 1.0], seed=2)
    side = paths[:, 1:, 0] > 0
    assert side[:, 1].mean() == pytest.approx(0.5, abs=0.04)  # five standard errors
    assert (side[:, 0] == side[:, 1]).mean() > 0.98
    assert np.abs(paths[:, 2, 0]).mean() == pytest.approx(1.0, abs=0.1)


def test_a_bifurcation_has_one_branch_early_and_two_late():
    paths = datasets.process_paths("bifurcation", 4000, [0.0, 0.3, 1.0], seed=3, dimensions=3)
    assert paths.shape == (4000, 3, 3)
    early, late = paths[:, 1, 1], paths[:, 2, 1]
    assert (np.abs(early) < 0.5).mean() > 0.95
    assert (np.abs(late) > 0.5).mean() > 0.95
    low, high = datasets.PROCESS_BOUNDS
    assert ((paths >= low) & (paths <= high)).all()


@pytest.mark.parametrize("name", datasets.PROCESSES)
def test_a_process_is_repeatable_and_starts_at_its_first_time(name):
    one, again = (datasets.process_paths(name, 50, 4, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert one[:, 0].std() == pytest.approx(datasets.process_paths(name, 50, 2, seed=5)[:, 0].std())


def test_unknown_processes_are_refused():
    with pytest.raises(InputError, match="no process 'walk'"):
        datasets.process_paths("walk", 5)
    with pytest.raises(InputError, match="at least two"):
        datasets.process_paths("bifurcation", 5, dimensions=1)


# Branching ------------------------------------------------------------------------------------


def test_branches_grow_at_their_rates():
    """Yule: variance n0/2 e^rt (e^rt - 1); four standard errors of a mean of 20 runs."""
    runs = [datasets.branching_population(200, [0.0, 0.5, 1.0], seed=k) for k in range(20)]
    counts = np.mean([run.counts for run in runs], axis=0)
    growth = np.exp(np.outer([0.0, 0.5, 1.0], datasets.BRANCH_RATES))
    expected = 100 * growth
    np.testing.assert_allclose(runs[0].expected, expected)
    np.testing.assert_allclose(runs[0].masses.sum(axis=1), 1)
    error = np.sqrt(expected * (growth - 1) / 20)
    assert (np.abs(counts - expected) <= 4 * error).all()


def test_every_cell_has_one_mother_who_had_two_daughters():
    found = datasets.branching_population(50, [0.2, 1.0], seed=1)
    parents = found.parents
    assert (parents[:50] == -1).all()
    assert (parents[50:] < np.arange(50, len(parents))).all()
    assert set(np.bincount(parents[50:])) <= {0, 2}
    assert len(parents) == found.cells.max() + 1
    alive = found.cells[found.times == 1.0]
    assert not set(alive) & set(parents)  # who has divided is gone
    assert len(alive) == found.counts[1].sum() == 50 + (len(parents) - 50) // 2
    founder = alive.copy()
    while (founder >= 50).any():
        founder = np.where(founder >= 50, parents[founder], founder)
    np.testing.assert_array_equal(founder % 2, found.branches[found.times == 1.0])


def test_branches_are_where_they_should_be_and_sisters_begin_together():
    found = datasets.branching_population(4000, [0.0, 1.0], seed=2)
    for branch, height in ((0, 0.7), (1, -0.7)):
        end = found.points[(found.times == 1.0) & (found.branches == branch)]
        np.testing.assert_allclose(end.mean(axis=0), [0.8, height], atol=0.02)
        np.testing.assert_allclose(end.std(axis=0), 0.1, rtol=0.08)
    np.testing.assert_allclose(found.points[found.times == 0].mean(axis=0), [-0.8, 0], atol=0.01)
    late = found.times == 1.0
    mothers = found.parents[found.cells[late]]
    order = np.argsort(mothers, kind="stable")
    same = np.flatnonzero(np.diff(mothers[order]) == 0)
    same = same[mothers[order][same] >= 0]
    y = found.points[late][order]
    off = y[:, 0] - 0.8
    assert np.corrcoef(off[same], off[same + 1])[0, 1] > 0.1  # 1,000 and more pairs


# Growth clinic --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clinic():
    return datasets.growth_clinic(60_000, seed=1).to_pandas()


def test_clinic_table(clinic):
    assert list(clinic.columns) == ["id", "age", "sex", "height", "weight"]
    assert clinic["id"].is_unique
    assert clinic["id"][123] == "C000123"
    assert set(clinic["sex"]) == {"F", "M"}
    assert clinic["age"].between(0, 20).all()
    for name, (low, high) in datasets.GROWTH_BOUNDS.items():
        assert clinic[name].between(low, high).all()
    assert np.histogram(clinic["age"], np.arange(21))[0].min() > 1000
    assert (clinic["age"] < 2).mean() > 0.3


@pytest.mark.parametrize(
    ("sex", "age", "height", "weight"),
    [
        ("F", 2, 85.0, 12.1),
        ("M", 2, 86.5, 12.7),
        ("F", 10, 138.0, 32.9),
        ("M", 10, 138.6, 31.9),
        ("F", 18, 163.1, 56.2),
        ("M", 18, 176.2, 67.2),
    ],
)
def test_clinic_medians_follow_the_reference(clinic, sex, age, height, weight):
    rows = clinic[(clinic["sex"] == sex) & ((clinic["age"] - age).abs() < 0.3)]
    assert rows["height"].median() == pytest.approx(height, rel=0.015)
    assert rows["weight"].median() == pytest.approx(weight, rel=0.04)


def test_clinic_spread_skewness_and_correlation(clinic):
    rows = clinic[(clinic["sex"] == "M") & (clinic["age"] > 18)]
    assert rows["height"].std() == pytest.approx(7.1, rel=0.06)
    assert rows["weight"].quantile(0.9) == pytest.approx(87, rel=0.04)
    assert rows["weight"].skew() > 0.7
    assert abs(rows["height"].skew()) < 0.15
    assert rows["height"].corr(np.log(rows["weight"])) == pytest.approx(0.64, abs=0.05)


def test_clinic_infants_lie_between_the_tabulated_ages(clinic):
    rows = clinic[(clinic["sex"] == "M") & ((clinic["age"] - 0.25).abs() < 0.05)]
    assert rows["height"].median() == pytest.approx(61.4, abs=2.0)  # WHO, three months
    assert rows["weight"].median() == pytest.approx(6.4, abs=0.6)


def test_clinic_is_reproducible():
    assert datasets.growth_clinic(50, seed=3).equals(datasets.growth_clinic(50, seed=3))
    assert not datasets.growth_clinic(50, seed=3).equals(datasets.growth_clinic(50, seed=4))


def test_children_keep_their_standard_scores():
    ages = [2.0, 6.0, 10.0, 18.0]
    paths = datasets.growth_paths(3000, ages, seed=1)
    assert paths.shape == (3000, 4, 2)
    order = np.argsort(paths[:, 0], axis=0)
    for i in range(4):
        for k in range(2):
            assert (np.diff(paths[order[:, k], i, k]) > -1e-9).all()
    # They are tangible children: medians, spread and correlation as in a clinic.
    there = datasets.growth_at(np.full(20_000, 10.0), seed=2)
    np.testing.assert_allclose(paths[:, 2].mean(axis=0), there.mean(axis=0), rtol=0.015)
    np.testing.assert_allclose(paths[:, 2].std(axis=0), there.std(axis=0), rtol=0.08)
    found, expected = (np.corrcoef(x.T)[0, 1] for x in (paths[:, 2], there))
    assert found == pytest.approx(expected, abs=0.05)


def test_the_autocorrelation_of_children_is_known():
    from scipy.stats import spearmanr

    ages, share, tau = np.array([1.0, 2.0, 5.0, 12.0]), 0.4, 3.0
    paths = datasets.growth_paths(20_000, ages, seed=3, persistence=(share, tau))
    lags = np.abs(np.subtract.outer(ages, ages))
    expected = share + (1 - share) * np.exp(-lags / tau)
    # 20,000 children: four standard errors are .03 at most
    np.testing.assert_allclose(np.corrcoef(paths[:, :, 0].T), expected, atol=0.03)
    ranks = 6 / np.pi * np.arcsin(expected / 2)
    for k in range(2):
        np.testing.assert_allclose(spearmanr(paths[:, :, k]).statistic, ranks, atol=0.03)


@pytest.mark.parametrize("ages", [[], [[1.0]], [2.0, 1.0], [-1.0, 1.0], [1.0, 21.0]])
def test_ages_of_children_are_checked(ages):
    with pytest.raises(InputError, match="ages from 0 to 20"):
        datasets.growth_paths(5, ages)


@pytest.mark.parametrize("persistence", [(-0.1, 1.0), (1.1, 1.0), (0.5, 0.0)])
def test_persistence_of_children_is_checked(persistence):
    with pytest.raises(InputError, match="pair"):
        datasets.growth_paths(5, [1.0], persistence=persistence)


# One snapshot each ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "n_times"), [(10, 10), (47, 5), (9, 4)])
def test_each_path_is_seen_at_most_once(n, n_times):
    who, when = np.meshgrid(np.arange(n), np.arange(n_times), indexing="ij")
    times, points = datasets.one_snapshot_each(np.stack([who, when], axis=2), seed=1)
    assert len(points) == n // n_times * n_times
    assert len(np.unique(points[:, 0])) == len(points)
    np.testing.assert_array_equal(times, points[:, 1])
    assert (np.bincount(times.astype(int)) == n // n_times).all()


def test_snapshot_times_and_mistakes():
    paths = np.zeros((6, 3, 2))
    times, _ = datasets.one_snapshot_each(paths, times=[0.0, 0.5, 2.0])
    np.testing.assert_array_equal(times, [0, 0, 0.5, 0.5, 2, 2])
    with pytest.raises(InputError, match="list 3 times"):
        datasets.one_snapshot_each(paths, times=[0, 1])
    for wrong in (np.zeros((6, 3)), np.zeros((2, 3, 2))):
        with pytest.raises(InputError, match="shape"):
            datasets.one_snapshot_each(wrong)


# A diabetes clinic ----------------------------------------------------------------------------


def test_diagnoses_follow_their_chain():
    """Counts in four quarters of the time against the known shares, at a false-alarm rate of 1e-6
    over all sixteen."""
    table = datasets.diabetes_clinic(40_000, seed=3).to_pandas()
    for first in range(0, 24, 6):
        there = table[(table.month >= first) & (table.month < first + 6)]
        expected = datasets.diagnosis_shares(np.linspace(first, first + 6, 101)).mean(axis=0)
        seen = [(there.diagnosis == name).mean() for name in datasets.DIAGNOSES]
        spread = np.sqrt(expected * (1 - expected) / len(there))
        assert (np.abs(seen - expected) < 5.5 * spread).all()


def test_shares_of_diagnoses_are_shares_and_change():
    shares = datasets.diagnosis_shares(np.linspace(*datasets.DIABETES_TIME_RANGE, 25))
    assert shares.shape == (25, len(datasets.DIAGNOSES))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares >= -1e-12).all()
    assert np.abs(shares[-1] - shares[0]).sum() > 0.2


def test_the_clinic_has_two_groups_and_is_what_its_declaration_says():
    from privtraj.data.snapshots import Snapshots

    table = datasets.diabetes_clinic(3000)
    hba1c = table["hba1c"].to_numpy()
    assert not ((hba1c > 6.3) & (hba1c < 7.0)).any()
    assert 0.2 < (hba1c >= 7).mean() < 0.5
    public = {"columns": datasets.DIABETES_COLUMNS, "time_range": datasets.DIABETES_TIME_RANGE}
    snapshots = Snapshots.from_table(table, time="month", person="id", **public)
    assert snapshots.features == tuple(datasets.DIABETES_COLUMNS)
    assert snapshots.axes.levels == (0, 0, 2, 2, 5)
