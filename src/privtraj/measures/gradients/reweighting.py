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
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from privtraj.base.arrays import Floats, along_z_curve, systematic
from privtraj.base.space import fold
from privtraj.columns.axes import Embedding
from privtraj.measures.gradients.constants import (
    CURVE_CELLS,
    HALVINGS,
    KERNEL_KEPT,
    LARGEST_STEP,
    NEWTON_STEPS,
    NEWTON_TOLERANCE,
    POINTS,
    PRIOR_WORTH,
)
from privtraj.measures.gradients.likelihood import Mixture, person_vectors
from privtraj.measures.gradients.moments import Release
from privtraj.measures.marginals import Marginals


def reweighted(
    marginals: Marginals,
    releases: Sequence[Release],
    people: Floats,
    rng: np.random.Generator,
    *,
    whole: bool = False,
    levels: Embedding | None = None,
) -> Marginals:
    """POINTS weighted points for each mixture of the marginals, given all releases.

    people: (T,) whose sums were released.  KERNEL_KEPT of the bandwidth stays noise around a point,
    so that people who are drawn of the same one differ.  whole: all of it does; particles stay
    where they are, in another order, and have the weights of the points around them.  levels: how
    particles have levels of categories; what is returned has d axes again, and a level of each.
    """
    if levels is not None:
        return _with_levels(marginals, releases, people, rng, whole, levels)
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
        clouds.append(particles if whole else fold(cloud))
        weights.append(np.bincount(chosen, weight, m) if whole else weight)
    return _in_order(marginals._replace(bandwidth=around), clouds, weights)


def _with_levels(
    marginals: Marginals,
    releases: Sequence[Release],
    people: Floats,
    rng: np.random.Generator,
    whole: bool,
    levels: Embedding,
) -> Marginals:
    """The same of particles (T, m, e), with points (T, n, d) that have a level of each category."""
    m, numbers = marginals.particles.shape[1], levels.axes.numbers
    kept = 1.0 if whole or m > POINTS else KERNEL_KEPT
    around, moved = kept * marginals.bandwidth, np.sqrt(1 - kept**2) * marginals.bandwidth

    def shaken(points: Floats, width: float) -> Floats:
        points = points.copy()
        noise = rng.standard_normal((len(points), int(numbers.sum())))
        points[:, numbers] = fold(points[:, numbers] + width * noise)
        return points

    clouds, weights = [], []
    for i, particles in enumerate(marginals.particles):
        chosen = systematic(marginals.weights[i], max(POINTS, m), rng)
        own = levels.people(particles if whole else particles[chosen], rng)
        cloud = own[chosen] if whole else shaken(own, moved[i])
        clouds.append(own if whole else cloud)
        if m > POINTS:  # by hand: finer than the points would be
            weights.append(np.full(len(clouds[-1]), 1 / len(clouds[-1])))
            continue
        points = levels.of(shaken(cloud, around[i]).astype(np.float32))
        weight = explaining_weights(*normal_equations(points, releases, people[i], i))
        weights.append(np.bincount(chosen, weight, m) if whole else weight)
    return _in_order(marginals._replace(bandwidth=around), clouds, weights)


def _in_order(marginals: Marginals, clouds: list[Any], weights: list[Any]) -> Marginals:
    """Marginals of clouds (n, d) and weights (n,), one each a time, neighbours after each other.

    A few people of equal weight are drawn of them by `systematic`. In any order the share of a
    group would be off as by chance; along a curve that keeps neighbours close it is kept.
    """
    orders = [along_z_curve((CURVE_CELLS * cloud).astype(np.int64)) for cloud in clouds]
    return marginals._replace(
        particles=np.stack([cloud[k] for cloud, k in zip(clouds, orders, strict=True)]),
        weights=np.stack([weight[k] for weight, k in zip(weights, orders, strict=True)]),
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
        change = _newton(gram, known, worth, weights) / weights
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


def _newton(gram: Floats, known: Floats, worth: float, weights: Floats) -> Floats:
    """Newton's step (n,) of sum 0 from weights (n,)."""
    slope = worth * np.log(len(known) * weights) + gram @ weights - known
    factor = cho_factor(gram + np.diag(worth / weights), overwrite_a=True, check_finite=False)
    sides = np.stack([slope, np.ones(len(known))], axis=1)
    down, even = cho_solve(factor, sides, check_finite=False).T
    step: Floats = even * (down.sum() / even.sum()) - down
    return step


def normal_equations(
    points: NDArray[np.float32], releases: Sequence[Release], people: float, time: int
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
