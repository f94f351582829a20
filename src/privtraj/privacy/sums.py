"""Exact sums over people: integers, in chunks, over all devices, the same in any order.

The guard adds noise to integers, so what it sums over people must be integers too, and their sum
exact: a sum of floats depends on the order, and one person more would change the rounding of
everybody else's. Two sums are computed here.

`lattice_sums`   any vector per person, rounded to a lattice coordinate by coordinate.
`kernel_sums`      the vector of a step of the dynamics, for centres x_k and weights w_k(y) that
                 follow from the squared distances |x_k - y|^2 alone:

        V(y) = ( w_k (x_k - y),  mass w_k,  s )         m d + m + 1 numbers.

    Centres and people are put on a grid of 2^16 to the side of the box, so X_k - Y is an integer,
    and the weights become integers, a_k = floor(alpha w_k A), after clipping by alpha. What follows
    is integer arithmetic, and for all pairs of people and centres it is a matrix product:
        sum_n a_nk (X_k - Y_n) = X_k sum_n a_nk - sum_n a_nk Y_n.
    In float64 it is exact: all sums over a chunk are integers below 2^53 (`MOST_CLIP`).
    No float decides what a person contributes: the integer vector is measured after it was made,
        |V|^2 = sum_k a_k^2 (|X_k - Y|^2 + mass^2) + s^2 <= limit^2,
    a sum of non-negative float32 numbers whose relative error is at most (m + d + 8) 2^-24, and who
    does not pass contributes nothing.

A person's integers must not depend on who else is there. Chunks therefore have one size, a loop of
unknown length runs the same compiled code over all of them, and every row is computed alike.

However many people there are, nothing overflows and nobody is turned away, as that would tell how
many they are: sums over chunks are added up in 64 bits as far as these certainly suffice
(`SUM_BITS`), and beyond that in Python's integers, which have no end.

People are split over the devices, each sums its own, and one reduction per step adds the integers
up: the result is the same, bit for bit, on one device and on many.
"""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Split
from numpy.typing import NDArray

from privtraj.base.arrays import WIDE, Floats
from privtraj.base.errors import Arg, BudgetError, InputError
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.guard import Gaussian, PublicShape, Question, View, gaussian_event

GRID = 2**16  # steps to the side of the box
WEIGHT_BITS = 20  # A is between 2^19 and 2^20
REACH = 2.0  # centres are kept within [-REACH, REACH]
MOST_CLIP = 64.0  # of kernel sums: up to it, sums over a chunk are exact in float64
SUM_BITS = 62  # of what is added up on the devices: it never wraps around in 64
_MOST = 2.0**WEIGHT_BITS  # largest integer weight: a vector without length could have any
_BY_DIFFERENCES = 6  # features up to which distances are summed directly

Statistic = Callable[[jax.Array, Any], jax.Array]
"""v: points (n, d) of one bin, parameters of that bin -> (n, D). A function of each row alone:
row k of the result may depend on row k of the points and on the parameters, nothing else."""

WeightFn = Callable[[jax.Array, Any], tuple[jax.Array, jax.Array]]
"""Squared distances (n, m) to the centres of one bin, its parameters -> weights (n, m), s (n,).
A function of each row alone."""


class KernelSum(NamedTuple):
    """The parameters of `KernelSums`; leaves have K as first axis."""

    centres: Any  # (T, m, d)
    mass: Any  # (T,) weight of the masses, a multiple of 1 / GRID
    parameters: Any  # of the weight_fn


class Chunks(NamedTuple):
    """Rows in chunks of C, of one bin each, so that memory does not grow with people times m."""

    points: jax.Array  # (devices n, C, d): n chunks fit on every device
    row: NDArray[np.int64]  # (devices n, C): rows, -1 for padding
    bin: jax.Array  # (devices n,)
    used: int  # chunks of every device that hold rows, the first ones
    held: jax.Array  # (devices n, C): which places hold a row


class Lattice(NamedTuple):
    """Per bin: unit of the released integers, and how integers of people become those."""

    unit: NDArray[np.float64]  # (T,) of the released integers
    shift: NDArray[np.int64]  # (T,) they are sums over people divided by 2^shift, rounded
    weight: NDArray[np.float64]  # (T,) A
    limit: float  # largest norm of a person's vector, in released units


