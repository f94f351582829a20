"""Resolution in time: what is seen of motion, how many slabs follow, and curves through them."""

import numpy as np
import pytest

import privtraj as pt
from privtraj.privacy.noise import SeededSource, laplace_integers, laplace_variance
from privtraj.slabs import choice, curves, motion
from privtraj.slabs.fit import centres

EPSILON = 0.06


def looked(paths, cells=4, people=300, seed=0):
    """Noisy coarse counts of people (T, n, d), as the look at motion sees them."""
    bins, n, d = paths.shape
    side = np.minimum((paths * cells).astype(int), cells - 1)
    place = np.ravel_multi_index(np.moveaxis(side, -1, 0), (cells,) * d)
    counts = np.stack([np.bincount(row, minlength=cells**d) for row in place])
    noise = laplace_integers(SeededSource(seed), counts.shape, EPSILON)
    return motion.moment_paths(counts + noise, cells, laplace_variance(EPSILON), bins * n, d)


def still(bins=32, n=900, seed=0):
    return np.clip(np.random.default_rng(seed).normal(0.5, 0.15, (bins, n, 2)), 0, 1)


def test_cosines_are_orthonormal():
    basis = motion.cosines(12)
    np.testing.assert_allclose(basis.T @ basis / 12, np.eye(11), atol=1e-12)


def test_means_and_second_moments_are_those_of_the_cells():
    counts = np.zeros((3, 4), dtype=np.int64)
    counts[:, 0], counts[:, 3] = 10, (0, 10, 30)
    paths = motion.moment_paths(counts, 4, 0.0, 80.0, 1)
    place = np.array([-0.375, -0.125, 0.125, 0.375])
    np.testing.assert_allclose(paths.values[0], counts @ place / (80 / 3))
    np.testing.assert_allclose(paths.values[1], counts @ (place**2 - 5 / 64) / (80 / 3))
    assert paths.scale[0] == 1


def test_still_people_show_no_motion_in_most_looks():
    """Of 40 looks at people who do not move at most a quarter see motion; ten on average do not
    exceed what a preference of one log unit over four paths lets through (chance below 1e-3)."""
    seen = [motion.motion_energy(looked(still(seed=k), seed=k)).sum() > 0 for k in range(40)]
    assert sum(seen) <= 10


def test_a_moving_mean_is_seen_with_its_energy():
    t = (np.arange(32) + 0.5) / 32
    people = still() + 0.2 * np.cos(np.pi * t)[:, None, None]
    energy = motion.motion_energy(looked(np.clip(people, 0, 1)))
    # 2 features, amplitude .2: squared W2 of .2^2 / 2 each, at frequency 1
    assert energy[0] == pytest.approx(0.04, rel=0.3)
    assert energy[5:].sum() < 0.1 * energy[0]


def test_parting_people_are_seen_although_their_mean_stays():
    t = (np.arange(32) + 0.5) / 32
    people = still(seed=3)
    people[:, ::2, 0] += 0.3 * t[:, None]
    people[:, 1::2, 0] -= 0.3 * t[:, None]
    assert motion.motion_energy(looked(np.clip(people, 0, 1))).sum() > 0


def test_no_motion_asks_for_the_fewest_slabs_and_fast_motion_for_all():
    nothing, fast = np.zeros(31), np.full(31, 0.05)
    assert choice.choose_slabs(nothing, 3e4, 1.0, 2, 100).slabs == 2
    assert choice.choose_slabs(fast, 3e4, 1.0, 2, 32).slabs == 32


@pytest.mark.parametrize("features", [4, 5, 6, 8])
def test_many_features_that_drift_slowly_are_measured_in_two_slabs(features):
    """440 people at 12 times: a tenth of the box is no reason for more, fast motion is."""
    drift, fast = 1e-3 * np.arange(1, 12.0) ** -4, np.full(11, 0.02)
    assert choice.choose_slabs(drift, 5280, 1.0, features, 12).slabs == 2
    assert choice.choose_slabs(fast, 5280, 1.0, features, 12).slabs == 12


@pytest.mark.parametrize("features", [1, 2, 3, 5])
def test_more_people_never_ask_for_fewer_slabs(features):
    energy = 0.02 * np.arange(1, 32.0) ** -4
    numbers = [
        choice.choose_slabs(energy, n, 1.0, features, 100).slabs for n in 10.0 ** np.arange(2, 8)
    ]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_what_slabs_hide_falls_with_their_number_and_grows_with_frequency():
    hidden = np.array([choice.unseen(32, k, 96) for k in (3, 6, 12, 24)])
    assert (np.diff(hidden[:, :3], axis=0) < 0).all()
    assert (np.diff(hidden[2, :6]) > 0).all()
    assert (choice.unseen(32, 96, 96) == 0).all()


@pytest.mark.parametrize(("bins", "slabs"), [(10, 3), (7, 7), (100, 9), (5, 2)])
def test_slabs_are_runs_of_about_equal_length(bins, slabs):
    of_bin = choice.slab_of_bin(bins, slabs)
    sizes = np.bincount(of_bin)
    assert len(sizes) == slabs
    assert (np.diff(of_bin) >= 0).all()
    assert sizes.max() - sizes.min() <= 1


