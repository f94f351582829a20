"""Curves through slabs of time: particles that move while they are measured.

Particle i is a curve  x_i(t) = sum_k B_k(t) c_ik  with hat functions B_k at K + 1 knots: the first
and the last time, and the edges between slabs. The people of a slab were there at all its times, so
a slab shows the curves blurred by their own motion, and that blur is undone by asking that the
curves, read at J times of the slab, together look like its people:
    min over c   sum_k W2^2( {x_i(t_kj)}_ij , people of slab k )
                 + bending |second differences of c|^2 + action |first differences of c|^2.
One round transports the m J readings of every slab towards its people along a random orthonormal
basis, one coordinate at a time by sorting (exact in one dimension; repeated, it carries any cloud
to any other), and puts the nearest curves through where they arrived, by least squares. All of it
is post-processing.
"""

from __future__ import annotations

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.slabs.constants import ACTION, ROUNDS, STIFF_SLABS
from privtraj.space import hat_functions


def fit_curves(
    clouds: Floats, times: Floats, knots: Floats, start: Floats, rng: np.random.Generator
) -> Floats:
    """Control points (m, K + 1, d) of m curves.

    clouds: (K, m J, d) people of each slab, equally many.  times: (K, J) at which curves are read.
    knots: (K + 1,) increasing.  start: (m, K, d) where each curve is in each slab, roughly.
    """
    slabs, total, d = clouds.shape
    readings = times.shape[1]
    m = total // readings
    basis = hat_functions(times.ravel(), knots)
    rigid = penalty(slabs + 1, (slabs / STIFF_SLABS) ** 3, ACTION)
    smooth = np.linalg.solve(basis.T @ basis / readings + rigid, basis.T / readings)
    middle = hat_functions(times.mean(axis=1), knots)
    control = np.einsum("ek,mkd->med", np.linalg.solve(middle.T @ middle + rigid, middle.T), start)
    for _ in range(ROUNDS):
        points = np.einsum("qe,med->qmd", basis, control).reshape(slabs, total, d)
        points = _carried(points, clouds, rng)
        control = np.einsum("eq,qmd->med", smooth, points.reshape(slabs * readings, m, d))
    return np.clip(control, 0.0, 1.0)


def _carried(points: Floats, clouds: Floats, rng: np.random.Generator) -> Floats:
    """Points (K, n, d) moved so that their margins along a random basis are those of the clouds."""
    d = points.shape[2]
    axes, _ = np.linalg.qr(rng.standard_normal((len(points), d, d)))
    along, wanted = points @ axes, np.sort(clouds @ axes, axis=1)
    reached = np.empty_like(along)
    np.put_along_axis(reached, np.argsort(along, axis=1), wanted, axis=1)
    moved: Floats = points + (reached - along) @ np.swapaxes(axes, 1, 2)
    return moved


def knots_of(moments: Floats, slab_of_moment: Ints) -> Floats:
    """(K + 1,) the first moment, the middle between neighbouring slabs, the last moment."""
    cuts = np.flatnonzero(np.diff(slab_of_moment))
    middles = (moments[cuts] + moments[cuts + 1]) / 2
    return np.concatenate([moments[:1], middles, moments[-1:]])


def reading_times(moments: Floats, slab_of_moment: Ints, readings: int) -> Floats:
    """(K, J) times of each slab, spread evenly over its moments."""
    shares = (np.arange(readings) + 0.5) / readings
    rows = []
    for slab in range(slab_of_moment[-1] + 1):
        inside = moments[slab_of_moment == slab]
        rows.append(np.interp(shares * len(inside) - 0.5, np.arange(len(inside)), inside))
    return np.stack(rows)


def penalty(knots: int, bending: float, action: float) -> Floats:
    """Quadratic form (knots, knots) of weighted squared second and first differences."""
    first = np.diff(np.eye(knots), axis=0)
    second = np.diff(np.eye(knots), 2, axis=0)
    form: Floats = bending * second.T @ second + action * first.T @ first
    return form
