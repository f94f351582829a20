"""Entropic optimal transport between weighted point clouds, batched and warm-started.

    min_P  sum_ij P_ij |x_i - y_j|^2 / 2 + reg H(P | a b'),   rows of P sum to a, columns to b.
The solution is P_ij = exp(f_i + g_j - C_ij) with C = |x - y|^2 / (2 reg); f and g are the
Schroedinger potentials over reg. Any g, its c-transform f = min_j (C - g) and back,
h = min_i (C - f), give K = exp(f + h - C), whose largest entry is 1 in every row and every column:
safe in float32 at any range of C, for one exponential per entry. From there a sweep
    u <- a / (K v),   v <- b / (K' u)
is two products of a matrix with a vector, and P = u K v.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Singles

# Float32: exp(-87) is the smallest number that is not denormal, and denormal ones are slow.
_FLOOR = -70.0  # of exponents in kernels: entries times small u and v are still no denormal numbers
_RANGE = 30.0  # of log u and log v, within which what lies under the floor stays nothing
_SMALLEST = 1e-30  # of a divisor that may be zero
# Memory, in entries of kernels
_CACHED = 2**19  # fit the cache of a core
_KERNELS = 2**28  # fit the memory of an accelerator
# Settling; by hand, for the shortest time to an L1 error of 1e-3 (benchmarks/transport.py)
_SWEEPS = 100  # of one round, after which potentials are absorbed into a new kernel
_ROUNDS = 20  # at most, after cooling
_STALLED = 0.9  # a full round of sweeps that leaves more of the error than this is the last
_SOFT, _COOLING = 40.0, 4.0  # largest C with which sweeps begin, and how fast they go on from there
_MANY, _EVERY = 1024, 8  # particles from which it pays to begin with fewer: one of so many
_LEAP = 10.0  # largest weight of an extrapolation
_WORSE = 2.0  # a sweep whose error is so many times the smallest goes back to that

_dot = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)  # a GPU's TF32 would stall


class Potentials(NamedTuple):
    """Potentials of a batch of B problems, and how far the rows of their couplings are from a."""

    f: jax.Array  # (B, m)
    g: jax.Array  # (B, m)
    error: jax.Array  # (B,) L1 distance between row sums and a; columns are right


class _Problem(NamedTuple):
    x: jax.Array  # (m, d)
    y: jax.Array  # (m, d)
    reg: jax.Array  # ()
    a: jax.Array  # (m,) weights of x, and
    b: jax.Array  # (m,) of y


_Projected = tuple[Potentials, jax.Array, jax.Array]  # with the mean partners of x and of y
_Rounds = tuple[jax.Array, Potentials, jax.Array]  # how many, where they led, whether they stalled


def cold(batch: int, m: int) -> Potentials:
    """Potentials to start from when nothing is known."""
    zero = jnp.zeros((batch, m), jnp.float32)
    return Potentials(zero, zero, jnp.full(batch, jnp.inf, jnp.float32))


def scaled_cost(x: jax.Array, y: jax.Array, reg: jax.Array) -> jax.Array:
    """C (m, m) for x, y (m, d)."""
    # a loop over the few coordinates: compilers make far slower code of a short sum over an axis,
    # and of coordinates that are scaled before
    squares = ((x[:, None, k] - y[None, :, k]) ** 2 for k in range(x.shape[1]))
    return sum(squares, start=jnp.float32(0)) / (2 * reg)


@partial(jax.jit, static_argnames="iterations")
def project(
    x: jax.Array,
    y: jax.Array,
    reg: jax.Array,
    start: Potentials,
    weights: tuple[jax.Array, jax.Array] | None = None,
    *,
    iterations: int,
) -> _Projected:
    """Plain sweeps on a batch, and the mean partners (B, m, d) of every x and of every y.

    x, y (B, m, d), reg (B,), weights a and b (B, m), or uniform.
    """
    uniform = jnp.full(x.shape[:2], 1 / x.shape[1], jnp.float32)
    a, b = weights or (uniform, uniform)
    problems = _Problem(x, y, reg, a, b), start.g
    return _each(partial(_project, iterations=iterations), problems)


@partial(jax.jit, static_argnames="iterations")
def solve(*problems: Any, iterations: int) -> Potentials:
    """The potentials of `project`, of the same arguments."""
    return project(*problems, iterations=iterations)[0]


def _project(problem: _Problem, g: jax.Array, *, iterations: int) -> _Projected:
    x, y, reg, a, b = problem
    kernel, f, g, v = _absorbed(scaled_cost(x, y, reg), g)

    def sweep(_: int, u: jax.Array) -> jax.Array:
        return a / _dot(kernel, b / _dot(u, kernel))

    u = jax.lax.fori_loop(0, iterations, sweep, a / _dot(kernel, v))
    columns = _dot(u, kernel)
    v = b / columns
    rows = _dot(kernel, v)
    potentials = Potentials(f + jnp.log(u), g + jnp.log(v), jnp.abs(u * rows - a).sum())
    ahead = _dot(kernel, v[:, None] * y) / rows[:, None]
    # one by one: a product with a transposed matrix would copy it
    back = jax.lax.map(lambda coordinate: _dot(u * coordinate, kernel) / columns, x.T).T
    return potentials, ahead, back


@partial(jax.jit, static_argnames="iterations")
def project_itself(
    x: jax.Array, reg: jax.Array, start: jax.Array, *, iterations: int
) -> tuple[Potentials, jax.Array]:
    """The coupling of every cloud (B, m, d), of equal weights, with itself: its potentials f = g,
    from a start (B, m), and the mean partner of every x.

    With one potential for both sides, a sweep u <- (u (a / K u)^2)^(1/3) divides errors of log u by
    three or more: the coupling, over a, has eigenvalues l from 0 to 1, and leaves (1 - 2 l) / 3 of
    them. C = 0 on the diagonal, so that u is between m^-1.5 and m^-.5: nothing to absorb.
    """

    def one(x: jax.Array, reg: jax.Array, start: jax.Array) -> tuple[Potentials, jax.Array]:
        kernel, a = jnp.exp(jnp.maximum(-scaled_cost(x, x, reg), _FLOOR)), 1 / len(x)

        def sweep(_: int, u: jax.Array) -> jax.Array:
            # XLA takes 20 times as long for a cubic root
            return jnp.exp(jnp.log(u * (a / _dot(kernel, u)) ** 2) / 3)

        u = jax.lax.fori_loop(0, iterations, sweep, jnp.exp(start))
        rows, f = _dot(kernel, u), jnp.log(u)
        mean = _dot(kernel, u[:, None] * x) / rows[:, None]
        return Potentials(f, f, jnp.abs(u * rows - a).sum()), mean

    return _each(one, (x, reg, start))


def _absorbed(cost: jax.Array, g: jax.Array, blur: Any = 1.0) -> tuple[jax.Array, ...]:
    """The kernel (m, m) near a potential g (m,), its f and h (m,), and v = exp(g - h).

    blur: the regularisation of kernel and v, in units of that of the cost and the potentials.
    """
    f = -jnp.max(g[None, :] - cost, axis=1)
    h = jnp.maximum(g, -jnp.max(f[:, None] - cost, axis=0))  # never below g but by rounding
    exponent = ((h[None, :] - cost) + f[:, None]) / blur
    kernel = jnp.exp(jnp.clip(exponent, _FLOOR, 0.0))
    return kernel, f, h, jnp.exp(jnp.maximum((g - h) / blur, -_RANGE))


def settle(
    x: Singles, y: Singles, reg: Singles, weights: tuple[Singles, Singles], tolerance: float
) -> Potentials:
    """Potentials with an error below the tolerance, or as small as it gets, from nothing.

    x, y (B, m, d), reg (B,), weights a and b (B, m). The regularisation falls from one at which
    sweeps settle at once; every round builds a kernel near the potentials of the one before.
    On a CPU every core takes one small problem after the other; all cores share a large one.
    """
    problems = (x, y, reg, *weights)
    count, m = x.shape[:2]
    if jax.default_backend() != "cpu" or m**2 > _CACHED:
        return _settled(problems, tolerance)

    def alone(i: int) -> Potentials:
        one = tuple(array[i : i + 1] for array in problems)
        return jax.block_until_ready(_settled(one, tolerance))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        potentials = list(pool.map(alone, range(count)))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *potentials)


@jax.jit
def _settled(problems: tuple[jax.Array, ...], tolerance: float) -> Potentials:
    return _each(partial(_settle, tolerance=tolerance), (_Problem(*problems),))


def _settle(problem: _Problem, tolerance: float) -> Potentials:
    """One problem; of many particles, from the potentials of fewer that stand for them."""
    x, y, reg, a, b = problem
    if len(a) < _MANY:
        return _cooled(problem, jnp.zeros_like(b), np.inf, tolerance)
    (some_x, some_a), (some_y, some_b) = _fewer(x, a), _fewer(y, b)
    fewer = _Problem(some_x, some_y, _COOLING * reg, some_a, some_b)
    f = _cooled(fewer, jnp.zeros_like(some_b), np.inf, tolerance).f
    g = jax.nn.logsumexp(f[:, None] - scaled_cost(some_x, y, fewer.reg), axis=0)
    return _cooled(problem, -_COOLING * g, 0.0, tolerance)


def _fewer(x: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One particle of _EVERY, moved to the mean of those nearest to it, with their weights."""
    some = x[::_EVERY]
    nearest = jnp.argmin(scaled_cost(x, some, jnp.float32(0.5)), axis=1)
    weights = jnp.zeros(len(some), a.dtype).at[nearest].add(a)
    sums = jnp.zeros_like(some).at[nearest].add(a[:, None] * x)
    means = sums / jnp.maximum(weights, _SMALLEST)[:, None]
    return jnp.where(weights[:, None] > 0, means, some), weights


