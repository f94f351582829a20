"""Resolution in time: what is seen of motion, how many slabs follow, and curves through them."""

from types import SimpleNamespace

import numpy as np
import pytest

import privtraj as pt
from privtraj.base.space import hat_functions
from privtraj.measures import over_time as curves
from privtraj.measures import windows as choice
from privtraj.measures.windows import Motions, Resolution, close_to
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.noise import SeededSource, laplace_integers, laplace_variance

BINS = 32
T = (np.arange(BINS) + 0.5) / BINS
EACH = np.arange(BINS)


def looked(clouds, cells=4, epsilon=0.12, seed=0):
    """What noisy coarse counts of people, an (n, d) at each time, show."""
    d, rows = clouds[0].shape[1], []
    for cloud in clouds:
        side = np.minimum((np.clip(cloud, 0, 1) * cells).astype(int), cells - 1)
        place = np.ravel_multi_index(side.T, (cells,) * d)
        rows.append(np.bincount(place, minlength=cells**d))
    counts = np.stack(rows) + laplace_integers(SeededSource(seed), (len(rows), cells**d), epsilon)
    return choice.looked(counts, cells, d, laplace_variance(epsilon))


def windows_for(clouds, seed=0, epsilon=1.0):
    """How many windows follow from a look at people in the plane."""
    look = looked(clouds, seed=seed)
    motions = choice.possible_motions(look, T, EACH)
    per_window = 4 * choice.WINDOW_NOISE * look.variance / (look.people * epsilon)
    chosen = choice.choose_windows(motions, T, look.variance, per_window, BINS)
    return chosen.of_moment[-1] + 1


def still(bins=BINS, n=900, seed=0):
    return np.clip(np.random.default_rng(seed).normal(0.5, 0.1, (bins, n, 2)), 0, 1)


@pytest.mark.parametrize(("d", "cells"), [(1, 8), (2, 4)])
def test_a_shift_of_everybody_is_worth_about_its_square(d, cells):
    """Of all functions together: squared W2 of a shift by D is D^2."""
    people = 0.45 + 0.12 * np.random.default_rng(0).standard_normal((300_000, d))
    look = looked([people, people + np.array([0.03, 0.0])[:d]], cells=cells, epsilon=60.0)
    moved = np.sum((look.values[:, 1] - look.values[:, 0]) ** 2)
    assert 0.4 * 0.03**2 < moved < 1.4 * 0.03**2


def test_more_people_at_some_times_are_no_motion():
    """Ten times as many at first, all of whom stay: few windows in most looks."""
    numbers = np.round(2000 * np.exp(-np.linspace(0, 2.3, BINS))).astype(int)
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found.append(windows_for([rng.normal(0.3, 0.1, (n, 2)) for n in numbers], seed))
    assert np.median(found) <= 4


def test_still_people_get_few_windows():
    assert np.median([windows_for(still(seed=k), k) for k in range(10)]) <= 4


TURN = 2 * np.pi * T[:, None]


def arms(rng):
    angle = 2 * np.pi * rng.integers(3, size=(BINS, 900)) / 3 + 1.5 * TURN
    return 0.5 + 0.35 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def swinging(rng):
    return still() + np.array([0.15, 0.0]) * np.sin(8 * TURN)[:, :, None]


def parting(rng):
    people = still(seed=3)
    people[:, ::2, 0] += 0.3 * np.cos(TURN)
    people[:, 1::2, 0] -= 0.3 * np.cos(TURN)
    return people


def waiting_and_jumping(rng):
    return still() + np.array([0.3, 0.0]) * (T > 0.4)[:, None, None]


def exchanged(rng):
    """Nobody travels, and a place empties while another fills."""
    there = rng.random((BINS, 900)) < 0.5 + 0.5 * np.sin(2 * TURN)
    return np.where(there[:, :, None], 0.25, 0.75) + 0.03 * rng.standard_normal((BINS, 900, 2))


@pytest.mark.parametrize(
    ("people", "least"),
    [(arms, 9), (swinging, 24), (parting, 6), (waiting_and_jumping, 6), (exchanged, 9)],
)
def test_motion_of_every_kind_gets_the_windows_that_it_needs(people, least):
    """Also where the mean stays, and the spread, and shapes that turn into themselves."""
    assert windows_for(people(np.random.default_rng(1))) >= least


def test_a_moving_mean_is_seen_with_its_energy():
    look = looked(still() + 0.2 * np.cos(np.pi * T)[:, None, None])
    motions = choice.possible_motions(look, T, EACH)
    moving = np.tensordot(motions.chances, motions.squares, 1)
    # 2 features of amplitude .2: squared W2 of .2^2 / 2 each, around their mean
    centred = np.eye(BINS) - 1 / BINS
    assert np.trace(centred @ moving @ centred) / BINS == pytest.approx(0.04, rel=0.5)
    assert motions.chances.sum() == pytest.approx(1)
    assert motions.chances[0] < 1e-6  # rest
    assert (np.linalg.eigvalsh(moving) > -1e-9).all()


