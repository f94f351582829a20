"""Methods of others that comparisons run beside ours: snapshots in, the same kind of model out.

What reads records outside the guard says so on its certificate.

`PrivateMeasure` is that of He, Vershynin and Zhu, "Algorithmically effective differentially private
synthetic data" (2023), on the dyadic hierarchy of the cube: level j has 2^j cells a side, and 2^d
children in each cell.

`MarginalSynthesizer` runs AIM and MST by OpenDP (`pip install 'privtraj[aim]'`). McKenna, Mullins,
Sheldon and Miklau, "AIM: an adaptive and iterative mechanism for differentially private synthetic
data" (2022); McKenna, Miklau and Sheldon, "Winning the NIST contest" (2021).

`PrivPGD` is of Donhauser, Abad, Hulkund and Yang, "Privacy-preserving data release leveraging
optimal transport and particle gradient descent" (2024). Their package asks for one release each of
Python, NumPy and torch, so this follows the paper and, for its settings, the code
(jaabmar/private-pgd):

    measure   a table for every pair of columns, Gaussian noise in all cells
    project   each signed table to the shares nearest in sliced W1, by Adam on their logarithms
    descend   on the sum over pairs of sliced W2 squared between particles and tables, by Adam, of
              which each step takes a few pairs, a few directions and a part of the coordinates

A category is places in [0, 1], as there, in the order of its levels. Different here: tables are per
time, and go through the guard, whose noise is integers and whose accountant is exact; directions of
the projection are drawn once.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import softmax

from baselines import (
    CELLS,
    Baseline,
    Counted,
    gaussian_sums,
    in_cells,
    occupied,
    of_equal_weight,
    unguarded,
)
from privtraj.base.arrays import Floats, Ints, Mask, systematic
from privtraj.base.errors import InputError, check_whole
from privtraj.measures.base import Marginals, Public, Task, left
from privtraj.measures.cells import MOST_CELLS_PER_TIME
from privtraj.paper.warm_starts import on_simplex
from privtraj.privacy import noise
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.events import Event, Opaque, people_moved
from privtraj.privacy.guard import CellCounts, Gaussian, Guard, Laplace, Release, Table, Tables
from privtraj.privacy.ledger import Ledger, Planned, calibrate_gaussian

TINY = 1e-9  # people of a parent below which its children are as good as nobody

# Counts at every level of a hierarchy ----------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PrivateMeasure(Counted):
    """Counts at every level of a dyadic hierarchy with discrete Laplace noise, made consistent.

    Mechanism: level 0 is the head count, at count_share of epsilon (or public). Levels 1..r get
    noise P(x) ~ exp(-e_j |x|) with e_j as in `level_budgets`, negative counts become 0, and from
    the root down the counts of children are made to sum to their parent's (`consistent`). Points
    are uniform inside the leaves, 2^r a side, N e of them or about so (`depth`).
    Sensitivity: a record is in one cell of each level, so a person with one record added or removed
    moves one count per level by 1: sum e_j = epsilon; a person replaced moves two: sum e_j =
    epsilon / 2. cells: leaves per side, a power of two.
    """

    releases: ClassVar[int] = 24
    counts_people: ClassVar[bool] = True

    def main(self, public: Public, others: list[Event]) -> Planned:
        planned, d = super().main(public, others), public.shape.n_features
        if self.cells is not None:
            levels = self.cells.bit_length() - 1
            if level_budgets(planned.event.information, levels, d)[0] < noise.EPSILON_RANGE[0]:
                raise InputError(f"epsilon is too small for {levels} levels: use fewer cells")
        return planned

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        budget, d = self._left(guard), guard.n_features
        levels = depth(float(np.median(people)), d, budget)
        while levels > 1 and level_budgets(budget, levels, d)[0] < noise.EPSILON_RANGE[0]:
            levels -= 1
        if self.cells is not None:
            levels = self.cells.bit_length() - 1
        mass = people[:, None]
        for level, epsilon in enumerate(level_budgets(budget, levels, d), start=1):
            drawn = Laplace(float(epsilon))
            counts = guard.ask(Release(CellCounts(2**level), drawn, CELLS))
            mass = consistent(mass, counts.astype(np.float64), d)
        return in_cells(occupied(mass, 2**levels, d), 2**levels, self.points, task.rng)

    def certified(self, *fit: Any, **more: Any) -> Certificate:
        """One entry for all levels, of their sum.

        How many levels there are, and the e_j with them, may follow from the head count. Then their
        sum holds, and one count of it dominates them all; exact composition of what happened to be
        chosen would promise a little too much.
        """
        snapshots, found, ledger, *private = fit
        events = [event for event, _ in ledger.events]
        levels = [event for event in events if event.what == CELLS]
        total = math.fsum(event.epsilon for event in levels)
        all_levels = replace(levels[0], epsilon=total, what=f"{CELLS} at {len(levels)} levels")
        stated = Ledger(*self.budget)
        for event in (*(event for event in events if event.what != CELLS), all_levels):
            stated.spend(event)
        return super().certified(snapshots, found, stated, *private, **more)

    def check(self) -> None:
        super().check()
        if self.cells is not None and self.cells & (self.cells - 1):
            raise InputError("cells must be a power of two: every level halves the cells")


def depth(people: float, dimensions: int, epsilon: float) -> int:
    """r with 2^(d r) nearest to N e on the scale of logarithms: one or more, as far as allowed."""
    wanted = round(math.log2(max(people * epsilon, 2)) / dimensions)
    return int(np.clip(wanted, 1, max(1, int(math.log2(MOST_CELLS_PER_TIME) / dimensions))))


def level_budgets(epsilon: float, levels: int, dimensions: int) -> Floats:
    """e_j (r,) for levels 1..r, proportional to 2^{(d - 1) j / 2}, with sum epsilon.

    Noise of scale 1/e_j at each of the 2^{d j} cells of level j carries mass over the diameter
    2^{-(j - 1)} of its parent, so the error is proportional to sum_j 2^{(d - 1) j} / e_j; these
    e_j make it least for a given sum.
    """
    share = 2.0 ** ((dimensions - 1) / 2 * np.arange(levels))
    return epsilon * share / share.sum()


def consistent(parents: Floats, counts: Floats, dimensions: int) -> Floats:
    """Counts (T, G^d) made nonnegative, with children that sum to their parents (T, (G / 2)^d).

    All children of a cell grow or all shrink, as the theorem asks, which leaves open how. Here they
    shrink by one number, those below it to 0, which takes noise away where nobody is, and grow in
    proportion to their counts; children of whom none is counted get equal parts.
    """
    family = siblings(round(counts.shape[1] ** (1 / dimensions)), dimensions)
    children = np.maximum(counts, 0)[:, family]
    parent, total = parents[..., None], children.sum(axis=-1, keepdims=True)
    grown = np.where(total > 0, children / np.maximum(total, 1), 1 / children.shape[-1])
    rows = (children / np.maximum(parent, TINY)).reshape(-1, children.shape[-1])
    shrunk = on_simplex(rows).reshape(children.shape)
    mass = np.empty_like(counts)
    mass[:, family] = parent * np.where(total > parent, shrunk, grown)
    return mass


def siblings(side: int, dimensions: int) -> Ints:
    """((G / 2)^d, 2^d) the cells, of G a side, that have one parent."""
    cells = np.arange(side**dimensions).reshape((side // 2, 2) * dimensions)
    axes = (*range(0, 2 * dimensions, 2), *range(1, 2 * dimensions, 2))
    return cells.transpose(axes).reshape(-1, 2**dimensions)


# Tables of columns ----------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class MarginalSynthesizer(Baseline):
    """Synthetic rows (time, x1, .., xd) of cells from noisy marginals that fit together.

    Mechanism: AIM or MST as OpenDP implements them, on rows of time, `cells` cells per number and
    the levels of categories, at the rho of zero-concentrated privacy that (epsilon, delta) buys,
    or at epsilon if delta is 0. People are uniform inside the cells of synthetic rows.
    Sensitivity: OpenDP is told that a person contributes as many rows as records, twice as many if
    one person may be replaced. With one run for each time the runs see different rows: k of a
    person's rows in k runs cost k times what one row costs, which is at most what OpenDP states for
    k rows in one run, because its losses grow at least in proportion to the rows.
    The rows do not go through the guard: the certificate has one opaque entry, OpenDP's word for
    it. Its noise cannot be seeded. Needs the extra `privtraj[aim]`.

    times: "column", time is one more column of one table; "each", a run for each time.
    options: more settings of OpenDP's algorithm by name, such as {"queries": 2} for AIM on pairs.
    """

    pure: ClassVar[bool] = False
    mixed: ClassVar[bool] = True

    _: KW_ONLY
    algorithm: Literal["AIM", "MST"] = "AIM"
    cells: int = 8
    times: Literal["column", "each"] = "column"
    options: Mapping[str, Any] = field(default_factory=dict)

    def main(self, public: Public, others: list[Event]) -> Planned:
        return Planned(Opaque(self.epsilon, self.delta, self._what, self.adjacency))

    @property
    def _what(self) -> str:
        return f"{self.algorithm} by OpenDP, outside the guard"

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        guard.ledger.spend(task.plan.releases[0].event)
        sides = guard.shape.axes.sides(self.cells)
        records = unguarded(task.public)  # type: ignore[arg-type]
        places = [places_of(cloud, sides) for cloud in records]
        unit = people_moved(self.adjacency) * guard.shape.person.records
        if self.times == "each":
            cells = [self._synthesized(rows, sides, unit, self.points) for rows in places]
        else:
            times = np.repeat(np.arange(len(places)), [len(place) for place in places])
            rows = np.column_stack([times, np.concatenate(places)])
            wanted = self.points * len(places)
            drawn = self._synthesized(rows, (len(places), *sides), unit, wanted)
            cells = [drawn[drawn[:, 0] == i, 1:] for i in range(len(places))]
        clouds = [(cell, np.ones(len(cell))) for cell in cells]
        return in_cells(clouds, self.cells, self.points, task.rng, guard.shape.axes)

    def _synthesized(self, rows: Ints, sides: tuple[int, ...], unit: int, wanted: int) -> Ints:
        """So many synthetic rows for rows (n, k) of cells; a person moves at most `unit`.

        Rows are sampled from the fitted model. OpenDP's default rounds instead (mbi 1.1), and does
        not keep what more than two columns have in common: five numbers of 2,000 people at 5 times,
        total variation of (time, column, column) .06 in the model, .06 sampled and .34 rounded,
        from 60,000 rows each.
        OpenDP gives every column one more level, for nulls, which takes some of the noise: rows
        that have it are left out.
        """
        dp, pl = _opendp()
        names = [f"x{k}" for k in range(len(sides))]
        delta = self.delta
        loss = {"rho": _rho(dp, self.epsilon, delta)} if delta else {"epsilon": self.epsilon}
        context = dp.Context.compositor(
            data=pl.DataFrame(rows, schema=names, orient="row").lazy(),
            privacy_unit=dp.unit_of(contributions=unit),
            privacy_loss=dp.loss_of(**loss),
        )
        query = context.query(**loss).contingency_table(
            keys={name: list(range(side)) for name, side in zip(names, sides, strict=True)},
            algorithm=getattr(dp.mbi, self.algorithm)(**self.options),
        )
        with _room_to_round(dp):
            table = query.release()
        made = table.synthesize(rows=wanted, method="sample").drop_nulls()
        return made.select(names).to_numpy()

    def certified(self, *fit: Any, **more: Any) -> Certificate:
        exact = super().certified(*fit, **more)
        return replace(exact, noise="OpenDP's, outside the guard") if exact.private else exact

    def check(self) -> None:
        super().check()
        check_whole("cells", self.cells, 2, 256)
        if self.algorithm not in ("AIM", "MST"):
            raise InputError(f"algorithm must be 'AIM' or 'MST', not '{self.algorithm}'")
        if self.times not in ("column", "each"):
            raise InputError(f"times must be 'column' or 'each', not '{self.times}'")
        _opendp()


def places_of(points: Floats, sides: Sequence[int]) -> Ints:
    """Whole coordinates (n, d) of the cells of points (n, d), of sides (d,) cells per axis."""
    return np.minimum((points * sides).astype(np.int64), np.array(sides) - 1)


def _opendp() -> tuple[Any, Any]:
    """OpenDP, with all it needs for AIM and MST, and polars."""
    try:
        importlib.import_module("mbi")
        dp, pl = importlib.import_module("opendp.prelude"), importlib.import_module("polars")
    except ImportError:
        raise InputError("AIM and MST need OpenDP: run pip install 'privtraj[aim]'") from None
    dp.enable_features("contrib")
    return dp, pl


def _rho(dp: Any, epsilon: float, delta: float) -> float:
    """The largest rho for which rho-zCDP is (epsilon, delta)-DP by OpenDP's conversion."""
    space = dp.atom_domain(T=int), dp.absolute_distance(T=float)

    def at(scale: float) -> Any:
        converted = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return dp.c.make_fix_delta(converted, delta)

    scale = dp.binary_search_param(at, d_in=1.0, d_out=(epsilon, delta), T=float)
    return float(dp.m.make_gaussian(*space, scale).map(1.0))


