"""What a fit would do with its budget, from public settings alone: no record is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.base.errors import aligned, short
from privtraj.data.public import PublicInputs
from privtraj.data.snapshots import Snapshots
from privtraj.domain.domain import Domain
from privtraj.privacy.budget_plan import Planned
from privtraj.privacy.events import LaplaceCounts, LaplaceShares
from privtraj.privacy.rows import MemoryRows
from privtraj.synthesizer import TrajectorySynthesizer

_MEASURES = {
    "counts": "private counts of records over cells",
    "gradients": "private gradients of particles",
    "marginals": "private tables of two columns at a time",
}


@dataclass(frozen=True)
class Release:
    """One line of a plan, of up to so many times.

    noise: standard deviation of each number, of all times together; unit: of the noise, in which a
    contribution is the most that one record adds to a sum.
    """

    what: str
    times: int
    noise: float
    unit: str


@dataclass(frozen=True)
class Intention:
    """A fit before it begins. slabs: the resolution in time, in words."""

    epsilon: float
    delta: float
    adjacency: str
    measure: str
    slabs: str
    records_per_person: int
    releases: tuple[Release, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "releases": [asdict(one) for one in self.releases]}

    def __str__(self) -> str:
        most = self.records_per_person
        each = "one record" if most == 1 else f"up to {most} records"
        rows = [
            (f"  {one.what}", "once" if one.times == 1 else f"up to {one.times} times", _noise(one))
            for one in self.releases
        ]
        lines = [
            f"fit would spend epsilon {self.epsilon:g} and delta {short(self.delta)} "
            f"({self.adjacency}, {each} of a person),",
            f"once, on {_MEASURES[self.measure]}, in {self.slabs}.",
            *aligned([("  what is released", "", "its noise"), *rows]),
        ]
        return "\n".join(lines)


def intention(
    synthesizer: TrajectorySynthesizer, public: PublicInputs, domain: Domain | None
) -> Intention:
    """What this synthesizer would do with any table of these columns; refuses what none would."""
    nobody = Snapshots(
        public.axis,
        public.columns,
        public.time_name,
        MemoryRows(np.empty((0, len(public.columns)), np.float32), np.empty(0)),
        public.most_records,
        public.together,
        domain=domain,
    )
    plan = synthesizer.planned(nobody)
    return Intention(
        float(synthesizer.epsilon),
        float(synthesizer.delta),
        synthesizer.adjacency,
        synthesizer.measure_of(nobody),
        _slabs(synthesizer.slabs, nobody.n_times),
        public.most_records,
        tuple(map(_release, plan.releases)),
    )


def _slabs(wanted: int | str, bins: int) -> str:
    if wanted == "bins":
        return f"each of the {bins} time bins by itself"
    if wanted == "auto":
        return "as many slabs of time as it finds to suit how people move"
    return f"{wanted} slabs of time"


def _release(planned: Planned) -> Release:
    event: Any = planned.event
    noise = float(event.noise_variance) ** 0.5
    if isinstance(event, LaplaceShares):
        return Release(event.what, planned.times, noise / event.weight, "people")
    unit = "records" if isinstance(event, LaplaceCounts) else "contributions"
    return Release(event.what, planned.times, noise, unit)


def _noise(release: Release) -> str:
    if release.unit != "contributions":
        return f"{release.noise:.2g} {release.unit} in each number"
    each = "" if release.times == 1 else ", all times together"
    return f"{release.noise:.2g} times what one record adds at most{each}"