# Questions ------------------------------------------------------------------------------------


class VectorSums(Question, abstract=True):
    """What is the sum over records of clip_c( v(record) )? (K, D)

    A row's vector, scaled to Euclidean norm at most c over *all* its coordinates jointly, becomes
    integers of norm at most B = S / z (`ClippedSums`, `KernelSums`). It touches the coordinates of
    its own window only, and integer sums are exact in any order. So g rows of a person, each in a
    window of its own, stand in orthogonal blocks and move the stacked sum by sqrt(g) B at most, and
    rows that are together by g B; twice that where a person is replaced. Noise of standard
    deviation S on every integer makes it the Gaussian mechanism with noise multiplier z
    (`events.GaussianSum`).

    Records may take part by chance; what is summed is then never divided by the number of those who
    did, and an empty batch is noise alone.
    """

    noise = Gaussian

    parameters: Any  # pytree whose leaves have K as first axis; window i is given its own slice
    clip: Floats  # (K,) c, from released numbers only

    def check(self, shape: PublicShape, scale: float) -> None:
        if shape.axes.mixed:
            raise InputError(
                "sums of clipped vectors are of numbers, and a column here is none: use ",
                Arg("measure", "tables"),
            )
        # other shapes would be broadcast: one exact sum under two noises, or two under one noise
        windows = shape.windows.count
        leaves = jax.tree.leaves(self.parameters)
        shapes = [np.shape(self.clip), *(np.shape(leaf)[:1] for leaf in leaves)]
        if any(one != (windows,) for one in shapes):
            raise InputError(f"sums over {windows} bins need a clip and parameters for each")
        lattice_unit(np.ones(1), scale, self.width(shape))  # refuses what says nothing, of any clip

    @abstractmethod
    def width(self, shape: PublicShape) -> int:
        """D."""

    @abstractmethod
    def vector(self, shape: PublicShape, window: int, point: NDArray[np.float32]) -> Floats:
        """v (D,) of a record in this window, before it is clipped; point (d,) of the unit cube."""

    def event(self, noise: Gaussian, what: str, shape: PublicShape) -> GaussianSum:
        draws = shape.windows.count * self.width(shape)
        return gaussian_event(noise.multiplier, what, draws, shape.person, shape.rate)


@dataclass(frozen=True, eq=False)
class ClippedSums(VectorSums):
    """Sums of any vector per record.

    statistic: the per-record vector; a stable function, compiled once.

    v(row), clipped to norm c, is divided by a lattice unit and rounded to integers. Rounding moves
    each of the D coordinates by at most 1/2, so the integer vector of a row has norm at most
        B = c / unit + sqrt(D) / 2 + 1,
    the last 1 paying for float64 rounding on the way. The unit is chosen so that B = S / z.
    """

    statistic: Statistic
    parameters: Any
    clip: Floats

    def width(self, shape: PublicShape) -> int:
        row = jax.ShapeDtypeStruct((1, shape.n_features), jnp.float32)
        one = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.parameters
        )
        return int(jax.eval_shape(self.statistic, row, one).shape[-1])

    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        clip, width = np.asarray(self.clip, np.float64), self.width(view.shape)
        unit = lattice_unit(clip, scale, width)
        largest = float(np.max(clip / unit)) + math.sqrt(width) / 2 + 1  # B
        each = (jax.tree.map(np.asarray, self.parameters), clip, unit)
        contribution = partial(_rounded, self.statistic)
        return [_summed(contribution, width, *taking_part(view), each, width, largest)]

    def answer(self, noisy: list[NDArray[Any]], scale: float) -> Floats:
        (block,) = noisy
        unit = lattice_unit(self.clip, scale, block.shape[1])
        return (block * unit[:, None]).astype(np.float64)

    def vector(self, shape: PublicShape, window: int, point: NDArray[np.float32]) -> Floats:
        own = jax.tree.map(lambda leaf: leaf[window], self.parameters)
        return np.asarray(jax.jit(self.statistic)(shape.seen(point[None]), own)[0], np.float64)


