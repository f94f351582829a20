"""What a guarantee means for one person, in numbers and in words: the same wherever it is told.

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
from typing import NamedTuple

from privtraj.base.errors import short
from privtraj.privacy.ledger import up

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
