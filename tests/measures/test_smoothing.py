"""A smooth density behind the masses of cells, and particles that fill them by their weights."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import norm

from privtraj.measures.cells import estimate
from privtraj.measures.pooling import GridMeasure
from privtraj.measures.smoothing import OVERLAP, bandwidths, placed, smoothed


def measure_of(*grids):
    """The measure with these shares (side, ...) of each time."""
    cells = np.stack([np.indices(grid.shape).reshape(grid.ndim, -1).T for grid in grids])
    side = len(grids[0])
    weights = np.stack([grid.ravel() / grid.sum() for grid in grids])
    times = len(grids)
    return GridMeasure((cells + 0.5) / side, weights, np.full(times, 1 / side), np.ones(times))


def normal_shares(side, width, d=2, middle=0.53):
    """(side, ...) of a normal group, of a width in cells."""
    edges = np.linspace(0, 1, side + 1)
    along = np.diff(norm.cdf(edges, middle, width / side))
    shares = along
    for _ in range(d - 1):
        shares = shares[..., None] * along
    return np.asarray(shares)


def released(measure, bandwidth=0.0, t=0):
    """Density of people (n, ...) on the parts of cells of the whole box, noise included."""
    fine = smoothed(measure, np.full(len(measure.sides), bandwidth))
    side = round(1 / fine.sides[t])
    grid = np.zeros((side,) * fine.centres.shape[2])
    held = fine.weights[t] > 0
    grid[tuple((fine.centres[t, held] * side).astype(int).T)] = fine.weights[t, held]
    return gaussian_filter(grid, bandwidth * side, mode="reflect")


def in_cells(fine, side):
    parts = len(fine) // side
    for axis in range(fine.ndim):
        fine = np.add.reduceat(fine, np.arange(0, fine.shape[axis], parts), axis=axis)
    return fine


def variance(grid):
    """Along the first axis, in squared shares of the box, even inside the cells of the grid."""
    along = grid.reshape(len(grid), -1).sum(axis=1)
    at = (np.arange(len(grid)) + 0.5) / len(grid)
    return along @ (at - along @ at) ** 2 + 1 / (12 * len(grid) ** 2)


@pytest.mark.parametrize(("d", "side"), [(1, 32), (2, 16), (3, 10)])
@pytest.mark.parametrize("bandwidth", [0.0, 0.2, 0.5])
def test_masses_of_cells_are_kept_whatever_the_bandwidth(d, side, bandwidth):
    shares = normal_shares(side, 1.2, d)
    found = released(measure_of(shares), bandwidth / side)
    assert found.sum() == pytest.approx(1, abs=1e-4)
    assert np.abs(in_cells(found, side) - shares).sum() < 0.03 * d + 0.05 * d * (bandwidth > 0.3)


@pytest.mark.parametrize("d", [1, 2])
def test_a_group_is_nearly_as_narrow_as_it_is(d):
    """Even in their cells, people of a group of width w have h^2 / 6 more variance."""
    side, width = 16, 0.6
    shares = normal_shares(side, width, d)
    even = variance(shares) * side**2 - width**2
    ours = variance(released(measure_of(shares))) * side**2 - width**2
    assert even == pytest.approx(1 / 6, abs=0.01)
    assert abs(ours) < even / 3


def test_borders_of_cells_cannot_be_seen():
    """Changes at one of four parts are a quarter of all; of even cells they are all of them."""
    shares = normal_shares(16, 1.5)
    even = np.repeat(np.repeat(shares, 4, axis=0), 4, axis=1) / 16
    for grid, least, most in ((even, 0.99, 1.01), (released(measure_of(shares)), 0.24, 0.285)):
        change = np.abs(np.diff(grid, axis=0)).sum(axis=1)
        assert least < change[3::4].sum() / change.sum() < most


def test_people_who_are_even_in_the_box_stay_so_up_to_its_walls():
    found = released(measure_of(np.ones((8, 8))), 0.02)
    np.testing.assert_allclose(found * found.size, 1, atol=0.02)


def test_the_density_follows_the_neighbours_inside_a_cell():
    slope = np.arange(1.0, 9)[:, None] * np.ones(8)
    found = released(measure_of(slope)).sum(axis=1)
    assert (np.diff(found) > 0).all()
    inside = np.diff(found)[8:24]  # two cells from the walls
    assert inside.max() < 1.5 * inside.min()


def test_times_read_in_cells_of_different_sides_are_smoothed_by_their_own():
    fine, coarse = measure_of(normal_shares(16, 1.0)), measure_of(normal_shares(8, 1.0))
    apart = [released(one) for one in (fine, coarse)]
    centres, weights = np.full((2, 256, 2), 0.5), np.zeros((2, 256))
    for t, one in enumerate((fine, coarse)):
        centres[t, : one.weights.size], weights[t, : one.weights.size] = one.centres[0], one.weights
    both = GridMeasure(centres, weights, np.array([1 / 16, 1 / 8]), np.ones(2))
    for t, one in enumerate(apart):
        np.testing.assert_allclose(released(both, t=t), one)


def test_with_a_domain_nobody_is_outside_or_in_cells_without_people():
    shares = normal_shares(8, 1.0)
    shares[6:] = 0

    def inside(per_side):
        at = (np.arange(per_side) + 0.5) / per_side
        return (at[:, None] + at[None] < 1.1) & np.ones((per_side, per_side), bool)

    shares[~inside(8)] = 0
    measure = measure_of(shares)
    fine = smoothed(measure, np.full(1, 0.02), inside)
    held = fine.weights[0] > 0
    place = (fine.centres[0, held] * 32).astype(int)
    assert inside(32)[tuple(place.T)].all()
    assert (shares[tuple(place.T // 4)] > 0).all()
    found = np.zeros((32, 32))
    found[tuple(place.T)] = fine.weights[0, held]
    # where a cell has little room in the domain, normals cannot hold its share
    assert np.abs(in_cells(found, 8) - shares / shares.sum()).sum() < 0.2


def test_fewer_particles_have_wider_bandwidths_which_no_box_exceeds():
    measure = measure_of(np.ones((4, 4)))
    few, some, many = (bandwidths(measure, m)[0] for m in (1, 16, 1600))
    assert few == pytest.approx(1 / np.sqrt(12))
    assert some == pytest.approx(OVERLAP / 4)
    assert many == pytest.approx(some / 10)


def test_smoothing_is_as_wide_as_its_bandwidth_where_particles_are_few():
    """A group as wide as the noise of a bandwidth of two thirds of a cell: most is noise."""
    shares = normal_shares(16, 2 / 3, middle=8.5 / 16)
    narrow, wide = (smoothed(measure_of(shares), np.full(1, b / 16)) for b in (0.0, 2 / 3))
    spreads = [one.weights[0] @ (16 * one.centres[0, :, 0] - 8.5) ** 2 for one in (narrow, wide)]
    assert spreads[0] == pytest.approx(4 / 9, abs=0.03)
    assert spreads[1] < spreads[0] / 2


def measure_of_cells(times, side, d, held, padding=3, seed=0):
    """`held` random cells of a grid with random weights at each time, and padding of weight 0."""
    rng = np.random.default_rng(seed)
    centres = np.full((times, held + padding, d), 0.5)
    weights = np.zeros((times, held + padding))
    for i in range(times):
        flat = rng.choice(side**d, size=held, replace=False)
        centres[i, :held] = (np.stack(np.unravel_index(flat, (side,) * d), axis=1) + 0.5) / side
        weights[i, :held] = rng.dirichlet(np.ones(held))
    return GridMeasure(centres, weights, np.full(times, 1 / side), np.ones(times))


def beyond_cells(measure, particles, shares, side):
    """Weight of the particles in every cell of the grid, less that of the measure's cells."""
    d = particles.shape[2]
    differences = np.zeros((len(particles), *(side,) * d))
    for i, row in enumerate(differences):
        np.add.at(row, tuple(np.minimum((particles[i] * side).astype(int), side - 1).T), shares[i])
        np.subtract.at(row, tuple((measure.centres[i] * side).astype(int).T), measure.weights[i])
    return differences


