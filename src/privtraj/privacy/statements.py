"""What a certificate may say: the form of its fields, and what of them must agree.

A certificate may come from anybody. Here it is read without computing anything: every field is of
its kind and of a plausible size, every text is one line, and what it takes as public does not
contradict what it says was paid for.

What a guarantee means for one person is said in numbers and in words, the same wherever it is told.
Somebody does not know whether a person is in the data, or which of two sets of records is theirs,
holds both for equally likely, sees the release and decides. From (epsilon, delta) alone they are
right with a chance of at most

    right = (e^epsilon + delta) / (e^epsilon + 1),

as neither kind of hit is likelier than e^epsilon times the false alarms that go with it, plus
delta. Whoever has the ledger knows more: its whole trade-off curve, whose largest advantage A gives
right = (1 + A) / 2, which is never more than that. Words follow this one number (`shows`), so they
follow epsilon and delta. What it does not tell are rare disasters, as it is a mean: for these there
are two limits, on epsilon and on delta times the number of people (`warnings`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, get_args

from privtraj.base.errors import InputError, is_number, is_whole, short
from privtraj.privacy.events import Adjacency, ChosenTimes, Event, Opaque, SampledSum
from privtraj.privacy.guarantee import count_entries
from privtraj.privacy.ledger import up

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
STATED = "stated by the steward"  # among public inputs: what nothing checks, in sentences
CHECKED = "checked on the records"  # among public inputs: what was, in sentences
EVERY_ROW = "every row is a different person's"
BY_PERSON = "how many records a person has, by the column that says whose they are"
COMPARED = {
    "exact": "identifiers exactly as written, so that blanks and capitals tell people apart",
    "trimmed": "identifiers without the blanks around them; capitals tell people apart",
    "folded": "identifiers without the blanks around them, capitals as small letters",
}
"""What was compared to know whose a record is, by the word that the steward declares."""
MOST_ENTRIES = 1000  # of a ledger: more than any fit has kinds of releases
MOST_TIMES = 10**9

MOST_RECORDS = "most records of one person"
SHARED_BINS = "records of one person may share a bin"
PUBLIC_COUNTS = "people per time (declared public)"
"""Among the public inputs: numbers of people that are facts outside the guarantee. With them it is
about neighbours that have the same numbers, so never about one person more or less, and not about
in which time bins a person is (`head_count`)."""
SAMPLING_RATE = "sampling rate"
DRAWN_TIMES = "times drawn at random"
DOMAIN = "domain"


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


def unreadable(values: Mapping[str, Any]) -> str | None:
    """The name of a field that says what no certificate can, if any."""
    return next((name for name, is_right in _CHECKS.items() if not is_right(values[name])), None)


def contradiction(public: Mapping[str, Any], events: Iterable[tuple[Event, int]]) -> str | None:
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
        if isinstance(event, SampledSum) and public.get(SAMPLING_RATE, event.rate) != event.rate:
            return SAMPLING_RATE
        if isinstance(event, ChosenTimes) and DRAWN_TIMES not in public:
            return DRAWN_TIMES
    return None


def _is_amount(value: Any) -> bool:
    return is_number(value) and 0 <= value < 1e300


def _is_amount_or_none(value: Any) -> bool:
    return value is None or _is_amount(value)


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value < 1


def _is_attacker(value: Any) -> bool:
    if not (isinstance(value, dict) and value.keys() == {"true_positive_rate", "advantage"}):
        return False
    rates = value["true_positive_rate"]
    known = {f"{rate:g}" for rate in FALSE_POSITIVE_RATES}
    numbers = [*rates.values(), value["advantage"]] if isinstance(rates, dict) else [None]
    return all(map(_is_amount, numbers)) and rates.keys() == known


def is_ledger(value: Any) -> bool:
    """Whether these are entries of events, each with how often, or branches of such entries."""
    return count_entries(value, _is_entry) <= MOST_ENTRIES


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


def _is_lines(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_line, (*value, *value.values())))


def _is_public(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    said = [value.get(name, []) for name in (STATED, CHECKED)]
    return all(isinstance(one, list) and all(map(_is_line, one)) for one in (list(value), *said))


def _is_hash(value: Any) -> bool:
    return value is None or (
        isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")
    )


def _is_signature(value: Any) -> bool:
    return value is None or (_is_lines(value) and value.keys() == {"key", "ed25519"})


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "epsilon": _is_amount,
    "delta": _is_share,
    "target_epsilon": _is_amount,
    "adjacency": lambda value: isinstance(value, str) and value in get_args(Adjacency),
    "mu": _is_amount_or_none,
    "epsilon_other_adjacency": _is_amount_or_none,
    "epsilon_clt": _is_amount_or_none,
    "attacker": _is_attacker,
    "ledger": is_ledger,
    "noise": _is_line,
    "private": lambda value: isinstance(value, bool),
    "slack": _is_share,
    "version": _is_line,
    "public_inputs": _is_public,
    "found": _is_lines,
    "model_sha256": _is_hash,
    "signature": _is_signature,
}


LARGE_EPSILON = 8.0
"""Above it a guarantee comes with a warning: a factor of 3,000. Published releases stay below."""
EXPECTED_LOSSES = 0.1
"""delta times the number of people above which a guarantee comes with a warning: a release that
publishes each record with chance delta keeps to (0, delta), and would publish so many of them."""
FEWEST_PEOPLE = 10
"""In any table that is fitted (`data.records`): what is known of their number before a release."""


class Strength(NamedTuple):
    """right: the largest chance of being right of which it is said.  shows: what one person does,
    in the release."""

    right: float
    shows: str


STRENGTHS = (
    Strength(0.55, "hardly shows"),
    Strength(0.75, "shows faintly at most"),
    Strength(0.9, "may show"),
    Strength(0.99, "may show clearly"),
    Strength(1.0, "may be plain to see"),
)
"""Set by hand, 2026-11; with delta 0 they end at epsilon 0.2, 1.1, 2.2 and 4.6."""


def chance_right(epsilon: float, delta: float) -> float:
    """The most that anybody is right in at even odds, from (epsilon, delta) alone."""
    unlikely = math.exp(-epsilon)
    return min((1 + delta * unlikely) / (1 + unlikely), 1.0)


def shows(right: float) -> str:
    """What one person does in the release, in words: "hardly shows" and so on."""
    return next((one.shows for one in STRENGTHS if right <= one.right), STRENGTHS[-1].shows)


def warnings(
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
            f"may change the chance of a result by a factor of {factor(epsilon)}; use 1, or what "
            "plan says is enough"
        )
    least = max(people or 0.0, FEWEST_PEOPLE)
    if delta * least > EXPECTED_LOSSES:
        known = people is not None and people >= FEWEST_PEOPLE
        some = f"{'up to' if at_most else 'about'} {least:,.0f}" if known else "any number of"
        more = "" if known else ", or less if people are more"
        found.append(
            f"delta = {short(delta)} is large for {some} people: with a chance of {chance(delta)} "
            "nothing at all is promised to a person; use at most "
            f"{short(_down(EXPECTED_LOSSES / least))}{more}"
        )
    return found


def factor(epsilon: float) -> str:
    """e^epsilon, in two digits, three below 10, and never less than it is."""
    if epsilon > math.log(1e6):
        return f"10 to the power of {math.ceil(epsilon / math.log(10))}"
    exact = math.exp(epsilon)
    if exact < 10:
        return f"{math.ceil(100 * exact - 1e-9) / 100:g}"
    unit = 10.0 ** (math.floor(math.log10(exact)) - 1)
    return f"{math.ceil(exact / unit - 1e-9) * unit:,.0f}"


def chance(delta: float) -> str:
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
