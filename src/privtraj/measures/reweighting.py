"""The cloud that explains every release: weights on points of the last mixture.

The dynamics use a step's release once, and then forget it. But each of them is a noisy mean over
the same people, of a vector v_s(y) that is known for any y, so together they say more than the last
mixture does. Points y_1..y_n of the last mixture are therefore weighted by

    min over w   P KL(w | 1/n)  +  1/2 sum_s | sum_j w_j v_s(y_j) - R_s / N |^2 / noise_s^2,

maximum entropy under all measurements, each as far as its noise allows. P, the `PRIOR_WORTH` of the
mixture, is in people: a reweighting of relative size e costs as much as e^2 / 2 would among so many
of them. With G = sum_s V_s V_s^T / noise_s^2 (n, n) and h = sum_s V_s (R_s / N) / noise_s^2 (n,)
the second term is  w^T G w / 2 - h^T w  up to a constant, which is convex, and a few of Newton's
steps find the minimum, however many numbers were released. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from privtraj.base.arrays import Floats, along_z_curve, systematic
from privtraj.base.space import fold
from privtraj.measures.base import Marginals
from privtraj.measures.likelihood import Mixture, person_vectors

POINTS = 1024  # that are weighted; 512 are 2 % worse where the budget is large, 2026-11-16
PRIOR_WORTH = 300.0  # people; squared W2 of 30 to 300 differs by less than 1 %, 2026-11-16
KERNEL_KEPT = 0.5**0.5  # of the bandwidth: half of its variance stays noise around a point
NEWTON_STEPS, NEWTON_TOLERANCE = 50, 1e-3  # of log weights: 0.1 %; three to six are typical
LARGEST_STEP, HALVINGS = 3.0, 20  # of a log weight at once; how often a step is halved at most
CURVE_CELLS = 256  # along each axis, by which points are put in order: finer than most bandwidths


class StepRelease(NamedTuple):
    """What one step told about D = m d + m + 1 numbers at each of T times."""

    mixture: Mixture  # at which people were asked
    clip: Floats  # (T,)
    sums: Floats  # (T, D)
    noise: Floats  # (T,) standard deviation of each number over the people: clip z / N


def reweighted(
    marginals: Marginals,
    releases: Sequence[StepRelease],
    people: Floats,
    rng: np.random.Generator,
    *,
    whole: bool = False,
) -> Marginals:
    """POINTS weighted points for each mixture of the marginals, given all releases.

    people: (T,) whose sums were released.  KERNEL_KEPT of the bandwidth stays noise around a point,
    so that people who are drawn of the same one differ.  whole: all of it does; particles stay
    where they are, in another order, and have the weights of the points around them.

    Neighbours come after each other: a few people of equal weight are drawn of the points by
    `systematic`, and in any order the share of a group would be off as by chance; along a curve
    that keeps neighbours close it is kept.
    """
    _, m, d = marginals.particles.shape
    if m > POINTS:  # by hand: finer than the points would be
        return marginals
    kept = 1.0 if whole else KERNEL_KEPT
    around, moved = kept * marginals.bandwidth, np.sqrt(1 - kept**2) * marginals.bandwidth
    clouds, weights = [], []
    for i, particles in enumerate(marginals.particles):
        noise = rng.standard_normal((2, POINTS, d))
        chosen = systematic(marginals.weights[i], POINTS, rng)
        cloud = particles[chosen] + moved[i] * noise[0]
        points = fold(cloud + around[i] * noise[1]).astype(np.float32)
        weight = explaining_weights(*normal_equations(points, releases, people[i], i))
        cloud = particles if whole else fold(cloud)
        order = along_z_curve((CURVE_CELLS * cloud).astype(np.int64))
        clouds.append(cloud[order])
        weights.append((np.bincount(chosen, weight, m) if whole else weight)[order])
    return marginals._replace(
        particles=np.stack(clouds), weights=np.stack(weights), bandwidth=around
    )


def explaining_weights(gram: Floats, known: Floats, worth: float = PRIOR_WORTH) -> Floats:
    """w (n,) that minimises  worth KL(w | 1/n) + w^T G w / 2 - h^T w  among weights of sum 1.

    Newton's steps for w, taken on log w: no longer than LARGEST_STEP, and halved until they help.
    """
    n = len(known)

    def value(weights: Floats) -> float:
        kept = worth * np.log(n * weights) + gram @ weights / 2 - known
        return float(weights @ kept)

    weights = np.full(n, 1 / n)
    reached = value(weights)
    for _ in range(NEWTON_STEPS):
        slope = worth * np.log(n * weights) + gram @ weights - known
        factor = cho_factor(gram + np.diag(worth / weights), overwrite_a=True, check_finite=False)
        sides = np.stack([slope, np.ones(n)], axis=1)
        down, even = cho_solve(factor, sides, check_finite=False).T
        change = (even * (down.sum() / even.sum()) - down) / weights  # of weights: of sum 0
        size = float(np.abs(change).max())
        if size < NEWTON_TOLERANCE:
            break
        change *= min(1.0, LARGEST_STEP / size)
        for halving in 0.5 ** np.arange(HALVINGS):
            tried = weights * np.exp(halving * change)
            tried /= tried.sum()
            if value(tried) < reached:
                break
        else:
            break  # as far as float64 goes
        weights, reached = tried, value(tried)
    return weights


def normal_equations(
    points: NDArray[np.float32], releases: Sequence[StepRelease], people: float, time: int
) -> tuple[Floats, Floats]:
    """G (n, n) and h (n,) of points (n, d) at one time, summed over the releases."""
    gram, known = np.zeros((len(points), len(points))), np.zeros(len(points))
    for release in releases:
        mixture = jax.tree.map(lambda leaf: leaf[time], release.mixture)
        numbers = (release.sums[time] / people, release.clip[time], release.noise[time], people)
        part, side = _of_release(points, mixture, *map(np.float32, numbers))
        gram += np.asarray(part, np.float64)
        known += np.asarray(side, np.float64)
    return gram, known


@jax.jit
def _of_release(
    points: jax.Array,
    mixture: Mixture,
    mean: jax.Array,
    clip: jax.Array,
    noise: jax.Array,
    people: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """V V^T / noise^2 and V mean / noise^2, with the chance of `people` people in the noise.

    mean: (D,) released.  noise: standard deviation of each of its numbers by the mechanism.
    """
    vectors = person_vectors(points, mixture)
    norm = jnp.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors * jnp.minimum(1.0, clip / jnp.maximum(norm, 1e-12))
    variance = noise**2 + vectors.var(axis=0) / people
    centre = vectors.mean(axis=0)  # weights sum to 1: subtracted on both sides, for float32
    scaled = (vectors - centre) / jnp.sqrt(variance)
    known = scaled @ ((mean - centre) / jnp.sqrt(variance))
    return jnp.matmul(scaled, scaled.T, precision="highest"), known