@pytest.mark.parametrize(
    ("d", "side", "held", "m"), [(1, 64, 20, 20), (2, 9, 30, 64), (3, 5, 2, 99)]
)
def test_particles_share_the_weights_of_their_cells_and_stay_in_them(d, side, held, m):
    measure = measure_of_cells(5, side, d, held)
    particles, shares = placed(measure, m, np.random.default_rng(1))
    assert particles.shape == (5, m, d)
    assert shares.shape == (5, m)
    assert ((particles >= 0) & (particles <= 1)).all()
    assert (shares > 0).all()
    np.testing.assert_allclose(beyond_cells(measure, particles, shares, side), 0, atol=1e-12)


@pytest.mark.parametrize(("held", "m"), [(1, 2), (40, 50), (40, 400), (60, 40)])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_particles_vary_as_uniform_places_in_their_cells(held, m, d):
    """Var of a uniform place in a cell of side h is h^2 / 12; the grid tells where each began."""
    side, times = 8 if d > 1 else 64, 8_000 // (m * d)
    measure = measure_of_cells(times, side, d, held)
    particles, _ = placed(measure, m, np.random.default_rng(2))
    offset = particles * side - np.floor(particles * side) - 0.5  # in cells
    # relative error of a mean of squares of 8,000 uniform draws: sqrt(0.8 / 8,000) = 1 %
    assert (offset**2).mean() == pytest.approx(1 / 12, rel=0.045)


def test_more_cells_than_particles_are_drawn_in_proportion_to_their_weights():
    measure = measure_of_cells(6, 16, 2, 200)
    particles, shares = placed(measure, 50, np.random.default_rng(0))
    np.testing.assert_array_equal(shares, 1 / 50)
    missed = beyond_cells(measure, particles, shares, 16)
    assert np.abs(missed).max() < 1 / 50 + 1e-12  # up to one particle more or less


def test_a_measure_of_the_whole_box_fills_it():
    silent = estimate(np.zeros((3, 64), dtype=np.int64), 8, 1.0, np.ones(3), 2)
    particles, shares = placed(silent, 500, np.random.default_rng(0))
    np.testing.assert_allclose(shares, 1 / 500)
    np.testing.assert_allclose(particles.var(axis=(0, 1)), 1 / 12, rtol=0.1)
