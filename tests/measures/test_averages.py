"""What noisy counts say of each other: averages over time, and a filter over space and time."""

import numpy as np
import pytest

from privtraj.measures.cells import estimate
from privtraj.measures.over_time import filtered, time_average
from privtraj.privacy.noise import SeededSource, laplace_integers, laplace_variance

EPSILON = 1.0
NOISE = laplace_variance(EPSILON)


def noisy(exact, seed):
    return exact + laplace_integers(SeededSource(seed), exact.shape, EPSILON)


def average_of(exact, seed=0, gaps=None, people=None):
    """The average that noisy counts of exact (T, n) suggest."""
    times = len(exact)
    gaps = np.ones(times - 1) if gaps is None else gaps
    people = exact.sum(axis=1).astype(float) if people is None else people
    return time_average(noisy(exact, seed).astype(float), NOISE, people, gaps)


def still(times=12, cells=200, seed=1):
    """People of 20 cells of many that stay, with chance of its own at every time."""
    mean = np.where(np.arange(cells) < 20, 12.0, 0.0)
    return np.random.default_rng(seed).poisson(mean, size=(times, cells))


def moving(times=12, cells=200):
    """A group of five cells that goes on by five cells at every time."""
    exact = np.zeros((times, cells), dtype=np.int64)
    for t in range(times):
        exact[t, 5 * t : 5 * t + 5] = 40
    return exact


@pytest.mark.parametrize("seed", range(4))
def test_people_who_stay_are_averaged_as_if_all_times_were_one(seed):
    average = average_of(still(seed=seed), seed)
    assert average.draws.min() > 6  # of 12


@pytest.mark.parametrize("seed", range(4))
def test_people_who_move_are_left_as_counted_however_many_cells_are_empty(seed):
    average = average_of(moving(cells=2000), seed)
    assert average.draws.max() < 1.2
    np.testing.assert_allclose(average.matrix, np.eye(12), atol=0.1)


def test_noise_of_an_average_has_the_variance_of_so_many_draws():
    average = average_of(still())
    nobody = noisy(np.zeros((12, 20_000), dtype=np.int64), seed=9)
    variance = (average.matrix @ nobody).var(axis=1)
    # between that of independent draws and that of the prior mean, which is not noise
    assert (variance < 1.05 * NOISE / average.draws).all()
    assert (variance > 0.5 * NOISE / average.draws).all()


def test_what_never_changes_is_kept_exactly_also_where_sizes_differ():
    """Cells whose shares are the same at all times, in bins of unequal size and distance."""
    people = np.array([300.0, 900.0, 150.0, 600.0, 600.0])
    shares = np.random.default_rng(0).dirichlet(np.ones(50))
    exact = people[:, None] * shares
    average = time_average(exact, NOISE, people, np.array([0.1, 2.0, 0.5, 1.0]))
    np.testing.assert_allclose(average.matrix @ exact, exact, rtol=1e-9)


def test_larger_times_are_averages_of_fewer_draws_of_their_own_noise():
    people = np.array([300.0] * 6 + [1200.0] * 6)
    mean = np.where(np.arange(200) < 20, people[:, None] / 20, 0.0)
    exact = np.random.default_rng(0).poisson(mean)
    draws = average_of(exact, people=people).draws
    assert draws[:6].min() > 2 * draws[6:].max()


def test_near_times_are_averaged_more_than_distant_ones():
    """A slow drift: the time next to a long gap learns less from beyond it."""
    exact = np.random.default_rng(3).poisson(
        np.clip(12 + 4 * np.linspace(-1, 1, 12)[:, None] * np.linspace(-3, 3, 60), 0, None)
    )
    gaps = np.ones(11)
    gaps[5] = 8.0
    matrix = average_of(exact, gaps=gaps).matrix
    assert matrix[5, 4] > 1.5 * matrix[5, 6] > 0


def test_one_time_and_no_people_at_all_are_averaged_without_complaint():
    alone = time_average(np.ones((1, 9)), NOISE, np.ones(1), np.empty(0))
    np.testing.assert_array_equal(alone.matrix, np.eye(1))
    for value in (0.0, -3.0):
        average = time_average(np.full((4, 9), value), NOISE, np.ones(4), np.ones(3))
        assert np.isfinite(average.matrix).all()
        assert (average.draws > 0).all()


