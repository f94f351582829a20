"""Resolution in time: what is seen of motion, how many slabs follow, and curves through them."""

import numpy as np
import pytest

import privtraj as pt
from privtraj.base.space import hat_functions
from privtraj.measures import curves, motion
from privtraj.measures import windows as choice
from privtraj.measures.windows import Windows, close_to
from privtraj.privacy.noise import SeededSource, laplace_integers, laplace_variance

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


def test_paths_are_the_means_of_cosines_around_that_of_all_people():
    counts = np.zeros((3, 16), dtype=np.int64)
    counts[:, 0], counts[:, 15] = 10, (0, 10, 35)
    paths = motion.moment_paths(counts, 4, 0.0, 75.0, 2)
    assert paths.values.shape == (9, 3)  # orders (0, 1) to (3, 0), together 3 at most
    phi = np.cos(np.pi / 8) * np.array([1, -1])  # of order (0, 1), in the first and the last cell
    phi = phi - phi @ [30, 45] / 75
    np.testing.assert_allclose(paths.values[0], counts[:, [0, 15]] @ phi / 25, atol=1e-12)


def test_more_people_at_some_times_are_no_motion():
    """Ten times as many at first: of 40 looks at people who stay at most a quarter see motion."""
    numbers = np.round(2000 * np.exp(-np.linspace(0, 2.3, 32))).astype(int)
    seen = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        people = [np.clip(rng.normal(0.3, 0.1, (n, 2)), 0, 1) for n in numbers]
        side = [np.minimum((cloud * 4).astype(int), 3) @ [4, 1] for cloud in people]
        counts = np.stack([np.bincount(cells, minlength=16) for cells in side])
        counts = counts + laplace_integers(SeededSource(seed), counts.shape, EPSILON)
        paths = motion.moment_paths(counts, 4, laplace_variance(EPSILON), float(numbers.sum()), 2)
        seen += motion.motion(paths, T, EACH).any()
    assert seen <= 10


def test_a_shift_of_everybody_is_worth_its_square():
    """Of the cosine of order 1, by the scale: squared W2 of a shift by D is D^2."""
    rng = np.random.default_rng(0)
    shifts = np.array([0.0, 0.02])
    people = 0.5 + 0.1 * rng.standard_normal(200_000) + shifts[:, None]
    counts = np.stack([np.histogram(row, 8, (0, 1))[0] for row in people])
    paths = motion.moment_paths(counts, 8, 0.0, 400_000, 1)
    worth = paths.scale[0] * (paths.values[0, 1] - paths.values[0, 0]) ** 2
    assert worth == pytest.approx(0.02**2, rel=0.15)


def test_three_arms_that_turn_are_seen_although_means_and_spreads_stay():
    rng, t = np.random.default_rng(1), (np.arange(32) + 0.5) / 32
    angle = 2 * np.pi * rng.integers(3, size=(32, 900)) / 3 + 3 * t[:, None]
    arms = 0.5 + 0.35 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    assert motion.motion(looked(arms), t, np.arange(32)).any()


T = (np.arange(32) + 0.5) / 32
EACH = np.arange(32)


def seen_motion(people, seed=0):
    return motion.motion(looked(np.clip(people, 0, 1), seed=seed), T, EACH)


def test_still_people_show_no_motion_in_most_looks():
    """Of 40 looks at people who do not move at most a quarter see motion; ten on average do not
    exceed what a preference of one log unit over four paths lets through (chance below 1e-3)."""
    seen = [seen_motion(still(seed=k), seed=k).any() for k in range(40)]
    assert sum(seen) <= 10


def test_a_moving_mean_is_seen_with_its_energy_and_its_speed():
    moving = seen_motion(still() + 0.2 * np.cos(np.pi * T)[:, None, None])
    # 2 features of amplitude .2: squared W2 of .2^2 / 2 each, around their mean
    centred = np.eye(32) - 1 / 32
    assert np.trace(centred @ moving @ centred) / 32 == pytest.approx(0.04, rel=0.3)
    assert (np.linalg.eigvalsh(moving) > -1e-9).all()
    widths = np.diff(choice.even_motion(moving, T))
    assert widths[12:20].mean() > 1.2 * widths[[0, 1, 2, -3, -2, -1]].mean()  # fastest half way


