"""The private boundary: the only code that reads people's records after they were validated.

`Guard` answers five questions, and each answer is recorded in the ledger before it is computed:

    counts       how many people are in each cell       + discrete Laplace noise per cell
    tables       the same in cells of several kinds      + discrete Gaussian noise per cell
    sums         sum over people of clip_c( v(person) ) + discrete Gaussian noise per coordinate
    kernel_sums  the same for the vectors of the dynamics, whose form is faster to sum
    thirds       how people's pairs of records agree    + discrete Laplace noise per number

Nothing else leaves. Whatever is computed from the answers is post-processing. (`sampling` has a
guard for people who are sampled; this one asks everybody.)

Why the stated cost holds
    A row is one record: a time and one point of the unit cube. Time is cut into bins by public
    edges. What is counted or summed for a row is a function of the row and of public or already
    released numbers alone. A person has one row, or at most a public number g of them, each in a
    bin of its own; or, where the snapshots say that a person's records may be together, in any
    bins, and then g stands where sqrt(g) stands.

    counts: a row is in exactly one cell of exactly one bin, so a person added or removed moves g
    integers by one, and a person replaced moves 2 g. Counts are integers and so is the noise, which
    is drawn exactly as stated (`noise`): no floating point is involved, and nothing but the law of
    the source's words is taken on trust, with delta = 0 too (`events.LaplaceCounts`).

    tables: a row is in exactly one cell of each of Q tables. Table q is multiplied by the whole
    number L_q, the largest for which  sum_q L_q^2 <= (S / z)^2  in the stated proportions, so the
    integers of a row, one L_q in each table, have norm at most S / z: all tables together are one
    Gaussian mechanism with noise multiplier z, slack as for sums, and g where sqrt(g) stands there:
    a table may be over other slabs than the guard's, in which a person's records may meet. Nothing
    is rounded, as counts are integers; where 64 bits are too few they wrap around, noise and all,
    which is a function of the noisy integers. Cells that are put into groups are disjoint, so that
    a row is in one group. Sides, groups, slabs and proportions are public or released.

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

    kernel_sums: v(row) becomes an integer vector by rules of its own (`sums`), and is left out
    unless its norm, measured on these integers, is at most L 2^k. The exact sum of the bin is
    divided by 2^k and rounded once, which moves each of the D coordinates by less than 1 when the
    sum changes. So the released integers of a bin move by at most B = L + sqrt(D) when a row is
    added or removed, and the rest is as for sums. L is chosen so that B = S / z.

    levels: sums are over points of e coordinates, which are the d of a row where all columns are
    numbers. A category becomes a block of coordinates, 0 but for one that is a public constant s
    <= 1 (`columns.embedding`): a function of the row alone, whose values are in the unit cube. The
    argument of sums and of kernel_sums uses nothing else of a row's point, so both hold word for
    word with e for d; blocks are in the same joint clip as numbers.

    thirds: here a person is summed, not a row. All pairs of a person's records together become
    whole numbers, none negative, that add up to w in each of d features, or to 0 where there is no
    pair (`pairs`): the mean pair, not the sum of them. So a person added or removed moves the
    answer by w d in all, a person replaced by 2 w d, and g does not matter, in bins or together.
    Which pairs somebody has is a function of their own records: the rows know whose they are, and
    at most g of a person were kept, by that person's records alone (`data.records`). Thresholds
    are those of released marginals, so the question comes after the main release; whatever they
    are, the bound holds. It is counting in integers, and with exact integer noise delta is 0
    (`events.LaplaceShares`).

    slabs: time may be cut at other edges, which are public or made of released numbers. A row is
    in one slab at most, by its time alone, so all of the above holds with slabs for bins; but
    records of one person that were in different bins may be in one slab, and g stands where sqrt(g)
    stood.

    projected: points may be seen along other axes, which are public or released (`projection`). A
    row's new point is a function of the row and of these numbers, so all of the above holds with
    new points for points.

    The number of people in the data, in a bin or in a batch never enters an answer except through
    these mechanisms. Numbers that are public knowledge are given by the user, and do not come from
    here (`head_count`).

    Nothing is refused after it was paid for. Whether a question can be answered is decided by
    public and released numbers, before it is paid for, and every table that passed the checks of
    `data.checks` has an answer to it: a refusal that depended on the rows would be an answer too.

    Several processes (`processes`) hold rows of different people. They add up exact integers; the
    first process alone adds noise, and the others are told its answer. Every process keeps the
    ledger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj.base import processes
from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.columns.axes import Axes, Embedding
from privtraj.privacy import noise
from privtraj.privacy.events import Event, GaussianSum, LaplaceCounts, LaplaceShares
from privtraj.privacy.ledger import Ledger, Payer
from privtraj.privacy.pairs import Thirds, sum_over_people
from privtraj.privacy.projection import ProjectedRows, Projection
from privtraj.privacy.rows import PublicShape, Rows
from privtraj.privacy.sums import (
    MOST_CLIP,
    Chunks,
    KernelSum,
    Statistic,
    WeightFn,
    chunked,
    kernel_lattice,
    kernel_sums,
    kernel_vector,
    lattice_sums,
)
from privtraj.privacy.watching import CellCounts, ClippedSums, RecordVector, Table, Watcher

MAX_CELLS = 2**26  # noisy counts per release, over all bins


class Guard:
    """Holds the rows, answers with noise, and pays for every answer."""

    def __init__(
        self,
        rows: Rows,
        shape: PublicShape,
        ledger: Ledger,
        source: noise.Source,
        *,
        watcher: Watcher | None = None,
    ) -> None:
        self.ledger = ledger
        self.axes = shape.axes
        self.embedding = Embedding(shape.axes)
        self.n_features = shape.n_features
        self.person = shape.person
        self._rows = rows
        self._slabs = shape.bins
        self._payer: Payer = ledger
        self._source = source
        self._watcher = watcher
        self._chunks: Chunks | None = None
        self._seen: Projection | None = None

    @property
    def n_coordinates(self) -> int:
        """e, of the points that are summed: d, where all columns are numbers."""
        return self.embedding.width

    @property
    def n_times(self) -> int:
        """K, how many slabs of time an answer has: the declared bins, unless others were cut."""
        return self._slabs.count

    def in_slabs(self, slabs: Slabs) -> Self:
        """The same rows in these slabs, whose edges and numbers are public or released.

        Records of one person in different bins may meet in a slab, so whoever has several is paid
        for as if they were together.
        """
        _check_slabs(slabs)
        part = copy(self)
        part._slabs, part._chunks = slabs, None
        part.person = self.person.in_slabs()
        return part

    def projected(self, projection: Projection) -> Self:
        """The same rows seen along the axes of a projection, which are public or released."""
        part = copy(self)
        part._rows, part._chunks = ProjectedRows(self._rows, projection), None
        part._seen, part.n_features = projection, projection.rank
        part.axes = Axes.numeric(projection.rank)
        part.embedding = Embedding(part.axes)
        return part

    def counts(self, sides: int | Sequence[int], epsilon: float, what: str) -> Ints:
        """Noisy numbers of records (T, cells) in as many cells along each axis, or in sides (d,).

        One cell per side counts the bins.
        """
        sides = (sides,) * self.n_features if isinstance(sides, int) else tuple(sides)
        self._check_sides(sides)
        event = LaplaceCounts(epsilon, what, 0.0, *self.person)
        self._payer.spend(event)
        exact = processes.total(self._rows.cell_counts(self._slabs, sides))
        return self._noisy_counts(
            exact, epsilon, event, CellCounts(self._slabs, sides, seen=self._seen)
        )

    def _check_sides(self, sides: Sequence[int], times: int | None = None) -> None:
        if len(sides) != self.n_features or min(sides) < 1:
            raise InputError(f"cells along {self.n_features} axes need a number for each")
        if (times or self.n_times) * math.prod(sides) > MAX_CELLS:
            raise InputError(
                f"{math.prod(sides)} cells in {self.n_features} dimensions are too many to "
                "count: use fewer cells"
            )

    def tables(
        self, questions: Sequence[Table], noise_multiplier: float, what: str
    ) -> list[Floats]:
        """Noisy numbers of records in the cells of several tables, (K_q, cells_q) each.

        noise_multiplier: of all tables together; a table that has the share p of it, its `weight`
        squared over all, has noise of standard deviation z / sqrt(p). A watcher is told of each
        table by itself, with sqrt(p) as its weight.
        """
        for table in questions:
            _check_slabs(table.slabs)
            self._check_sides(table.sides, table.slabs.count)
            table.check()
        times = table_multipliers([table.weight for table in questions], noise_multiplier)
        event = self.table_event(questions, noise_multiplier, what)
        self._payer.spend(event)
        answers = []
        for table, copies in zip(questions, times.tolist(), strict=True):
            cells = processes.total(self._rows.cell_counts(table.slabs, table.sides))
            told = replace(table, weight=copies * noise_multiplier / noise.GAUSSIAN_STD)
            answers.append(self._noisy_table(copies * table.grouped(cells), copies, event, told))
        return answers

    def table_event(
        self, questions: Sequence[Table], noise_multiplier: float, what: str
    ) -> GaussianSum:
        """What a call of `tables` will pay for."""
        draws = sum(table.slabs.count * table.cells for table in questions)
        slack = draws * noise.GAUSSIAN_TV_PER_DRAW
        return GaussianSum(noise_multiplier, what, slack, *self.person.in_slabs())

    def _noisy_table(self, exact: Ints, copies: int, event: Event, table: Table) -> Floats:
        """What may leave of one table, in people."""
        if processes.is_first():
            exact = exact + noise.gaussian_integers(self._source, exact.shape)
        answer: Floats = processes.broadcast_first(exact / copies)
        if self._watcher is not None:
            self._watcher.released(event, replace(table, seen=self._seen), answer)
        return answer

    def thirds(self, question: Thirds, epsilon: float, what: str) -> Ints:
        """Noisy numbers (L, 4 d) of four kinds of pairs, w of each person."""
        if question.n_features != self.n_features:
            raise InputError(f"thirds of {self.n_features} features need thresholds for each")
        event = LaplaceShares(epsilon, what, 0.0, *self.person, weight=question.weight)
        self._payer.spend(event)
        exact = processes.total(sum_over_people(self._rows.repeated(), question))
        return self._noisy_counts(exact, epsilon, event, question)

    def _noisy_counts(
        self, exact: Ints, epsilon: float, event: Event, question: CellCounts | Thirds
    ) -> Ints:
        """What may leave: counts (K, D) with noise."""
        if processes.is_first():
            exact = exact + noise.laplace_integers(self._source, exact.shape, epsilon)
        answer = processes.broadcast_first(exact)
        if self._watcher is not None:
            self._watcher.released(event, question, answer)
        return answer

    def sums(
        self,
        statistic: Statistic,
        parameters: Any,
        clip: Floats,
        noise_multiplier: float,
        what: str,
    ) -> Floats:
        """Noisy sums (T, D) of jointly clipped per-record vectors.

        statistic: the per-record vector; a stable function, compiled once.
        parameters: pytree whose leaves have T as first axis; bin i is given its own slice.
        clip: (T,) bound c on the norm of a record's vector, from released numbers only.
        """
        self._check_shapes(clip, parameters)
        width = _width(statistic, parameters, self.n_coordinates)
        unit = lattice_unit(np.asarray(clip, dtype=np.float64), noise_multiplier, width)
        event = self.sum_event(width, noise_multiplier, what)
        self._payer.spend(event)
        chunks = self._chunked()
        exact = lattice_sums(
            statistic, chunks, self._taking_part(chunks), parameters, clip, unit, width
        )
        vector = partial(_record_vector, statistic, parameters, self.embedding)
        return self._noisy(exact, unit, event, vector, clip)

    def kernel_sums(
        self,
        weight_fn: WeightFn,
        kernel: KernelSum,
        clip: Floats,
        noise_multiplier: float,
        what: str,
    ) -> Floats:
        """Noisy sums (T, m e + m + 1) of jointly clipped vectors ( w_k (x_k - y), mass w_k, s ).

        weight_fn: weights and s from squared distances; a stable function, compiled once.
        kernel: centres x (T, m, e), the weight of the masses (T,), parameters of the weight_fn.
        clip: as for `sums`.
        """
        self._check_shapes(clip, kernel)
        centres, clip = np.asarray(kernel.centres), np.asarray(clip, dtype=np.float64)
        width = centres.shape[1] * (centres.shape[2] + 1) + 1
        lattice_unit(clip, noise_multiplier, width)  # refuses what says nothing
        if max(np.max(clip), np.max(kernel.mass)) > MOST_CLIP:
            raise InputError("there are too many features for gradients: leave some out")
        lattice = kernel_lattice(clip, noise.GAUSSIAN_STD / noise_multiplier, centres)
        event = self.sum_event(width, noise_multiplier, what)
        self._payer.spend(event)
        chunks = self._chunked()
        exact = kernel_sums(weight_fn, chunks, self._taking_part(chunks), kernel, clip, lattice)
        vector = partial(_kernel_record_vector, weight_fn, kernel, self.embedding)
        return self._noisy(exact, lattice.unit, event, vector, clip)

    def _noisy(
        self,
        exact: Ints,
        unit: Floats,
        event: Event,
        vector: RecordVector,
        clip: Floats,
    ) -> Floats:
        """What may leave: integers (T, D) with noise, in the caller's units."""
        if processes.is_first():
            exact = exact + noise.gaussian_integers(self._source, exact.shape)
        answer = processes.broadcast_first((exact * unit[:, None]).astype(np.float64))
        if self._watcher is not None:
            asked = vector if self._seen is None else partial(_seen_vector, self._seen, vector)
            self._watcher.released(event, ClippedSums(self._slabs, asked, clip), answer)
        return answer

    def _check_shapes(self, clip: Floats, parameters: Any) -> None:
        # other shapes would be broadcast: one exact sum under two noises, or two under one noise
        shapes = [np.shape(clip), *(np.shape(leaf)[:1] for leaf in jax.tree.leaves(parameters))]
        if any(shape != (self.n_times,) for shape in shapes):
            raise InputError(f"sums over {self.n_times} bins need a clip and parameters for each")

    def sum_event(self, width: int, noise_multiplier: float, what: str) -> GaussianSum:
        """What a call of `sums` with D = width will pay for."""
        slack = self.n_times * width * noise.GAUSSIAN_TV_PER_DRAW
        return GaussianSum(noise_multiplier, what, slack, *self.person)

    def _taking_part(self, chunks: Chunks) -> jax.Array:
        """Which places of the chunks take part: those that hold a row."""
        return chunks.spread(chunks.row >= 0)

    def _chunked(self) -> Chunks:
        if self._chunks is None:
            points, slabs = self._rows.in_slabs(self._slabs)
            if self.axes.mixed:
                points = self.embedding.of(points)
            self._chunks = chunked(points, slabs, self.n_times)
        return self._chunks


