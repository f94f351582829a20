"""Entropic optimal transport between weighted point clouds, batched and warm-started.

    min_P  sum_ij P_ij |x_i - y_j|^2 / 2 + reg H(P | a b'),   rows of P sum to a, columns to b.
The solution is P_ij = exp(f_i + g_j - C_ij) with C = |x - y|^2 / (2 reg); f and g are the
Schroedinger potentials over reg. One update of (f, g) in the log domain absorbs any range of C,
after which K = exp(f + g - C) is safe in float32 and cheap matrix-vector iterations do the rest.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_FLOOR = -80.0  # exp(-80) is still a normal float32: smaller ones would be slow denormals


class Coupling(NamedTuple):
    """Potentials of a batch of B problems, and how far the rows of the plans are from a."""

    f: jax.Array  # (B, m)
    g: jax.Array  # (B, m)
    error: jax.Array  # (B,) L1 distance between row sums and a


def cold(batch: int, m: int) -> Coupling:
    """Potentials to start from when nothing is known."""
    zero = np.zeros((batch, m), np.float32)
    return Coupling(
        jnp.asarray(zero), jnp.asarray(zero), jnp.asarray(np.full(batch, np.inf, np.float32))
    )


def scaled_cost(x: jax.Array, y: jax.Array, reg: jax.Array) -> jax.Array:
    """C (m, m) for x, y (m, d)."""
    return jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1) / (2 * reg)


@partial(jax.jit, static_argnames="iterations")
def solve(
    x: jax.Array,
    y: jax.Array,
    reg: jax.Array,
    start: Coupling,
    weights: tuple[jax.Array, jax.Array] | None = None,
    *,
    iterations: int,
) -> Coupling:
    """Sinkhorn on a batch: x, y (B, m, d), reg (B,), weights a and b (B, m), uniform if None."""
    uniform = jnp.full(x.shape[:2], 1 / x.shape[1], jnp.float32)
    a, b = weights or (uniform, uniform)
    return jax.lax.map(lambda p: _solve(*p, iterations=iterations), (x, y, reg, start.g, a, b))


def _solve(
    x: jax.Array,
    y: jax.Array,
    reg: jax.Array,
    g: jax.Array,
    a: jax.Array,
    b: jax.Array,
    *,
    iterations: int,
) -> Coupling:
    cost = scaled_cost(x, y, reg)
    f = jnp.log(a) - jax.nn.logsumexp(g[None, :] - cost, axis=1)
    g = jnp.log(b) - jax.nn.logsumexp(f[:, None] - cost, axis=0)
    # columns sum to b, so no entry is above 1; where costs are huge, rounding would say otherwise
    kernel = jnp.exp(jnp.clip(f[:, None] + g[None, :] - cost, _FLOOR, 0.0))

    def sweep(_: int, u: jax.Array) -> jax.Array:
        return a / (kernel @ (b / (kernel.T @ u)))

    u = jax.lax.fori_loop(0, iterations, sweep, jnp.ones_like(a))
    v = b / (kernel.T @ u)
    error = jnp.abs(u * (kernel @ v) - a).sum()
    return Coupling(f + jnp.log(u), g + jnp.log(v), error)


@jax.jit
def barycentres(x: jax.Array, y: jax.Array, reg: jax.Array, coupling: Coupling) -> jax.Array:
    """Mean partner of every x under the plan: (B, m, d), rows renormalised."""

    def one(problem: tuple[jax.Array, ...]) -> jax.Array:
        x, y, reg, g = problem
        return jax.nn.softmax(g[None, :] - scaled_cost(x, y, reg), axis=1) @ y

    return jax.lax.map(one, (x, y, reg, coupling.g))
