"""How features vary together, over all times: three Gaussian sums over everybody's records.

Each is a clipped sum of the guard (`Guard.sums`: mechanism, sensitivity, adjacency), over one slab
that is all of time, at a clip c that is public or made of what the sums before it released:

    mean     v = (y - 1/2, q),  q = sqrt(d) / 4                 c = sqrt(d/4 + q^2), the most
    shells   v = one of `SHELLS` + 1 units, by |y - m|          c = 1, the norm of each
    moments  v = ( w (y - m), upper triangle of (y - m)(y - m)' with sqrt(2) beside the diagonal )
             of norm  sqrt(w^2 R^2 + R^4)  at a distance R      c = that norm at the R of the shells

m is the released mean, R the radius within which the shells show all but `CLIPPED` of the records.
A record's vector is a function of the record and of m, R and w, and the three sums are paid for one
by one: each has the sensitivity of any such sum, c for a record that comes or goes, 2 c for one
that is replaced. The last number of the mean tells how many records there are. The factor sqrt(2)
makes the norm of the triangle that of the matrix, and the noise of the matrix that of a Gaussian
orthogonal ensemble: standard deviation s beside the diagonal, sqrt(2) s on it, and a spectrum that
ends at 2 s sqrt(d).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.space import Slabs
from privtraj.measures.subspace.constants import (
    CLIPPED,
    DISTANCE_SHARE,
    MEAN_SHARE,
    MEAN_WEIGHT,
    MOMENT_SHARE,
    SHELL_RATIO,
    SHELLS,
)
from privtraj.privacy.events import Adjacency, GaussianSum, Person
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import calibrate_gaussian
from privtraj.privacy.questions import Gaussian, Release
from privtraj.privacy.sums import ClippedSums

MEAN = "mean of all records"
DISTANCES = "how far records are from it"
MOMENTS = "how features vary together"
SHARES = {MEAN: MEAN_SHARE, DISTANCES: DISTANCE_SHARE, MOMENTS: MOMENT_SHARE}


class Spread(NamedTuple):
    """What everybody's records say of the features together, in the unit cube.

    mean: (d,).  covariance: (d, d) with noise of standard deviation `noise` beside the diagonal.
    """

    mean: Floats
    covariance: Floats
    noise: float


def moment_events(
    epsilon: float, delta: float, adjacency: Adjacency, person: Person
) -> dict[str, GaussianSum]:
    """The three sums that a fit of this budget asks first, by name; none if it does not buy them.

    Their shares are of mu^2, that of the one sum that the whole budget would buy.
    """
    if delta == 0:
        return {}
    person = person.in_slabs()
    whole = calibrate_gaussian(epsilon, delta, adjacency, slack=delta / 100, person=person)
    if whole == 0:
        return {}
    return {
        name: GaussianSum(1 / (whole * math.sqrt(share)), name, 0.0, *person)
        for name, share in SHARES.items()
    }


def measured_spread(guard: Guard, events: Mapping[str, GaussianSum]) -> Spread:
    """Released, paid for as these events."""
    everybody = guard.in_slabs(Slabs.between(np.empty(0)))
    d, noise = guard.n_features, {name: one.noise_multiplier for name, one in events.items()}

    def total(name: str, statistic: Any, clip: float, *numbers: Any) -> Floats:
        parameters = tuple(np.asarray(number, np.float32)[None] for number in numbers)
        clips = np.array([clip])
        answer: Floats = everybody.ask(
            Release(ClippedSums(statistic, parameters, clips), Gaussian(noise[name]), name)
        )[0]
        return answer

    one = math.sqrt(d) / 4
    *sums, counted = total(MEAN, _places, math.sqrt(d / 4 + one**2), one)
    people = max(counted / one, noise[MEAN])
    centre = np.clip(0.5 + np.array(sums) / people, 0.0, 1.0)
    edges: Floats = math.sqrt(d) / 2 * SHELL_RATIO ** np.arange(SHELLS - 1.0, -1.0, -1.0)
    radius = within(total(DISTANCES, _shells, 1.0, centre, edges), edges)
    weight = MEAN_WEIGHT * radius
    clip = math.hypot(weight * radius, radius**2)
    moments = total(MOMENTS, _moments, clip, centre, weight) / people
    off = moments[:d] / weight
    covariance = _matrix(moments[d:], d) - np.outer(off, off)
    return Spread(centre + off, covariance, clip * noise[MOMENTS] / people / math.sqrt(2))


def within(shells: Floats, edges: Floats) -> float:
    """The least radius that all but `CLIPPED` of the records are within, of noisy numbers of
    records between the radii (k,) and beyond them (k + 1,)."""
    shells = np.maximum(shells, 0.0)
    reached = np.cumsum(shells)[:-1] >= (1 - CLIPPED) * shells.sum()
    return float(edges[np.argmax(reached)] if reached.any() else edges[-1])


# What a record adds -----------------------------------------------------------------------------


def _places(points: jax.Array, parameters: Any) -> jax.Array:
    (one,) = parameters
    return jnp.concatenate([points - 0.5, jnp.full((len(points), 1), one)], axis=1)


def _shells(points: jax.Array, parameters: Any) -> jax.Array:
    centre, edges = parameters
    distance = jnp.linalg.norm(points - centre, axis=1)
    beyond = (distance[:, None] > edges).sum(axis=1)
    return jax.nn.one_hot(beyond, edges.shape[0] + 1, dtype=jnp.float32)


def _moments(points: jax.Array, parameters: Any) -> jax.Array:
    centre, weight = parameters
    away = points - centre
    row, column = np.triu_indices(points.shape[1])
    scale = np.where(row == column, 1.0, math.sqrt(2)).astype(np.float32)
    return jnp.concatenate([weight * away, scale * away[:, row] * away[:, column]], axis=1)


def _matrix(triangle: Floats, d: int) -> Floats:
    """The symmetric matrix (d, d) of its scaled upper triangle."""
    row, column = np.triu_indices(d)
    matrix = np.zeros((d, d))
    matrix[row, column] = np.where(row == column, triangle, triangle / math.sqrt(2))
    return matrix + np.triu(matrix, 1).T
