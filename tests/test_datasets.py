"""Generators and loaders: shapes, statistics, and what the files must look like."""

import numpy as np
import pytest

from privtraj import datasets
from privtraj.errors import InputError

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


# Pen strokes ----------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path):
    values = np.random.default_rng(0).random((5, 10, 2)).astype(np.float32)
    np.savez(tmp_path / "s.npz", d3_T10=values, d6_T15=np.zeros((2, 15, 2)), d3_nstrokes=[1])
    return tmp_path / "s.npz", values


def test_strokes_from_npz(archive):
    path, values = archive
    np.testing.assert_array_equal(datasets.strokes(path, 3), values)
    assert datasets.strokes(str(path), 6, 15).dtype == np.float32


@pytest.mark.parametrize(("digit", "times"), [(4, 10), (3, 15)])
def test_strokes_that_the_archive_lacks(archive, digit, times):
    with pytest.raises(InputError, match=f"digit {digit} at {times} times: it has d3_T10, d6_T15"):
        datasets.strokes(archive[0], digit, times)


@pytest.fixture
def sequences(tmp_path):
    lines = {0: "18,4\n17,5\n16,5\n-1,-1\n10,20\n1,28\n-2,-2", 1: "5,5\n-2,-2", 2: "9,9\n-2,-2"}
    for k, points in lines.items():
        (tmp_path / f"trainimg-{k}-points.txt").write_text(f"x,y\n{points}\n")
        onehot = ["0"] * 14
        onehot[[6, 1, 6][k]] = "1"
        (tmp_path / f"trainimg-{k}-targetdata.txt").write_text(" ".join(onehot) + "\n")
    (tmp_path / "trainlabels.txt").write_text("6\n1\n6\n")
    return tmp_path


@pytest.mark.parametrize("labels", ["listed", "in the targets"])
def test_strokes_from_a_directory(sequences, labels):
    if labels == "in the targets":
        (sequences / "trainlabels.txt").unlink()
    found = datasets.strokes(sequences, 6, times=3)
    assert found.shape == (2, 3, 2)
    assert found.dtype == np.float32
    # Pixel (column 17, row 3) counted from 0 is written 18,4.
    expected = [[17.5, 3.5], [15.5, 4.5], [0.5, 27.5]]
    np.testing.assert_allclose(found[0] * 28, np.array(expected) * [1, -1] + [0, 28], rtol=1e-5)
    assert (found[1] == found[1][0]).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_stroke_directory_mistakes(sequences, tmp_path):
    with pytest.raises(InputError, match="no strokes of digit 4: it has digits 1, 6"):
        datasets.strokes(sequences, 4)
    with pytest.raises(InputError, match=r"no files testimg-\*-points"):
        datasets.strokes(sequences, 6, split="test")
    with pytest.raises(InputError, match="at least one point"):
        datasets.strokes(sequences, 6, times=0)
    (sequences / "trainimg-0-points.txt").write_text("x,y\n-2,-2\n")
    with pytest.raises(InputError, match="has no pen points"):
        datasets.strokes(sequences, 6)
    (sequences / "trainlabels.txt").write_text("6\n")
    with pytest.raises(InputError, match="does not say which digits"):
        datasets.strokes(sequences, 6)
    with pytest.raises(InputError, match="no file or directory"):
        datasets.strokes(tmp_path / "none", 6)
    (tmp_path / "bad.npz").write_text("no archive")
    with pytest.raises(InputError, match=r"cannot be read as an \.npz"):
        datasets.strokes(tmp_path / "bad.npz", 6)


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
