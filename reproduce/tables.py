"""Rows of numbers, chosen and averaged, and the Markdown they become."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

Row = dict[str, Any]


def matching(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Rows that have these values."""
    return [row for row in rows if all(row.get(k) == v for k, v in values.items())]


def values_of(rows: Iterable[Row], name: str) -> list[Any]:
    """The different values of a column, in order."""
    return sorted({row[name] for row in rows})


def mean_of(rows: Iterable[Row], name: str) -> float:
    """Mean of a column."""
    return float(np.mean([row[name] for row in rows]))


def means_along(rows: list[Row], along: str, name: str) -> tuple[list[Any], list[float]]:
    """The different values of one column, in order, and the mean of another at each."""
    places = values_of(rows, along)
    return places, [mean_of(matching(rows, **{along: at}), name) for at in places]


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


def formatted(rows: Iterable[Row], columns: Sequence[Sequence[str]]) -> str:
    """A table of columns (head, format of a cell), such as ("claimed", "{claimed_epsilon:.2f}")."""
    heads, cells = zip(*columns, strict=True)
    return markdown(heads, [[cell.format_map(row) for cell in cells] for row in rows])


def texts(name: str) -> dict[str, Any]:
    """What `texts/<name>.toml` holds; every paragraph and every item of a list is one line."""
    whole = (files("reproduce") / "texts" / f"{name}.toml").read_text("utf-8")
    return {
        key: re.sub(r"(?<=\S)\n(?=[^\s-])", " ", value) if isinstance(value, str) else value
        for key, value in tomllib.loads(whole).items()
    }