def test_parting_people_are_seen_although_their_mean_stays():
    people = still(seed=3)
    people[:, ::2, 0] += 0.3 * T[:, None]
    people[:, 1::2, 0] -= 0.3 * T[:, None]
    assert seen_motion(people).any()


def test_slabs_are_short_where_people_move_fast():
    """A start as of a growing child: without noise, slabs are shorter there by the 2/3 power."""
    t = np.linspace(0, 1, 241)
    y = np.sqrt(t + 0.01)
    clock = choice.even_motion(np.outer(y, y), t)
    density = np.diff(clock) / np.diff(t)
    speed = np.diff(y) / np.diff(t)
    expected = (speed[10] / speed[-10]) ** (2 / 3)
    assert density[10] / density[-10] == pytest.approx(expected, rel=0.1)
    numbers = choice.windows_of(clock, 20)
    assert numbers[-1] == 19
    sizes = np.bincount(numbers)
    assert sizes[0] < 0.4 * sizes[-1]
    best = choice.unseen(np.outer(y, y), t, numbers)
    assert best < 0.3 * choice.unseen(np.outer(y, y), t, choice.even_windows(241, 20))


def wave(f, moments):
    y = np.sqrt(2) * np.cos(np.pi * f * moments)
    return np.outer(y, y)


def chosen(moving, people, features=2, most=100, moments=None):
    moments = np.linspace(0, 1, 241) if moments is None else moments
    return choice.choose_windows(moving, moments, people, 1.0, features, most).of_moment[-1] + 1


def test_no_motion_asks_for_the_fewest_slabs_and_fast_motion_for_all():
    assert chosen(np.zeros((241, 241)), 3e4) == 2
    listed = np.linspace(0, 1, 32)
    fast = sum(0.05 * wave(f, listed) for f in range(1, 32))
    assert chosen(fast, 3e4, most=32, moments=listed) == 32


@pytest.mark.parametrize("features", [4, 5, 6, 8])
def test_many_features_that_drift_slowly_are_measured_in_two_slabs(features):
    """440 people at 12 times: a tenth of the box is no reason for more, fast motion is."""
    t = np.linspace(0, 1, 12)
    drift = sum(1e-3 * f**-4 * wave(f, t) for f in range(1, 12))
    fast = sum(0.02 * wave(f, t) for f in range(1, 12))
    assert chosen(drift, 5280, features, 12, t) == 2
    assert chosen(fast, 5280, features, 12, t) == 12


