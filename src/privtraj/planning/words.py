"""Words that all forecasts share: what was asked, and paragraphs of even width."""

from __future__ import annotations

import textwrap

from privtraj.planning.question import Question
from privtraj.text import short


def asked(question: Question, columns: str) -> str:
    """The question in two lines; columns: in words."""
    g = question.records_per_person
    each = "one record each" if g == 1 else f"{g} records each"
    counts = "public" if question.public_counts else "private"
    hand = ", ".join(f"{name} {value}" for name, value in question.settings)
    when = "at any time"
    if question.times is not None:
        per_time = question.records // question.times
        when = f"at {question.times} times ({per_time:,} per time)"
    return (
        f"Forecast for {question.people:,} people, {each}, {when}, "
        f"{columns},\n"
        f"epsilon {question.epsilon:g}, delta {short(question.delta)}, {question.adjacency}, "
        f"numbers of people per time {counts}" + (f", by hand: {hand}" if hand else "")
    )


def wrapped(paragraph: str) -> str:
    """In lines of at most 96 letters."""
    return textwrap.fill(paragraph, 96)