@contextmanager
def _room_to_round(dp: Any) -> Iterator[None]:
    """MST with shares of the budget that are smaller by one in 10^12.

    MST (OpenDP 0.16) gives each of its k selections the float below 1/k of what it has for
    selecting, and composes them with sums that are rounded up. From k = 5 on these may exceed what
    they were divided from by one unit in the last place, and the query is refused: "insufficient
    budget for query". For k = 8 they always do. Smaller shares are within the budget, as OpenDP
    then checks by itself.
    """
    theirs = importlib.import_module(dp.mbi.MST.__module__)
    below = getattr(theirs, "prior", None)
    if below is None:  # another version, which may not need it
        yield
        return
    theirs.prior = lambda share: below(share) * (1 - 2**-40)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        theirs.prior = below  # type: ignore[attr-defined]


PAIRS_OF_COLUMNS = "pairs of columns"
RATE, DECAY, DECAYS = 0.1, 0.75, 20
"""Of Adam: the first rate, its factor, and how often it is applied over all steps."""
PAIRS, DIRECTIONS, KEPT = 5, 10, 0.2
"""Of a step: pairs of columns, directions, and the share of coordinates that move."""
PROJECTION_STEPS, PROJECTION_DIRECTIONS = 500, 50


@dataclass(frozen=True, repr=False)
class PrivPGD(Baseline):
    """Particles that fit noisy tables of all pairs of columns, at each time by itself.

    Mechanism: `Guard.tables` of (time, column, column) for all pairs, with equal weights.
    Sensitivity: that of the guard; one Gaussian event, to which all of epsilon goes. Needs a delta.
    cells: per number.  steps: of the descent.
    """

    pure: ClassVar[bool] = False
    mixed: ClassVar[bool] = True

    without_delta = "tables with Gaussian noise need a delta above 0: set one"

    _: KW_ONLY
    cells: int = 8
    steps: int = 2000

    def main(self, public: Public, others: list[Event]) -> Planned:
        return gaussian_sums(self, PAIRS_OF_COLUMNS, 1, public.shape.person.in_slabs(), others)

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        windows, rng = task.public.axis.bins, task.rng
        guard = guard.in_slabs(windows)  # as tables pay for several records
        mu = left(guard, calibrate_gaussian)
        sides = guard.shape.axes.sides(self.cells)
        pairs: list[tuple[int, ...]] = list(combinations(range(len(sides)), 2))
        pairs = pairs or [(0,)]  # one column has a table of its own
        tables = []
        for pair in pairs:  # one cell along all other axes
            cells = tuple(side if k in pair else 1 for k, side in enumerate(sides))
            tables.append(Table(windows, cells))
        counts = guard.ask(Release(Tables(tables), Gaussian(1 / mu), PAIRS_OF_COLUMNS))
        wanted = []
        for noisy, pair in zip(shares(counts), pairs, strict=True):
            centres = _centres([sides[k] for k in pair])
            fitted = projected(noisy, centres, rng)
            drawn = [centres[systematic(row, self.points, rng)] for row in fitted]
            wanted.append(np.stack(drawn))
        start = rng.uniform(size=(guard.n_times, self.points, len(sides)))
        particles = descended(start, pairs, wanted, self.steps, rng)
        return of_equal_weight(particles, np.full(guard.n_times, 1 / (self.cells * 12**0.5)))

    def check(self) -> None:
        super().check()
        check_whole("cells", self.cells, 2, 256)


