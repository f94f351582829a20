"""Least action: who becomes whom if nobody moves more than they must.

Equally many people at each of K times are matched from time to time by optimal transport, each
where a reference process would carry them: the permutations minimise
    sum_i |y_p(i) - ahead(x_i)|^2.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats, Ints, equal_weight
from privtraj.base.space import unit_time
from privtraj.motion.reference.base import Reference

MOST_MATCHED = 512
"""People at each time who are matched; as many carry a model, and more take minutes."""
FITTED = 128
"""People at each time to whom a drift is fitted: a few numbers, again and again."""


def follow(clouds: Floats, clock: Floats, reference: Reference) -> Floats:
    """Paths (n, K, d) through clouds (K, n, d) at times (K,)."""
    paths = [clouds[0]]
    for cloud, t, dt in zip(clouds[1:], clock, np.diff(clock), strict=False):
        paths.append(cloud[matched(reference.ahead(paths[-1], t, dt), cloud)])
    return np.stack(paths, axis=1)


def least_action(particles: Floats, weights: Floats, times: Floats, reference: Reference) -> Floats:
    """Paths (n, K, d) through particles (K, m, d) of weights (K, m) at times (K,) of any unit,
    under the reference process, in the unit cube, that suits them."""
    clock = unit_time(times, times)
    suited = reference.fitted(even_clouds(particles, weights, FITTED), clock)
    return follow(even_clouds(particles, weights), clock, suited)


def matched(x: Floats, y: Floats) -> Ints:
    """Permutation (n,) that brings x (n, d) closest to y (n, d): x_i goes to y_p(i)."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    return np.asarray(linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1])


def even_clouds(particles: Floats, weights: Floats, most: int = MOST_MATCHED) -> Floats:
    """(K, n, d) people of equal weight, n at most `most`, of particles (K, m, d)."""
    return equal_weight(particles, weights, min(max(particles.shape[1], 2), most))