def _cooled(problem: _Problem, g: jax.Array, most: float, tolerance: float) -> Potentials:
    """From g (m,), with at most so many rounds at larger regularisations before."""
    x, y, reg, a, b = problem
    cost = scaled_cost(x, y, reg)
    soft = jnp.ceil(jnp.log(cost.max() / _SOFT) / math.log(_COOLING))
    soft = jnp.clip(soft, 0.0, most)

    def sweeps(state: _Rounds) -> _Rounds:
        round, last, _ = state
        blur = _COOLING ** jnp.maximum(soft - round, 0.0)
        kernel, f, g, v = _absorbed(cost, last.g, blur)
        count, log_u, log_v, error = _accelerated(kernel, v, a, b, tolerance)
        stalled = (count == _SWEEPS) & (error > _STALLED * last.error)
        error = jnp.where(blur > 1, jnp.inf, error)
        return round + 1, Potentials(f + blur * log_u, g + blur * log_v, error), stalled

    def unsettled(state: _Rounds) -> jax.Array:
        round, last, stalled = state
        return (last.error >= tolerance) & (round < soft + _ROUNDS) & ~stalled

    begin = Potentials(jnp.zeros_like(a), g, jnp.float32(jnp.inf))
    return jax.lax.while_loop(unsettled, sweeps, (jnp.float32(0), begin, jnp.bool(False)))[1]


