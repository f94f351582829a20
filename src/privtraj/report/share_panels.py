"""Categories on a page: shares over time as stacked bands, changes as flows, fixed ones as bars.

Paths of static SVG and the same numbers as tables; see `assets/shares.html`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.columns.kinds import Category
from privtraj.report.levels import Drawn, ribbons, shares_of, three_times
from privtraj.report.page_data import Sampled
from privtraj.report.panels import Scale, apart, area, line
from privtraj.report.ticks import time_labels, time_ticks

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

MOST_PANELS = 60
BOX = {"width": 380, "height": 214, "left": 50, "right": 372, "top": 8, "bottom": 186}
_NODE = 12  # width of a level in a picture of flows
_THINNEST = 0.002  # share of people whose flow is drawn


def share_panels(
    model: TrajectoryModel, shown: Sampled, real: dict[str, Floats] | None = None
) -> dict[str, Any]:
    """Panels of categories that change, bars of those that do not, and of what is missing.

    real: {name: (T, C)} shares among records at the model's times, nan where there are too few.
    """
    columns = [column for column in shown.columns if isinstance(column, Category)]
    changing = [column for column in columns if not column.fixed][:MOST_PANELS]
    fixed = [column for column in columns if column.fixed]
    found = real or {}
    return {
        "box": BOX,
        "changing": [_panel(model, shown, one, found.get(one.name)) for one in changing],
        "fixed": [_bars(shown, one) for one in fixed],
        "missing": [_missing(model, shown, name) for name in shown.missing],
        "more": len(columns) - len(changing) - len(fixed),
    }


def _panel(
    model: TrajectoryModel, shown: Sampled, column: Category, real: Floats | None
) -> dict[str, Any]:
    levels = shown.levels[column.name]
    drawn = Drawn.of(column, shares_of(levels, column.levels).mean(axis=0))
    shares = drawn.shares(levels)
    three = three_times(len(shown.times))
    flows = drawn.flows(levels[:, three])
    labels = time_labels(shown.times[three], model.datetime)
    return {
        **_stacked(model, shown, column.name, drawn, shares),
        "flow": _flow(shares[three], flows, drawn.shades, labels),
        "moves": _moves(drawn.flows(levels[:, [0, -1]])[0], drawn.labels),
        "changes": _changes(model, column.name),
        "real": None if real is None else _boundaries(model, _grouped(real, drawn)),
    }


def _stacked(
    model: TrajectoryModel, shown: Sampled, name: str, drawn: Drawn, shares: Floats
) -> dict[str, Any]:
    """Bands of shares (Q, L) from the bottom up, and the numbers at three times."""
    x, y = _scales(model)
    at, edges = x(shown.times), y(np.cumsum(np.pad(shares, ((0, 0), (1, 0))), axis=1))
    bands = [
        {"label": label, "shade": shade, "path": area(at, edges[:, k], edges[:, k + 1])}
        for k, (label, shade) in enumerate(zip(drawn.labels, drawn.shades, strict=True))
    ]
    three = three_times(len(shown.times))
    first, last = model.numeric_times[[0, -1]].tolist()
    most = [int(np.argmax(shares[k])) for k in (0, -1)]
    return {
        "name": name,
        "bands": bands,
        "levels": [(float(y(share)), f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 1)],
        "times": apart(x, time_ticks(first, last, model.datetime, 4), BOX["right"] + 8),
        "knots": x(model.numeric_times),
        "told": time_labels(shown.times[three], model.datetime),
        "rows": [(label, shares[three, k]) for k, label in enumerate(drawn.labels)],
        "most": [(drawn.labels[k], shares[end, k]) for k, end in zip(most, (0, -1), strict=True)],
        "real": None,
    }


def _scales(model: TrajectoryModel) -> tuple[Scale, Scale]:
    first, last = model.numeric_times[[0, -1]].tolist()
    return (
        Scale(first, last, BOX["left"], BOX["right"]),
        Scale(0.0, 1.0, BOX["bottom"], BOX["top"]),
    )


def _grouped(shares: Floats, drawn: Drawn) -> Floats:
    """(T, L) of shares (T, C)."""
    together = np.zeros((len(shares), len(drawn.labels)))
    for level, group in enumerate(drawn.group):
        together[:, group] += shares[:, level]
    return together


def _boundaries(model: TrajectoryModel, shares: Floats) -> list[str]:
    """Lines between the bands of real records, (T, L) at the model's times."""
    x, y = _scales(model)
    edges = np.cumsum(shares, axis=1)[:, :-1]
    lines = [line(x(model.numeric_times), y(edge)) for edge in edges.T]
    return [path for path in lines if path]