def test_what_a_look_at_few_people_cannot_refute_stays_likely():
    few, many = (choice.possible_motions(looked(still(n=n)), T, EACH).chances for n in (20, 30_000))
    assert few[0] == pytest.approx(1 / 6, abs=0.15)
    assert many[0] > 0.5


def test_windows_are_short_where_people_move_fast_and_never_as_short_as_half():
    """A start as of a growing child."""
    t = np.linspace(0, 1, 241)
    y = np.sqrt(t + 0.01)
    clock = choice.even_motion(np.outer(y, y), t)
    density = np.diff(clock) / np.diff(t)
    assert density[10] > 1.3 * density[-10]
    assert density.min() >= 0.49
    sizes = np.bincount(choice.windows_of(clock, 20))
    assert len(sizes) == 20
    assert sizes[0] < 0.7 * sizes[-1]
    best = choice.unseen(np.outer(y, y), t, choice.windows_of(clock, 20), 1.0)
    assert best < 0.6 * choice.unseen(np.outer(y, y), t, choice.even_windows(241, 20), 1.0)


def wave(f, moments):
    y = np.sqrt(2) * np.cos(np.pi * f * moments)
    return np.outer(y, y)


def chosen(moving, people, features=2, most=100, moments=None):
    moments = np.linspace(0, 1, 241) if moments is None else moments
    noise = choice.WINDOW_NOISE * features**2
    motions = Motions(np.ones(1), moving[None])
    windows = choice.choose_windows(motions, moments, 0.05, noise * 0.05 / people, most)
    return windows.of_moment[-1] + 1


def test_no_motion_asks_for_the_fewest_windows_and_fast_motion_for_all():
    assert chosen(np.zeros((241, 241)), 3e4) == 2
    listed = np.linspace(0, 1, 32)
    fast = sum(0.05 * wave(f, listed) for f in range(1, 32))
    assert chosen(fast, 3e4, most=32, moments=listed) == 32


@pytest.mark.parametrize("features", [4, 5, 6, 8])
def test_many_features_that_drift_slowly_are_measured_in_few_windows(features):
    """440 people at 12 times: a tenth of the box is no reason for more, fast motion is."""
    t = np.linspace(0, 1, 12)
    drift = sum(1e-3 * f**-4 * wave(f, t) for f in range(1, 12))
    fast = sum(0.02 * wave(f, t) for f in range(1, 12))
    assert chosen(drift, 5280, features, 12, t) <= 3
    assert chosen(fast, 5280, features, 12, t) == 12


