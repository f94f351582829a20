"""Rows of numbers, chosen and averaged, and the Markdown they become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]


def matching(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Rows that have these values."""
    return [row for row in rows if all(row.get(k) == v for k, v in values.items())]


def mean_of(rows: Iterable[Row], name: str) -> float:
    """Mean of a column."""
    return float(np.mean([row[name] for row in rows]))


def spread(values: Iterable[float], digits: int = 4) -> str:
    """Mean and standard deviation, as .0012 (.0003)."""
    array = np.asarray(list(values), dtype=float)
    deviation = array.std(ddof=1) if len(array) > 1 else 0.0
    mean, around = (f"{value:.{digits}f}".removeprefix("0") for value in (array.mean(), deviation))
    return f"{mean} ({around})"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def formatted(rows: Iterable[Row], *columns: tuple[str, str]) -> str:
    """A table of columns (head, format of a cell), such as ("claimed", "{claimed_epsilon:.2f}")."""
    heads, cells = zip(*columns, strict=True)
    return markdown(heads, [[cell.format_map(row) for cell in cells] for row in rows])


def paragraphs(*parts: str) -> str:
    """One below the other."""
    return "\n\n".join(parts)