def _flow(
    shares: Floats, flows: Floats, shades: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Levels (q, L) at q times as bars, and between two of them a ribbon for each (from, to).

    flows: (q - 1, L, L).
    """
    top, bottom = BOX["top"], BOX["bottom"]
    across = np.linspace(BOX["left"], BOX["right"] - _NODE, len(shares))

    def up(share: float) -> float:
        return bottom - share * (bottom - top)

    drawn = []
    for k, table in enumerate(flows):
        x, z = across[k] + _NODE, across[k + 1]
        for i, _, share, a, b in ribbons(table, _THINNEST):
            drawn.append((shades[i], _ribbon(x, z, up(a), up(a + share), up(b), up(b + share))))
    bars = []
    for x, column in zip(across, shares, strict=True):
        foot = np.cumsum(np.append(0.0, column))
        bars += [
            (shades[k], float(x), up(foot[k + 1]), up(foot[k]) - up(foot[k + 1]))
            for k in range(len(column))
        ]
    places = zip(across + _NODE / 2, ("start", "middle", "end")[:: 3 - len(labels) or 1], labels,
                 strict=True)  # fmt: skip
    return {"ribbons": drawn, "bars": bars, "node": _NODE, "times": list(places)}


def _ribbon(x: float, z: float, a: float, b: float, c: float, d: float) -> str:
    """From x, between a and b, to z, between c and d."""
    m = (x + z) / 2
    return (
        f"M{x:.1f} {a:.1f}C{m:.1f} {a:.1f} {m:.1f} {c:.1f} {z:.1f} {c:.1f}"
        f"L{z:.1f} {d:.1f}C{m:.1f} {d:.1f} {m:.1f} {b:.1f} {x:.1f} {b:.1f}Z"
    )


def _moves(table: Floats, labels: Sequence[str]) -> dict[str, Any]:
    """Of those who begin with a level, (L, L) shares by the one they end with; nan for nobody."""
    begins = table.sum(axis=1, keepdims=True)
    rows = np.divide(table, begins, out=np.full_like(table, np.nan), where=begins > 0)
    return {"labels": labels, "rows": list(zip(labels, rows, strict=True)),
            "stay": float(np.trace(table))}  # fmt: skip


def _changes(model: TrajectoryModel, name: str) -> float:
    """How often a person changes it, over the whole time."""
    mass = model.transitions(name).mass
    return float(mass.sum() - np.trace(mass, axis1=1, axis2=2).sum())


def _bars(shown: Sampled, column: Category) -> dict[str, Any]:
    """A column that never changes."""
    levels = shown.levels[column.name][:, :1]
    drawn = Drawn.of(column, shares_of(levels, column.levels)[0])
    shares = drawn.shares(levels)[0]
    return {"name": column.name, "bars": list(zip(drawn.labels, drawn.shades, shares, strict=True))}


def _missing(model: TrajectoryModel, shown: Sampled, name: str) -> dict[str, Any]:
    """The share of people who lack a number."""
    absent = shown.missing[name]
    drawn = Drawn(("recorded", "(missing)"), ("5", "missing"), np.arange(2))
    shares = np.stack([1 - absent, absent], axis=1)
    return _stacked(model, shown, name, drawn, shares)
