"""Private warm starts: where the people of each time are, roughly, before the first step.

Section "Improvements Upon the Base Method" of the paper, paid for exactly. Whatever depends on the
data here is one noisy sum per step over all bins (`ClippedSums`), a Gaussian mechanism of noise
multiplier z: a person is in one bin, so the T bins are released in parallel, and for one person
with one record added or removed K steps together are exactly mu-GDP with mu = sqrt(K) / z.
Everything else is post-processing of these sums.

    means      v(y) = y - 1/2                           |v| <= sqrt(d) / 2, half the diagonal
    medians    v(y) = (y - theta) / |y - theta|         |v| <= 1
    clusters   v(y) = a (x) (delta, 1, |delta|^2 - 1/2) |v| <= CLUSTER_CLIP, see `cluster_vectors`

All three bounds hold for every y in the cube: the guard's clip changes nobody, so nothing is biased
by it.
`people` (T,) are public or released numbers of records per bin, never the true ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats, systematic
from privtraj.base.errors import InputError
from privtraj.base.space import fold
from privtraj.measures.likelihood import squared_distances
from privtraj.privacy.guard import Gaussian, Guard, Release
from privtraj.privacy.sums import ClippedSums

MEANS = "sums of private means"
MEDIANS = "directions of private medians"
CLUSTERS = "sums of private clusters"

CLUSTER_CLIP = 1.5  # sqrt(1 + 1 + 1/4), see `cluster_vectors`

# How centres move; set by hand, 2026-11
AT_MEDIAN = 1e-12  # distance at which a person is on the median: squares below underflow
REACH = 1.5  # radius within which people count in full, in sqrt(d) spreads
SHRINK = 0.5  # of the radius, at most, per step
MIN_SPREAD = 0.005  # of a cluster, in shares of the box
SIGNIFICANT_DEVIATIONS = 2.0  # of a count's noise that a cluster must have
SMALLEST_SHARE = 0.02  # of an equal part of the people that it must have without noise
FIRST_CENTRES = 0.7  # share of the width of the cube over which they are
AVERAGED = 3  # one in so many steps, the last ones, are averaged


def private_means(guard: Guard, people: ArrayLike, noise_multiplier: float) -> Floats:
    """Means (T, d) = 1/2 + R / people, R the noisy sum of y - 1/2; one release.

    Sensitivity: |y - 1/2| <= sqrt(d) / 2. The noise on a mean has standard deviation
    z sqrt(d) / (2 people) per coordinate; what it carries out of the cube is put back on its side.
    """
    total, d = _released(guard, people), guard.n_features
    middle = np.full((guard.n_times, d), 0.5)
    question = ClippedSums(offsets, np.float32(middle), np.full(guard.n_times, math.sqrt(d) / 2))
    sums = guard.ask(Release(question, Gaussian(noise_multiplier), MEANS))
    return np.clip(middle + sums / total[:, None], 0, 1)


def offsets(points: jax.Array, origin: jax.Array) -> jax.Array:
    """v = y - origin: points (n, d), origin (d,) -> (n, d)."""
    return points - origin


def private_medians(guard: Guard, people: ArrayLike, noise_multiplier: float, steps: int) -> Floats:
    """Geometric medians (T, d), the minimisers of sum |y - theta|, by noisy gradient steps.

        theta <- theta + eta R / people,   R the noisy sum of (y - theta) / |y - theta|

    `steps` releases, each of sensitivity 1: however far somebody is, they pull with force 1. The
    step eta starts at half of the half diagonal, and halves whenever R points back against the R
    before it: then the median was passed, whatever the width of the people, which nobody knows
    beforehand. The answer is the average over the last third of the steps. Ten steps are enough.
    """
    total = _released(guard, people, steps)
    theta = np.full((guard.n_times, guard.n_features), 0.5)
    eta = np.full(guard.n_times, math.sqrt(guard.n_features) / 4)
    clip, before, path = np.ones(guard.n_times), np.zeros_like(theta), []
    for _ in range(steps):
        question = ClippedSums(directions, np.float32(theta), clip)
        sums = guard.ask(Release(question, Gaussian(noise_multiplier), MEDIANS))
        eta = np.where((sums * before).sum(axis=1) < 0, eta / 2, eta)
        theta = np.clip(theta + (eta / total)[:, None] * sums, 0, 1)
        before = sums
        path.append(theta)
    return np.mean(path[-max(1, steps // AVERAGED) :], axis=0)


def directions(points: jax.Array, theta: jax.Array) -> jax.Array:
    """v = (y - theta) / |y - theta|, 0 at theta: points (n, d), theta (d,) -> (n, d)."""
    away = points - theta
    distance = jnp.linalg.norm(away, axis=-1, keepdims=True)
    apart = distance > AT_MEDIAN  # nearer ones are at theta: their squares would underflow
    return jnp.where(apart, away / jnp.where(apart, distance, 1), 0)


# Clusters -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Clusters:
    """k clusters of people at each time.

    centres: (T, k, d) in the unit cube.  weights: (T, k), rows sum to 1.
    spread: (T,) standard deviation per coordinate of people around their centre, a little low
    because people beyond the radius count as if they were on it.
    """

    centres: Floats
    weights: Floats
    spread: Floats


class Centres(NamedTuple):
    """What the per-person vector depends on; a leading time axis is optional."""

    places: jax.Array  # (..., k, d)
    radius: jax.Array  # (...) longest move that a person asks for


def private_clusters(
    guard: Guard, people: ArrayLike, k: int, noise_multiplier: float, steps: int
) -> Clusters:
    """k-means clusters of each time by noisy Lloyd steps, `steps` releases.

        centre <- centre + shift / max(size, floor)

    The first centres are low-discrepancy points, the same for every bin and all data. `radius` is
    the largest shift of a person, and noise grows with it, so it follows the released spread:
        radius <- REACH sqrt(d) spread,  at least SHRINK times what it was,
    from the half diagonal over k^(1/d), about the distance to the nearest of k centres, on.
    A step is damped where the size is below
        floor = max(SIGNIFICANT_DEVIATIONS of its noise, SMALLEST_SHARE people / k),
    and before the last third of the steps centres may jump (`_relocate`). Centres, weights and
    spread are averages over that last third. Eight steps are enough for a few clusters, twelve for
    six or more.
    """
    total, times, d = _released(guard, people, min(steps, k)), guard.n_times, guard.n_features
    farthest = math.sqrt(d) / 2
    centres = np.tile(0.5 + FIRST_CENTRES * _even_offsets(k, d), (times, 1, 1))
    radius, clip = np.full(times, farthest * k ** (-1 / d)), np.full(times, CLUSTER_CLIP)
    noise = Gaussian(noise_multiplier)
    floor = np.maximum(
        SIGNIFICANT_DEVIATIONS * CLUSTER_CLIP * noise_multiplier, SMALLEST_SHARE * total / k
    )
    ways = _even_offsets(1 + steps * k, d)[1:].reshape(steps, k, d)  # the first has no direction
    settled, kept = max(1, steps // AVERAGED), []
    for step in range(steps):
        single = Centres(jnp.asarray(centres, jnp.float32), jnp.asarray(radius, jnp.float32))
        question = ClippedSums(cluster_vectors, single, clip)
        sums = guard.ask(Release(question, noise, CLUSTERS)).reshape(times, k, d + 2)
        unit, size = radius[:, None], sums[:, :, d]  # (T, k) people
        shift = unit[:, :, None] * sums[:, :, :d]  # (T, k, d) of y - centre, and its square:
        inertia = unit**2 * (sums[:, :, d + 1] + size / 2)
        held = np.maximum(size, floor[:, None])
        centres = np.clip(centres + shift / held[:, :, None], 0, 1)
        most = np.maximum(radius**2 / d, MIN_SPREAD**2)
        spread = np.sqrt(np.clip(inertia.sum(axis=1) / (total * d), MIN_SPREAD**2, most))
        if step < steps - settled:
            _relocate(centres, size, inertia, floor, ways[step])
        else:
            kept.append((centres, size, spread**2))
        radius = np.clip(REACH * math.sqrt(d) * spread, SHRINK * radius, farthest)
    places, sizes, variance = (np.mean(part, axis=0) for part in zip(*kept, strict=True))
    return Clusters(places, on_simplex(sizes / total[:, None]), np.sqrt(variance))


def cluster_vectors(points: jax.Array, centres: Centres) -> jax.Array:
    """v = a (x) (delta, 1, |delta|^2 - 1/2): points (n, d) -> (n, k (d + 2)).

    a is 1 for the nearest centre and 0 for the others; delta = (y - centre) / radius, shortened to
    length 1 where it is longer. So |v|^2 = |delta|^2 + 1 + (|delta|^2 - 1/2)^2 <= 2.25, the square
    of CLUSTER_CLIP. Counting weighs as much as pulling: a wrong weight moves people from cluster to
    cluster, a wrong centre only within one. Taking 1/2 off the residual halves what it costs.
    """
    nearest = jnp.argmin(squared_distances(points, centres.places), axis=-1)
    delta = (points - centres.places[nearest]) / centres.radius
    length = jnp.linalg.norm(delta, axis=-1, keepdims=True)
    delta = delta / jnp.maximum(length, 1)
    ones, residual = jnp.ones_like(length), jnp.minimum(length, 1) ** 2 - 0.5
    mine = jax.nn.one_hot(nearest, centres.places.shape[0], dtype=points.dtype)
    parts = jnp.concatenate([delta, ones, residual], axis=-1)
    return (mine[:, :, None] * parts[:, None, :]).reshape(points.shape[0], -1)


def _relocate(
    centres: Floats, sizes: Floats, inertias: Floats, floor: Floats, ways: Floats
) -> None:
    """Move centres that are of little use into the clusters with the largest inertia, in place.

    Of little use are clusters below the floor; where there are none, one of the pair that is
    cheapest to merge. Lloyd's iteration alone cannot do it: a centre between two modes and two
    centres on a third are a fixed point. A cluster is split only if both halves
    would be significant.  ways: (k, d) directions of splits. Released numbers decide all of it.
    """
    for i, places in enumerate(centres):
        size = np.maximum(sizes[i], 0)
        inertia = np.where(size >= 2 * floor[i], np.maximum(inertias[i], 0), 0)
        free = np.flatnonzero(size < floor[i]).tolist() or _merged(places, size, inertia)
        for j, way in zip(free, ways, strict=False):
            crowd = np.argmax(inertia)
            if inertia[crowd] > 0:
                apart = np.sqrt(inertia[crowd] / size[crowd]) * way / np.linalg.norm(way)
                places[[j, crowd]] = np.clip([places[crowd] + apart, places[crowd] - apart], 0, 1)
                inertia[crowd] /= 4


def _merged(places: Floats, size: Floats, inertia: Floats) -> list[int]:
    """Merge the cheapest pair of centres (k, d), if splitting another cluster gains more, in place.

    Merging a and b costs n_a n_b / (n_a + n_b) |c_a - c_b|^2 of inertia. Splitting a round normal
    cluster gains 2 / (pi d) of its inertia, one of two modes nearly all: asked for is 1 / (2 d).
    """
    k, d = places.shape
    if k < 3:
        return []
    distance = ((places[:, None] - places[None]) ** 2).sum(axis=-1)
    cost = distance / (1 / size[:, None] + 1 / size)
    np.fill_diagonal(cost, np.inf)
    a, b = divmod(int(np.argmin(cost)), k)
    if cost[a, b] >= np.delete(inertia, [a, b]).max() / (2 * d):
        return []
    places[a] = np.average(places[[a, b]], axis=0, weights=size[[a, b]])
    inertia[[a, b]] = 0
    return [b]


def on_simplex(weights: Floats) -> Floats:
    """The nearest non-negative rows that sum to 1: max(w - tau, 0), one tau for each row (T, k)."""
    falling = -np.sort(-weights, axis=1)
    tau = (np.cumsum(falling, axis=1) - 1) / np.arange(1, weights.shape[1] + 1)
    last = (falling > tau).sum(axis=1, keepdims=True) - 1
    positive = np.maximum(weights - np.take_along_axis(tau, last, axis=1), 0)
    return positive / positive.sum(axis=1, keepdims=True)


def mixture_particles(
    start: Clusters | Floats, m: int, spread: ArrayLike, rng: np.random.Generator
) -> Floats:
    """Particles (T, m, d): centre + spread * normal, reflected into the cube.

    start: clusters, or one place (T, d) for each time. spread: (T,) or one number. Cluster k gets m
    weights_k particles up to one, by systematic resampling. It uses released numbers only.
    """
    if not isinstance(start, Clusters):
        places = np.asarray(start, dtype=np.float64)
        start = Clusters(places[:, None], np.ones((len(places), 1)), np.zeros(len(places)))
    pairs = zip(start.centres, start.weights, strict=True)
    places = np.stack([centres[systematic(share, m, rng)] for centres, share in pairs])
    width = np.broadcast_to(np.asarray(spread, dtype=np.float64), len(places))
    noisy = places + width[:, None, None] * rng.standard_normal(places.shape)
    return np.asarray(fold(noisy), dtype=np.float64)


def _released(guard: Guard, people: ArrayLike, steps: int = 1) -> Floats:
    """People (T,) to divide by: a released number may be zero or less, where nobody is.

    steps: or clusters, of which there must be one at least.
    """
    if steps < 1:
        raise InputError(f"steps and clusters must be at least 1, not {steps}")
    total = np.asarray(people, dtype=np.float64)
    if total.shape != (guard.n_times,) or not np.isfinite(total).all():
        raise InputError(f"people must be {guard.n_times} finite numbers, one for each time bin")
    return np.maximum(total, 1)


def _even_offsets(n: int, d: int) -> Floats:
    """n low-discrepancy points (n, d) minus 1/2: multiples of (1/g, .., 1/g^d), g^(d+1) = g + 1."""
    g = 2.0
    for _ in range(64):
        g = (1 + g) ** (1 / (d + 1))
    steps = np.arange(n)[:, None] * g ** -np.arange(1.0, d + 1)
    return np.mod(0.5 + steps, 1.0) - 0.5
