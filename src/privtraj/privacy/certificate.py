"""The certificate: what leaves the house with a release, and what anyone can check of it.

It holds every number its epsilon follows from, so a reader can compute it again (`cost`), and
a hash of the released model, so that file and certificate cannot be mixed up. It may come from
anybody: when it is read, every field is of its kind and of a plausible size, every text is one
line, and its arithmetic is bounded before any of it is done.

What a guarantee means for one person is said in numbers and in words, the same wherever it is told.
Somebody does not know whether a person is in the data, or which of two sets of records is theirs,
holds both for equally likely, sees the release and decides. From (epsilon, delta) alone they are
right with a chance of at most

    right = (e^epsilon + delta) / (e^epsilon + 1),

as neither kind of hit is likelier than e^epsilon times the false alarms that go with it, plus
delta. Whoever has the ledger knows more: its whole trade-off curve, whose largest advantage A gives
right = (1 + A) / 2, which is never more than that. Words follow this one number (`shows`), so they
follow epsilon and delta. What it does not tell are rare disasters, as it is a mean: for these there
are two limits, on epsilon and on delta times the number of people (`weaknesses`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base import __version__, formats
from privtraj.base.errors import Arg, InputError, is_number, is_whole, short
from privtraj.base.files import MOST_BYTES, strict_json
from privtraj.privacy.accounting import (
    PARALLEL,
    Cost,
    Guarantee,
    Parallel,
    Sequential,
    cost,
    from_entries,
    is_modest,
    releases,
    to_entries,
)
from privtraj.privacy.events import Adjacency, ChosenTimes, Event, GaussianSum, Opaque
from privtraj.privacy.ledger import Ledger, up

SECURE_NOISE = "exact integer noise from the operating system"
SEEDED_NOISE = "seeded: NOT PRIVATE, for research only"
PROTECTS: dict[Adjacency, str] = {
    "add-remove": "whether one person is in the data at all",
    "replace-one": "what one person's records say",
}

# Public inputs by name, and what a fit has found
STATED = "stated by the steward"  # what nothing checks, in sentences
CHECKED = "checked on the records"  # what was, in sentences
EVERY_ROW = "every row is a different person's"
BY_PERSON = "how many records a person has, by the column that says whose they are"
COMPARED = {
    "exact": "identifiers exactly as written, so that blanks and capitals tell people apart",
    "trimmed": "identifiers without the blanks around them; capitals tell people apart",
    "folded": "identifiers without the blanks around them, capitals as small letters",
}
"""What was compared to know whose a record is, by the word that the steward declares."""
MOST_RECORDS = "most records of one person"
SHARED_BINS = "records of one person may share a bin"
PUBLIC_COUNTS = "people per time (declared public)"
"""Numbers of people that are facts outside the guarantee. With them it is about neighbours that
have the same numbers, so never about one person more or less, and not about in which time bins a
person is (`head_count`)."""
SAMPLING_RATE = "sampling rate"
DRAWN_TIMES = "times drawn at random"
DOMAIN = "domain"
CAUTION = "delta against the number of people"
"""Found by a fit: a warning that takes the released number of people to tell."""

DECLARED = ("title", "controller", "purpose", "date", "contact")
"""What a steward may say about a release: signed with the rest, and checked by nobody."""
MOST_LETTERS = 300  # of each

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
MOST_ENTRIES = 1000  # of a ledger: more than any fit has kinds of releases
MOST_TIMES = 10**9
DEEPEST = 8  # branches in branches
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
    declared: what the steward says about the release, by the words of `DECLARED`.
    source_sha256: of the code of this room that drew the noise and computed the cost (`source`),
    None before version 0.3. model_sha256: of the model it belongs to, None before there is one.
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
    declared: dict[str, str] = field(default_factory=dict)
    source_sha256: str | None = None
    model_sha256: str | None = None
    signature: dict[str, str] | None = None

    @property
    def mechanism(self) -> str:
        """The kinds of noise that were added, in words."""
        kinds: dict[str, None] = {}
        for entry in _leaves(self.ledger):
            kinds[entry["mechanism"]] = None
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
        return f"{secret} {shows(self.chance_right)} in what was released"

    @property
    def warnings(self) -> list[str]:
        """What is wrong with a guarantee like this one, in sentences; of none, nothing."""
        if not self.private:
            return []
        counts = self.public_inputs.get(PUBLIC_COUNTS)  # anybody's, so of any kind
        numbers = counts if isinstance(counts, list) and all(map(is_number, counts)) else []
        people = sum(map(float, numbers)) if numbers else None
        if people is None and CAUTION in self.found:  # which knows how many were counted
            return [*weaknesses(self.epsilon, 0.0), self.found[CAUTION]]
        return weaknesses(self.epsilon, self.delta, people)

    @property
    def guarantee(self) -> Sequential:
        """What was released: one after the other, or beside each other on different people."""
        return from_entries(self.ledger, self.slack)

    @property
    def cost(self) -> Cost:
        """What it costs, from the ledger's entries, adjacency and slack alone: `epsilon(delta)` of
        it is the stated one, `delta(epsilon)` its inverse.

        An `InputError` if composing it, under either relation, would take longer than any fit's.
        """
        total, other = cost(self.guarantee, self.adjacency), _other(self.adjacency)
        if not (is_modest(total) and is_modest(cost(self.guarantee, other))):
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
        if _is_ledger(self.ledger) and self.cost:
            stated = self.adjacency, self.slack, self.delta, self.counts_are_public
            with suppress(ArithmeticError, ValueError), np.errstate(all="ignore"):
                computed = _computed(self.guarantee, *stated)
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
        wrong = _contradiction(self.public_inputs, releases(self.guarantee))
        if wrong is not None:
            raise InputError(
                f"the certificate was changed: its public input '{wrong}' contradicts its ledger"
            )
        return float(computed["epsilon"])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite epsilon is written as None."""
        values: dict[str, Any] = _plain(vars(self))
        if math.isinf(self.epsilon_other_adjacency):
            values["epsilon_other_adjacency"] = None
        for name in _SINCE:  # left out as before there were any, so that hashes stay the same
            if not values[name]:
                del values[name]
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
        values = {"found": {}, **_SINCE, **values}  # which older versions did not state
        if missing := names - values.keys():
            raise InputError(f"the certificate lacks {', '.join(sorted(missing))}")
        if values.keys() - names - {"mechanism"}:
            raise InputError("the certificate was changed: it has fields that no certificate has")
        for name, is_right in _FORM.items():
            if not is_right(values[name]):
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
        records = records_in_words(self.public_inputs)
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
        lines += [f"  {name.capitalize()} (declared): {x}" for name, x in self.declared.items()]
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
            *([f"  Made by privacy/ of sha256 {self.source_sha256}."] * bool(self.source_sha256)),
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