@pytest.mark.parametrize("features", [1, 2, 3, 5])
def test_more_people_never_ask_for_fewer_slabs(features):
    t = np.linspace(0, 1, 241)
    moving = sum(0.02 * f**-4 * wave(f, t) for f in range(1, 32))
    numbers = [chosen(moving, n, features) for n in 10.0 ** np.arange(2, 8)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_what_slabs_hide_falls_with_their_number_and_grows_with_frequency():
    t = np.linspace(0, 1, 96)
    hidden = np.array([
        [choice.unseen(wave(f, t), t, choice.even_windows(96, k)) for f in range(1, 7)]
        for k in (3, 6, 12, 24)
    ])  # fmt: skip
    assert (np.diff(hidden[:, :3], axis=0) < 0).all()
    assert (np.diff(hidden[2]) > 0).all()
    assert choice.unseen(wave(9, t), t, np.arange(96)) == 0


@pytest.mark.parametrize(("moments", "slabs"), [(10, 3), (7, 7), (100, 9), (5, 2)])
def test_slabs_are_runs_of_about_equal_length(moments, slabs):
    slab_of_moment = choice.even_windows(moments, slabs)
    sizes = np.bincount(slab_of_moment)
    assert len(sizes) == slabs
    assert (np.diff(slab_of_moment) >= 0).all()
    assert sizes.max() - sizes.min() <= 1


def test_hat_functions_sum_to_one_and_are_one_at_their_knots():
    knots = np.array([0.0, 0.1, 0.5, 1.0])
    np.testing.assert_allclose(hat_functions(knots, knots), np.eye(4), atol=1e-12)
    basis = hat_functions(np.linspace(0, 1, 50), knots)
    np.testing.assert_allclose(basis.sum(axis=1), 1)


def test_knots_are_the_ends_and_the_middles_between_slabs():
    times = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 10.0])
    of = np.array([0, 0, 1, 1, 2, 2])
    np.testing.assert_allclose(curves.knots_of(times, of), [0, 1.5, 5, 10])
    any_time, listed = Windows(times, False, of), Windows(times, True, of)
    np.testing.assert_allclose(listed.centres, [0.05, 0.3, 0.8])
    np.testing.assert_allclose(any_time.cuts.edges, [1.5, 5])
    wanted = np.array([0.0, 3.0, 10.0])
    np.testing.assert_allclose(any_time.knots(wanted), [0, 1.5, 3, 5, 10])
    np.testing.assert_array_equal(listed.knots(times), times)
    many = any_time.knots(np.linspace(0, 10, 601))
    assert len(many) <= 33 + 4
    assert np.isin([0, 1.5, 5, 10], many).all()


def test_close_to_a_time_is_within_a_twentieth_of_its_nearer_gap():
    slabs = close_to(np.array([0.0, 1.0, 5.0]))
    when = [-0.04, 0.04, 0.06, 0.5, 0.96, 1.04, 1.06, 4.7, 4.81, 5.19, 9.0]
    assert slabs.of(when).tolist() == [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0]


def moving(times, m, rng):
    """People on a line that moves evenly: (len(times), m, 2)."""
    where = np.stack([0.2 + 0.6 * times, 0.5 + 0 * times], axis=-1)
    return where[:, None] + 0.02 * rng.standard_normal((len(times), m, 2))


def test_curves_undo_the_blur_of_a_slab():
    """A slab of an evenly moving group is six times as long as the group; its curves are not."""
    rng, slabs, readings, m = np.random.default_rng(0), 4, 4, 200
    times = (np.arange(40) + 0.5) / 40
    of_bin = choice.even_windows(40, slabs)
    people = moving(times, 100, rng)
    clouds = [people[of_bin == k].reshape(-1, 2) for k in range(slabs)]
    clouds = np.stack([cloud[rng.integers(len(cloud), size=m * readings)] for cloud in clouds])
    start = clouds[:, :m].swapaxes(0, 1)[:, :, :]
    start = np.sort(start, axis=0)
    knots = curves.knots_of(times, of_bin)
    read_at = curves.reading_times(times, of_bin, readings)
    control = curves.stiffest_curves(clouds, read_at, knots, start, 1e-3, rng)
    for t in (times[0], 0.3, 0.5, 0.72, times[-1]):
        read = np.einsum("e,med->md", hat_functions(np.array([t]), knots)[0], control)
        assert read[:, 0].mean() == pytest.approx(0.2 + 0.6 * t, abs=0.012)
        assert read[:, 0].std() < 0.035  # 0.02 of the group; 0.043 of a slab's blur besides
    assert clouds[1][:, 0].std() > 0.045


def test_coordinates_that_never_change_are_the_same_all_along_a_curve():
    rng, m, still = np.random.default_rng(0), 50, np.array([False, True])
    times = (np.arange(12) + 0.5) / 12
    of_bin = choice.even_windows(12, 3)
    clouds = rng.random((3, 4 * m, 2))
    knots, read_at = curves.knots_of(times, of_bin), curves.reading_times(times, of_bin, 4)
    start = clouds[:, :m].swapaxes(0, 1)
    control = curves.stiffest_curves(clouds, read_at, knots, start, 1e-3, rng, still)
    assert np.ptp(control[:, :, 1], axis=1).max() < 1e-12 < np.ptp(control[:, :, 0], axis=1).min()


