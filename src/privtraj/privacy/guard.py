"""The private boundary: the only code that reads people's records after they were validated.

`Guard` answers two questions, and each answer is recorded in the ledger before it is computed:

    counts   how many people are in each cell       + discrete Laplace noise on every cell
    sums     sum over people of clip_c( v(person) ) + discrete Gaussian noise on every coordinate

Nothing else leaves. Whatever is computed from the answers is post-processing.

Why the stated cost holds
    A row is one record: one time bin and one point of the unit cube. What is counted or summed for
    a row is a function of the row and of public or already released numbers alone. A person has one
    row, or at most a public number g of them, each in a bin of its own; or, where the snapshots say
    that a person's records may be together, in any bins, and then g stands where sqrt(g) stands.

    counts: a row is in exactly one cell of exactly one bin, so a person added or removed moves g
    integers by one, and a person replaced moves 2 g. Counts are integers and so is the noise: no
    floating point is involved (`events.LaplaceCounts`).

    sums: v(row) is scaled to Euclidean norm at most c over *all* its coordinates jointly, divided
    by a lattice unit and rounded to integers. Rounding moves each of the D coordinates by at most
    1/2, so the integer vector of a row has norm at most
        B = c / unit + sqrt(D) / 2 + 1,
    the last 1 paying for float64 rounding on the way. The row touches the coordinates of its own
    bin only; integer sums are exact in any order. So the stacked sum over all bins moves by at most
    sqrt(g) B when a person is added or removed, and by at most 2 sqrt(g) B when one is replaced.
    The noise has standard deviation S = z B on every integer: it is the Gaussian mechanism with
    noise multiplier z (`events.GaussianSum`), up to the total-variation slack of integer noise
    that is charged to the ledger per number drawn.

    sampled sums: every row takes part if its own fresh 64-bit word, from the source of the noise,
    is below floor(rate 2^64): an exact coin of probability at most rate. The sum is released as it
    is, never divided by the number of rows that took part; a batch without rows is noise alone, and
    is paid for like any other.

    chosen times: a uniform set of bins, drawn once, published, and paid for together with all
    releases that will be made of it; the guard that is handed out holds no rows of other bins.
    Times that are named without looking at anybody are free: other rows merely take no part.

    The number of people in the data, in a bin or in a batch never enters an answer except through
    these mechanisms. `public_counts=True` is the caller's statement that the number of records per
    bin is public knowledge; it is marked on the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj.errors import BudgetError, InputError
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger, Payer
from privtraj.rows import MemoryRows, Rows
from privtraj.snapshots import Snapshots

CHUNK = 256  # rows per chunk: memory grows with CHUNK * D, never with people * D
MAX_CELLS = 2**26  # noisy counts per release, over all bins

Statistic = Callable[[jax.Array, Any], jax.Array]
"""v: points (CHUNK, d) of one bin, parameters of that bin -> (CHUNK, D). A function of each row
alone: row k of the result may depend on row k of the points and on the parameters, nothing else."""


class Person(NamedTuple):
    """What one person may contribute: at most so many records, in different bins or together."""

    records: int
    together: bool


class Guard:
    """Holds the rows, answers with noise, and pays for every answer."""

    def __init__(
        self,
        snapshots: Snapshots,
        ledger: Ledger,
        source: noise.Source,
        *,
        public_counts: bool = False,
    ) -> None:
        self.ledger = ledger
        self.n_times = snapshots.n_times
        self.n_features = snapshots.n_features
        self.person = Person(snapshots.records_per_person, snapshots.together)
        self._payer: Payer = ledger
        self._source = source
        self._public_counts = public_counts
        self._rows: Rows = snapshots._rows
        self._chunks: _Chunks | None = None

    def counts(self, cells_per_side: int, epsilon: float, what: str) -> NDArray[np.int64]:
        """Noisy numbers of records (T, cells_per_side ** d); one cell per side counts the bins."""
        cells = cells_per_side**self.n_features
        if self.n_times * cells > MAX_CELLS:
            raise InputError(
                f"{cells_per_side} cells per side in {self.n_features} dimensions are too many to "
                "count: use fewer cells"
            )
        # A pure epsilon budget cannot carry any total variation; there the error of the sampler,
        # below 2^-111 a draw, is left to the statement that the random bits are ideal.
        drawn = self.n_times * cells
        slack = drawn * noise.laplace_tv_per_draw(epsilon) if self._payer.delta > 0 else 0.0
        self._payer.spend(LaplaceCounts(epsilon, what, slack, *self.person))
        exact = self._rows.cell_counts(self.n_times, cells_per_side)
        return exact + noise.laplace_integers(self._source, exact.shape, epsilon)

    def declared_counts(self) -> NDArray[np.int64] | None:
        """Records per bin (T,), exact, if the caller declared them public; else None."""
        if not self._public_counts:
            return None
        return self._rows.cell_counts(self.n_times, 1)[:, 0]

    def sums(
        self,
        statistic: Statistic,
        parameters: Any,
        clip: NDArray[np.float64],
        noise_multiplier: float,
        what: str,
        rate: float = 1.0,
    ) -> NDArray[np.float64]:
        """Noisy sums (T, D) of jointly clipped per-record vectors.

        statistic: the per-record vector; a stable function, compiled once.
        parameters: pytree whose leaves have T as first axis; bin i is given its own slice.
        clip: (T,) bound c on the norm of a record's vector, from released numbers only.
        rate: public probability with which each record takes part.
        """
        # other shapes would be broadcast: one exact sum under two noises, or two under one noise
        shapes = [np.shape(clip), *(np.shape(leaf)[:1] for leaf in jax.tree.leaves(parameters))]
        if any(shape != (self.n_times,) for shape in shapes):
            raise InputError(f"sums over {self.n_times} bins need a clip and parameters for each")
        width = _width(statistic, parameters, self.n_features)
        unit = lattice_unit(np.asarray(clip, dtype=np.float64), noise_multiplier, width)
        self._payer.spend(self.sum_event(width, noise_multiplier, what, rate))
        chunks = self._chunked()
        taking_part = self._sampled(chunks.row, rate)
        with jax.enable_x64(True):
            exact = np.asarray(
                _lattice_sums(
                    statistic, chunks.points, taking_part, chunks.bin, parameters, clip, unit
                )
            )
        drawn = noise.gaussian_integers(self._source, (self.n_times, width))
        return (exact + drawn) * unit[:, None]

    def sum_event(
        self,
        width: int,
        noise_multiplier: float,
        what: str,
        rate: float = 1.0,
        n_times: int | None = None,
    ) -> GaussianSum:
        """What a call of `sums` with D = width will pay for, over all bins or n_times of them."""
        slack = (n_times or self.n_times) * width * noise.GAUSSIAN_TV_PER_DRAW
        return GaussianSum(noise_multiplier, what, slack, rate, *self.person)

    def at_times(self, bins: NDArray[np.int64]) -> Guard:
        """The same door to the rows of these bins alone; which ones is public, so it is free."""
        wanted = np.unique(bins)
        if len(wanted) == 0 or not (wanted[0] >= 0 and wanted[-1] < self.n_times):
            raise InputError(f"times are numbered from 0 to {self.n_times - 1}")
        return self._restricted(self._payer, wanted)

    def reserve(self, event: GaussianSum, times: int) -> Guard:
        """The same rows, for exactly `times` of these sums, which are paid for now."""
        return self._restricted(self.ledger.reserve(event, times), np.arange(self.n_times))

    def choose_times(
        self, n: int, width: int, noise_multiplier: float, what: str, rate: float, times: int
    ) -> tuple[NDArray[np.int64], Guard]:
        """n random bins in order, public from now on, and a guard over their rows alone.

        It may release `times` sums of D = width, which are paid for now as one mixture.
        """
        event = self.sum_event(width, noise_multiplier, what, rate, n)
        allowance = self.ledger.choose_times(n / self.n_times, event, times)
        chosen = np.sort(_without_ties(self._source, self.n_times)[:n])
        return chosen, self._restricted(allowance, chosen)

    def _restricted(self, payer: Payer, bins: NDArray[np.int64]) -> Guard:
        """A guard that holds the rows of these bins only and is paid by somebody else."""
        part = copy(self)
        part._payer, part._chunks, part.n_times = payer, None, len(bins)
        part._rows = MemoryRows(self._rows.points, self._rows.bins).at(bins)
        return part

    def _sampled(self, row: NDArray[np.int64], rate: float) -> NDArray[np.bool_]:
        """Which places of the chunks take part: those with a row whose coin says so."""
        if rate == 1:
            return row >= 0
        coins = self._source.words(len(self._rows.bins)) < np.uint64(math.floor(rate * 2.0**64))
        return np.append(coins, False)[row]  # row -1, padding, is the last

    def _chunked(self) -> _Chunks:
        if self._chunks is None:
            rows = [_padded(np.flatnonzero(self._rows.bins == i)) for i in range(self.n_times)]
            row = np.concatenate(rows)
            points = np.append(
                self._rows.points, np.zeros((1, self.n_features), np.float32), axis=0
            )
            bins = np.repeat(np.arange(self.n_times), [len(part) for part in rows])
            self._chunks = _Chunks(jnp.asarray(points[row]), row, jnp.asarray(bins))
        return self._chunks


class _Chunks(NamedTuple):
    """Rows in chunks of one bin each, so that memory never grows with people * D."""

    points: jax.Array  # (n, CHUNK, d)
    row: NDArray[np.int64]  # (n, CHUNK), -1 for padding
    bin: jax.Array  # (n,)


def _padded(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, CHUNK): an empty bin still gets a chunk, so shapes tell nothing apart from its size."""
    chunks = max(1, -(-len(rows) // CHUNK))
    return np.pad(rows, (0, chunks * CHUNK - len(rows)), constant_values=-1).reshape(-1, CHUNK)


def _without_ties(source: noise.Source, n: int) -> NDArray[np.int64]:
    """A uniform permutation of n: the order of n different words, drawn again if two are equal."""
    words = source.words(n)
    while len(np.unique(words)) < n:
        words = source.words(n)
    return np.argsort(words)


def lattice_unit(
    clip: NDArray[np.float64], noise_multiplier: float, width: int
) -> NDArray[np.float64]:
    """unit = c / (S / z - sqrt(D) / 2 - 1), so that B = c / unit + sqrt(D) / 2 + 1 = S / z."""
    norm = noise.GAUSSIAN_STD / noise_multiplier - math.sqrt(width) / 2 - 1
    if norm < math.sqrt(width):
        raise BudgetError(
            f"a sum of {width} coordinates with noise multiplier {noise_multiplier:.3g} says "
            "nothing: use a larger epsilon, or fewer particles or steps"
        )
    unit: NDArray[np.float64] = clip / norm
    return unit


def clip_to_lattice(vectors: jax.Array, clip: jax.Array, unit: jax.Array) -> jax.Array:
    """Integer vectors (n, D) of min(1, c / |v|) v / unit, each row of norm at most B.

    A row that is not finite counts as zero: it could not be clipped.
    """
    wide = vectors.astype(jnp.float64)
    norm = jnp.linalg.norm(wide, axis=-1, keepdims=True)
    finite = jnp.isfinite(norm)
    scale = jnp.minimum(1.0, clip / jnp.where(finite & (norm > 0), norm, 1.0)) / unit
    return jnp.rint(jnp.where(finite, wide * scale, 0.0)).astype(jnp.int64)


@partial(jax.jit, static_argnums=0)
def _lattice_sums(
    statistic: Statistic,
    points: jax.Array,
    taking_part: jax.Array,
    bins: jax.Array,
    parameters: Any,
    clip: jax.Array,
    unit: jax.Array,
) -> jax.Array:
    """Exact integer sums (T, D) over the rows that take part, one chunk at a time."""

    def add_chunk(total: jax.Array, chunk: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        rows, mine, i = chunk
        vectors = statistic(rows, jax.tree.map(lambda leaf: leaf[i], parameters))
        lattice = clip_to_lattice(vectors, clip[i], unit[i])
        return total.at[i].add(jnp.where(mine[:, None], lattice, 0).sum(axis=0)), None

    width = jax.eval_shape(
        statistic, points[0], jax.tree.map(lambda leaf: leaf[0], parameters)
    ).shape[-1]
    zero = jnp.zeros((clip.shape[0], width), jnp.int64)
    return jax.lax.scan(add_chunk, zero, (points, taking_part, bins))[0]


def _width(statistic: Statistic, parameters: Any, n_features: int) -> int:
    row = jax.ShapeDtypeStruct((1, n_features), jnp.float32)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), parameters)
    return int(jax.eval_shape(statistic, row, one).shape[-1])