def check_declared(declared: Mapping[str, str]) -> dict[str, str]:
    """What a steward declares, in order; refuses what could hide what stands beside it."""
    for name, said in declared.items():
        if name not in DECLARED:
            raise InputError(f"'{name}' is nothing to declare: use {', '.join(DECLARED)}")
        if not _is_said(said):
            line = f" must be one line of 1 to {MOST_LETTERS} letters, without control characters"
            raise InputError(Arg(name), line)
    if "date" in declared:
        try:
            dt.date.fromisoformat(declared["date"])
        except ValueError:
            raise InputError(Arg("date"), " must be a date such as 2026-11-30") from None
    return {name: declared[name] for name in DECLARED if name in declared}


@cache
def source() -> str | None:
    """SHA-256 of the source of this room, file by file: by it an attested version is known.

    Public: it says which code ran, and nothing about records. None where there is no source.
    """
    files = sorted(Path(__file__).parent.glob("*.py"))
    if not files:
        return None
    parts = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    return hashlib.sha256("".join(parts).encode()).hexdigest()


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
        ledger.adjacency,
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
    adjacency, delta = certificates[0].adjacency, max(one.delta for one in certificates)
    worst = next((one for one in certificates if not one.private), certificates[0])
    spent = cost(joined, adjacency).epsilon(delta)
    return _certified(
        joined,
        adjacency,
        public_inputs,
        delta=delta,
        target_epsilon=max(spent, *(one.target_epsilon for one in certificates)),
        noise=worst.noise,
        private=worst.private,
    )


