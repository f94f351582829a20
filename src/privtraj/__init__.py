"""privtraj: private synthetic trajectories from one time-stamped record per person."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privtraj import baselines, datasets, metrics, paper, plot
    from privtraj.errors import BudgetError, InputError, PrivtrajError
    from privtraj.model import TrajectoryModel, load
    from privtraj.paths import Paths
    from privtraj.planning import Forecast, plan
    from privtraj.privacy.certificate import Certificate
    from privtraj.privacy.ledger_file import LedgerFile
    from privtraj.snapshots import Snapshots
    from privtraj.synthesizer import LowBudgetWarning, TrajectorySynthesizer

__version__ = "0.1.0"

# Imported on first use, so that `import privtraj` and `privtraj --help` answer at once.
_HOMES = {
    "BudgetError": "privtraj.errors",
    "Certificate": "privtraj.privacy.certificate",
    "Forecast": "privtraj.planning",
    "InputError": "privtraj.errors",
    "LedgerFile": "privtraj.privacy.ledger_file",
    "LowBudgetWarning": "privtraj.synthesizer",
    "Paths": "privtraj.paths",
    "PrivtrajError": "privtraj.errors",
    "Snapshots": "privtraj.snapshots",
    "TrajectoryModel": "privtraj.model",
    "TrajectorySynthesizer": "privtraj.synthesizer",
    "load": "privtraj.model",
    "plan": "privtraj.planning",
}
_MODULES = ("baselines", "datasets", "metrics", "paper", "plot")

__all__ = [
    "BudgetError",
    "Certificate",
    "Forecast",
    "InputError",
    "LedgerFile",
    "LowBudgetWarning",
    "Paths",
    "PrivtrajError",
    "Snapshots",
    "TrajectoryModel",
    "TrajectorySynthesizer",
    "baselines",
    "datasets",
    "load",
    "metrics",
    "paper",
    "plan",
    "plot",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"privtraj.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'privtraj' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