def test_curves_are_as_stiff_as_the_slabs_allow(monkeypatch):
    """Noise that is new in every slab bends no curve; a wave that all slabs show does."""
    slabs, readings, m, noise = 12, 4, 200, 0.02
    times = (np.arange(60) + 0.5) / 60
    of_bin = choice.even_windows(60, slabs)
    knots, read_at = curves.knots_of(times, of_bin), curves.reading_times(times, of_bin, readings)

    def fitted(wave):
        rng = np.random.default_rng(0)
        shift = noise * rng.standard_normal((slabs, 1, 2))
        middle = 0.5 + wave * np.sin(3 * np.pi * read_at)[:, :, None, None]
        group = 0.05 * rng.standard_normal((slabs, readings, m, 2))
        clouds = (middle + group).reshape(slabs, m * readings, 2) + shift
        start = clouds[:, :m].swapaxes(0, 1)
        control = curves.stiffest_curves(clouds, read_at, knots, start, 2 * noise**2, rng)
        return control.mean(axis=0), 0.5 + wave * np.sin(3 * np.pi * knots)

    def shaken(path):
        return np.square(np.diff(path, 2, axis=0)).mean()

    still, _ = fitted(0.0)
    monkeypatch.setattr(curves, "BENDING", curves.BENDING[:1])
    supple, _ = fitted(0.0)
    assert shaken(still) < 0.6 * shaken(supple)
    monkeypatch.undo()
    bent, truth = fitted(0.2)
    assert np.abs(bent[:, 0] - truth).max() < 0.06


@pytest.mark.thorough
def test_slabs_beat_every_bin_where_bins_are_many():
    t, points = pt.datasets.three_modes(100, 40, seed=7)
    snapshots = pt.Snapshots.from_arrays(
        t, points, bounds=pt.datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, 40)
    )
    at = np.array([0.0, 0.25, 0.5, 0.9])

    def error(slabs):
        model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=3, windows=slabs).fit(snapshots)
        people = model.sample(500, times=at, seed=1).values / 3
        truth = [pt.datasets.three_modes(1500, np.array([u]), seed=9)[1] / 3 for u in at]
        return np.mean([pt.metrics.wasserstein2(people[:, k], truth[k]) ** 2 for k in range(4)])

    assert error("auto") < 0.5 * error("bins")
    assert error(8) < 0.5 * error("bins")


@pytest.mark.usefixtures("without_refits")
def test_a_fit_in_slabs_states_what_it_measured(tmp_path):
    t, points = pt.datasets.three_modes(60, 20, seed=1)
    snapshots = pt.Snapshots.from_arrays(
        t, points, bounds=pt.datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, 20)
    )
    model = pt.TrajectorySynthesizer(2.0, 1e-5, seed=3).fit(snapshots)
    paid = [entry["what"] for entry in model.certificate.ledger]
    assert paid[:2] == ["people at the listed times", "how people move"]
    assert model.certificate.epsilon <= 2.0
    found = model.settings["windows"]
    assert found < 20
    assert f"{found} windows, which hide" in model.certificate.found["resolution in time"]
    assert "people are at the listed times" in str(model.certificate)
    np.testing.assert_array_equal(model.times, np.linspace(0, 1, 20))
    np.testing.assert_array_equal(model.knots, model.times)
    assert len(model.diagnostics["people_per_time"]) == found
    model.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Resolution in time" in page
    assert f"{found} windows, which hide" in page
    fixed = pt.TrajectorySynthesizer(2.0, 1e-5, seed=3, windows=5).fit(snapshots)
    assert fixed.settings["windows"] == 5
    assert "how people move" not in [entry["what"] for entry in fixed.certificate.ledger]