@dataclass(frozen=True, eq=False)
class KernelSums(VectorSums):
    """Sums of the vectors ( w_k (x_k - y), mass w_k, s ), D = m d + m + 1 numbers.

    weight_fn: weights and s from squared distances; a stable function, compiled once.
    parameters: centres x (K, m, d), the weight of the masses (K,), parameters of the weight_fn.

    v(row) becomes an integer vector by the rules above, and is left out unless its norm, measured
    on these integers, is at most L 2^k. The exact sum of the window is divided by 2^k and rounded
    once, which moves each of the D coordinates by less than 1 when the sum changes. So the released
    integers of a window move by at most B = L + sqrt(D) when a row is added or removed. L is chosen
    so that B = S / z.
    """

    weight_fn: WeightFn
    parameters: KernelSum
    clip: Floats

    def width(self, shape: PublicShape) -> int:
        _, m, d = np.shape(self.parameters.centres)
        return m * (d + 1) + 1

    def check(self, shape: PublicShape, scale: float) -> None:
        super().check(shape, scale)
        if max(np.max(self.clip), np.max(self.parameters.mass)) > MOST_CLIP:
            raise InputError("there are too many features for gradients: leave some out")

    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        lattice = kernel_lattice(self.clip, scale, self.parameters.centres)
        rows = taking_part(view)
        return [kernel_sums(self.weight_fn, *rows, self.parameters, self.clip, lattice)]

    def answer(self, noisy: list[NDArray[Any]], scale: float) -> Floats:
        (block,) = noisy
        unit = kernel_lattice(self.clip, scale, self.parameters.centres).unit
        return (block * unit[:, None]).astype(np.float64)

    def vector(self, shape: PublicShape, window: int, point: NDArray[np.float32]) -> Floats:
        kernel = jax.tree.map(lambda leaf: leaf[window], self.parameters)
        return kernel_vector(self.weight_fn, kernel, shape.seen(point[None])[0])


def lattice_unit(clip: Floats, scale: float, width: int) -> Floats:
    """unit = c / (S / z - sqrt(D) / 2 - 1), so that B = c / unit + sqrt(D) / 2 + 1 = S / z."""
    norm = scale - math.sqrt(width) / 2 - 1
    if norm < math.sqrt(width):
        raise BudgetError(
            f"a sum of {width} coordinates with noise multiplier {noise.GAUSSIAN_STD / scale:.3g} "
            "says nothing: use a larger epsilon, or fewer particles or steps"
        )
    unit: Floats = np.asarray(clip, np.float64) / norm
    return unit


def taking_part(view: View) -> tuple[Chunks, jax.Array]:
    """The rows of a view in chunks, which are kept for the next question, and which places of them
    take part: those that hold a row, and whose coin says so."""
    if view.chunks is None:
        points, windows = view.rows.in_slabs(view.shape.windows)
        view.chunks = chunked(points, windows, view.shape.windows.count)
    chunks: Chunks = view.chunks
    coins = view.coins(int(chunks.row.max(initial=-1)) + 1)
    if coins is None:
        return chunks, chunks.held
    return chunks, _spread(np.append(coins, False)[chunks.row])  # row -1, padding, is the last


# Exact sums -----------------------------------------------------------------------------------