def _certified(
    guarantee: Guarantee, adjacency: Adjacency, public_inputs: Mapping[str, Any], **stated: Any
) -> Certificate:
    slack = cost(guarantee, adjacency).slack  # which is stated as one number
    public = PUBLIC_COUNTS in public_inputs
    return Certificate(
        **_computed(guarantee, adjacency, slack, stated["delta"], public),
        adjacency=adjacency,
        ledger=to_entries(guarantee, adjacency),
        slack=slack,
        version=__version__,
        source_sha256=source(),
        public_inputs=_plain(public_inputs),
        **stated,
    )


def _computed(
    guarantee: Guarantee,
    adjacency: Adjacency,
    slack: float,
    delta: float,
    counts_are_public: bool,
) -> dict[str, Any]:
    """The fields of a certificate that follow from what was released, and what is public."""
    total = cost(guarantee, adjacency, slack)
    other = cost(guarantee, _other(adjacency), slack)
    return {
        "epsilon": total.epsilon(delta),
        "mu": total.gdp_mu,
        "epsilon_other_adjacency": math.inf if counts_are_public else other.epsilon(delta),
        "epsilon_clt": total.clt_epsilon(delta),
        "attacker": attacker(total),
    }


def attacker(total: Cost) -> dict[str, Any]:
    """The best attack on one person: rates of true positives by rate of false ones; advantage."""
    highest = total.true_positive_rates(np.array(FALSE_POSITIVE_RATES)).tolist()
    rates = dict(zip(map("{:g}".format, FALSE_POSITIVE_RATES), highest, strict=True))
    return {"true_positive_rate": rates, "advantage": total.delta(0.0)}


def _entry_lines(ledger: Iterable[Mapping[str, Any]], margin: str = "    ") -> list[str]:
    """What was paid for, a line each; what is about other people is set in."""
    lines = []
    for entry in ledger:
        if entry["mechanism"] == PARALLEL:
            lines.append(f"{margin}{entry['what']}, of which the dearest counts:")
            for number, branch in enumerate(entry["branches"], start=1):
                lines += [f"{margin}  group {number}", *_entry_lines(branch, margin + "    ")]
            continue
        words = Event.from_dict(entry).in_words
        lines.append(f"{margin}{entry['times']} x {entry['what']} ({words})")
    return lines


