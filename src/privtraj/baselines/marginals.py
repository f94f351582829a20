"""AIM or MST on discretised records, by OpenDP: the table synthesizers that others reach for.

McKenna, Mullins, Sheldon and Miklau, "AIM: an adaptive and iterative mechanism for differentially
private synthetic data" (2022); McKenna, Miklau and Sheldon, "Winning the NIST contest" (2021).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from privtraj.base.arrays import Ints
from privtraj.base.errors import InputError, check_whole
from privtraj.baselines.base import Baseline, Release
from privtraj.baselines.counted import in_cells, places_of
from privtraj.baselines.unguarded import unguarded
from privtraj.data.snapshots import Snapshots
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.events import Opaque, people_moved
from privtraj.privacy.guard import Guard

THEIR_NOISE = "OpenDP's, outside the guard"


@dataclass(kw_only=True)
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

    algorithm: Literal["AIM", "MST"] = "AIM"
    cells: int = 8
    times: Literal["column", "each"] = "column"
    options: Mapping[str, Any] = field(default_factory=dict)

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        what = f"{self.algorithm} by OpenDP, outside the guard"
        guard.ledger.spend(Opaque(self.epsilon, self.delta, what, self.adjacency))
        sides = guard.axes.sides(self.cells)
        places = [places_of(cloud, sides) for cloud in unguarded(snapshots)]
        unit = people_moved(self.adjacency) * guard.person.records
        if self.times == "each":
            cells = [self._synthesized(rows, sides, unit, self.points) for rows in places]
        else:
            times = np.repeat(np.arange(len(places)), [len(place) for place in places])
            rows = np.column_stack([times, np.concatenate(places)])
            wanted = self.points * len(places)
            made = self._synthesized(rows, (len(places), *sides), unit, wanted)
            cells = [made[made[:, 0] == i, 1:] for i in range(len(places))]
        clouds = [(cell, np.ones(len(cell))) for cell in cells]
        return in_cells(clouds, self.cells, self.points, rng, guard.axes)

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
        loss = {"epsilon": self.epsilon}
        if self.delta:
            loss = {"rho": _rho(dp, self.epsilon, self.delta)}
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

    def _certificate(self, exact: Certificate) -> Certificate:
        return replace(exact, noise=THEIR_NOISE) if exact.private else exact

    def check(self) -> None:
        super().check()
        check_whole("cells", self.cells, 2, 256)
        if self.algorithm not in ("AIM", "MST"):
            raise InputError(f"algorithm must be 'AIM' or 'MST', not '{self.algorithm}'")
        if self.times not in ("column", "each"):
            raise InputError(f"times must be 'column' or 'each', not '{self.times}'")
        _opendp()


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
