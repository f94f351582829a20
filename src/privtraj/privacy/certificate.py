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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np

from privtraj.base import __version__
from privtraj.base.arrays import plain_json
from privtraj.base.errors import Arg, InputError, is_number, is_whole, short
from privtraj.base.files import MOST_BYTES, strict_json
from privtraj.privacy.accounting import (
    Cost,
    Guarantee,
    Parallel,
    Sequential,
    cost,
    from_entries,
    is_modest,
    releases,
    to_entries,
    together,
)
from privtraj.privacy.events import Adjacency, ChosenTimes, Event, GaussianSum, Opaque, is_line
from privtraj.privacy.ledger import Ledger, down, up

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
NEW_PEOPLE = (
    "nobody in these records is among other people of the ledger; whoever is all the same has the "
    "sum of all that is spent on them, and not this epsilon alone"
)
BATCHES = "batches"
"""Of a model that grew: of each when its people were recorded, when it was released, what it paid,
how many it counted, in how many batches its people may be, and who says so (`batch`)."""
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
_OTHER: dict[Adjacency, Adjacency] = {"add-remove": "replace-one", "replace-one": "add-remove"}
_SINCE: dict[str, Any] = {"declared": {}, "source_sha256": None, "signature": None}
_AGREEMENT = 1e-6  # relative, between a stated number and the same computed elsewhere


# What a field may say: a certificate may be anybody's


def _is_amount(value: Any, below: float = 1e300) -> bool:
    return is_number(value) and 0 <= value < below


def _is_amount_or_none(value: Any) -> bool:
    return value is None or _is_amount(value)


def _are_lines(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_line, (*value, *value.values())))


def _is_declared(value: Any) -> bool:
    """A short line that no sign turns around."""
    turned = is_line(value) and re.search("[\u202a-\u202e\u2066-\u2069]", value)
    return is_line(value) and 0 < len(value) <= MOST_LETTERS and not turned


def _are_declared(value: Any) -> bool:
    known = isinstance(value, dict) and value.keys() <= set(DECLARED)
    return known and all(map(_is_declared, value.values()))


def _is_attacker(value: Any) -> bool:
    rates = value.get("true_positive_rate") if isinstance(value, dict) else None
    return (
        isinstance(rates, dict)
        and rates.keys() == {f"{rate:g}" for rate in FALSE_POSITIVE_RATES}
        and value.keys() == {"true_positive_rate", "advantage"}
        and all(map(_is_amount, (*rates.values(), value["advantage"])))
    )


