"""The cloud that explains every release: weights on points of the last mixture.

The dynamics use a step's release once, and then forget it. But each of them is a noisy mean over
the same people, of a vector v_s(y) that is known for any y, so together they say more than the last
mixture does. Points y_1..y_n of the last mixture are therefore weighted by

    min over w   P KL(w | 1/n)  +  1/2 sum_s | sum_j w_j v_s(y_j) - R_s / N |^2 / noise_s^2,

maximum entropy under all measurements, each as far as its noise allows. P, what the mixture is
worth, is a person for each of `GROUPS` weights: a reweighting of relative size e costs as much as
e^2 / 2 would among so many. With G = sum_s V_s V_s^T / noise_s^2 and h = sum_s V_s (R_s / N) /
noise_s^2 the second term is  w^T G w / 2 - h^T w  up to a constant, which is convex, and a few of
Newton's steps find the minimum, however many numbers were released. All of it is post-processing.

What a budget tells of shares has far fewer dimensions than there are points, and changes slowly
from place to place. So at most GROUPS weights are sought, each of a group of points that are next
to each other, whose v_s are averaged: G takes 60 times less work than by single points. Points are
drawn in pairs on both sides of a particle, so that few of them have the mixture's own means.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from privtraj.base.arrays import WIDE, Floats, Ints, Singles, along_z_curve, systematic
from privtraj.base.space import fold
from privtraj.measures.base import Marginals
from privtraj.measures.likelihood import Mixture, mass_weight, measured_weights

POINTS = 1024  # that are weighted; 512 are 2 % worse where the budget is large, 2026-11-16
GROUPS = 128  # of points with one weight; squared W2 of 64, 128 and 1,024 is within 2 %, 2026-11-18
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
    times, m, d = marginals.particles.shape
    if m > POINTS:  # by hand: finer than the points would be
        return marginals
    kept = 1.0 if whole else KERNEL_KEPT
    around, moved = kept * marginals.bandwidth, np.sqrt(1 - kept**2) * marginals.bandwidth
    groups = min(GROUPS, m if whole else POINTS)
    size = 2 * (max(m, GROUPS) // groups) if whole else POINTS // groups
    noise = rng.standard_normal((times, 2, -(-groups * size // 2), 1, d))
    noise = np.concatenate([noise, -noise], axis=3).reshape(times, 2, -1, d)[:, :, : groups * size]
    chosen = [systematic(weights, groups * size, rng) for weights in marginals.weights]
    released = jax.tree.map(lambda *rows: np.float32(np.stack(rows)), *releases)

    def at(i: int) -> tuple[Any, Any]:
        """Where points are at a time, and their weights."""
        particles = marginals.particles[i]
        cloud = particles[chosen[i]] + moved[i] * noise[i, 0]
        points = fold(cloud + around[i] * noise[i, 1]).astype(np.float32)
        cloud = fold(cloud)
        order = _along_curve(cloud)
        release = jax.tree.map(lambda leaf: leaf[:, i], released)
        equations = normal_equations(points[order].reshape(groups, size, d), release, people[i])
        weights = np.repeat(explaining_weights(*equations) / size, size)
        if not whole:
            return cloud[order], weights
        again = _along_curve(particles)
        return particles[again], np.bincount(chosen[i][order], weights, m)[again]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        clouds, weights = zip(*pool.map(at, range(times)), strict=True)
    return marginals._replace(
        particles=np.stack(clouds), weights=np.stack(weights), bandwidth=around
    )


def _along_curve(cloud: NDArray[Any]) -> Ints:
    return along_z_curve((CURVE_CELLS * cloud).astype(np.int64))


def explaining_weights(gram: Floats, known: Floats, worth: float = GROUPS) -> Floats:
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
    points: Singles, releases: StepRelease, people: float
) -> tuple[Floats, Floats]:
    """G (r, r) and h (r,) of r groups of points (r, k, d), summed over S releases of one time.

    The releases are stacked: S is the first axis of every leaf.
    """
    gram, known = _summed(points, releases, np.float32(people))
    return np.asarray(gram, np.float64), np.asarray(known, np.float64)


@partial(jax.jit, compiler_options=WIDE)
def _summed(
    points: jax.Array, releases: StepRelease, people: jax.Array
) -> tuple[jax.Array, jax.Array]:
    groups, size, d = points.shape
    flat = points.swapaxes(0, 1).reshape(-1, d)  # the first of all groups, the second of all, ..
    powers = jnp.concatenate([jnp.ones_like(flat[:, :1]), flat, flat**2], axis=1).T
    product = partial(jnp.matmul, precision="highest")

    def grouped(values: jax.Array) -> jax.Array:
        """Means (groups, ...) over the points of a group."""
        parts = jnp.split(values, size)
        return sum(parts[1:], start=parts[0]) / size  # far faster than a short axis is summed

    def add(total: tuple[jax.Array, jax.Array], step: tuple[StepRelease, Any]) -> tuple[Any, None]:
        """V V^T / noise^2 and V mean / noise^2, with the chance of `people` people in the noise.

        The vector of a point y is ( a (x - y), mass a, s ): its means over groups, and its mean
        squares, follow from those of a, a y and a^2 times powers of y, so that it is never built.
        """
        release, which = step
        x = product(which, every).reshape(-1, d)  # XLA would cut them out again for every pair
        release = release._replace(mixture=release.mixture._replace(particles=x))
        mass = mass_weight(release.mixture)
        weights, s, norm = measured_weights(flat, release.mixture)
        cut = jnp.minimum(1.0, release.clip / jnp.maximum(norm, 1e-12))
        a, s = cut[:, None] * weights, cut * s
        held = grouped(a)
        drawn = [x[:, c] * held - grouped(a * flat[:, c, None]) for c in range(d)]
        vectors = jnp.concatenate([*drawn, mass * held, grouped(s)[:, None]], axis=1)
        # weights sum to 1: the centre is subtracted on both sides, for float32
        centre = product(jnp.full(groups, 1 / groups, s.dtype), vectors)
        own, first, second = jnp.split(product(powers, a**2) / len(flat), [1, 1 + d])
        apart = second + x.T * (x.T * own - 2 * first)
        squares = jnp.concatenate([apart.ravel(), mass**2 * own[0], jnp.mean(s**2)[None]])
        variance = jnp.maximum(squares - centre**2, 0.0)
        std = jnp.sqrt(release.noise**2 + variance / people)
        pulled, rest = jnp.split(release.sums, [x.size])  # coordinate by coordinate, as vectors are
        sums = jnp.concatenate([pulled.reshape(-1, d).T.ravel(), rest])
        scaled, told = (vectors - centre) / std, (sums / people - centre) / std
        return (total[0] + product(scaled, scaled.T), total[1] + product(scaled, told)), None

    nothing = jnp.zeros((groups, groups), jnp.float32), jnp.zeros(groups, jnp.float32)
    every = releases.mixture.particles.reshape(len(releases.sums), -1)
    return jax.lax.scan(add, nothing, (releases, jnp.eye(len(every), dtype=jnp.float32)))[0]