def _centres(sides: Sequence[int]) -> Floats:
    """Middles (C, k) of all cells, the last axis fastest."""
    middles = [(np.arange(side) + 0.5) / side for side in sides]
    return np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, len(sides))


def shares(counts: Sequence[Floats]) -> list[Floats]:
    """Noisy counts (T, C) of each table over the number of people at each time, as all have it.

    The sum over C cells has C times the variance of a cell, so tables have the weight 1 / C.
    """
    weights = np.array([1 / table.shape[1] for table in counts])
    sums = np.stack([table.sum(axis=1) for table in counts])
    people = np.maximum(weights @ sums / weights.sum(), 1.0)
    return [table / people[:, None] for table in counts]


def projected(noisy: Floats, centres: Floats, rng: np.random.Generator) -> Floats:
    """Shares (T, C) that are nearest to signed ones (T, C) on places (C, k) in sliced W1.

    mean over directions of  sum_j gap_j | sum_{i <= j} (u - v)_i |,  places in their order there.
    """
    places = _directions(PROJECTION_DIRECTIONS, centres.shape[1], rng) @ centres.T
    order = np.argsort(places, axis=1)
    back = np.argsort(order, axis=1)
    gaps = np.diff(np.take_along_axis(places, order, axis=1), axis=1, append=np.nan)
    gaps[:, -1] = 0.0

    def gradient(u: Floats) -> Floats:
        pushed = gaps * np.sign(np.cumsum((u - noisy)[:, order], axis=2))
        later = np.cumsum(pushed[..., ::-1], axis=2)[..., ::-1]
        return np.take_along_axis(later, back[None], axis=2).mean(axis=1)

    def of_logs(logs: Floats) -> tuple[Floats, bool]:
        u = softmax(logs, axis=1)
        slope = gradient(u)
        return u * (slope - (u * slope).sum(axis=1, keepdims=True)), True

    positive = np.maximum(noisy, 0) + 1e-9
    logs = np.log(positive / positive.sum(axis=1, keepdims=True))
    return softmax(adam(logs, of_logs, PROJECTION_STEPS), axis=1)