def _accelerated(
    kernel: jax.Array, v: jax.Array, a: jax.Array, b: jax.Array, tolerance: float
) -> tuple[jax.Array, ...]:
    """Sweeps from v (m,): how many, log u and log v (m,) of the smallest error, and that error.

    A sweep turns s = log u into s + r(s). Anderson's method goes by r - w (S + R) instead, S and R
    being the last changes of s and r, where w makes r - w R least in the norm of the weights; after
    a bad move it goes back to the best s. Sweeps end below the tolerance, or where log u, and so
    log v, leaves the range in which the kernel is good.
    """
    some = a > 0

    def sweep(state: _Sweeps) -> _Sweeps:
        s = state.s
        u = jnp.where(some, jnp.exp(s), 0.0)
        rows = u * _dot(kernel, b / _dot(u, kernel))
        error = jnp.abs(rows - a).sum()
        r = jnp.where(some, jnp.log(a / rows), 0.0)
        change = r - state.last_r
        w = (a * change * r).sum() / jnp.maximum((a * change**2).sum(), _SMALLEST)
        w = jnp.where(state.done > 0, jnp.clip(w, -_LEAP, 1.0), 0.0)
        move = jnp.clip(r - w * (state.s - state.last_s + change), -_RANGE / 3, _RANGE / 3)
        return _Sweeps(
            state.done + 1,
            jnp.where(error > _WORSE * state.error, state.best, s + move),
            s,
            r,
            jnp.where(error < state.error, s, state.best),
            jnp.minimum(error, state.error),
        )

    def going(state: _Sweeps) -> jax.Array:
        near = jnp.abs(state.last_s).max() < _RANGE
        return (state.error >= tolerance) & (state.done < _SWEEPS) & near

    s = jnp.where(some, jnp.log(a / _dot(kernel, v)), 0.0)
    s, zero = s - s.mean(), jnp.zeros_like(s)
    begin = _Sweeps(jnp.int32(0), s, zero, zero, s, jnp.float32(jnp.inf))
    end = jax.lax.while_loop(going, sweep, begin)
    s = jnp.where(some, end.best, -jnp.inf)
    return end.done, s, jnp.log(b / _dot(jnp.exp(s), kernel)), end.error