@pytest.mark.parametrize("features", [1, 2, 3, 5])
def test_more_people_never_ask_for_fewer_windows(features):
    t = np.linspace(0, 1, 241)
    moving = sum(0.02 * f**-4 * wave(f, t) for f in range(1, 32))
    numbers = [chosen(moving, n, features) for n in 10.0 ** np.arange(2, 8)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_what_slabs_hide_falls_with_their_number_and_grows_with_frequency():
    t = np.linspace(0, 1, 96)
    hidden = np.array([
        [choice.unseen(wave(f, t), t, choice.even_windows(96, k), 1.0) for f in range(1, 7)]
        for k in (3, 6, 12, 24)
    ])  # fmt: skip
    assert (np.diff(hidden[:, :3], axis=0) < 0).all()
    assert (np.diff(hidden[2]) > 0).all()
    assert choice.unseen(wave(9, t), t, np.arange(96), 1.0) == 0


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
    any_time, listed = Resolution(times, False, of), Resolution(times, True, of)
    np.testing.assert_allclose(listed.centres, [0.05, 0.3, 0.8])
    np.testing.assert_allclose(any_time.edges, [1.5, 5])
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


def reading_times(times, of_window, readings):
    """(K, J) times of each window, spread evenly over its moments."""
    shares, rows = (np.arange(readings) + 0.5) / readings, []
    for window in range(of_window[-1] + 1):
        inside = times[of_window == window]
        rows.append(np.interp(shares * len(inside) - 0.5, np.arange(len(inside)), inside))
    return np.stack(rows)


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
    control, distance = curves.smooth_curves(clouds, times, of_bin, start, 0.05, rng)
    assert distance < 1e-4
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
    start = clouds[:, :m].swapaxes(0, 1)
    control, _ = curves.smooth_curves(clouds, times, of_bin, start, 0.05, rng, still)
    assert np.ptp(control[:, :, 1], axis=1).max() < 1e-12 < np.ptp(control[:, :, 0], axis=1).min()


def test_curves_are_stiff_where_motion_is_slow_and_supple_where_it_is_fast():
    """What stiff curves hide against noise that they share, by what the motion may be."""
    t = (np.arange(96) + 0.5) / 96
    windows, slow, fast = choice.even_windows(96, 12), wave(1, t), wave(6, t)

    def first(motion, noise):
        motions = choice.Motions(np.ones(1), motion[None])
        return choice.bendings(motions, t, windows, 1.0, noise)[0, 0]

    assert first(fast, 1e-3) < first(fast, 0.1) <= first(slow, 0.1)
    assert first(0 * slow, 1e-3) == choice.BENDINGS[-1]


def test_listed_times_that_are_windows_have_curves_only_where_these_share_more_than_they_hide():
    t = np.linspace(0, 1, 12)
    slow, fast = 0.01 * wave(1, t), 0.01 * wave(9, t)

    def with_curves(motion, noise):
        motions = choice.Motions(np.ones(1), motion[None])
        assert len(choice.bendings(motions, t, np.arange(12), 1.0, noise)) > 0  # at any time
        rows = choice.bendings(motions, t, np.arange(12), 1.0, noise, listed=True)
        made = Resolution(t, True, np.arange(12), choice.WindowChoice(*[0.0] * 5, rows))
        assert made.need_curves == (len(rows) > 0)
        return made.need_curves

    assert with_curves(slow, 1e-2)
    assert with_curves(slow, 1e-4)
    assert not with_curves(fast, 1e-4)
    assert not Resolution(t, True, np.arange(12)).need_curves  # set by hand


def test_what_noise_explains_is_what_curves_leave_of_it():
    rng, t = np.random.default_rng(0), (np.arange(60) + 0.5) / 60
    windows = choice.even_windows(60, 12)
    motions = choice.Motions(np.ones(1), 0.01 * wave(3, t)[None])
    rows = choice.bendings(motions, t, windows, 1.0, 0.04)
    assert len(rows) > 1
    noise = 0.2 * rng.standard_normal((12, 20_000))
    for bending, left, shared in rows.tolist():
        curves_read = choice.curves_of_means(t, windows, bending) @ noise
        rest = noise - choice.window_means(windows) @ curves_read
        assert np.square(rest).mean() == pytest.approx(left, rel=0.03)
        assert np.square(curves_read).mean() == pytest.approx(0.04 * shared, rel=0.03)
    assert np.all(np.diff(rows[:, 1]) > 0)


@pytest.mark.thorough
def test_few_windows_beat_every_bin_where_bins_are_many():
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

    every = error("bins")
    assert error("auto") < 1.2 * every
    assert error(8) < 0.6 * every


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


@pytest.mark.thorough
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


@pytest.mark.parametrize(("moments", "bins"), [(241, 31), (5, 5), (40, 20), (32, 32), (50, 25)])
def test_a_look_is_coarse_in_time(moments, bins):
    asked = []
    guard = SimpleNamespace(n_features=1, ledger=SimpleNamespace(epsilon=1.0))
    guard.in_slabs = lambda windows: asked.append(windows.count) or guard
    guard.ask = lambda release: np.full((bins, 8), 20)
    event = LaplaceCounts(0.1, choice.MOTION)
    found = choice.look_at_motion(guard, event, np.linspace(0, 9, moments), True, 1, moments)
    assert asked == [bins]
    assert len(found.of_moment) == moments


@pytest.mark.parametrize(("features", "joined"), [(3, True), (4, False)])
def test_noise_that_two_cells_a_side_cannot_tell_is_no_reason_for_curves(features, joined):
    """People of five listed times go from one corner of the box to the other."""
    side = choice.LOOK_SIDES.get(features, 2)
    counts = np.zeros((5, *(side,) * features), np.int64)
    for k in range(5):
        counts[(k, *(k * (side - 1) // 4,) * features)] = 300
    guard = SimpleNamespace(n_features=features, ledger=SimpleNamespace(epsilon=0.5))
    guard.in_slabs = lambda windows: guard
    guard.ask = lambda release: counts.reshape(5, -1)
    event = LaplaceCounts(0.1, choice.MOTION)
    found = choice.look_at_motion(guard, event, np.arange(5.0), True, features, 5)
    assert found.of_moment[-1] == 4
    assert (len(found.stiffer) > 0) == joined


@pytest.mark.parametrize("times", [20, 32, 33, 40, 50])
def test_bins_of_unequal_length_are_no_motion_to_and_fro(times):
    """People who drift evenly are read in few windows, however many listed times there are."""
    moments, edges = np.linspace(0, 1, times), np.linspace(0, 1, 9)
    places = 0.3 + 0.4 * moments[:, None] + 0.08 * np.random.default_rng(0).standard_normal(2_000)
    counts = np.stack([np.histogram(row, edges)[0] for row in places])
    asked = []
    guard = SimpleNamespace(n_features=1, ledger=SimpleNamespace(epsilon=1 / 3))
    guard.in_slabs = lambda windows: asked.append(windows.of_moment) or guard
    guard.ask = lambda release: np.stack([
        counts[asked[0] == k].sum(axis=0) for k in range(asked[0][-1] + 1)
    ])  # fmt: skip
    event = LaplaceCounts(0.1, choice.MOTION)
    found = choice.look_at_motion(guard, event, moments, True, 1, times)
    assert found.of_moment[-1] + 1 <= 9