def _is_public(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    lists = [value.get(name, []) for name in (STATED, CHECKED)]
    lines = all(isinstance(one, list) and all(map(is_line, one)) for one in (list(value), *lists))
    batches = value.get(BATCHES, [])
    return lines and isinstance(batches, list) and all(map(_is_batch, batches))


def _is_batch(value: Any) -> bool:
    """As `batch` makes it."""
    if not isinstance(value, dict):
        return False
    value = {"counted": None} | value  # which came later than the others
    if value.keys() != batch(("", ""), (0.0, 0.0)).keys():
        return False
    lines = (value[name] for name in ("from", "to", "released", "people"))
    amounts = _is_amount(value["epsilon"]) and _is_amount(value["delta"], below=1)
    most = value["most"] is None or (is_whole(value["most"]) and value["most"] >= 0)
    known = all(_is_amount_or_none(value[name]) for name in ("days", "counted"))
    return all(map(is_line, lines)) and amounts and most and known


def _is_sha256(value: Any) -> bool:
    return value is None or (is_line(value) and bool(re.fullmatch("[0-9a-f]{64}", value)))


def is_signature(value: Any) -> bool:
    """None, or the name of a key and what it signed, in base 64."""
    return value is None or (_are_lines(value) and value.keys() == {"key", "ed25519"})


Amount = Annotated[float, _is_amount]
Share = Annotated[float, partial(_is_amount, below=1)]
Line = Annotated[str, is_line]
Truth = Annotated[bool, lambda value: isinstance(value, bool)]
Relation = Annotated[Adjacency, get_args(Adjacency).__contains__]
Entries = Annotated[tuple[dict[str, Any], ...], lambda value: isinstance(value, list | tuple)]


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

    epsilon: Amount
    delta: Share
    target_epsilon: Amount
    adjacency: Relation
    mu: Annotated[float | None, _is_amount_or_none]
    epsilon_other_adjacency: Annotated[float, _is_amount_or_none]
    epsilon_clt: Annotated[float | None, _is_amount_or_none]
    attacker: Annotated[dict[str, Any], _is_attacker]
    ledger: Entries
    noise: Line
    private: Truth
    slack: Share
    version: Line
    public_inputs: Annotated[dict[str, Any], _is_public] = field(default_factory=dict)
    found: Annotated[dict[str, str], _are_lines] = field(default_factory=dict)
    declared: Annotated[dict[str, str], _are_declared] = field(default_factory=dict)
    source_sha256: Annotated[str | None, _is_sha256] = None
    model_sha256: Annotated[str | None, _is_sha256] = None
    signature: Annotated[dict[str, str] | None, is_signature] = None

    @property
    def budget(self) -> tuple[float, float]:
        """(epsilon, delta) that were to be spent."""
        return self.target_epsilon, self.delta

    @property
    def mechanism(self) -> str:
        """The kinds of noise that were added, in words."""
        return " and ".join(dict.fromkeys(_mechanisms(self.ledger))) or "none"

    @property
    def signed_by(self) -> str | None:
        """Fingerprint of the key that is said to have signed it: `signatures` checks that."""
        return None if self.signature is None else self.signature["key"]

    @property
    def counts_are_public(self) -> bool:
        """Whether numbers of people are among the public inputs."""
        return PUBLIC_COUNTS in self.public_inputs

    @property
    def protected(self) -> str:
        """What the guarantee is about, in words."""
        within = ", within their time bins" * self.counts_are_public
        return f"{PROTECTS[self.adjacency]}{within}{self._by_days}"

    @property
    def _by_days(self) -> str:
        """Which records of a person a guarantee is about that holds per window of time."""
        days = stated_parallel(self.public_inputs.get(BATCHES, [])).days
        return f", by records within any {days:g} days" if math.isfinite(days) else ""

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
    def chance_right(self) -> float:
        """In how many cases an attacker who starts at 50 % is right about one person, at most:
        (1 + advantage) / 2, and 1 where nothing protects."""
        return (1 + min(float(self.attacker["advantage"]), 1.0)) / 2 if self.private else 1.0

    @property
    def caveat(self) -> str:
        """Why a result that is not private is not."""
        seeded = self.noise == SEEDED_NOISE
        return "the noise came from a seed" if seeded else "the records were used as they are"

    @property
    def in_words(self) -> str:
        """What the guarantee means for one person: the words follow epsilon and delta."""
        if not self.private:
            return f"nobody is protected: {self.caveat}"
        secret = "whether any one person is in the data"
        if self.adjacency == "replace-one":
            beyond = ", beyond their time bins," * self.counts_are_public
            secret = f"what any one person's records say{beyond}"
        return f"{secret}{self._by_days} {shows(self.chance_right)} in what was released"

    @property
    def warnings(self) -> list[str]:
        """What is wrong with a guarantee like this one, in sentences; of none, nothing."""
        if not self.private:
            return []
        counts = self.public_inputs.get(PUBLIC_COUNTS)  # anybody's, so of any kind
        if isinstance(counts, list) and counts and all(map(is_number, counts)):
            return weaknesses(self.epsilon, self.delta, sum(map(float, counts)))
        if CAUTION in self.found:  # which knows how many were counted
            return [*weaknesses(self.epsilon, 0.0), self.found[CAUTION]]
        return weaknesses(self.epsilon, self.delta)

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
        total, other = cost(self.guarantee, self.adjacency), _OTHER[self.adjacency]
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

    def verify(self) -> float:
        """The epsilon computed again; an `InputError` if anything stated does not follow."""
        membership = self.adjacency == "add-remove" or math.isfinite(self.epsilon_other_adjacency)
        if self.counts_are_public and membership:
            raise InputError(
                "the certificate promises what its public inputs give away: with public numbers of "
                "people nothing hides whether a person is in the data, so do not rely on it"
            )
        guarantee, _ = self.guarantee, self.cost  # refuses what cannot be read, or computed
        stated = self.adjacency, self.slack, self.delta, self.counts_are_public
        try:
            with np.errstate(all="ignore"):
                computed = _computed(guarantee, *stated)
        except (ArithmeticError, ValueError):
            raise InputError("the certificate was changed: its numbers are absurd") from None
        again = to_entries(guarantee, self.adjacency)
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
        batches = self.public_inputs.get(BATCHES, [])
        if batches and not _as_stated(guarantee, batches):
            raise InputError(
                "the certificate was changed: it counts batches as of different people that it "
                "does not say so of"
            )
        wrong = _contradiction(self.public_inputs, releases(guarantee))
        if wrong is not None:
            raise InputError(
                f"the certificate was changed: its public input '{wrong}' contradicts its ledger"
            )
        return float(computed["epsilon"])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite epsilon is written as None."""
        values: dict[str, Any] = plain_json(vars(self))
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
        forms = get_type_hints(cls, include_extras=True)
        values = {"found": {}, **_SINCE, **values}  # which older versions did not state
        if missing := forms.keys() - values.keys():
            raise InputError(f"the certificate lacks {', '.join(sorted(missing))}")
        if values.keys() - forms.keys() - {"mechanism"}:
            raise InputError("the certificate was changed: it has fields that no certificate has")
        for name, form in forms.items():
            (is_right,) = form.__metadata__
            if not is_right(values[name]):
                raise InputError(f"the certificate is damaged: its {name} cannot be read")
        known = {name: values[name] for name in forms}
        known["ledger"] = tuple(known["ledger"])
        if known["epsilon_other_adjacency"] is None:
            known["epsilon_other_adjacency"] = math.inf
        certificate = cls(**known)
        if not certificate.guarantee or values.get("mechanism") != certificate.mechanism:
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
        """Some twenty lines; what a certificate does not state is left out."""
        rates, other = self.attacker["true_positive_rate"], _OTHER[self.adjacency]
        alarms = ", ".join(f"{float(rate) * 100:g}%" for rate in rates)
        members = ", ".join(map(percent_up, rates.values()))
        promise, attack = "Guarantee:", "An attack"
        if not self.private:
            promise, attack = "With private noise it would be", "With private noise, an attack"
        finds = "finds a member"
        if self.adjacency == "replace-one":
            within = ", both in the same time bins," * self.counts_are_public
            finds = f"knows which of two sets of records is a person's{within}"
        rest = (
            f"About {PROTECTS[other]} ({other}) the same release has epsilon = "
            f"{up(self.epsilon_other_adjacency)}"
        )
        if self.counts_are_public:
            rest = f"NOT protected: {self.not_protected}"
        records, stated = records_in_words(self.public_inputs), self.public_inputs.get(STATED, [])
        checked, told = self.public_inputs.get(CHECKED, []), (BY_PERSON, *COMPARED.values())
        public = [name for name in self.public_inputs if name not in (STATED, CHECKED)]
        found = {name: words for name, words in self.found.items() if name != CAUTION}
        lines = [
            f"Privacy certificate (privtraj {self.version})",
            *(f"{name.capitalize()} (declared): {words}" for name, words in self.declared.items()),
            f"{promise} differential privacy with epsilon = {up(self.epsilon)}, "
            f"delta = {self.delta:g} (budget: epsilon = {self.target_epsilon:g}).",
            f"Equivalently: {up(self.mu)}-Gaussian differential privacy." if self.mu else "",
            ""
            if self.epsilon_clt is None
            else f"(The central limit theorem would say epsilon = {self.epsilon_clt:.4g}; "
            "that is an approximation, not a guarantee.)",
            *(f"WARNING: {words}." for words in self.warnings),
            f"Meaning: {self.in_words}; an attacker who starts at 50% is right in at most "
            f"{percent_up(self.chance_right)} of cases.",
            f"It is about: {self.protected} ({self.adjacency}).",
            f"{rest}.",
            f"{attack} with {alarms} false alarms {finds} with probability at most {members} "
            f"(advantage at most {up(self.attacker['advantage'])}).",
            f"A person has {records}." if records else "",
            *batches_in_words(self.public_inputs.get(BATCHES, [])),
            "Paid for:",
            *(_paid_for(self.guarantee) or ["  nothing was released"]),
            f"Noise: {self.noise}.",
            f"Taken as public: {', '.join(public) or 'nothing'}.",
            *(f"Stated by the steward, and not checked: {words}." for words in stated),
            *(f"Checked: {words}." for words in checked if words not in told),
            *(f"Found from these releases: {name}: {words}." for name, words in found.items()),
            f"Model: sha256 {self.model_sha256 or 'none yet'}.",
            f"Made by privacy/ of sha256 {self.source_sha256}." if self.source_sha256 else "",
            f"Signed by: key sha256 {self.signed_by}." if self.signature else "",
        ]
        text = "\n  ".join(line for line in lines if line)
        warning = f"NOT PRIVATE: {self.caveat}. Do not release the result.\n"
        return text if self.private else warning + text


def check_declared(declared: Mapping[str, str]) -> dict[str, str]:
    """What a steward declares, in order; refuses what could hide what stands beside it."""
    for name, words in declared.items():
        if name not in DECLARED:
            raise InputError(f"'{name}' is nothing to declare: use {', '.join(DECLARED)}")
        if not _is_declared(words):
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
    text = ""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        text += f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
    return hashlib.sha256(text.encode()).hexdigest() if text else None


def certify(
    ledger: Ledger,
    *,
    public_inputs: Mapping[str, Any],
    private_noise: bool,
    found: Mapping[str, str] | None = None,
    released: Guarantee | None = None,
) -> Certificate:
    """The certificate of everything a ledger records; or of what is `released` from its budget."""
    guarantee, adjacency = released or Sequential(ledger.events), ledger.adjacency
    slack = cost(guarantee, adjacency).slack  # which is stated as one number
    public = PUBLIC_COUNTS in public_inputs
    return Certificate(
        **_computed(guarantee, adjacency, slack, ledger.delta, public),
        delta=ledger.delta,
        target_epsilon=ledger.epsilon,
        adjacency=adjacency,
        ledger=to_entries(guarantee, adjacency),
        noise=SECURE_NOISE if private_noise else SEEDED_NOISE,
        private=private_noise,
        slack=slack,
        version=__version__,
        source_sha256=source(),
        public_inputs=plain_json(public_inputs),
        found=dict(found or {}),
    )


def certify_disjoint(
    certificates: Sequence[Certificate],
    *,
    public_inputs: Mapping[str, Any],
    disjoint: bool = True,
    found: Mapping[str, str] | None = None,
) -> Certificate:
    """The certificate of releases about different people, each of which has a certificate.

    That nobody is in two of them is the steward's word; the guarantee rests on it (`accounting`).
    Without that word, not `disjoint`, releases come one after the other, and budgets are added,
    which holds however the later ones were decided upon; the exact epsilon is at most their sum.
    Where people may be in several, as the batches among the public inputs say, budgets of as many
    are added, the largest that one window has, and epsilon is the exact one of as many.

    The slack that a certificate of several branches states is the largest over the ways in which a
    person matters: the largest of a branch, or twice that where a person may move from one branch
    to another. So each of its branches has at most that, or half of it. Where people may be in
    several branches, it is the sum over all of them.
    """
    if not certificates or len({one.adjacency for one in certificates}) > 1:
        raise InputError("certificates of different people need the same adjacency to be joined")
    adjacency, deltas = certificates[0].adjacency, [one.delta for one in certificates]
    budgets = [one.target_epsilon for one in certificates]
    if disjoint:
        branches: list[Guarantee] = []
        batches, slack = public_inputs.get(BATCHES, []), 0.0
        stated = stated_parallel(batches)
        for one in certificates:  # branches of branches are branches
            match one.guarantee.parts:
                case (Parallel(inside, most),):
                    moves = 2 if adjacency == "replace-one" and len(inside) > 1 else 1
                    branches += [Sequential((part,), one.slack / moves) for part in inside]
                    slack += one.slack * (len(inside) if most == 1 else 1)
                case _:
                    branches.append(one.guarantee)
                    slack += one.slack
        delta = max(deltas)
        if stated.most != 1:
            branches = [replace(part, slack=0.0) for part in branches]  # type: ignore[type-var]
            *budgets, delta = _sums(stated, batches)
        tree = replace(stated, branches=tuple(branches))
        joined = Sequential((tree,), 0.0 if stated.most == 1 else slack)
        budget = max(cost(joined, adjacency).epsilon(delta), *budgets)
    else:
        joined = Sequential(tuple(one.guarantee for one in certificates))
        delta, budget = math.fsum(deltas), math.fsum(budgets)
    made = certify(
        Ledger(budget, delta, adjacency),
        public_inputs=public_inputs,
        private_noise=True,
        found=found,
        released=joined,
    )
    worst = next((one for one in certificates if not one.private), certificates[0])
    return replace(made, noise=worst.noise, private=worst.private)


def batch(
    when: Sequence[str],
    paid: tuple[float, float],
    most: int | None = 0,
    people: str = "may be in other batches",
    *,
    days: float | None = None,
    released: str = "",
    counted: float | None = None,
) -> dict[str, Any]:
    """A batch as a certificate states it.

    most: in how many batches its people may be: 1 if they are new; None for any number of those
    that so many `days` touch; 0 if nobody says, so that it adds up with all before. people: who
    says so, in words. days: that the guarantee is about, None for all. counted: how many there are,
    with noise, as far as it was released.
    """
    known = {"from": when[0], "to": when[1], "released": released, "counted": counted}
    paid_for = {"epsilon": paid[0], "delta": paid[1]}
    return {**known, **paid_for, "most": most, "days": days, "people": people}


def are_late(batches: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Of each whether its people were recorded before the times of the earlier ones had ended."""
    known = np.maximum.accumulate([-math.inf, *(_day(one["to"]) for one in batches)])
    return [_day(one["from"]) < end for one, end in zip(batches, known[:-1], strict=True)]


def stated_parallel(batches: Sequence[Mapping[str, Any]]) -> Parallel:
    """How a tree has to count these batches: without its branches, which have no spans where the
    guarantee is about all of time."""
    often = [one["most"] for one in batches[1:] if one["most"] != 0]
    days = [one["days"] for one in batches[1:] if one["days"] is not None]
    most = None if None in often else max([1, *often])
    if most == 1 or not days:
        return Parallel((), most)
    return Parallel((), most, min(days), tuple(one[:2] for one in _branches(batches)))


def _branches(batches: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """First and last day, epsilon and delta of each branch: batches of which nobody says whose they
    are add up with all before."""
    made: list[tuple[float, ...]] = []
    for one in batches:
        own = _day(one["from"]), _day(one["to"]), one["epsilon"], one["delta"]
        if made and one["most"] == 0:
            first, last, *paid = zip(*made, strict=True)
            sums = (max(each) + more for each, more in zip(paid, own[2:], strict=True))
            made, own = [], (min(*first, own[0]), max(*last, own[1]), *sums)
        made.append(own)
    return made


def _day(written: str) -> float:
    """A date in days since 1970, or a number of whatever unit times have."""
    try:
        return float(written)
    except ValueError:
        pass
    try:
        return float(np.datetime64(written, "us").astype(np.int64)) / 86400e6
    except ValueError:
        raise InputError("the certificate is damaged: times of its batches are none") from None


def _sums(stated: Parallel, batches: Sequence[Mapping[str, Any]]) -> list[float]:
    """Epsilon and delta of as many batches as a person may be in, the largest of any window."""
    first, last, *paid = zip(*_branches(batches), strict=True)
    sets, sums = together(list(zip(first, last, strict=True)), stated.days), []
    for each in paid:
        most = (sorted((each[k] for k in some), reverse=True)[: stated.most] for some in sets)
        sums.append(max(float(sum(Fraction(repr(one)) for one in some)) for some in most))
    return sums


def _as_stated(guarantee: Sequential, batches: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a tree counts batches apart, or together, as they say themselves."""
    stated, trees = stated_parallel(batches), []
    ahead: list[Guarantee] = [guarantee]
    while ahead:
        match ahead.pop():
            case Sequential(parts):
                ahead += parts
            case Parallel(branches) as tree:
                trees.append(tree)
                ahead += branches
    apart = sum(len(tree.branches) - 1 for tree in trees)
    if stated.most != 1:  # then all of them are counted at once
        top = trees.pop(0) if trees and guarantee.parts == (trees[0],) else Parallel(())
        if replace(top, branches=()) != stated or len(top.branches) != len(_branches(batches)):
            return False
    plain = all((tree.most, tree.days) == (1, math.inf) for tree in trees)
    return plain and apart == sum(one["most"] != 0 for one in batches[1:])


def batches_in_words(batches: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of each when and for how much; at last why the dearest counts, or all, and what all cost."""
    if not batches:
        return []
    lines, stated = [f"{len(batches)} batches of people:"], stated_parallel(batches)
    for number, (one, late) in enumerate(zip(batches, are_late(batches), strict=True), start=1):
        when = ", late: after its time was released" if late else ""
        when += f", released {one['released']}" if one["released"] else ""
        counted = one.get("counted")
        when += "" if counted is None else f", {counted:.0f} people with noise"
        people = f"; {'new people: ' * (one['most'] == 1)}{one['people']}" if number > 1 else ""
        lines.append(
            f"  {number}. from {one['from']} to {one['to']}{when}: epsilon {up(one['epsilon'])}, "
            f"delta {one['delta']:g}{people}"
        )
    amounts = [[Fraction(repr(one[name])) for one in batches] for name in ("epsilon", "delta")]
    sums = [up(float(sum(each))) for each in amounts]  # exact in the decimals that people type
    why = "batches of new people cost a person what the dearest of them costs, and not the sum"
    if stated.most != 1:
        touched = f" that any {stated.days:g} days touch" if stated.spans else ""
        often = "all" if stated.most is None else f"the dearest {stated.most}"
        why = f"a person pays for {often} of the batches{touched}, and not for the others"
    says = "Nobody says that batches are of different people, so that they add up: whoever"
    if any(one["most"] != 0 for one in batches[1:]):
        apart = "The records of a person of one batch take no part in what the others released"
        says = f"{apart}, so {why}. Whoever"
    return [*lines, f"{says} is in all of them has epsilon {' and delta '.join(sums)}."]


def _computed(
    guarantee: Guarantee,
    adjacency: Adjacency,
    slack: float,
    delta: float,
    counts_are_public: bool,
) -> dict[str, Any]:
    """The fields of a certificate that follow from what was released, and what is public."""
    total = cost(guarantee, adjacency, slack)
    other = cost(guarantee, _OTHER[adjacency], slack)
    highest = total.true_positive_rates(np.array(FALSE_POSITIVE_RATES)).tolist()
    rates = dict(zip(map("{:g}".format, FALSE_POSITIVE_RATES), highest, strict=True))
    return {
        "epsilon": total.epsilon(delta),
        "mu": total.gdp_mu,
        "epsilon_other_adjacency": math.inf if counts_are_public else other.epsilon(delta),
        "epsilon_clt": total.clt_epsilon(delta),
        "attacker": {"true_positive_rate": rates, "advantage": total.delta(0.0)},
    }


def _mechanisms(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Of all entries of a ledger, in order, those of branches too."""
    for entry in entries:
        branches = entry.get("branches")
        yield from [entry["mechanism"]] if branches is None else _mechanisms(chain(*branches))


def _paid_for(part: Guarantee, margin: str = "  ") -> list[str]:
    """What was released, a line each; what is about other people is set in."""
    match part:
        case Sequential(parts):
            return [line for one in parts for line in _paid_for(one, margin)]
        case Parallel(branches):
            count = f"{len(branches)} groups of {'different ' * (part.most == 1)}people"
            dearest = "the dearest counts" if part.most == 1 else "as many count as are said above"
            lines = [f"{margin}{count}, of which {dearest}:"]
            for number, branch in enumerate(branches, start=1):
                lines += [f"{margin}  group {number}", *_paid_for(branch, margin + "    ")]
            return lines
        case event, times:
            return [f"{margin}{times} x {event.what} ({event.in_words})"]


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


def percent_up(share: float) -> str:
    """Percent with one decimal, never less than it is."""
    return f"{min(math.ceil(share * 1000 - 1e-9) / 10, 100):g}%"


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
    return (1 + delta * unlikely) / (1 + unlikely)


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
            f"{short(float(down(EXPECTED_LOSSES / least * (1 + 1e-9), digits=1)))}{more}"
        )
    return found


def factor_in_words(epsilon: float) -> str:
    """e^epsilon, in two digits, three below 10, and never less than it is."""
    if epsilon > math.log(1e6):
        return f"10 to the power of {math.ceil(epsilon / math.log(10))}"
    exact = math.exp(epsilon) * (1 - 1e-12)
    return up(exact, digits=3) if exact < 10 else f"{float(up(exact, digits=2)):,.0f}"


def chance_in_words(delta: float) -> str:
    """delta as people say it, never less than it is: 50%, 1 in 100,000, or 1e-12."""
    if delta >= 0.01:
        return percent_up(delta)
    if delta < 1e-9:
        return short(delta)
    return f"1 in {float(down((1 + 1e-9) / delta, digits=2)):,.0f}"