def _leaves(entries: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """All entries of events, in order."""
    for entry in entries:
        if entry["mechanism"] == PARALLEL:
            for branch in entry["branches"]:
                yield from _leaves(branch)
        else:
            yield entry


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


def _plain(value: Any) -> Any:
    """The value in JSON's own types; numpy arrays and numbers become lists and numbers."""
    return json.loads(json.dumps(value, default=_json_value))


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


# What a certificate may say -------------------------------------------------------------------


def _contradiction(public: Mapping[str, Any], events: Iterable[tuple[Event, int]]) -> str | None:
    """Which public input does not agree with what was paid for, if any.

    Noise is for the people there are: whose records are many, or may meet in a bin, moves a release
    by more. A person's records meet in slabs, which are measured unless bins are public.
    """
    if MOST_RECORDS not in public:  # of no table
        return None
    most = public[MOST_RECORDS]
    may_meet = public.get(SHARED_BINS) is True or "bin times" not in public
    for event, _ in events:
        if not isinstance(event, Opaque) and event.person.records != most:
            return MOST_RECORDS
        if may_meet and event.person.records > 1 and not event.person.together:
            return SHARED_BINS
        sampled = isinstance(event, GaussianSum) and event.rate != 1
        if sampled and public.get(SAMPLING_RATE, event.rate) != event.rate:
            return SAMPLING_RATE
        if isinstance(event, ChosenTimes) and DRAWN_TIMES not in public:
            return DRAWN_TIMES
    return None


def _is_amount(value: Any, below: float = 1e300) -> bool:
    return is_number(value) and 0 <= value < below


def _is_attacker(value: Any) -> bool:
    if not (isinstance(value, dict) and value.keys() == {"true_positive_rate", "advantage"}):
        return False
    rates = value["true_positive_rate"]
    known = {f"{rate:g}" for rate in FALSE_POSITIVE_RATES}
    numbers = [*rates.values(), value["advantage"]] if isinstance(rates, dict) else [None]
    return all(map(_is_amount, numbers)) and rates.keys() == known


def _is_ledger(value: Any) -> bool:
    """Whether these are entries of events, each with how often, or branches of such entries."""
    return _count_entries(value) <= MOST_ENTRIES


def _count_entries(value: Any, depth: int = 0) -> float:
    """How many entries these are, branches and all; inf if any of them is none."""
    if not isinstance(value, list | tuple) or depth > DEEPEST:
        return math.inf
    total: float = len(value)
    for entry in value:
        if isinstance(entry, dict) and entry.get("mechanism") == PARALLEL:
            branches = entry.get("branches")
            if not isinstance(branches, list):
                return math.inf
            total += sum(_count_entries(branch, depth + 1) for branch in branches)
        elif not _is_entry(entry):
            return math.inf
    return total


def _is_entry(value: Any) -> bool:
    if not (isinstance(value, dict) and _is_line(value.get("what"))):
        return False
    counts = [value[name] for name in ("times", "steps", "records") if name in value]
    if "times" not in value or not all(is_whole(n) and 1 <= n <= MOST_TIMES for n in counts):
        return False
    try:
        event = Event.from_dict(value)
    except (KeyError, TypeError, AttributeError, ArithmeticError, InputError):
        return False
    return isinstance(event.together, bool) and all(map(_is_amount, event.numbers.values()))


def _is_line(value: Any) -> bool:
    """Text without control characters, which could hide what stands beside it."""
    return isinstance(value, str) and not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in value
    )


def _is_said(value: Any) -> bool:
    """A short line that no sign turns around."""
    turning = re.compile("[\u202a-\u202e\u2066-\u2069]")
    return _is_line(value) and 0 < len(value) <= MOST_LETTERS and not turning.search(value)


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_lines(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_line, (*value, *value.values())))