def test_a_still_ring_that_no_time_shows_by_itself_is_read_from_all_of_them():
    rng = np.random.default_rng(5)
    times, side, people = 10, 24, 150
    angle = rng.uniform(0, 2 * np.pi, size=(times, people))
    place = 0.5 + 0.35 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    cell = (place * side).astype(int)
    exact = np.zeros((times, side, side), dtype=np.int64)
    for t in range(times):
        np.add.at(exact[t], tuple(cell[t].T), 1)
    counts = noisy(exact.reshape(times, -1), seed=2)
    totals = np.full(times, float(people))

    def mean_radius(gaps):
        measure = estimate(counts, side, EPSILON, totals, 2, gaps)
        radius = np.linalg.norm(measure.centres - 0.5, axis=2)
        return np.mean((measure.weights * np.abs(radius - 0.35)).sum(axis=1))

    assert mean_radius(np.ones(times - 1)) < 0.5 * mean_radius(None)


def test_the_filter_is_what_its_formula_says():
    """By dense matrices: an orthonormal basis, bands, shares, and the noise of every count."""
    times, side = 5, 6
    rng = np.random.default_rng(0)
    people, gaps = rng.uniform(50, 90, times), rng.uniform(0.5, 2, times - 1)
    counts = 3 * rng.standard_normal((times, side, side)) + 10 * (np.indices((side, side))[0] < 3)
    modes = time_average(counts.reshape(times, -1), NOISE, people, gaps).modes
    made, draws = filtered(counts, NOISE, modes)

    along = np.cos(np.pi * np.outer(np.arange(side), np.arange(side) + 0.5) / side)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    basis = np.kron(modes.T, np.kron(along, along))
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)
    found, bands = basis @ counts.ravel(), []
    for f in range(times):
        for i in range(side):
            for j in range(side):
                frequency = np.hypot(i, j)
                space = 0 if frequency == 0 else 1 + int(np.log2(frequency))
                bands.append((0 if f == 0 else 1 + int(np.log2(f)), space))
    kept, variance = np.ones(len(found)), NOISE + counts.mean()
    for band in set(bands) - {(0, 0)}:
        mine = [one == band for one in bands]
        square = np.mean(found[mine] ** 2)
        kept[mine] = max(square - variance, 0) / square
    assert 0 < kept.min(initial=1, where=kept > 0) < 0.9
    np.testing.assert_allclose(made.ravel(), basis.T @ (kept * found), atol=1e-9)
    noise = np.einsum("fc,f,fc->c", basis, kept**2, basis)
    np.testing.assert_allclose(1 / draws.ravel(), noise, rtol=1e-9)


@pytest.mark.parametrize("gaps", [None, np.ones(3)])
def test_noise_alone_is_filtered_away_and_a_people_that_fills_the_box_is_kept(gaps):
    nobody = noisy(np.zeros((4, 32, 32), dtype=np.int64), seed=1).astype(float)
    modes = time_average(nobody.reshape(4, -1), NOISE, np.ones(4), gaps).modes
    smooth, _ = filtered(nobody, NOISE, modes, gaps is not None)
    assert np.square(smooth).mean() < 0.1 * NOISE
    everybody, _ = filtered(np.full((4, 32, 32), 7.0), NOISE, modes, gaps is not None)
    np.testing.assert_allclose(everybody, 7.0, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_that_moves_is_seen_though_none_of_its_cells_stands_out(seed):
    rng = np.random.default_rng(seed)
    times, side, people = 16, 16, 50
    middle = np.linspace(0.25, 0.75, times)
    exact = np.zeros((times, side, side), dtype=np.int64)
    for t in range(times):
        place = np.clip(middle[t] + 0.1 * rng.standard_normal((people, 2)), 0, 0.999)
        np.add.at(exact[t], tuple((place * side).astype(int).T), 1)
    counts = noisy(exact.reshape(times, -1), seed)
    measure = estimate(counts, side, EPSILON, np.full(times, float(people)), 2, np.ones(times - 1))
    mean = np.einsum("tj,tjd->td", measure.weights, measure.centres)
    assert np.abs(mean - middle[:, None]).mean() < 0.025  # .027 to .039 without the filter
    assert measure.significant.mean() > 0.7  # .40 to .51 without it
