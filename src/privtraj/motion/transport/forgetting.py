"""People who forget where they were among the others, with the marginals of those who do not.

Curves c_p(t) of least action have the right law at every time, and nobody on them forgets. Mixed
with deviations xi of an inertial process (`reference.inertia`) of the same spread,
    y_p(t) = m(t) + sqrt(lasting) (c_p(t) - m(t)) + s(t) L(t) xi_p(t),      L L' = correlations,
people forget as they should and have the right means and covariances, and nearly the right law. The
rest is transport at each time, from the cloud of y to that of c, along random axes, one coordinate
at a time by sorting: the same axes at all times, so that what is carried where changes smoothly.
What each person is moved by is smoothed over time: the jumps of sorting are no motion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.motion.reference.inertia import Inertia

GRID = 129
"""Even times at which people are computed; between them they are read smoothly."""
AT_LEAST = 2048
"""People who are carried together; of fewer, the cloud is too coarse to carry."""
ROUNDS = 12
"""Of carrying; 20 change squared W2 by less than a tenth of what 2,048 people have by chance."""
SMOOTHING = 0.03
"""Standard deviation in time of the smoothing, in shares of the range, and at most a third of the
shortest memory. .015 leaves paths of a smooth process 5 % too long at 200 readings, .06 blurs."""

_APART = 1e3  # boxes between groups, many times what anybody is moved by


def forgetful(
    curves: NDArray[Any],
    grid: Floats,
    process: Inertia,
    rng: np.random.Generator,
    groups: Ints | None = None,
) -> Floats:
    """Paths (n, G, d) at even times (G,) in [0, 1], with the law of the curves (n, G, d).

    groups: (n, G) of people who have levels; each then has the law of its own curves.
    """
    n, _, d = curves.shape
    centre, spread = curves.mean(axis=0), np.maximum(curves.std(axis=0), 1e-9)
    shares = process.shares(d)
    lasting = np.sqrt(np.maximum(1 - shares.sum(axis=1), 0.0))
    scores = (curves - centre) / spread
    together = np.einsum("ngi,ngj->gij", scores, scores) / n
    root = np.linalg.cholesky(together + 1e-6 * np.eye(d))
    forgotten = np.einsum("gij,ngj->ngi", root, process.deviations(n, grid, d, rng))
    start = centre + spread * (lasting * scores + forgotten)
    far = np.zeros((1, 1)) if groups is None else _APART * groups.T
    apart = np.asarray(far, np.float64)[:, :, None]
    moved = _carried(start.swapaxes(0, 1), curves.swapaxes(0, 1), apart, rng).swapaxes(0, 1) - start
    return start + _smoothed(
        moved, process.memories[shares.max(axis=0) > 0.1].min(initial=1.0), grid
    )


def _carried(points: Floats, clouds: Floats, apart: Floats, rng: np.random.Generator) -> Floats:
    """Points (G, n, d) moved to where those of the clouds (G, n, d) are.

    apart: (G, n, 1) far from each other for those of different groups, which are sorted apart.
    """
    for _ in range(ROUNDS):
        axes, _ = np.linalg.qr(rng.standard_normal((points.shape[2],) * 2))
        along, wanted = points @ axes + apart, np.sort(clouds @ axes + apart, axis=1)
        reached = np.empty_like(along)
        np.put_along_axis(reached, np.argsort(along, axis=1), wanted, axis=1)
        points = points + (reached - along) @ axes.T
    return points


def _smoothed(values: Floats, shortest: float, grid: Floats) -> Floats:
    from scipy.ndimage import gaussian_filter1d

    width = min(SMOOTHING, shortest / 3) / (grid[1] - grid[0])
    return np.asarray(gaussian_filter1d(values, width, axis=1, mode="nearest")) if width else values