def _check_slabs(slabs: Slabs) -> None:
    """Refuse slabs that a record might have no place in: that would be found by its rows alone."""
    numbers, edges = slabs.slab_of_piece, slabs.edges
    in_use = np.unique(numbers[numbers >= 0])
    if len(numbers) != len(edges) + 1 or not (np.diff(edges) > 0).all() or len(in_use) == 0:
        raise InputError("slabs need increasing edges, and a number for each piece between")
    if not np.array_equal(in_use, np.arange(len(in_use))):
        raise InputError("slabs are numbered from 0, without gaps")


def lattice_unit(clip: Floats, noise_multiplier: float, width: int) -> Floats:
    """unit = c / (S / z - sqrt(D) / 2 - 1), so that B = c / unit + sqrt(D) / 2 + 1 = S / z."""
    norm = noise.GAUSSIAN_STD / noise_multiplier - math.sqrt(width) / 2 - 1
    if norm < math.sqrt(width):
        raise BudgetError(
            f"a sum of {width} coordinates with noise multiplier {noise_multiplier:.3g} says "
            "nothing: use a larger epsilon, or fewer particles or steps"
        )
    unit: Floats = clip / norm
    return unit


def table_multipliers(weights: Sequence[float], noise_multiplier: float) -> Ints:
    """(Q,) whole numbers L_q = floor( S / z  w_q / |w| ), by which tables are multiplied."""
    shares = np.asarray(weights, np.float64) / math.hypot(*weights)
    times = np.floor(noise.GAUSSIAN_STD / noise_multiplier * shares * (1 - 1e-9)).astype(np.int64)
    if times.min() < 1:
        raise BudgetError(
            f"{len(weights)} tables with noise multiplier {noise_multiplier:.3g} say nothing: use "
            "a larger epsilon, or fewer columns"
        )
    return times