def chunked(points: NDArray[np.float32], bins: NDArray[np.int32], n_times: int) -> Chunks:
    """Chunks of the rows; as many on every device.

    An empty bin still gets a chunk, so shapes tell nothing apart from its size.
    """
    size, sizes = _layout().chunk, np.bincount(bins, minlength=n_times)
    chunks = np.maximum(1, -(-sizes // size))
    ahead = np.cumsum(chunks) - chunks  # chunks of the bins before, and below rows of them
    rows = np.full(chunks.sum() * size, -1)
    in_order = np.arange(len(bins))
    rows[ahead[bins] * size + in_order - (np.cumsum(sizes) - sizes)[bins]] = in_order
    number = np.repeat(np.arange(n_times, dtype=np.int32), chunks)
    devices = jax.device_count()
    count = -(-len(number) // devices)
    row = _dealt(rows.reshape(-1, size), devices, count, -1)
    places = np.append(points, np.zeros((1, points.shape[1]), np.float32), axis=0)[row]
    bin_ = _spread(_dealt(number, devices, count, 0))
    return Chunks(_spread(places), row, bin_, count, _spread(row >= 0))


def kernel_lattice(clip: Floats, largest: float, centres: Any) -> Lattice:
    """The lattice on which a vector clipped to norm c (T,) has integers of norm `largest` at most.

    largest pays for the rounding of D sums, which moves them by less than 1 each: a person's
    vector may have norm largest - sqrt(D), in released units. Integers are rounded towards zero, so
    they keep below the clip but for the rounding of floats, for which a little room is left.
    """
    _, m, d = np.shape(centres)
    limit = largest - math.sqrt(m * d + m + 1)
    unit = np.asarray(clip, np.float64) / (limit * (1 - 4 * _rounding(m, d)))
    # A = 2^shift / (unit GRID) is the power of two times the unit that has WEIGHT_BITS bits
    shift = np.floor(WEIGHT_BITS + np.log2(unit * GRID)).astype(np.int64)
    return Lattice(unit, shift, 2.0**shift / (unit * GRID), limit)


def kernel_sums(
    weight_fn: WeightFn,
    chunks: Chunks,
    taking_part: jax.Array,
    kernel: KernelSum,
    clip: Floats,
    lattice: Lattice,
) -> NDArray[Any]:
    """Integer sums (T, m d + m + 1) in released units, over the rows that take part.

    A person's numbers are at most max(clip, mass, 2) in units of 1 / (A GRID), 2^-36 or more.
    """
    grid = np.rint(np.clip(np.asarray(kernel.centres, np.float64), -REACH, REACH) * GRID)
    mass = np.rint(np.asarray(kernel.mass, np.float64) * GRID)
    limit = lattice.limit * 2.0**lattice.shift
    times, m, d = grid.shape
    largest = 2.0**WEIGHT_BITS * GRID * max(np.max(clip), np.max(kernel.mass), 2.0)
    singles = map(np.float32, (grid, mass, clip, lattice.weight, limit))
    own = jax.tree.map(np.asarray, kernel.parameters)
    parameters = _Scaled._make([*singles, lattice.weight * GRID, own])
    contribution = partial(_kernel_chunk, weight_fn)
    total = _summed(contribution, m * (d + 1) + 1, chunks, taking_part, parameters, m, largest)
    places, masses, spread = np.split(total, [m * d, m * (d + 1)], axis=1)
    whole = grid.astype(np.int64)
    places = whole * masses[:, :, None] - places.reshape(times, d, m).swapaxes(1, 2)
    masses = masses * mass.astype(np.int64)[:, None]
    fine = np.concatenate([places.reshape(times, m * d), masses, spread], axis=1)
    return _shifted(fine, lattice.shift[:, None])


def kernel_vector(
    weight_fn: WeightFn, kernel: KernelSum, point: NDArray[np.float32]
) -> NDArray[np.float64]:
    """V (m d + m + 1,) of one point (d,), unclipped, at the parameters of its bin."""
    away = np.asarray(kernel.centres, np.float64) - point
    weight, rest = weight_fn(jnp.float32((away**2).sum(axis=-1))[None], kernel.parameters)
    w = np.asarray(weight[0], np.float64)
    mass: NDArray[np.float64] = float(kernel.mass) * w
    return np.concatenate([(w[:, None] * away).ravel(), mass, np.asarray(rest, np.float64)])


# One person -----------------------------------------------------------------------------------


class _Scaled(NamedTuple):
    """The parameters of one bin in integers, and the clip in shares of the box."""

    centres: Any  # (m, d) whole numbers
    mass: Any  # () whole number
    clip: Any  # ()
    weight: Any  # () A
    limit: Any  # () largest norm of an integer vector
    fine: Any  # () A GRID
    parameters: Any


def _kernel_chunk(
    weight_fn: WeightFn, points: jax.Array, mine: jax.Array, bin_: _Scaled
) -> jax.Array:
    """Sums (d m + m + 1,) over the points (C, d) of one chunk: of a Y, of a, and of s."""
    places = jnp.rint(points * GRID)
    apart = _squared_distances(places, bin_.centres)
    w, s = weight_fn(apart / GRID**2, bin_.parameters)
    heavy = apart + bin_.mass**2
    # with a condition XLA computes what it sums in one pass over memory, and else in several
    norm = jnp.sqrt(jnp.sum(w**2 * heavy, axis=-1, where=mine[:, None]) / GRID**2 + s**2)
    alpha = jnp.minimum(1.0, bin_.clip / norm)
    a = jnp.trunc(jnp.clip(w * (alpha * bin_.weight)[:, None], -_MOST, _MOST))
    b = jnp.trunc((alpha * s).astype(jnp.float64) * bin_.fine)
    # what is measured must be what is summed, not the same formula computed once more
    a, b = jax.lax.optimization_barrier((a, b))
    rounding = _rounding(w.shape[-1], points.shape[-1])
    size = jnp.sum(a**2 * heavy, axis=-1, where=mine[:, None]) + b.astype(jnp.float32) ** 2
    kept = mine & (size <= bin_.limit**2 * (1 - 2 * rounding))
    a = jnp.where(kept[:, None], a, 0.0).astype(jnp.float64)
    b = jnp.where(kept, b, 0.0)
    ones = jnp.ones((1, len(points)), jnp.float64)
    sums = jnp.concatenate([places.T.astype(jnp.float64), ones]) @ a
    return jnp.append(sums.ravel(), b.sum()).astype(jnp.int64)


def _rounding(m: int, d: int) -> float:
    """Largest relative error of a measured |V|^2: so many roundings of float32, none cancels."""
    return (m + d + 8) * 2.0**-24


def _squared_distances(places: jax.Array, centres: jax.Array) -> jax.Array:
    """|X_k - Y|^2 (C, m) in float32, of whole numbers: differences or float64 products are exact"""
    if places.shape[-1] <= _BY_DIFFERENCES:
        total = jnp.zeros((len(places), len(centres)), jnp.float32)
        for k in range(places.shape[-1]):
            total += (places[:, None, k] - centres[None, :, k]) ** 2
        return total
    y, x = places.astype(jnp.float64), centres.astype(jnp.float64)
    squares = (y**2).sum(axis=1)[:, None] + (x**2).sum(axis=1)[None, :]
    return (squares - 2 * (y @ x.T)).astype(jnp.float32)


def _rounded(statistic: Statistic, points: jax.Array, mine: jax.Array, bin_: Any) -> jax.Array:
    parameters, clip, unit = bin_
    lattice = clip_to_lattice(statistic(points, parameters), clip, unit)
    return jnp.where(mine[:, None], lattice, 0).sum(axis=0)


def clip_to_lattice(vectors: jax.Array, clip: jax.Array, unit: jax.Array) -> jax.Array:
    """Integer vectors (n, D) of min(1, c / |v|) v / unit, each row of norm at most B."""
    wide = vectors.astype(jnp.float64)
    norm = jnp.linalg.norm(wide, axis=-1, keepdims=True)
    finite = jnp.isfinite(norm)  # other rows cannot be clipped, and count as zero
    scale = jnp.minimum(1.0, clip / jnp.where(finite & (norm > 0), norm, 1.0)) / unit
    return jnp.rint(jnp.where(finite, wide * scale, 0.0)).astype(jnp.int64)


# Everybody ------------------------------------------------------------------------------------


def _summed(
    contribution: partial[jax.Array],
    width: int,
    chunks: Chunks,
    taking_part: jax.Array,
    parameters: Any,
    columns: int,
    largest: float,
) -> NDArray[Any]:
    """Exact sums (T, width) over all chunks of all devices; `columns` numbers per row at work.

    largest: a bound on every number of a person. Integers of 64 bits, or Python's where so many
    people's numbers might need more; the same integers either way.
    """
    layout = _layout()
    group = layout.at_once // (layout.chunk * columns)
    # two at least: of one alone XLA makes code that is four times slower
    group = min(2 ** math.floor(math.log2(max(group, 2))), layout.most)
    groups = -(-chunks.used // group)
    people = group * layout.chunk * jax.device_count()  # of one group on every device, at most
    at_once = max(1, int(2.0**SUM_BITS / (largest * people)))
    how = (contribution.func, contribution.args[0], width, group, _mesh())
    arrays = (chunks.points, taking_part, chunks.bin)
    fits = at_once >= groups  # all sums in 64 bits, then: in as many threads as there are cores
    if fits and jax.default_backend() == "cpu" and jax.device_count() == 1:
        at_once = -(-groups // _cores())

    def part(first: int) -> NDArray[Any]:
        some = np.int32(first), np.int32(min(first + at_once, groups))
        with jax.enable_x64(True):
            return np.asarray(_all_devices(*how, *arrays, *some, parameters))

    firsts = range(0, groups, at_once)
    if not fits:
        return np.sum([part(first).astype(object) for first in firsts], axis=0)
    others = _threads().map(part, firsts[1:])  # while this thread sums, too
    return sum(others, start=part(0))


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4), compiler_options=WIDE)
def _all_devices(
    contribution: Callable[..., jax.Array],
    function: Any,
    width: int,
    group: int,
    mesh: Mesh,
    *parts: Any,
) -> jax.Array:
    """Sums (T, width) over all people: on each device `group` chunks at a time, then one reduction.

    parts: points, who takes part, bins, first group, the one after the last, parameters.
    """

    def one_device(*parts: Any) -> jax.Array:
        *arrays, first, last, parameters = parts
        points, mine, bins = (array.reshape(-1, group, *array.shape[1:]) for array in arrays)

        def add_group(j: jax.Array, total: jax.Array) -> jax.Array:
            # Without the barrier, jaxlib 0.10 multiplies wrongly by a matrix that all chunks share.
            here = jax.tree.map(lambda leaf: leaf[bins[j]], parameters)
            here = jax.lax.optimization_barrier(here)
            each = jax.vmap(partial(contribution, function))(points[j], mine[j], here)
            return total.at[bins[j]].add(each)

        zeros = jnp.zeros((jax.tree.leaves(parameters)[0].shape[0], width), jnp.int64)
        # the number of groups is no constant: one group more must not mean other code
        total = jax.lax.fori_loop(first, last, add_group, zeros)
        return jax.lax.psum(total, "people")  # the only communication of a step

    split, whole = Split("people"), Split()
    specs = (split, split, split, whole, whole, whole)
    add_up = jax.shard_map(one_device, mesh=mesh, in_specs=specs, out_specs=whole, check_vma=False)
    return add_up(*parts)


def _shifted(fine: NDArray[Any], shift: NDArray[np.int64]) -> NDArray[Any]:
    """fine / 2^shift, rounded to the nearest; exact, and of any size, where it is negative."""
    if (shift < 0).any():
        fine = fine.astype(object)
    up, down = np.maximum(-shift, 0), np.maximum(shift, 0)
    return ((fine << up) + ((np.int64(1) << down) >> 1)) >> down  # a half is added first


# Devices --------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """How a kind of device likes its work."""

    chunk: int  # C, rows of a chunk
    most: int  # chunks at a time
    at_once: int  # numbers at a time: those of a CPU should stay in its cache


def _layout() -> _Layout:
    return _Layout(128, 64, 2**15) if jax.default_backend() == "cpu" else _Layout(1024, 512, 2**26)


def _dealt(chunks: NDArray[Any], devices: int, count: int, padding: int) -> NDArray[Any]:
    """Chunks (k, ...) in `devices` parts of `count`, each padded to a length that many data share:
    other people hardly ever mean another compilation."""
    most = _layout().most
    blocks = -(-count // most)
    step = 2 ** max(blocks.bit_length() - 3, 0)  # blocks have three leading binary digits
    length = -(-blocks // step) * step * most
    dealt = np.full((devices, length, *chunks.shape[1:]), padding, chunks.dtype)
    part, place = np.divmod(np.arange(len(chunks)), count)
    dealt[part, place] = chunks
    return dealt.reshape(-1, *chunks.shape[1:])


@lru_cache(maxsize=1)
def _cores() -> int:
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_cores())


@lru_cache(maxsize=1)
def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("people",))


def _spread(rows: NDArray[Any]) -> jax.Array:
    """The rows over all devices."""
    return jax.device_put(rows, NamedSharding(_mesh(), Split("people")))
