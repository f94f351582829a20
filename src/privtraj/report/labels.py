"""Numbers, times and values of categories as pages, cards and plots write and colour them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Boolean, Category, Date, Number

MOST_COLOURS = 7
"""That colour-blind readers tell apart: those of Okabe and Ito, less black."""
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MOST_OTHERS = 0.5
"""Of the people, that values without a colour may have before values are merged."""
OTHERS_COLOUR = "#8a939b"
MISSING_COLOUR = "#d4d8dc"
LONGEST_LABEL = 40
"""Letters of a value on a page or a plot; more are cut."""

DAY = 86400.0  # in seconds


# Numbers and times -----------------------------------------------------------------------------


def percent(share: float) -> str:
    """At most two digits below 10 %."""
    value = 100 * share
    if 0 < value < 0.1:
        return "less than 0.1\N{NO-BREAK SPACE}%"
    digits = f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
    return f"{digits}\N{NO-BREAK SPACE}%"


def percent_up(share: float) -> str:
    """Percent with one decimal, never less than it is."""
    return f"{min(math.ceil(share * 1000 - 1e-9) / 10, 100):g}\N{NO-BREAK SPACE}%"


def round_number(value: Any) -> str:
    """At most three digits, two below 10, with a narrow space between thousands."""
    value = float(value)
    if abs(value) < 1000:
        return f"{value:.2g}" if abs(value) < 10 else f"{value:.0f}"
    return whole_number(f"{value:.3g}")


def whole_number(value: Any) -> str:
    """A count, to the last digit, with a narrow space between thousands."""
    return f"{float(value):,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def time_labels(times: NDArray[np.floating[Any]], datetime: bool) -> list[str]:
    """Increasing times as people write them: dates with a clock where two would share a day, and
    numbers with the decimals that tell them apart."""
    span = float(times[-1] - times[0])
    if datetime:
        close = len(times) > 1 and np.diff(times).min() < DAY
        unit: Any = "D" if span > 3 * DAY and not close else "m" if span > 300 else "s"
        whole = np.rint(times).astype(np.int64).astype("datetime64[s]")
        return [str(time).replace("T", " ") for time in whole.astype(f"datetime64[{unit}]")]
    decimals = min(max(3 - math.floor(math.log10(span)), 0), 12) if span > 0 else 6
    texts = [f"{time:.{decimals}f}" for time in times]
    return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]


def number_range(column: Number) -> str:
    """Low and high, as people write them."""
    if not isinstance(column, Date):
        return f"{column.low:g} to {column.high:g}"
    days = as_user_times([column.low, column.high], True).astype("datetime64[D]")
    return f"{days[0]} to {days[1]}"


# Categories ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Drawn:
    """The levels of a category as a picture has them, L of them, from the bottom up.

    A picture tells few levels apart: the most frequent have a colour each, missing has its own, and
    all others are drawn as one. Where these would be too many people, values are merged first.
    labels: (L,) what they mean.  shades: (L,) 1 to 7, "others" or "missing".
    group: (C,) where each level of the category is among them.
    """

    labels: tuple[str, ...]
    shades: tuple[str, ...]
    group: Ints

    @classmethod
    def of(cls, column: Category, shares: Floats) -> Drawn:
        """Of levels that people have in shares (C,), over all times."""
        parts = _parts(column, shares)
        frequent = sorted(parts, key=lambda part: -shares[part[1]].sum())[:MOST_COLOURS]
        kept = [part for part in parts if part in frequent]
        labels = [label for label, _ in kept]
        shades = [str(k + 1) for k in range(len(kept))]
        group = np.full(column.levels, len(kept))
        for k, (_, levels) in enumerate(kept):
            group[levels] = k
        if others := [part for part in parts if part not in kept]:
            many = sum(len(levels) for _, levels in others)
            labels.append(f"{many} others" if many > 1 else others[0][0])
            shades.append("others")
        if column.missing:
            group[column.levels - 1] = len(labels)
            labels.append("(missing)")
            shades.append("missing")
        return cls(tuple(labels), tuple(shades), group)

    @property
    def colours(self) -> list[str]:
        """(L,) as plots use them."""
        named = {"others": OTHERS_COLOUR, "missing": MISSING_COLOUR}
        return [named.get(shade) or COLOURS[int(shade) - 1] for shade in self.shades]

    def shares(self, levels: Ints) -> Floats:
        """(Q, L) of people with levels (n, Q); -1 for who is not there."""
        return shares_of(np.where(levels < 0, -1, self.group[levels]), len(self.labels))

    def flows(self, levels: Ints) -> Floats:
        """(Q - 1, L, L) shares of people who go from one to another level between two of Q times,
        of those who are there at both."""
        size, drawn, there = len(self.labels), self.group[levels], levels >= 0
        tables = []
        for k in range(levels.shape[1] - 1):
            both = there[:, k] & there[:, k + 1]
            cell = drawn[both, k] * size + drawn[both, k + 1]
            tables.append(np.bincount(cell, minlength=size**2) / max(both.sum(), 1))
        return np.array(tables).reshape(-1, size, size)


def _parts(column: Category, shares: Floats) -> list[tuple[str, list[int]]]:
    """Levels that are drawn as one, and their label: each alone, if the few that have colours have
    most of the people. Else neighbours, if values have an order, or codes that begin alike."""
    named = [k for k, label in enumerate(column.labels) if label is not None]
    texts = [text_label(column, k) for k in named]
    merged: list[list[Any]] = [[text[:n] for text in texts] for n in range(LONGEST_LABEL, 0, -1)]
    if column.ordered:
        until = np.cumsum(shares[named])
        middles = (until - shares[named] / 2) / max(until[-1], 1e-12)
        merged = [np.floor(MOST_COLOURS * middles).tolist()]
    for keys in (named, *merged):
        parts: dict[Any, list[int]] = {}
        for k, key in zip(named, keys, strict=True):
            parts.setdefault(key, []).append(k)
        held = sorted((float(shares[levels].sum()) for levels in parts.values()), reverse=True)
        if len(parts) > 1 and sum(held[MOST_COLOURS:]) <= MOST_OTHERS * sum(held):
            break
    else:
        parts = {k: [k] for k in named}
    made = []
    for key, levels in parts.items():
        first, last = (text_label(column, levels[end]) for end in (0, -1))
        several = f"{first} to {last}" if column.ordered else f"{key}…"
        made.append((several if len(levels) > 1 else first, levels))
    return made


def shares_of(levels: Ints, count: int) -> Floats:
    """(Q, C) shares of people with levels (n, Q) of C; -1 for who is not there."""
    columns = [np.bincount(column[column >= 0], minlength=count) for column in levels.T]
    counts = np.array(columns, dtype=np.float64).reshape(-1, count)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def text_label(column: Category, level: int) -> str:
    """A level in words, cut where it is long."""
    label = column.labels[level]
    if label is None:
        return "(missing)"
    if isinstance(column, Boolean):
        return "yes" if label else "no"
    return cut(str(label))


def cut(text: str) -> str:
    """At most as many letters as a label has."""
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
