"""Back to all features: curves in a subspace, and around each what is outside it.

A curve u_i(t) in the cube of the subspace becomes, in that of the features,

    x_i(t) = c + 2 half (u_i(t) - 1/2) A'  +  offset_i,     offset_i = (1 - A A') g_i + s(t) A h_i,

with g_i and h_i drawn once for a curve, so that everybody keeps their own offset over time. g_i is
independent in the features, of variances such that offsets have the released variance outside; s
is the width that people have around their particles, less the bandwidth of the model, which is
the same in all directions and therefore no wider than people are in any of them.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.measures.marginals import Marginals
from privtraj.measures.subspace.constants import LEAST_WIDTH
from privtraj.measures.subspace.spectrum import Subspace
from privtraj.motion.process import Reference, least_action


def lifted(
    subspace: Subspace,
    marginals: Marginals,
    knots: Floats | None,
    times: Floats,
    reference: Reference,
    rng: np.random.Generator,
) -> tuple[Marginals, Floats]:
    """Marginals (K, m, d) of curves, and their knots (K,), from those in the subspace.

    knots: None where the particles of all times (K,) are no curves yet: those of least action
    under the reference, in the cube of the subspace, then are.
    """
    particles = marginals.particles
    if knots is None:
        paths = least_action(particles, marginals.weights, times, reference)
        knots, particles = times, paths.swapaxes(0, 1)
    projection, m = subspace.projection, particles.shape[1]
    side = 2 * projection.half
    width = side * marginals.bandwidth
    own = independent(subspace)
    bandwidth = max(float(min(width.min(), np.sqrt(own.min()))), LEAST_WIDTH)
    g = np.sqrt(np.maximum(own - bandwidth**2, 0.0)) * rng.standard_normal((m, len(own)))
    along = rng.standard_normal((m, projection.rank)) @ projection.axes.T
    kept = np.sqrt(np.maximum(width**2 - bandwidth**2, 0.0))
    offsets = g - g @ projection.axes @ projection.axes.T + kept[:, None, None] * along
    return marginals._replace(
        particles=np.clip(projection.back(particles) + offsets, 0.0, 1.0),
        weights=np.full(particles.shape[:2], 1 / m),
        bandwidth=np.full(len(knots), bandwidth),
        resolution=side * marginals.resolution,
    ), knots


def independent(subspace: Subspace) -> Floats:
    """(d,) variances v >= 0 of independent features that have, once the axes are taken off, the
    variance outside: the v closest to  (Q * Q) v = outside  with Q = 1 - A A'."""
    from scipy.optimize import nnls

    axes = subspace.projection.axes
    off = np.eye(len(axes)) - axes @ axes.T
    return np.asarray(nnls(off**2, subspace.outside)[0])
