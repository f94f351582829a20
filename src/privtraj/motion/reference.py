"""Reference processes: how people would move if nothing but their law at each time were known.

By name in files, in configurations and on the command line.
"""

from __future__ import annotations

from typing import Any

from privtraj.base.errors import Arg, InputError
from privtraj.motion.diffusions import Brownian, Drift, Learned, OrnsteinUhlenbeck
from privtraj.motion.inertia import Inertia
from privtraj.motion.process import Reference, Scale

__all__ = ["Brownian", "Drift", "Inertia", "Learned", "OrnsteinUhlenbeck", "Reference", "Scale"]

AUTO = "auto"
KINDS: dict[str, type[Reference]] = {
    process.kind: process for process in (Brownian, Inertia, OrnsteinUhlenbeck, Drift, Learned)
}
_NAMES = ", ".join(KINDS)


def from_dict(values: Any) -> Reference:
    """The process that `Reference.to_dict` wrote; an `InputError` for anything else."""
    try:
        rest = dict(values)
        kind = KINDS[rest.pop("kind")]
        if rest.get("drift") is not None:
            rest["drift"] = from_dict(rest["drift"])
        return kind.from_dict(rest)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise InputError(f"the reference process cannot be read: give one of {_NAMES}") from None


def declared(reference: Any) -> Reference | None:
    """A process, given itself or by words; None for "auto"."""
    process = from_words(reference) if isinstance(reference, str) else reference
    if not (process is None or isinstance(process, Reference)):
        raise InputError(
            Arg("reference"), " must be a process of privtraj.motion.reference, its name, or 'auto'"
        )
    return process


def by_itself() -> Reference:
    """Smooth paths of least action, along a drift that the released people show."""
    return Inertia(drift=Learned())


def from_words(text: str) -> Reference | None:
    """The process of words such as "learned" or "inertia memory=2 share=0.5"; None for "auto"."""
    name, *settings = text.split() or [""]
    if text.strip() == AUTO:
        return None
    if name not in KINDS:
        raise InputError(Arg("reference"), f" has no process '{name}': use {AUTO}, {_NAMES}")
    try:
        values = dict(setting.split("=") for setting in settings)
        return KINDS[name](**{key: _value(value) for key, value in values.items()})
    except (TypeError, ValueError):
        raise InputError(
            Arg("reference"),
            f" cannot be read: write the settings of {name} as in 'inertia memory=2 share=0.5', "
            "several numbers with commas",
        ) from None


def _value(text: str) -> Any:
    numbers = [float(part) if "." in part or "e" in part else int(part) for part in text.split(",")]
    return numbers if "," in text else numbers[0]
