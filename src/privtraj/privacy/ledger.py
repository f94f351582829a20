"""The budget, what was spent of it, and the certificate that says so.

A `Ledger` is the one place where privacy is spent: an event that does not fit raises `BudgetError`
and leaves no trace. A `Certificate` is the record that leaves the house with a release.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from itertools import groupby
from typing import Any

from privtraj.errors import BudgetError, InputError
from privtraj.privacy.accounting import (
    Adjacency,
    Event,
    GaussianSum,
    Tally,
    calibrate_gaussian,
    calibrate_laplace,
    check_adjacency,
    check_budget,
    epsilon_at,
)

SECURE_NOISE = "exact integer noise from the operating system"
SEEDED_NOISE = "seeded: NOT PRIVATE, for research only"
PROTECTS: dict[Adjacency, str] = {
    "add-remove": "whether one person is in the data at all",
    "replace-one": "what one person's record says",
}

_WORTH_NAMING = 1e-3  # less privacy loss than this buys nothing: call it spent


class Ledger:
    """An (epsilon, delta) budget under one adjacency, and the events that were paid from it.

    The running `Tally` makes `spend` cost the same at the first step and at the two-thousandth.

    What may be chosen on the way: the noise multipliers of Gaussian sums may depend on earlier
    releases, because the sum of mu^2 that fits beside given counts is one fixed number, and
    stopping at it is sound however the steps share it. Which counts are released, and their
    epsilons, belong to the plan: fix them in advance, or release them before any multiplier is
    chosen on the way.
    """

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency = "add-remove") -> None:
        check_budget(epsilon, delta)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self.adjacency = check_adjacency(adjacency)
        self._events: list[Event] = []
        self._tally = Tally(self.adjacency)

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, in order."""
        return tuple(self._events)

    @property
    def mu(self) -> float | None:
        """The GDP parameter if only Gaussian sums were released, else None."""
        return None if self._tally.shifts else self._tally.mu

    @property
    def slack(self) -> float:
        """Total variation between the noise drawn and the noise stated, over all events."""
        return self._tally.slack

    def covers(self, event: Event) -> bool:
        """Whether the event would fit beside what was spent."""
        return self._tally.add(event).delta(self.epsilon) <= self.delta

    def spend(self, event: Event) -> None:
        """Record the event, or raise `BudgetError` and record nothing."""
        after = self._tally.add(event)
        if after.delta(self.epsilon) > self.delta:
            raise BudgetError(f"the budget does not cover {_describe(event)}: {self.remaining()}")
        self._tally = after
        self._events.append(event)

    def spent(self) -> float:
        """The smallest epsilon, at the budget's delta, of everything recorded so far."""
        return self._tally.epsilon(self.delta)

    def remaining(self) -> str:
        """What is left, in words: the budget used, and the largest single release that fits."""
        used = f"epsilon {_up(self.spent())} of {self.epsilon:g} is spent at delta {self.delta:g}"
        budget = (self.epsilon, self.delta, self.adjacency, self._events)
        inverse, laplace = calibrate_gaussian(*budget), calibrate_laplace(*budget)
        options = []
        if inverse > _WORTH_NAMING:
            options.append(f"a Gaussian sum of noise multiplier {_up(1 / inverse)} or more")
        if laplace > _WORTH_NAMING:
            options.append(f"Laplace counts of epsilon {_down(laplace)} or less")
        return f"{used}, which leaves room for {' or '.join(options) or 'nothing more'}"

    def entries(self) -> tuple[dict[str, Any], ...]:
        """The events for people to read: runs of identical ones merged and counted."""
        return tuple(
            _entry(event, len(list(run)), self.adjacency) for event, run in groupby(self._events)
        )

    def __repr__(self) -> str:
        return (
            f"Ledger(epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"adjacency={self.adjacency!r}, events={len(self._events)})"
        )