def _is_public(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    said = [value.get(name, []) for name in (STATED, CHECKED)]
    return all(isinstance(one, list) and all(map(_is_line, one)) for one in (list(value), *said))


_SINCE: dict[str, Any] = {"declared": {}, "source_sha256": None, "signature": None}
_FORM: dict[str, Callable[[Any], bool]] = {
    "epsilon": _is_amount,
    "delta": lambda value: _is_amount(value, below=1),
    "target_epsilon": _is_amount,
    "adjacency": lambda value: isinstance(value, str) and value in get_args(Adjacency),
    "mu": lambda value: value is None or _is_amount(value),
    "epsilon_other_adjacency": lambda value: value is None or _is_amount(value),
    "epsilon_clt": lambda value: value is None or _is_amount(value),
    "attacker": _is_attacker,
    "ledger": _is_ledger,
    "noise": _is_line,
    "private": lambda value: isinstance(value, bool),
    "slack": lambda value: _is_amount(value, below=1),
    "version": _is_line,
    "public_inputs": _is_public,
    "found": _is_lines,
    "declared": lambda value: (
        isinstance(value, dict)
        and value.keys() <= set(DECLARED)
        and all(map(_is_said, value.values()))
    ),
    "source_sha256": lambda value: value is None or _is_sha256(value),
    "model_sha256": lambda value: value is None or _is_sha256(value),
    "signature": lambda value: (
        value is None or (_is_lines(value) and value.keys() == {"key", "ed25519"})
    ),
}


# What a guarantee means -----------------------------------------------------------------------


def records_in_words(public: Mapping[str, Any]) -> str:
    """How many records a person has, and who says so; nothing for what is about no table.

    Certificates that were made before anybody asked do not say who does.
    """
    most = public.get(MOST_RECORDS)
    if not is_whole(most):
        return ""
    records = "at most one record"
    if most != 1:
        apart = "" if public.get(SHARED_BINS) else ", each in a time bin of its own"
        records = f"at most {most} records{apart}"
    if EVERY_ROW in public.get(STATED, []):
        return f"{records}: stated by the steward, not checked"
    if BY_PERSON in public.get(CHECKED, []):
        compared = "".join(f", {words}" for words in public[CHECKED] if words in COMPARED.values())
        return f"{records}: checked, by the column that says whose they are{compared}"
    return records


LARGE_EPSILON = 8.0
"""Above it a guarantee comes with a warning: a factor of 3,000. Published releases stay below."""
EXPECTED_LOSSES = 0.1
"""delta times the number of people above which a guarantee comes with a warning: a release that
publishes each record with chance delta keeps to (0, delta), and would publish so many of them."""
FEWEST_PEOPLE = 10
"""In any table that is fitted (`data.records`): what is known of their number before a release."""


STRENGTHS = (
    (0.55, "hardly shows"),
    (0.75, "shows faintly at most"),
    (0.9, "may show"),
    (0.99, "may show clearly"),
    (1.0, "may be plain to see"),
)
"""Up to which chance of being right, what one person does in the release. Set by hand, 2026-11;
with delta 0 they end at epsilon 0.2, 1.1, 2.2 and 4.6."""


def chance_right(epsilon: float, delta: float) -> float:
    """The most that anybody is right in at even odds, from (epsilon, delta) alone."""
    unlikely = math.exp(-epsilon)
    return min((1 + delta * unlikely) / (1 + unlikely), 1.0)


def shows(right: float) -> str:
    """What one person does in the release, in words: "hardly shows" and so on."""
    return next((words for most, words in STRENGTHS if right <= most), STRENGTHS[-1][1])


def weaknesses(
    epsilon: float, delta: float, people: float | None = None, *, at_most: bool = False
) -> list[str]:
    """What is wrong with such a guarantee, a sentence each; nothing if it is usual.

    people: how many there are, public or released; None if nobody knows.  at_most: there may be
    fewer, as they may have several records each.
    """
    found = []
    if epsilon > LARGE_EPSILON:
        found.append(
            f"epsilon = {up(epsilon)} is above {LARGE_EPSILON:g} and promises little: one person "
            f"may change the chance of a result by a factor of {factor_in_words(epsilon)}; use 1, "
            "or what plan says is enough"
        )
    least = max(people or 0.0, FEWEST_PEOPLE)
    if delta * least > EXPECTED_LOSSES:
        known = people is not None and people >= FEWEST_PEOPLE
        some = f"{'up to' if at_most else 'about'} {least:,.0f}" if known else "any number of"
        more = "" if known else ", or less if people are more"
        found.append(
            f"delta = {short(delta)} is large for {some} people: with a chance of "
            f"{chance_in_words(delta)} nothing at all is promised to a person; use at most "
            f"{short(_down(EXPECTED_LOSSES / least))}{more}"
        )
    return found


def factor_in_words(epsilon: float) -> str:
    """e^epsilon, in two digits, three below 10, and never less than it is."""
    if epsilon > math.log(1e6):
        return f"10 to the power of {math.ceil(epsilon / math.log(10))}"
    exact = math.exp(epsilon)
    if exact < 10:
        return f"{math.ceil(100 * exact - 1e-9) / 100:g}"
    unit = 10.0 ** (math.floor(math.log10(exact)) - 1)
    return f"{math.ceil(exact / unit - 1e-9) * unit:,.0f}"


def chance_in_words(delta: float) -> str:
    """delta as people say it, never less than it is: 50%, 1 in 100,000, or 1e-12."""
    if delta >= 0.01:
        return f"{math.ceil(1000 * delta - 1e-9) / 10:g}%"
    if delta < 1e-9:
        return short(delta)
    return f"1 in {_down(1 / delta, digits=2):,.0f}"


def _down(value: float, digits: int = 1) -> float:
    """Rounded down to so many digits."""
    unit = 10.0 ** (math.floor(math.log10(value * (1 + 1e-9))) + 1 - digits)
    return float(f"{math.floor(value / unit * (1 + 1e-9)) * unit:.{digits}g}")
