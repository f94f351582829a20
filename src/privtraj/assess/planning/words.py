"""Words that all forecasts share: what was asked, and paragraphs of even width."""

from __future__ import annotations

import math
import textwrap

from privtraj.assess.planning.question import Question
from privtraj.base.errors import short
from privtraj.privacy import meaning


def asked(question: Question, columns: str) -> str:
    """The question in two lines, and what its guarantee means; columns: in words."""
    g = question.records_per_person
    each = "one record each" if g == 1 else f"{g} records each"
    counts = "public" if question.public_counts else "private"
    hand = ", ".join(f"{name} {value}" for name, value in question.settings)
    when = "at any time"
    if question.times is not None:
        per_time = question.records // question.times
        when = f"at {question.times} times ({per_time:,} per time)"
    promise = "\n\n".join(wrapped(said) for said in _promised(question))
    return (
        f"Forecast for {question.people:,} people, {each}, {when}, "
        f"{columns},\n"
        f"epsilon {question.epsilon:g}, delta {short(question.delta)}, {question.adjacency}, "
        f"numbers of people per time {counts}"
        + (f", by hand: {hand}" if hand else "")
        + f"\n\n{promise}"
    )


def _promised(question: Question) -> list[str]:
    """What an attacker could do at most, and what is wrong with that."""
    right = meaning.chance_right(question.epsilon, question.delta)
    secret = "whether any one person is in the data"
    if question.adjacency != "add-remove":
        secret = "what any one person's records say"
    return [
        f"At this epsilon and delta {secret} {meaning.shows(right)}: whoever holds both for "
        f"equally likely will be right in {math.ceil(1000 * right - 1e-9) / 10:g}% of cases at "
        "most, and often in fewer; the certificate will say.",
        *(f"WARNING: {said}." for said in question.weak),
    ]


def wrapped(paragraph: str) -> str:
    """In lines of at most 96 letters."""
    return textwrap.fill(paragraph, 96)