def test_as_many_slabs_as_bins_is_every_bin_by_itself():
    t, points = pt.datasets.three_modes(60, 5, seed=1)
    snapshots = pt.Snapshots.from_arrays(
        t, points, bounds=pt.datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, 5)
    )
    every, all_of_them = (
        pt.TrajectorySynthesizer(2.0, 1e-5, seed=3, windows=slabs).fit(snapshots)
        for slabs in ("bins", 5)
    )
    assert every.settings["windows"] == all_of_them.settings["windows"] == 5
    assert every.particles.shape == all_of_them.particles.shape
    np.testing.assert_array_equal(every.knots, all_of_them.knots)


# Own times ------------------------------------------------------------------------------------


def climbing(n, seed=0):
    """People at any time of [0, 10], around a height that climbs evenly from 0 to 1."""
    rng = np.random.default_rng(seed)
    when = rng.uniform(0, 10, n)
    return when, np.clip(when / 10 + 0.02 * rng.standard_normal(n), 0, 1)


@pytest.mark.parametrize(
    "times",
    [{"time_range": (0, 10)}, {"time_range": (0, 10), "bins": 4}, {"bins": [0, 9, 10]}],
    ids=str,
)
def test_people_at_any_time_are_found_and_the_ends_are_not_blurred(times):
    """In four bins the first is a sixth of the range wide, and its people were put at its start."""
    snapshots = pt.Snapshots.from_arrays(*climbing(6000), bounds=[(0, 1)], **times)
    model = pt.TrajectorySynthesizer(2.0, 1e-5, seed=1).fit(snapshots)
    assert "people are at any time" in str(model.certificate)
    ends = model.sample(500, times=[0, 10], seed=1).values[:, :, 0]
    np.testing.assert_allclose(np.median(ends, axis=0), [0.02, 0.98], atol=0.03)
    assert np.isin(model.numeric_times, model.knots).all()
    assert (model.knots[0], model.knots[-1]) == (0, 10)
    wanted = times.get("bins", 25)
    assert len(model.times) == (wanted if isinstance(wanted, int) else len(wanted))
    assert model.marginals.shape[0] == len(model.times)


def test_few_times_of_interest_are_no_resolution():
    """A wave of five humps, asked about at three times only, is read in between all the same."""
    rng = np.random.default_rng(0)
    when = rng.uniform(0, 1, 20_000)
    where = 0.5 + 0.3 * np.sin(5 * np.pi * when) + 0.02 * rng.standard_normal(len(when))
    snapshots = pt.Snapshots.from_arrays(when, where, bounds=[(0, 1)], bins=[0.0, 0.5, 1.0])
    model = pt.TrajectorySynthesizer(2.0, 1e-5, seed=1).fit(snapshots)
    at = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    read = np.median(model.sample(500, times=at, seed=0).values[:, :, 0], axis=0)
    np.testing.assert_allclose(read, 0.5 + 0.3 * np.sin(5 * np.pi * at), atol=0.06)


def test_many_times_of_interest_are_read_off_the_same_curves():
    """Asked about at 200 times or at three, the model is the same one, and no slower to couple."""
    few, many = (
        pt.TrajectorySynthesizer(2.0, 1e-5, seed=1, windows=3).fit(
            pt.Snapshots.from_arrays(*climbing(900), bounds=[(0, 1)], bins=bins)
        )
        for bins in ([0, 5, 10], np.linspace(0, 10, 201))
    )
    assert len(many.knots) < 40
    assert many.marginals.shape[0] == 201
    same = np.sort(many.marginals[[0, 100, 200]], axis=1), np.sort(few.marginals, axis=1)
    np.testing.assert_allclose(*same, atol=1e-6)
    medians = np.median(many.marginals[:, :, 0], axis=1)
    assert np.abs(np.diff(medians)).max() < 0.02