def descended(
    particles: Floats,
    pairs: Sequence[Sequence[int]],
    wanted: Sequence[Floats],
    steps: int,
    rng: np.random.Generator,
) -> Floats:
    """Particles (T, m, d) near the points (T, m, k) that are wanted of each pair of columns."""

    def slope(x: Floats) -> tuple[Floats, Mask]:
        total = np.zeros_like(x)
        for one in rng.choice(len(pairs), min(PAIRS, len(pairs)), replace=False):
            columns = list(pairs[one])
            total[..., columns] += sliced_slope(x[..., columns], wanted[one], rng)
        return total, rng.random(x.shape) < KEPT

    return adam(particles, slope, steps, 0.0, 1.0)


def sliced_slope(x: Floats, y: Floats, rng: np.random.Generator) -> Floats:
    """The gradient (T, m, k), times m, of sliced W2 squared between points (T, m, k)."""
    directions = _directions(DIRECTIONS, x.shape[2], rng)
    along, there = (np.moveaxis(points @ directions.T, 2, 0) for points in (x, y))
    order = np.argsort(along, axis=2)
    off = np.take_along_axis(along, order, axis=2) - np.sort(there, axis=2)
    back = np.take_along_axis(off, np.argsort(order, axis=2), axis=2)
    return np.einsum("ltm,lk->tmk", back, directions) * 2 / DIRECTIONS


def adam(
    x: Floats,
    slope: Callable[[Floats], tuple[Floats, Mask | bool]],
    steps: int,
    low: float = -np.inf,
    high: float = np.inf,
) -> Floats:
    """Kingma and Ba (2015). slope: of x, and which of its coordinates move; the others keep their
    averages."""
    mean, square = np.zeros_like(x), np.zeros_like(x)
    for step in range(1, steps + 1):
        gradient, moving = slope(x)
        mean = np.where(moving, 0.9 * mean + 0.1 * gradient, mean)
        square = np.where(moving, 0.999 * square + 0.001 * gradient**2, square)
        rate = RATE * DECAY ** ((step - 1) * DECAYS // steps)
        scale = rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        x = np.clip(x - np.where(moving, scale * mean / (np.sqrt(square) + 1e-8), 0.0), low, high)
    return x


def _directions(count: int, dimensions: int, rng: np.random.Generator) -> Floats:
    drawn = rng.standard_normal((count, dimensions))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
