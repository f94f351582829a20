"""Particles fill the cells of a measure, by their weights."""

import numpy as np
import pytest

from privtraj.measures.counts.cells import GridMeasure, estimate
from privtraj.measures.counts.placing import placed


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


def in_cells(measure, particles, shares, side):
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
    np.testing.assert_allclose(in_cells(measure, particles, shares, side), 0, atol=1e-12)


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
    missed = in_cells(measure, particles, shares, 16)
    assert np.abs(missed).max() < 1 / 50 + 1e-12  # up to one particle more or less


def test_a_measure_of_the_whole_box_fills_it():
    silent = estimate(np.zeros((3, 64), dtype=np.int64), 8, 1.0, np.ones(3), 2)
    particles, shares = placed(silent, 500, np.random.default_rng(0))
    np.testing.assert_allclose(shares, 1 / 500)
    np.testing.assert_allclose(particles.var(axis=(0, 1)), 1 / 12, rtol=0.1)