def test_hat_functions_sum_to_one_and_are_one_at_their_knots():
    knots = np.array([0.0, 0.1, 0.5, 1.0])
    np.testing.assert_allclose(curves.hat_functions(knots, knots), np.eye(4), atol=1e-12)
    basis = curves.hat_functions(np.linspace(0, 1, 50), knots)
    np.testing.assert_allclose(basis.sum(axis=1), 1)


def test_knots_are_the_ends_and_the_middles_between_slabs():
    times = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 10.0])
    of_bin = np.array([0, 0, 1, 1, 2, 2])
    np.testing.assert_allclose(curves.knots_of(times, of_bin), [0, 1.5, 5, 10])
    np.testing.assert_allclose(centres(times, of_bin), [0.5, 3, 8])


def moving(times, m, rng):
    """People on a line that moves evenly: (len(times), m, 2)."""
    where = np.stack([0.2 + 0.6 * times, 0.5 + 0 * times], axis=-1)
    return where[:, None] + 0.02 * rng.standard_normal((len(times), m, 2))


def test_curves_undo_the_blur_of_a_slab():
    """A slab of an evenly moving group is six times as long as the group; its curves are not."""
    rng, slabs, readings, m = np.random.default_rng(0), 4, 4, 200
    times = (np.arange(40) + 0.5) / 40
    of_bin = choice.slab_of_bin(40, slabs)
    people = moving(times, 100, rng)
    clouds = [people[of_bin == k].reshape(-1, 2) for k in range(slabs)]
    clouds = np.stack([cloud[rng.integers(len(cloud), size=m * readings)] for cloud in clouds])
    start = clouds[:, :m].swapaxes(0, 1)[:, :, :]
    start = np.sort(start, axis=0)
    knots = curves.knots_of(times, of_bin)
    control = curves.fit_curves(
        clouds, curves.reading_times(times, of_bin, readings), knots, start, rng
    )
    for t in (times[0], 0.3, 0.5, 0.72, times[-1]):
        read = np.einsum("e,med->md", curves.hat_functions(np.array([t]), knots)[0], control)
        assert read[:, 0].mean() == pytest.approx(0.2 + 0.6 * t, abs=0.012)
        assert read[:, 0].std() < 0.035  # 0.02 of the group; 0.043 of a slab's blur besides
    assert clouds[1][:, 0].std() > 0.045


def test_slabs_beat_every_bin_where_bins_are_many():
    t, points = pt.datasets.three_modes(100, 40, seed=7)
    snapshots = pt.Snapshots.from_arrays(
        t, points, bounds=pt.datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, 40)
    )
    at = np.array([0.0, 0.25, 0.5, 0.9])

    def error(slabs):
        model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=3, slabs=slabs).fit(snapshots)
        people = model.sample(500, times=at, seed=1).values / 3
        truth = [pt.datasets.three_modes(1500, np.array([u]), seed=9)[1] / 3 for u in at]
        return np.mean([pt.metrics.wasserstein2(people[:, k], truth[k]) ** 2 for k in range(4)])

    assert error("auto") < 0.5 * error(None)
    assert error(8) < 0.5 * error(None)


def test_a_fit_in_slabs_states_what_it_measured():
    t, points = pt.datasets.three_modes(60, 20, seed=1)
    snapshots = pt.Snapshots.from_arrays(
        t, points, bounds=pt.datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, 20)
    )
    model = pt.TrajectorySynthesizer(2.0, 1e-5, seed=3, slabs="auto").fit(snapshots)
    assert model.certificate.ledger[0]["what"] == "how people move"
    assert model.certificate.epsilon <= 2.0
    assert model.settings["slabs"] <= 20
    assert model.times[0] == 0
    assert model.times[-1] == 1
    assert len(model.diagnostics["people_per_time"]) == len(model.times)
    fixed = pt.TrajectorySynthesizer(2.0, 1e-5, seed=3, slabs=5).fit(snapshots)
    assert fixed.settings["slabs"] == 5
    assert len(fixed.times) == 6
    assert "how people move" not in [entry["what"] for entry in fixed.certificate.ledger]


def test_as_many_slabs_as_bins_is_every_bin_by_itself():
    t, points = pt.datasets.three_modes(60, 5, seed=1)
    snapshots = pt.Snapshots.from_arrays(
        t, points, bounds=pt.datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, 5)
    )
    every, all_of_them = (
        pt.TrajectorySynthesizer(2.0, 1e-5, seed=3, slabs=slabs).fit(snapshots)
        for slabs in (None, 5)
    )
    np.testing.assert_array_equal(every.particles, all_of_them.particles)


@pytest.mark.parametrize("measure", ["counts", "gradients"])
def test_both_measurements_take_slabs(measure):
    rng = np.random.default_rng(0)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(np.arange(12.0), 80),
        moving(np.repeat(np.linspace(0, 1, 12), 80), 1, rng)[:, 0],
        bounds=[(0, 1)] * 2,
        bins=np.arange(12.0),
    )
    model = pt.TrajectorySynthesizer(4.0, 1e-5, measure=measure, seed=1, slabs=3).fit(snapshots)
    paths = model.sample(300, times=[0.0, 11.0], seed=0).values
    assert paths[:, 0, 0].mean() == pytest.approx(0.2, abs=0.08)
    assert paths[:, 1, 0].mean() == pytest.approx(0.8, abs=0.08)
