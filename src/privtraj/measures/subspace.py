"""Many features that people hardly fill: measure them along few directions, and lift them back.

How features vary together, over all times, is three Gaussian sums over everybody's records, each a
clipped sum of the guard (`ClippedSums`: mechanism, sensitivity, adjacency), over one window that is
all of time, at a clip c that is public or made of what the sums before it released:

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

The rank r is the least for which no direction beyond the first r stands out: the next eigenvalue of
the noisy covariance is either a small share of all variance, or no more above the mean of those
beyond than the spectrum of the noise reaches, 2 s sqrt(d) and d^(-2/3) of it more, the scale on
which its end is known (Tracy and Widom 1994). The r directions are a subspace if r is small, if
they hold most of the variance, and if noise hides no more than half of it: what a hidden direction
has is lost, while gradients in all d features cost noise that grows with d^2. What is outside is
released as a variance per feature,

    outside = diag( (1 - A A') C (1 - A A') ),    A (d, r) the axes, C the covariance,

shrunk, by the share of its deviations that is noise, to that of people who are as wide in all
directions outside, v diag( 1 - A A' ).
All of it is post-processing, and so is what follows from it: what is measured, and how.

A curve u_i(t) in the cube of the subspace becomes, in that of the features,

    x_i(t) = c + 2 half (u_i(t) - 1/2) A'  +  offset_i,     offset_i = (1 - A A') g_i + s(t) A h_i,

with g_i and h_i drawn once for a curve, so that everybody keeps their own offset over time. g_i is
independent in the features, of variances such that offsets have the released variance outside; s
is the width that people have around their particles, less the bandwidth of the model, which is
the same in all directions and therefore no wider than people are in any of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.space import Slabs
from privtraj.measures.base import CLIPPED, Marginals
from privtraj.measures.windows import LISTED_SHARE, LOOK_SIDES, MOTION_SHARE
from privtraj.motion.process import Reference, least_action
from privtraj.privacy.events import Adjacency, GaussianSum, Person
from privtraj.privacy.guard import Gaussian, Guard, Projection, Release
from privtraj.privacy.ledger import calibrate_gaussian

if TYPE_CHECKING:
    import jax

MEAN = "mean of all records"
DISTANCES = "how far records are from it"
MOMENTS = "how features vary together"
SHARES = {MEAN: LISTED_SHARE, DISTANCES: LISTED_SHARE, MOMENTS: MOTION_SHARE}
"""Of mu^2, that of the one Gaussian sum that the whole budget buys, as of other looks."""
SHELL_RATIO = 2 ** (-1 / 3)
"""Of the radius of a shell to that of the next: the clip is up to a quarter larger than needed."""
SHELLS = 16
"""Shells, down to 1/32 of the radius of the box; people nearer to their mean count as there."""
MEAN_WEIGHT = 0.5
"""Of the mean, in clips, beside the second moment: it costs an eighth of the noise."""
SMALL = 0.02
"""Of all variance: a direction with less is released as variance, whatever its noise. Without, many
people show a third direction of a plane, which is then measured in all features: 4.5 times the
error of one population in twelve (ten features, 25,000 people)."""
FEATURES_PER_AXIS = 4
"""At least, of a subspace: in two axes of six features squared W2 was 1.3 times that in all of them
(eight data sets of 1,000 people at 5 times), in those of eight 1.03 (ten); 2026-11-16. So one is
looked for where two axes would do."""
REACH = 3.0
"""Standard deviations along the widest axis from the centre to the walls: of a Gaussian, three in
a thousand are moved to the wall, of groups nobody."""
LEAST_WIDTH = 1e-3
"""Bandwidth, in shares of the box, that every model has: people are no atoms."""


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
    from privtraj.privacy.sums import ClippedSums

    everybody = guard.in_slabs(Slabs.between(np.empty(0)))
    d, noise = guard.n_features, {name: one.noise_multiplier for name, one in events.items()}

    def total(name: str, statistic: Any, clip: float, *numbers: Any) -> Floats:
        parameters = tuple(np.asarray(number, np.float32)[None] for number in numbers)
        clips = np.array([clip])
        question = ClippedSums(statistic, parameters, clips)
        answer: Floats = everybody.ask(Release(question, Gaussian(noise[name]), name))[0]
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
    row, column = np.triu_indices(d)
    triangle, matrix = moments[d:], np.zeros((d, d))
    matrix[row, column] = np.where(row == column, triangle, triangle / math.sqrt(2))
    covariance = matrix + np.triu(matrix, 1).T - np.outer(off, off)
    return Spread(centre + off, covariance, clip * noise[MOMENTS] / people / math.sqrt(2))


def within(shells: Floats, edges: Floats) -> float:
    """The least radius that all but `CLIPPED` of the records are within, of noisy numbers of
    records between the radii (k,) and beyond them (k + 1,)."""
    shells = np.maximum(shells, 0.0)
    reached = np.cumsum(shells)[:-1] >= (1 - CLIPPED) * shells.sum()
    return float(edges[np.argmax(reached)] if reached.any() else edges[-1])


# What a record adds -----------------------------------------------------------------------------


def _places(points: jax.Array, parameters: Any) -> jax.Array:
    import jax.numpy as jnp

    (one,) = parameters
    return jnp.concatenate([points - 0.5, jnp.full((len(points), 1), one)], axis=1)


def _shells(points: jax.Array, parameters: Any) -> jax.Array:
    import jax
    import jax.numpy as jnp

    centre, edges = parameters
    distance = jnp.linalg.norm(points - centre, axis=1)
    beyond = (distance[:, None] > edges).sum(axis=1)
    return jax.nn.one_hot(beyond, edges.shape[0] + 1, dtype=jnp.float32)


def _moments(points: jax.Array, parameters: Any) -> jax.Array:
    import jax.numpy as jnp

    centre, weight = parameters
    away = points - centre
    row, column = np.triu_indices(points.shape[1])
    scale = np.where(row == column, 1.0, math.sqrt(2)).astype(np.float32)
    return jnp.concatenate([weight * away, scale * away[:, row] * away[:, column]], axis=1)


# Which subspace --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Subspace:
    """r axes along which people differ, and what is outside them.

    projection: onto the axes.  outside: (d,) variance per feature.
    """

    projection: Projection
    outside: Floats


@dataclass(frozen=True, eq=False)
class Spectrum:
    """mean: (d,).  values: (d,) eigenvalues, falling.  axes: (d, d), a column for each.
    noise: standard deviation of a number beside the diagonal of the covariance.
    """

    mean: Floats
    values: Floats
    axes: Floats
    noise: float

    @classmethod
    def of(cls, spread: Spread) -> Spectrum:
        """That of a noisy covariance."""
        values, axes = np.linalg.eigh(spread.covariance)
        return cls(spread.mean, values[::-1], axes[:, ::-1], spread.noise)

    @property
    def edge(self) -> float:
        """Where the spectrum of the noise ends."""
        d = len(self.values)
        return (1 + d ** (-2 / 3)) * 2 * self.noise * math.sqrt(d)

    @property
    def total(self) -> float:
        """All variance. Noise has mean 0 in the trace, and is smaller there than in a value."""
        return max(float(self.values.sum()), self.edge)

    @property
    def rank(self) -> int:
        """r: how many directions stand out."""
        d = len(self.values)
        beyond = self.values[::-1].cumsum()[::-1] / np.arange(d, 0, -1)  # means from each on
        level = self.values <= np.maximum(SMALL * self.total, beyond + self.edge)
        return int(np.argmax(level)) if level[:-1].any() else d  # of one direction nothing is told

    def inside(self, rank: int) -> float:
        """Share of the variance along the first axes."""
        return float(min(np.maximum(self.values[:rank], 0.0).sum() / self.total, 1.0))

    @property
    def is_low(self) -> bool:
        """Whether a subspace holds people well enough to measure them there."""
        d = len(self.values)
        hides_little = self.edge <= float(self.values.sum()) / 2
        few = 1 <= self.rank <= d // FEATURES_PER_AXIS
        return few and hides_little and self.inside(self.rank) > 1 / 2

    def subspace(self, rank: int) -> Subspace:
        """That of the first axes."""
        beyond = self.axes[:, rank:] ** 2  # its rows add up to the diagonal of 1 - A A'
        outside, free = beyond @ self.values[rank:], beyond.sum(axis=1)
        even = max(float(self.values[rank:].mean()), 0.0) * free
        noise = 2 * self.noise**2 * float((free**2).mean())
        varies = max(float(((outside - even) ** 2).mean()), 1e-300)
        outside = np.maximum(even + max(0.0, 1 - noise / varies) * (outside - even), 0.0)
        widest = math.sqrt(max(float(self.values[0]), self.edge, 1e-8))
        return Subspace(Projection(self.mean, self.axes[:, :rank], REACH * widest), outside)

    @property
    def looked_along(self) -> Projection:
        """The axes along which people's motion is looked at: those of most variance, as many as a
        look has fine cells for."""
        return self.subspace(min(max(self.rank, 1), max(LOOK_SIDES))).projection

    def chosen(self, wanted: int | Literal["auto", "off"]) -> Subspace | None:
        """The subspace to measure in, of so many axes; "auto": that of `rank`, or None for all."""
        if not isinstance(wanted, str):
            return self.subspace(int(wanted))
        return self.subspace(self.rank) if self.is_low else None

    def describe(self, chosen: Subspace | None) -> dict[str, Any]:
        """For the diagnostics of a model."""
        rank = self.rank if chosen is None else chosen.projection.rank
        return {
            "rank": None if chosen is None else rank,
            "above_noise": self.rank,
            "inside": self.inside(rank),
            "spectrum": self.values.tolist(),
            "noise_edge": self.edge,
            "outside": None if chosen is None else chosen.outside.tolist(),
        }


# Back to all features ---------------------------------------------------------------------------


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
