"""The certificate: what leaves the house with a release, and what anyone can check of it.

It holds every number its epsilon follows from, so a reader can compute it again (`recomputed`), and
a hash of the released model, so that file and certificate cannot be mixed up. It may come from
anybody: its form is checked when it is read (`statements`), its arithmetic bounded beforehand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base import __version__, formats
from privtraj.base.errors import InputError, is_number
from privtraj.base.files import MOST_BYTES, strict_json
from privtraj.privacy import statements
from privtraj.privacy.accounting import Tally
from privtraj.privacy.events import Adjacency, Event
from privtraj.privacy.guarantee import (
    PARALLEL,
    Cost,
    Guarantee,
    Parallel,
    Sequential,
    cost,
    from_entries,
    leaves,
    releases,
    to_entries,
)
from privtraj.privacy.ledger import Ledger, up
from privtraj.privacy.statements import CHECKED, FALSE_POSITIVE_RATES, PUBLIC_COUNTS, STATED

SECURE_NOISE = "exact integer noise from the operating system"
SEEDED_NOISE = "seeded: NOT PRIVATE, for research only"
PROTECTS: dict[Adjacency, str] = {
    "add-remove": "whether one person is in the data at all",
    "replace-one": "what one person's records say",
}

CAUTION = "delta against the number of people"
"""Among what a fit found: a warning that takes the released number of people to tell."""

_AGREEMENT = 1e-6  # relative, between a stated number and the same computed elsewhere


@dataclass(frozen=True)
class Certificate:
    """The privacy guarantee of a release, and how it was obtained.

    epsilon: spent, exact at delta. target_epsilon: the budget. mu: GDP parameter, None where more
    than full Gaussian sums were released. epsilon_other_adjacency: the same events at the same
    delta under the other neighbouring relation (inf if delta cannot be reached there, or if nothing
    is protected there, as with public numbers of people).
    epsilon_clt: what the central limit theorem would say of sampled steps, None without them; not a
    guarantee. attacker: the most that any attack on one person can achieve. ledger: what was paid
    for, each entry enough to compute its cost again. slack: total variation of the noise, already
    inside epsilon. public_inputs: what the guarantee takes as known to everybody, JSON values only.
    found: what the fit chose by looking at its own releases, in words.
    model_sha256: of the model it belongs to, None before there is one.
    signature: {"key": fingerprint, "ed25519": signature of all the rest}, None if nobody signed.
    """

    epsilon: float
    delta: float
    target_epsilon: float
    adjacency: Adjacency
    mu: float | None
    epsilon_other_adjacency: float
    epsilon_clt: float | None
    attacker: dict[str, Any]
    ledger: tuple[dict[str, Any], ...]
    noise: str
    private: bool
    slack: float
    version: str
    public_inputs: dict[str, Any] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    model_sha256: str | None = None
    signature: dict[str, str] | None = None

    @property
    def mechanism(self) -> str:
        """The kinds of noise that were added, in words."""
        kinds = dict.fromkeys(entry["mechanism"] for entry in leaves(self.ledger))
        return " and ".join(kinds) or "none"

    @property
    def signed_by(self) -> str | None:
        """Fingerprint of the key that is said to have signed it: `signatures` checks that."""
        return None if self.signature is None else self.signature["key"]

    @property
    def protected(self) -> str:
        """What the guarantee is about, in words."""
        return PROTECTS[self.adjacency] + ", within their time bins" * self.counts_are_public

    @property
    def not_protected(self) -> str | None:
        """What public numbers of people leave open, in words."""
        if not self.counts_are_public:
            return None
        return (
            "whether one person is in the data, and in which time bins, because the numbers of "
            "people per time are public"
        )

    @property
    def counts_are_public(self) -> bool:
        """Whether numbers of people are among the public inputs."""
        return PUBLIC_COUNTS in self.public_inputs

    @property
    def chance_right(self) -> float:
        """The most that anybody is right in about one person who hold both for equally likely:
        (1 + advantage) / 2, and 1 where nothing protects."""
        if not self.private:
            return 1.0
        return (1 + min(float(self.attacker["advantage"]), 1.0)) / 2

    @property
    def in_words(self) -> str:
        """What the guarantee means for one person: the words follow epsilon and delta."""
        if not self.private:
            return f"nobody is protected: {self.caveat}"
        secret = "whether any one person is in the data"
        if self.adjacency == "replace-one":
            beyond = ", beyond their time bins," * self.counts_are_public
            secret = f"what any one person's records say{beyond}"
        return f"{secret} {statements.shows(self.chance_right)} in what was released"

    @property
    def warnings(self) -> list[str]:
        """What is wrong with a guarantee like this one, in sentences; of none, nothing."""
        if not self.private:
            return []
        people = _public_people(self.public_inputs.get(PUBLIC_COUNTS))
        if people is None and CAUTION in self.found:  # which knows how many were counted
            return [*statements.warnings(self.epsilon, 0.0), self.found[CAUTION]]
        return statements.warnings(self.epsilon, self.delta, people)

    @property
    def guarantee(self) -> Sequential:
        """What was released: one after the other, or beside each other on different people."""
        return replace(from_entries(self.ledger), slack=self.slack)

    @property
    def cost(self) -> Cost:
        """What it costs, from the ledger's entries, adjacency and slack alone.

        An `InputError` if composing it, under either relation, would take longer than any fit's.
        """
        total = cost(self.guarantee, self.adjacency)
        if not (total.is_modest and cost(self.guarantee, _other(self.adjacency)).is_modest):
            raise InputError(
                "the certificate cannot be checked: its ledger holds more than a fit releases"
            )
        return total

    def spending(self) -> tuple[float, ...]:
        """epsilon that each entry of the ledger added to those before it; together they are all."""
        parts, _ = self.guarantee.parts, self.cost
        some = [Sequential(parts[:k], self.slack) for k in range(len(parts) + 1)]
        reached = [cost(one, self.adjacency).epsilon(self.delta) for one in some]
        return tuple(np.diff(reached).tolist())

    def recomputed(self) -> float:
        """epsilon, computed again."""
        return self.cost.epsilon(self.delta)

    def epsilon_at(self, delta: float) -> float:
        """epsilon of the same release at another delta."""
        return self.cost.epsilon(delta)

    def delta_at(self, epsilon: float) -> float:
        """delta of the same release at another epsilon."""
        return self.cost.delta(epsilon)

    def trade_off(self, false_positive_rates: ArrayLike) -> NDArray[np.float64]:
        """The least false negative rates of any attack on one person."""
        rates = np.asarray(false_positive_rates, dtype=np.float64)
        return 1 - self.cost.true_positive_rates(rates)

    def verify(self) -> float:
        """The epsilon computed again; an `InputError` if anything stated does not follow."""
        membership = self.adjacency == "add-remove" or math.isfinite(self.epsilon_other_adjacency)
        if self.counts_are_public and membership:
            raise InputError(
                "the certificate promises what its public inputs give away: with public numbers of "
                "people nothing hides whether a person is in the data, so do not rely on it"
            )
        computed = None
        if statements.is_ledger(self.ledger):
            total = self.cost
            with suppress(ArithmeticError, ValueError), np.errstate(all="ignore"):
                computed = _computed(self.guarantee, total, self.delta, self.counts_are_public)
        if computed is None:  # its numbers are absurd
            raise InputError("the certificate was changed: its ledger cannot be read")
        again = to_entries(self.guarantee, self.adjacency)
        for name, value in {**computed, "ledger": again}.items():
            if not _agree(value, getattr(self, name)):
                raise InputError(
                    f"the certificate was changed: its {name.replace('_', ' ')} does not follow "
                    "from its ledger"
                )
        if self.epsilon > self.target_epsilon * (1 + _AGREEMENT):
            raise InputError("the certificate was changed: it spends more than its budget")
        if self.private and self.noise == SEEDED_NOISE:
            raise InputError("the certificate was changed: its noise is not private, it says it is")
        wrong = statements.contradiction(self.public_inputs, releases(self.guarantee))
        if wrong is not None:
            raise InputError(
                f"the certificate was changed: its public input '{wrong}' contradicts its ledger"
            )
        return float(computed["epsilon"])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite epsilon is written as None."""
        values = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        if math.isinf(self.epsilon_other_adjacency):
            values["epsilon_other_adjacency"] = None
        if self.signature is None:  # as before there were any, so that hashes stay the same
            del values["signature"]
        return {**values, "mechanism": self.mechanism}

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Certificate:
        """The inverse of `to_dict`; refuses what no certificate can say."""
        if not isinstance(values, Mapping):
            raise InputError("the certificate is damaged: it is not made of fields")
        names = {f.name for f in fields(cls)}
        values = {"found": {}, "signature": None, **values}  # which older versions did not state
        if missing := names - values.keys():
            raise InputError(f"the certificate lacks {', '.join(sorted(missing))}")
        if values.keys() - names - {"mechanism"}:
            raise InputError("the certificate was changed: it has fields that no certificate has")
        if name := statements.unreadable(values):
            raise InputError(f"the certificate is damaged: its {name} cannot be read")
        known = {name: values[name] for name in names}
        known["ledger"] = tuple(known["ledger"])
        if known["epsilon_other_adjacency"] is None:
            known["epsilon_other_adjacency"] = math.inf
        certificate = cls(**known)
        if values.get("mechanism") != certificate.mechanism:
            raise InputError("the certificate is damaged: its mechanism is not that of its ledger")
        return certificate

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """The certificate in a .json file, as `to_json` writes it."""
        if not Path(path).is_file():
            raise InputError(f"there is no file '{path}': check the path")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        try:
            return cls.from_dict(strict_json(data))
        except ValueError:
            raise InputError(
                f"'{path}' is not a certificate: give the .json file that fit has written"
            ) from None

    def __str__(self) -> str:
        rates = self.attacker["true_positive_rate"]
        alarms = ", ".join(f"{float(rate) * 100:g}%" for rate in rates)
        tenths = [math.ceil(rate * 1000 - 1e-9) for rate in rates.values()]  # of a percent
        members = ", ".join(f"{tenth / 10:g}%" for tenth in tenths)
        promise, attack = "Guarantee:", "An attack"
        if not self.private:
            promise, attack = "With private noise it would be", "With private noise, an attack"
        right = f"{math.ceil(1000 * self.chance_right - 1e-9) / 10:g}% of cases at most"
        records = statements.records_in_words(self.public_inputs)
        public = [name for name in self.public_inputs if name not in (STATED, CHECKED)]
        finds = "finds a member"
        if self.adjacency == "replace-one":
            within = ", both in the same time bins," * self.counts_are_public
            finds = f"knows which of two sets of records is a person's{within}"
        other = _other(self.adjacency)
        rest = f"NOT protected: {self.not_protected}"
        if self.not_protected is None:
            rest = f"About {PROTECTS[other]} ({other}) the same release has epsilon = "
            rest += up(self.epsilon_other_adjacency)
        lines = [f"Privacy certificate (privtraj {self.version})"]
        lines.append(
            f"  {promise} differential privacy with epsilon = {up(self.epsilon)}, "
            f"delta = {self.delta:g} (budget: epsilon = {self.target_epsilon:g})."
        )
        if self.mu:
            lines.append(f"  Equivalently: {up(self.mu)}-Gaussian differential privacy.")
        if self.epsilon_clt is not None:
            lines.append(
                f"  (The central limit theorem would say epsilon = {self.epsilon_clt:.4g}; "
                "that is an approximation, not a guarantee.)"
            )
        lines += [
            *(f"  WARNING: {said}." for said in self.warnings),
            f"  Meaning: {self.in_words}; who holds both for equally likely is right in {right}.",
            f"  It is about: {self.protected} ({self.adjacency}).",
            f"  {rest}.",
            f"  {attack} with {alarms} false alarms {finds} with probability at most "
            f"{members} (advantage at most {up(self.attacker['advantage'])}).",
            *([f"  A person has {records}."] if records else []),
            "  Paid for:",
            *(_entry_lines(self.ledger) or ["    nothing was released"]),
            f"  Noise: {self.noise}.",
            f"  Taken as public: {', '.join(public) or 'nothing'}.",
            *(
                f"  Stated by the steward, and not checked: {said}."
                for said in self.public_inputs.get(STATED, [])
            ),
            *(
                f"  Found from these releases: {name}: {said}."
                for name, said in self.found.items()
                if name != CAUTION
            ),
            f"  Model: sha256 {self.model_sha256 or 'none yet'}.",
            *([f"  Signed by: key sha256 {self.signed_by}."] if self.signature else []),
        ]
        if not self.private:
            lines.insert(0, f"NOT PRIVATE: {self.caveat}. Do not release the result.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return formats.card(self)

    @property
    def caveat(self) -> str:
        """Why a result that is not private is not."""
        seeded = self.noise == SEEDED_NOISE
        return "the noise came from a seed" if seeded else "the records were used as they are"


def certify(
    ledger: Ledger,
    *,
    public_inputs: Mapping[str, Any],
    private_noise: bool,
    found: Mapping[str, str] | None = None,
) -> Certificate:
    """The certificate of everything a ledger records."""
    return _certified(
        ledger.guarantee,
        ledger.cost,
        public_inputs,
        delta=ledger.delta,
        target_epsilon=ledger.epsilon,
        noise=SECURE_NOISE if private_noise else SEEDED_NOISE,
        private=private_noise,
        found=dict(found or {}),
    )


def certify_disjoint(
    certificates: Sequence[Certificate], *, public_inputs: Mapping[str, Any]
) -> Certificate:
    """The certificate of releases about different people, each of which has a certificate.

    That nobody is in two of them is the steward's word; the guarantee rests on it (`guarantee`).
    """
    if not certificates or len({one.adjacency for one in certificates}) > 1:
        raise InputError("certificates of different people need the same adjacency to be joined")
    joined = Sequential((Parallel(tuple(one.guarantee for one in certificates)),))
    total, delta = cost(joined, certificates[0].adjacency), max(one.delta for one in certificates)
    worst = next((one for one in certificates if not one.private), certificates[0])
    return _certified(
        joined,
        total,
        public_inputs,
        delta=delta,
        target_epsilon=max(total.epsilon(delta), *(one.target_epsilon for one in certificates)),
        noise=worst.noise,
        private=worst.private,
    )


def _certified(
    guarantee: Guarantee, total: Cost, public_inputs: Mapping[str, Any], **stated: Any
) -> Certificate:
    total = total.with_slack(total.slack)  # which is stated as one number
    return Certificate(
        **_computed(guarantee, total, stated["delta"], PUBLIC_COUNTS in public_inputs),
        adjacency=total.adjacency,
        ledger=to_entries(guarantee, total.adjacency),
        slack=total.slack,
        version=__version__,
        public_inputs=_plain(public_inputs),
        **stated,
    )


def _computed(
    guarantee: Guarantee, total: Cost, delta: float, counts_are_public: bool
) -> dict[str, Any]:
    """The fields of a certificate that follow from what was released, and what is public."""
    other = cost(guarantee, _other(total.adjacency)).with_slack(total.slack)
    return {
        "epsilon": total.epsilon(delta),
        "mu": total.gdp_mu,
        "epsilon_other_adjacency": math.inf if counts_are_public else other.epsilon(delta),
        "epsilon_clt": total.clt_epsilon(delta),
        "attacker": attacker(total),
    }


def attacker(total: Tally | Cost) -> dict[str, Any]:
    """The best attack on one person: rates of true positives by rate of false ones; advantage."""
    highest = total.true_positive_rates(np.array(FALSE_POSITIVE_RATES))
    rates = {f"{a:g}": float(t) for a, t in zip(FALSE_POSITIVE_RATES, highest, strict=True)}
    return {"true_positive_rate": rates, "advantage": total.advantage}


def _entry_lines(ledger: Iterable[Mapping[str, Any]], margin: str = "    ") -> list[str]:
    """What was paid for, a line each; what is about other people is set in."""
    lines = []
    for entry in ledger:
        if entry["mechanism"] == PARALLEL:
            lines.append(f"{margin}{entry['what']}, of which the dearest counts:")
            for number, branch in enumerate(entry["branches"], start=1):
                lines += [f"{margin}  group {number}", *_entry_lines(branch, margin + "    ")]
            continue
        numbers = Event.from_dict(entry).numbers
        told = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        how = f"{entry['mechanism']} noise, {told}"
        lines.append(f"{margin}{entry['times']} x {entry['what']} ({how})")
    return lines


def _agree(computed: Any, stated: Any) -> bool:
    if isinstance(computed, dict):
        return computed.keys() == dict(stated).keys() and all(
            _agree(computed[key], stated[key]) for key in computed
        )
    if isinstance(computed, tuple | list):
        return len(computed) == len(stated) and all(map(_agree, computed, stated))
    if computed is None or stated is None or isinstance(computed, str | bool):
        return bool(computed == stated)
    return math.isclose(computed, stated, rel_tol=_AGREEMENT, abs_tol=1e-12)


def _other(adjacency: Adjacency) -> Adjacency:
    return "replace-one" if adjacency == "add-remove" else "add-remove"


def _public_people(counts: Any) -> float | None:
    """All people, if their numbers are public; from anybody's certificate, so of any kind."""
    numbers = counts if isinstance(counts, list) else []
    return sum(map(float, numbers)) if numbers and all(map(is_number, numbers)) else None


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