@dataclass(frozen=True)
class Certificate:
    """The privacy guarantee of a release, and how it was obtained.

    epsilon: spent, exact at delta. target_epsilon: the budget. mu: GDP parameter, None where counts
    were released too. epsilon_other_adjacency: the same events at the same delta under the other
    neighbouring relation (inf if delta cannot be reached there). ledger: entries of `Ledger`.
    slack: total variation of the noise, already inside epsilon. public_inputs: what the guarantee
    takes as known to everybody, JSON values only.
    """

    epsilon: float
    delta: float
    target_epsilon: float
    adjacency: Adjacency
    mu: float | None
    epsilon_other_adjacency: float
    ledger: tuple[dict[str, Any], ...]
    noise: str
    private: bool
    slack: float
    version: str
    public_inputs: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite epsilon is written as None."""
        values = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        if math.isinf(self.epsilon_other_adjacency):
            values["epsilon_other_adjacency"] = None
        return values

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Certificate:
        """The inverse of `to_dict`."""
        names = {f.name for f in fields(cls)}
        if missing := names - set(values):
            raise InputError(f"the certificate lacks {', '.join(sorted(missing))}")
        known = {name: values[name] for name in names}
        check_adjacency(known["adjacency"])
        known["ledger"] = tuple(known["ledger"])
        if known["epsilon_other_adjacency"] is None:
            known["epsilon_other_adjacency"] = math.inf
        return cls(**known)

    def __str__(self) -> str:
        other = _other(self.adjacency)
        lines = [
            f"Privacy certificate (privtraj {self.version})",
            f"  Guarantee: differential privacy with epsilon = {_up(self.epsilon)}, "
            f"delta = {self.delta:g} (budget: epsilon = {self.target_epsilon:g}).",
            *(
                [f"  Equivalently: {_up(self.mu)}-Gaussian differential privacy."]
                if self.mu
                else []
            ),
            f"  Protected: {PROTECTS[self.adjacency]} ({self.adjacency}).",
            f"  The same release protects {PROTECTS[other]} ({other}) "
            f"with epsilon = {_up(self.epsilon_other_adjacency)}.",
            "  Paid for:",
            *(f"    {_entry_text(entry)}" for entry in self.ledger or ({},)),
            f"  Noise: {self.noise}.",
            f"  Taken as public: {', '.join(self.public_inputs) or 'nothing'}.",
        ]
        if not self.private:
            lines.insert(0, "NOT PRIVATE: the noise came from a seed. Do not release the result.")
        return "\n".join(lines)


def certify(
    ledger: Ledger, *, public_inputs: Mapping[str, Any], private_noise: bool
) -> Certificate:
    """The certificate of everything a ledger records."""
    return Certificate(
        epsilon=ledger.spent(),
        delta=ledger.delta,
        target_epsilon=ledger.epsilon,
        adjacency=ledger.adjacency,
        mu=ledger.mu,
        epsilon_other_adjacency=epsilon_at(ledger.events, ledger.delta, _other(ledger.adjacency)),
        ledger=ledger.entries(),
        noise=SECURE_NOISE if private_noise else SEEDED_NOISE,
        private=private_noise,
        slack=ledger.slack,
        version=_version(),
        public_inputs=_plain(public_inputs),
    )


def _entry(event: Event, times: int, adjacency: Adjacency) -> dict[str, Any]:
    """mu, or epsilon, of one line of the ledger is the total over its `times` releases."""
    moved = event.sensitivity(adjacency)
    if isinstance(event, GaussianSum):
        mu = moved * math.sqrt(times) / event.noise_multiplier
        cost = {"noise_multiplier": event.noise_multiplier, "mu": mu}
        return {"what": event.what, "mechanism": "Gaussian", "times": times, **cost}
    cost = {"noise_epsilon": event.epsilon, "epsilon": moved * times * event.epsilon}
    return {"what": event.what, "mechanism": "discrete Laplace", "times": times, **cost}


def _entry_text(entry: Mapping[str, Any]) -> str:
    if not entry:
        return "nothing was released"
    parameter = "noise_multiplier" if entry["mechanism"] == "Gaussian" else "noise_epsilon"
    name = "noise multiplier" if entry["mechanism"] == "Gaussian" else "epsilon"
    return (
        f"{entry['times']} x {entry['what']} "
        f"({entry['mechanism']} noise, {name} {entry[parameter]:.4g})"
    )


def _describe(event: Event) -> str:
    if isinstance(event, GaussianSum):
        return f"{event.what!r} (a Gaussian sum of noise multiplier {event.noise_multiplier:.4g})"
    return f"{event.what!r} (Laplace counts of epsilon {event.epsilon:.4g})"


def _other(adjacency: Adjacency) -> Adjacency:
    return "replace-one" if adjacency == "add-remove" else "add-remove"


def _up(value: float) -> str:
    """Four digits, rounded up: what is printed never promises more than was proven."""
    return _rounded(value, ROUND_CEILING)


def _down(value: float) -> str:
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, towards: str) -> str:
    shortest = repr(float(value))  # the decimal a person typed, where one did
    return f"{float(Context(prec=4, rounding=towards).create_decimal(shortest)):.4g}"


def _plain(value: Any) -> Any:
    """The value in JSON's own types; numpy arrays and numbers become lists and numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def _version() -> str:
    try:
        return installed_version("privtraj")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"
