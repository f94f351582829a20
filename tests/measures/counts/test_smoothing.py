"""A smooth density behind the masses of cells: no borders, the right width, walls, domains."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import norm

from privtraj.measures.counts.cells import GridMeasure
from privtraj.measures.counts.constants import OVERLAP
from privtraj.measures.counts.smoothing import bandwidths, smoothed


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
    few, some, many = (bandwidths([measure], np.ones((1, 1)), m)[0] for m in (1, 16, 1600))
    assert few == pytest.approx(1 / np.sqrt(12))
    assert some == pytest.approx(OVERLAP / 4)
    assert many == pytest.approx(some / 10)


def test_people_split_among_combinations_have_fewer_particles_each():
    one = measure_of(np.ones((4, 4)))
    alone = bandwidths([one], np.ones((1, 1)), 64)
    np.testing.assert_allclose(bandwidths([one] * 4, np.ones((1, 4)), 256), alone)
    np.testing.assert_allclose(bandwidths([one] * 2, np.array([[1.0, 0.0]]), 64), alone)


def test_smoothing_is_as_wide_as_its_bandwidth_where_particles_are_few():
    """A group as wide as the noise of a bandwidth of two thirds of a cell: most is noise."""
    shares = normal_shares(16, 2 / 3, middle=8.5 / 16)
    narrow, wide = (smoothed(measure_of(shares), np.full(1, b / 16)) for b in (0.0, 2 / 3))
    spreads = [one.weights[0] @ (16 * one.centres[0, :, 0] - 8.5) ** 2 for one in (narrow, wide)]
    assert spreads[0] == pytest.approx(4 / 9, abs=0.03)
    assert spreads[1] < spreads[0] / 2