class _Sweeps(NamedTuple):
    done: jax.Array  # () number of sweeps
    s: jax.Array  # (m,) log u
    last_s: jax.Array  # (m,) of the last sweep, and
    last_r: jax.Array  # (m,) how far it went
    best: jax.Array  # (m,) s of the smallest error
    error: jax.Array  # () the smallest


@jax.jit
def barycentres(x: jax.Array, y: jax.Array, reg: jax.Array, potentials: Potentials) -> jax.Array:
    """Mean partner of any x (B, n, d) under the coupling whose columns are at y: (B, n, d)."""
    return _each(lambda x, y, *rest: _dot(transition(x, y, *rest), y), (x, y, reg, potentials.g))


def transition(x: jax.Array, y: jax.Array, reg: jax.Array, g: jax.Array) -> jax.Array:
    """Rows (n, m) over y (m, d) of any x (n, d) under the coupling of potential g (m,)."""
    return jax.nn.softmax(g[None, :] - scaled_cost(x, y, reg), axis=1)


def transition_within(
    x: jax.Array, y: jax.Array, reg: jax.Array, g: jax.Array, of_x: jax.Array, of_y: jax.Array
) -> jax.Array:
    """The same rows (n, m) within groups, of x (n,) and of y (m,): nothing leaves its own."""
    logs = jnp.where(of_x[:, None] == of_y, g[None, :] - scaled_cost(x, y, reg), -jnp.inf)
    return jnp.nan_to_num(jax.nn.softmax(logs, axis=1))


def _each(work: Callable[..., Any], problems: tuple[Any, ...]) -> Any:
    """The work on every problem of a batch, as many at a time as suits the machine."""
    count, m = jax.tree.leaves(problems)[-1].shape[:2]
    cpu = jax.default_backend() == "cpu"
    at_once = max(1, (_CACHED if cpu else _KERNELS) // m**2)
    if 1 < count <= at_once:
        return jax.vmap(work)(*problems)
    return jax.lax.map(lambda each: work(*each), problems, batch_size=None if cpu else at_once)