def test_without_bins_nothing_is_asked_about_them():
    snapshots = pt.Snapshots.from_arrays(*climbing(500), bounds=[(0, 1)], time_range=(0, 10))
    model = pt.TrajectorySynthesizer(2.0, 1e-5, seed=1).fit(snapshots)
    assert model.certificate.ledger[0]["what"] == "how people move"
    assert "bin times" not in model.certificate.public_inputs
    assert model.certificate.public_inputs["time range"] == ["0.0", "10.0"]
    public = {"public_counts": [250, 250], "adjacency": "replace-one"}
    for wrong in ({"windows": "bins"}, public):
        with pytest.raises(pt.InputError, match="time bins, and there are none"):
            pt.TrajectorySynthesizer(2.0, 1e-5, seed=1, **wrong).fit(snapshots)


def test_public_counts_are_those_of_bins_so_slabs_are_made_of_whole_ones():
    snapshots = pt.Snapshots.from_arrays(
        *climbing(900), bounds=[(0, 1)], time_range=(0, 10), bins=9
    )
    public = {"public_counts": [100] * 9, "adjacency": "replace-one"}
    model = pt.TrajectorySynthesizer(2.0, 1e-5, seed=1, **public).fit(snapshots)
    assert sum(model.diagnostics["people_per_time"]) == 900
    assert "people per time" not in [entry["what"] for entry in model.certificate.ledger]
    edges = np.setdiff1d(model.knots, model.times)
    assert np.isin(edges, snapshots.axis.bins.edges).all()


@pytest.mark.parametrize("measure", ["counts", "gradients"])
def test_both_measurements_take_slabs(measure):
    rng = np.random.default_rng(0)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(np.arange(12.0), 80),
        moving(np.repeat(np.linspace(0, 1, 12), 80), 1, rng)[:, 0],
        bounds=[(0, 1)] * 2,
        bins=np.arange(12.0),
    )
    model = pt.TrajectorySynthesizer(4.0, 1e-5, measure=measure, seed=1, windows=3).fit(snapshots)
    paths = model.sample(300, times=[0.0, 11.0], seed=0).values
    assert paths[:, 0, 0].mean() == pytest.approx(0.2, abs=0.08)
    assert paths[:, 1, 0].mean() == pytest.approx(0.8, abs=0.08)


def test_more_features_than_can_be_looked_at_are_fitted_all_the_same():
    """2^25 cells over time cannot be counted: the look is along the first axes of a subspace, and
    without one nothing is planned or paid for it."""
    rng = np.random.default_rng(0)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(np.arange(5.0), 60), rng.random((300, 25)), bounds=[(0, 1)] * 25, bins=5,
        time_range=(0, 4),
    )  # fmt: skip
    small = {"seed": 1, "particles": 4, "steps": 2}
    model = pt.TrajectorySynthesizer(4.0, 1e-5, **small).fit(snapshots)
    assert "how people move" in [entry["what"] for entry in model.certificate.ledger]
    assert model.certificate.epsilon > 3.9
    model = pt.TrajectorySynthesizer(4.0, 1e-5, **small, subspace="off").fit(snapshots)
    assert "how people move" not in [entry["what"] for entry in model.certificate.ledger]
    assert model.settings["windows"] == 2
    assert model.certificate.epsilon > 3.9


# What a look at few people cannot show ---------------------------------------------------------


def test_motion_that_could_be_overlooked_is_allowed_for_and_what_is_refuted_is_not():
    few, many = (looked(still(bins=5, n=n), people=n) for n in (100, 30_000))
    t, each = np.linspace(0, 1, 5), np.arange(5)
    usual, refuted = (np.trace(motion.overlooked(paths, t, each)) for paths in (few, many))
    assert refuted < usual / 100


def test_few_people_who_move_are_not_taken_for_still():
    """500 people on three modes: two slabs would hide a squared W2 of .02, and five cost .005."""
    t, points = pt.datasets.three_modes(100, 5, seed=1)
    snapshots = pt.Snapshots.from_arrays(
        t, points, bounds=pt.datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, 5)
    )
    found = [
        pt.TrajectorySynthesizer(1.0, 1e-5, seed=seed).fit(snapshots).settings["windows"]
        for seed in range(5)
    ]
    assert min(found) > 2
