"""Slabs in a fit: a private look at how people move, and curves through what was measured."""

from __future__ import annotations

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.clouds import systematic
from privtraj.head_count import count_epsilon
from privtraj.marginals import Marginals
from privtraj.privacy.guard import Guard
from privtraj.privacy.noise import EPSILON_RANGE, laplace_variance
from privtraj.slabs.choice import SlabChoice, choose_slabs, slab_of_bin
from privtraj.slabs.constants import CURVES, PROBE_BINS, PROBE_CELLS, PROBE_SHARE, READINGS
from privtraj.slabs.curves import fit_curves, knots_of, reading_times
from privtraj.slabs.motion import moment_paths, motion_energy
from privtraj.space import unit_time
from privtraj.transport.couplings import couple
from privtraj.transport.reference import Brownian

MOTION = "how people move"


def look_side(features: int) -> int:
    """Cells per side of the look at motion."""
    return PROBE_CELLS.get(features, 2)


def found_slabs(guard: Guard) -> SlabChoice:
    """The number of slabs, from coarse counts over time that are released and paid for.

    A budget too small to look sees no motion, as people who are still.
    """
    epsilon, side = count_epsilon(guard, PROBE_SHARE), look_side(guard.n_features)
    bins = min(guard.n_times, PROBE_BINS)
    if epsilon == EPSILON_RANGE[0]:
        return choose_slabs(np.zeros(bins - 1), 1.0, 1.0, guard.n_features, guard.n_times)
    looking = guard.in_slabs(slab_of_bin(guard.n_times, bins))
    counts = looking.counts(side, epsilon, MOTION)
    people = max(float(counts.sum()), float(bins))
    paths = moment_paths(counts, side, laplace_variance(epsilon), people, guard.n_features)
    energy = motion_energy(paths)
    return choose_slabs(energy, people, guard.ledger.epsilon, guard.n_features, guard.n_times)


def centres(times: Floats, of_bin: Ints) -> Floats:
    """(K,) mean time of each slab."""
    return np.bincount(of_bin, times) / np.bincount(of_bin)


def curved(
    marginals: Marginals,
    times: Floats,
    of_bin: Ints,
    rng: np.random.Generator,
    count: int | None = None,
) -> tuple[Marginals, Floats]:
    """Marginals at the knots of curves through those of K slabs, and these K + 1 times.

    times: (T,) of the bins, in data units.  count: of curves, 512 if None.
    Numbers that were found for each slab are read off at the knots, linearly.
    """
    m, unit = count or CURVES, unit_time(times, times)
    middle = centres(unit, of_bin)
    picks = zip(marginals.particles, marginals.weights, strict=True)
    clouds = [cloud[systematic(weights, m * READINGS, rng)] for cloud, weights in picks]
    coupling = couple(
        marginals.particles, marginals.weights, np.diff(middle), Brownian(1.0), "exact"
    )
    walk = coupling.walk(m, rng)
    start = marginals.particles[np.arange(len(middle)), walk]
    knots = knots_of(unit, of_bin)
    control = fit_curves(np.stack(clouds), reading_times(unit, of_bin, READINGS), knots, start, rng)
    bandwidth = np.interp(knots, middle, marginals.bandwidth)
    at_knots = Marginals(
        control.swapaxes(0, 1),
        np.full((len(knots), m), 1 / m),
        bandwidth,
        resolution=bandwidth,
        diagnostics={
            name: np.interp(knots, middle, value).tolist() if isinstance(value, list) else value
            for name, value in marginals.diagnostics.items()
        },
    )
    return at_knots, times[0] + knots * (times[-1] - times[0])
