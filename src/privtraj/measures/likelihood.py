"""Who is responsible for whom: the model "person = particle + noise" and its gradient.

A person at y is explained by the particles x_1..x_m of their time with responsibilities
    w_k(y) = softmax_k( -|x_k - y|^2 / (2 sigma^2) + b_k ).
The per-person vector stacks everything that one release needs:
    u_k = w_k (x_k - y)                                  (m, d)  gradient of the paper's data fit
    q_k = mass w_k,  mass = sigma                        (m,)    how many people it stands for
    s   = KAPPA_SPREAD sigma (sum_k w_k |x_k - y|^2 / (d sigma^2) - 1)      ()  residual variance
The mean of u over the people of a time, over sigma^2, is the gradient of DF^sigma with respect to
the particles; the mean of s is zero exactly when sigma is the maximum-likelihood bandwidth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import WIDE
from privtraj.privacy.sums import GRID

KAPPA_SPREAD = 0.3  # weight of the residual beside the gradient; half has 1.07 (.03) of the error
FAINTEST = -40.0  # exponent of a weight: its square is no denormal number, which would be slow
CLIP_DRAWS = 32  # people drawn of the mixture to estimate a quantile; 128 are as good (-.01 +- .01)


class Mixture(NamedTuple):
    """Particles and what turns them into responsibilities; a leading time axis is optional."""

    particles: jax.Array  # (..., m, d) in the unit cube
    bias: jax.Array  # (..., m) b in the formula
    bandwidth: jax.Array  # (...) sigma in the paper


def mass_weight(mixture: Mixture) -> jax.Array:
    """sigma (...), as a multiple of 2^-16: on the grid of the exact sums."""
    return (mixture.bandwidth * GRID).round() / GRID


class Moments(NamedTuple):
    """Means over the people of each time."""

    drift: jax.Array  # (T, m, d) m * mean of w_k (x_k - y)
    mass: jax.Array  # (T, m) m * mean of w_k: 1 where a particle stands for 1/m of the people
    spread: jax.Array  # (T,) mean of |x_k - y|^2 / (d sigma^2) under the responsibilities


def squared_distances(a: Any, b: Any) -> Any:
    """|a_i - b_j|^2 (..., n, m) of a (..., n, d), b (..., m, d): from differences, exact zeros."""
    # coordinate by coordinate, which never holds (n, m, d)
    squares = ((a[..., :, None, k] - b[..., None, :, k]) ** 2 for k in range(a.shape[-1]))
    return sum(squares, start=a.dtype.type(0))


def weights(distance: jax.Array, mixture: Mixture) -> jax.Array:
    """w (..., n, m) from |x_k - y|^2 (..., n, m)."""
    variance = (mixture.bandwidth**2)[..., None, None]
    exponent = mixture.bias[..., None, :] - distance / (2 * variance)
    # a largest exponent of 0 or somewhat less: far points get their nearest particle, not NaN. XLA
    # computes what is rounded apart from the exponentials, which takes half as long.
    largest = jnp.ceil(exponent.max(axis=-1, keepdims=True))
    share = jnp.exp(jnp.maximum(exponent - largest, FAINTEST))
    return share / share.sum(axis=-1, keepdims=True)


def weights_and_residual(distance: Any, mixture: Mixture) -> tuple[Any, Any]:
    """w (..., n, m) and s (..., n) from |x_k - y|^2: all of a person's vector but directions."""
    w, d = weights(distance, mixture), mixture.particles.shape[-1]
    bandwidth = mixture.bandwidth[..., None]
    residual = _weighted(w, distance) / (d * bandwidth**2)
    return w, KAPPA_SPREAD * bandwidth * (residual - 1)


def _weighted(w: jax.Array, values: jax.Array) -> jax.Array:
    """Sums (...) of w times values (..., m)."""
    # with a condition XLA computes what it sums in one pass over memory, and else in several
    return jnp.sum(w * values, axis=-1, where=w > 0)


def person_vectors(points: jax.Array, mixture: Mixture) -> jax.Array:
    """(u, q, s) of each point, flattened: (n, m d + m + 1). A function of each point alone."""
    w, s = weights_and_residual(squared_distances(points, mixture.particles), mixture)
    u = w[:, :, None] * (mixture.particles[None] - points[:, None, :])
    q = mass_weight(mixture) * w
    return jnp.concatenate([u.reshape(len(points), -1), q, s[:, None]], axis=-1)


def moments(sums: Any, people: Any, mixture: Mixture) -> Moments:
    """Read summed person vectors (T, m d + m + 1) as means over `people` (T,)."""
    times, m, d = mixture.particles.shape
    mean = sums / people[:, None]
    u, q, s = mean[:, : m * d], mean[:, m * d : m * d + m], mean[:, -1]
    scale = mixture.bandwidth
    return Moments(
        drift=m * u.reshape(times, m, d),
        mass=m * q / mass_weight(mixture)[:, None],
        spread=1 + s / (KAPPA_SPREAD * scale),
    )


def measured_weights(points: Any, mixture: Mixture) -> tuple[Any, Any, Any]:
    """w (..., n, m), s and |person vector| (..., n): sum_k w_k^2 (|x_k - y|^2 + mass^2) + s^2."""
    distance = squared_distances(points, mixture.particles)
    w, s = weights_and_residual(distance, mixture)
    squares = _weighted(w, w * (distance + mass_weight(mixture)[..., None, None] ** 2))
    return w, s, jnp.sqrt(squares + s**2)


_measured = jax.jit(measured_weights, compiler_options=WIDE)


def typical_norm(
    mixture: Mixture, rng: np.random.Generator, quantile: float, draws: int = CLIP_DRAWS
) -> NDArray[np.float64]:
    """(T,) quantile of |person vector| over people whom the mixture itself would produce.

    y = x_J + sigma xi with J uniform: it uses released numbers only, so a clip set from it is free.
    """
    particles = np.asarray(mixture.particles)
    times, m, d = particles.shape
    pick = rng.integers(m, size=(times, draws, 1))
    noise = rng.standard_normal((times, draws, d), dtype=np.float32)
    points = np.take_along_axis(particles, pick, axis=1)
    points = points + np.asarray(mixture.bandwidth)[:, None, None] * noise
    in_order = np.sort(np.asarray(_measured(points, mixture)[2], np.float64), axis=1)
    return in_order[:, round(quantile * (draws - 1))]
