"""AIM or MST on discretised records, by OpenDP: the table synthesizers that others reach for.

McKenna, Mullins, Sheldon and Miklau, "AIM: an adaptive and iterative mechanism for differentially
private synthetic data" (2022); McKenna, Miklau and Sheldon, "Winning the NIST contest" (2021).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from privtraj.arguments import check_whole
from privtraj.arrays import Ints
from privtraj.baselines.base import Baseline, Release
from privtraj.baselines.counted import in_cells
from privtraj.baselines.unguarded import unguarded
from privtraj.data.snapshots import Snapshots
from privtraj.errors import InputError
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.events import Opaque, people_moved
from privtraj.privacy.guard import Guard

THEIR_NOISE = "OpenDP's, outside the guard"


@dataclass(kw_only=True)
class MarginalSynthesizer(Baseline):
    """Synthetic rows (time, x1, .., xd) of cells from noisy marginals that fit together.

    Mechanism: AIM or MST as OpenDP implements them, on rows of time and `cells` cells per feature,
    at the rho of zero-concentrated privacy that (epsilon, delta) buys, or at epsilon if delta is 0.
    People are uniform inside the cells of synthetic rows.
    Sensitivity: OpenDP is told that a person contributes as many rows as records, twice as many if
    one person may be replaced. The rows do not go through the guard: the certificate has one opaque
    entry, OpenDP's word for it. Its noise cannot be seeded. Needs the extra `privtraj[aim]`.
    """

    pure: ClassVar[bool] = False

    algorithm: Literal["AIM", "MST"] = "AIM"
    cells: int = 16

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        what = f"{self.algorithm} by OpenDP, outside the guard"
        guard.ledger.spend(Opaque(self.epsilon, self.delta, what, self.adjacency))
        places = [
            np.minimum((cloud * self.cells).astype(np.int64), self.cells - 1)
            for cloud in unguarded(snapshots)
        ]
        times = np.repeat(np.arange(len(places)), [len(place) for place in places])
        rows = np.column_stack([times, np.concatenate(places)])
        unit = people_moved(self.adjacency) * guard.person.records
        made = self._synthesized(rows, len(places), unit)
        cells = [made[made[:, 0] == i, 1:] for i in range(len(places))]
        return in_cells([(c, np.ones(len(c))) for c in cells], self.cells, self.points, rng)

    def _synthesized(self, rows: Ints, times: int, unit: int) -> Ints:
        """Synthetic ones for rows (n, 1 + d) of time and cells; a person moves at most `unit`."""
        dp, pl = _opendp()
        names = ["time", *(f"x{k}" for k in range(1, rows.shape[1]))]
        keys = {name: list(range(self.cells)) for name in names[1:]} | {"time": list(range(times))}
        loss = {"epsilon": self.epsilon}
        if self.delta:
            loss = {"rho": _rho(dp, self.epsilon, self.delta)}
        context = dp.Context.compositor(
            data=pl.DataFrame(rows, schema=names).lazy(),
            privacy_unit=dp.unit_of(contributions=unit),
            privacy_loss=dp.loss_of(**loss),
        )
        query = context.query(**loss).contingency_table(
            keys=keys, algorithm=getattr(dp.mbi, self.algorithm)()
        )
        made = query.release().synthesize(rows=self.points * times).drop_nulls()
        return made.select(names).to_numpy()

    def _certificate(self, exact: Certificate) -> Certificate:
        return replace(exact, noise=THEIR_NOISE) if exact.private else exact

    def check(self) -> None:
        super().check()
        check_whole("cells", self.cells, 2, 256)
        if self.algorithm not in ("AIM", "MST"):
            raise InputError(f"algorithm must be 'AIM' or 'MST', not '{self.algorithm}'")
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