def _width(statistic: Statistic, parameters: Any, n_features: int) -> int:
    row = jax.ShapeDtypeStruct((1, n_features), jnp.float32)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), parameters)
    return int(jax.eval_shape(statistic, row, one).shape[-1])


@partial(jax.jit, static_argnums=0)
def _one_vector(
    statistic: Statistic, parameters: Any, index: jax.Array, point: jax.Array
) -> jax.Array:
    return statistic(point[None], jax.tree.map(lambda leaf: leaf[index], parameters))[0]


def _record_vector(
    statistic: Statistic,
    parameters: Any,
    embedding: Embedding,
    index: int,
    point: NDArray[np.float32],
) -> Floats:
    """v (D,) of a point (d,) at the parameters of a bin."""
    (point,) = embedding.of(point[None])
    return np.asarray(_one_vector(statistic, parameters, index, point), dtype=np.float64)


def _seen_vector(
    seen: Projection, vector: RecordVector, index: int, point: NDArray[np.float32]
) -> Floats:
    """The vector of a point that is seen along other axes."""
    return vector(index, seen(point[None])[0])


def _kernel_record_vector(
    weight_fn: WeightFn,
    kernel: KernelSum,
    embedding: Embedding,
    index: int,
    point: NDArray[np.float32],
) -> Floats:
    """V (m e + m + 1,) of a point (d,) at the parameters of a bin."""
    (point,) = embedding.of(point[None])
    return kernel_vector(weight_fn, jax.tree.map(lambda leaf: leaf[index], kernel), point)
