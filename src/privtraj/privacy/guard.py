"""The private boundary: the only code that reads people's records after they were validated.

`Guard` answers three questions, and each answer is recorded in the ledger before it is computed:

    counts   how many people are in each cell       + discrete Laplace noise on every cell
    sums     sum over people of clip_c( v(person) ) + discrete Gaussian noise on every coordinate
    pulls    the same for the vectors of the dynamics, which have a form that is faster to sum

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

    pulls: v(row) becomes an integer vector by rules of its own (`sums`), and is left out unless its
    norm, measured on these integers, is at most L 2^k. The exact sum of the bin is divided by 2^k
    and rounded once, which moves each of the D coordinates by less than 1 when the sum changes. So
    the released integers of a bin move by at most B = L + sqrt(D) when a row is added or removed,
    and the rest is as for sums. L is chosen so that B = S / z.

    sampled: every row takes part in a sum or a pull if its own fresh 64-bit word, from the source
    of the noise, is below floor(rate 2^64): an exact coin of probability at most rate. The sum is
    released as it is, never divided by the number of rows that took part; a batch without rows is
    noise alone, and is paid for like any other.

    chosen times: a uniform set of bins, drawn once, published, and paid for together with all
    releases that will be made of it; the guard that is handed out holds no rows of other bins.
    Times that are named without looking at anybody are free: other rows merely take no part.

    The number of people in the data, in a bin or in a batch never enters an answer except through
    these mechanisms. `public_counts=True` is the caller's statement that the number of records per
    bin is public knowledge; it is marked on the certificate.

    Several processes (`processes`) hold rows of different people. They add up exact integers; the first
    process alone adds noise, and the others are told its answer. Every process keeps the ledger.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj import processes
from privtraj.data.snapshots import Snapshots
from privtraj.errors import Arg, BudgetError, InputError
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger, Payer
from privtraj.privacy.rows import MemoryRows, Rows
from privtraj.privacy.sums import (
    Chunks,
    KernelSum,
    Statistic,
    WeightFn,
    chunked,
    kernel_lattice,
    kernel_sums,
    lattice_sums,
)

MAX_CELLS = 2**26  # noisy counts per release, over all bins


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
        self._chunks: Chunks | None = None

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
        exact = processes.total(self._rows.cell_counts(self.n_times, cells_per_side))
        if processes.is_first():
            exact = exact + noise.laplace_integers(self._source, exact.shape, epsilon)
        return processes.broadcast_first(exact)

    def declared_counts(self) -> NDArray[np.int64] | None:
        """Records per bin (T,), exact, if the caller declared them public; else None."""
        if not self._public_counts:
            return None
        return processes.total(self._rows.cell_counts(self.n_times, 1)[:, 0])

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
        self._check_shapes(clip, parameters)
        width = _width(statistic, parameters, self.n_features)
        unit = lattice_unit(np.asarray(clip, dtype=np.float64), noise_multiplier, width)
        self._payer.spend(self.sum_event(width, noise_multiplier, what, rate))
        chunks = self._chunked()
        exact = lattice_sums(
            statistic, chunks, self._sampled(chunks, rate), parameters, clip, unit, width
        )
        return self._noisy(exact, unit)

    def kernel_sums(
        self,
        weight_fn: WeightFn,
        pull: KernelSum,
        clip: NDArray[np.float64],
        noise_multiplier: float,
        what: str,
        rate: float = 1.0,
    ) -> NDArray[np.float64]:
        """Noisy sums (T, m d + m + 1) of jointly clipped vectors ( w_k (x_k - y), mass w_k, s ).

        weight_fn: weights and s from squared distances; a stable function, compiled once.
        pull: centres x (T, m, d), the weight of the masses (T,), parameters of the weight_fn.
        clip, rate: as for `sums`.
        """
        self._check_shapes(clip, pull)
        centres, clip = np.asarray(pull.centres), np.asarray(clip, dtype=np.float64)
        width = centres.shape[1] * (centres.shape[2] + 1) + 1
        lattice_unit(clip, noise_multiplier, width)  # refuses what says nothing
        lattice = kernel_lattice(clip, noise.GAUSSIAN_STD / noise_multiplier, centres)
        self._payer.spend(self.sum_event(width, noise_multiplier, what, rate))
        chunks = self._chunked()
        exact = kernel_sums(weight_fn, chunks, self._sampled(chunks, rate), pull, clip, lattice)
        return self._noisy(exact, lattice.unit)

    def _noisy(self, exact: NDArray[np.int64], unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """What may leave: integers (T, D) with noise, in the caller's units."""
        if processes.is_first():
            exact = exact + noise.gaussian_integers(self._source, exact.shape)
        return processes.broadcast_first((exact * unit[:, None]).astype(np.float64))

    def _check_shapes(self, clip: NDArray[np.float64], parameters: Any) -> None:
        # other shapes would be broadcast: one exact sum under two noises, or two under one noise
        shapes = [np.shape(clip), *(np.shape(leaf)[:1] for leaf in jax.tree.leaves(parameters))]
        if any(shape != (self.n_times,) for shape in shapes):
            raise InputError(f"sums over {self.n_times} bins need a clip and parameters for each")

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
        if processes.several():
            raise InputError("times can be drawn by one process only")
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

    def _sampled(self, chunks: Chunks, rate: float) -> jax.Array:
        """Which places of the chunks take part: those with a row whose coin says so."""
        there = chunks.row >= 0
        if rate < 1:
            if processes.several():
                raise InputError("people can be sampled by one process only: use ", Arg("rate", 1))
            words = self._source.words(len(self._rows.bins))
            coins = words < np.uint64(math.floor(rate * 2.0**64))
            there = np.append(coins, False)[chunks.row]  # row -1, padding, is the last
        return chunks.spread(there)

    def _chunked(self) -> Chunks:
        if self._chunks is None:
            self._chunks = chunked(self._rows.points, self._rows.bins, self.n_times)
        return self._chunks


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


def _width(statistic: Statistic, parameters: Any, n_features: int) -> int:
    row = jax.ShapeDtypeStruct((1, n_features), jnp.float32)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), parameters)
    return int(jax.eval_shape(statistic, row, one).shape[-1])
