"""Cards: what a notebook shows of snapshots, models, certificates and paths.

Each is a piece of HTML with its own styles, made by `assets/card.html`. Colours follow the
notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import short
from privtraj.base.space import unit_time
from privtraj.columns.kinds import Category, Column, Date
from privtraj.columns.precision import written_times
from privtraj.privacy.ledger import up
from privtraj.privacy.statements import records_in_words
from privtraj.report.levels import Drawn, shares_of, text_label
from privtraj.report.page_data import bands
from privtraj.report.sections import number_range, warnings
from privtraj.report.style import BLUE, VERMILION
from privtraj.report.templates import render

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots
    from privtraj.model.model import TrajectoryModel
    from privtraj.model.paths import Paths
    from privtraj.privacy.certificate import Certificate

_WIDTH, _HEIGHT = 180, 70  # of a small picture
_MOST = 4  # small pictures
_ROWS = 6  # of a table of paths
_FEW = 6  # values of a category


def snapshots_card(snapshots: Snapshots) -> str:
    """Public things alone: nothing that was counted or measured on the records."""
    first, last = written_times(snapshots.axis.range, snapshots.datetime)
    columns = [column for column in snapshots.columns if not column.of]
    return _card(
        "Snapshots",
        note="Sensitive records, not shown. Only what is public about them:",
        facts=[
            (snapshots.time_name, f"from {first} to {last}"),
            *((column.name, _domain(column)) for column in columns),
            ("a person has", records_in_words(snapshots.public_inputs())),
        ],
    )


def certificate_card(certificate: Certificate) -> str:
    """The guarantee, what it means, and what was paid for."""
    lines = str(certificate).splitlines()[1 if certificate.private else 2 :]
    return _card(
        "Privacy certificate",
        certificate=certificate,
        lines=[line.replace("  ", "\N{EN SPACE}") for line in lines],
    )


def model_card(model: TrajectoryModel) -> str:
    """The guarantee, the size, and small pictures of the first features over time."""
    certificate = model.certificate
    particles, times = model.particles.shape[1], len(model.numeric_times)
    first, last = written_times(model.numeric_times, model.datetime)[[0, -1]]
    names = [column.name for column in model.columns if not column.of]
    promise = f"epsilon {up(certificate.epsilon)}, delta {short(certificate.delta)}"
    return _card(
        "Synthetic trajectories",
        certificate=certificate,
        facts=[
            ("guarantee", f"{promise}, {certificate.adjacency}" if certificate.private else "none"),
            ("which means", certificate.in_words),
            *(("warning", said) for said in warnings(model)),
            (
                "times of interest",
                f"{times}, {model.time_name} from {first} to {last}",
            ),
            ("features", f"{len(names)}: {', '.join(names)}"),
            ("particles", f"{particles} per time, by {model.settings.get('measure', 'hand')}"),
        ],
        pictures=_pictures(model),
    )


def paths_card(paths: Paths) -> str:
    """The first rows of the long table; all of it is synthetic."""
    n, q, _ = paths.values.shape
    rows = np.cumsum(np.count_nonzero(paths.present, axis=1))
    first = slice(int(np.searchsorted(rows, _ROWS)) + 1)
    parent = None if paths.parent is None else paths.parent[first]
    few = replace(paths, values=paths.values[first], present=paths.present[first], parent=parent)
    table = few.to_arrow().slice(0, _ROWS).to_pydict()
    return _card(
        "Paths",
        note=f"{n} synthetic people at {q} times, {rows[-1]} rows",
        columns=list(table),
        rows=[[_cell(value) for value in row] for row in zip(*table.values(), strict=True)],
    )


def _card(title: str, **parts: Any) -> str:
    """The parts that are there, in the template's order."""
    nothing = dict.fromkeys(("certificate", "note", "lines", "facts", "columns", "pictures"))
    return render("card.html", title=title, **{**nothing, **parts})


def _domain(column: Column) -> str:
    """What is public of a column, in a few words."""
    if isinstance(column, Category):
        few = ", ".join(text_label(column, k) for k in range(min(_FEW, column.levels)))
        more = column.levels - _FEW
        return f"{column.kind}: {few}{f' and {more} more' if more > 0 else ''}"
    gaps = ", may be missing" if column.missing else ""
    if isinstance(column, Date):
        return f"{str(column).removeprefix(f'{column.name} ')}{gaps}"
    return f"in [{column.low:g}, {column.high:g}]{gaps}"


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


def _pictures(model: TrajectoryModel) -> list[dict[str, Any]]:
    """Of the first features: median and middle 80 % of the particles over time, inside the public
    bounds; of a category the shares of its values."""
    x = _WIDTH * unit_time(model.numeric_times, model.numeric_times)
    clouds = model.marginals.swapaxes(0, 1)  # (n, T, d)
    columns = [pair for pair in enumerate(model.columns) if not pair[1].of]
    return [_picture(x, column, clouds[:, :, k]) for k, column in columns[:_MOST]]


def _picture(x: Floats, column: Column, values: Floats) -> dict[str, Any]:
    """Of values (n, T) at places x (T,)."""
    common = {"name": column.name, "size": (_WIDTH, _HEIGHT), "median": None}
    if isinstance(column, Category):
        levels = values.astype(np.int64)
        drawn = Drawn.of(column, shares_of(levels, column.levels).mean(axis=0))
        edges = _HEIGHT * (1 - np.cumsum(np.pad(drawn.shares(levels), ((0, 0), (1, 0))), axis=1))
        areas = [
            (_points([*x, *x[::-1]], [*edges[:, k], *edges[::-1, k + 1]]), colour)
            for k, colour in enumerate(drawn.colours)
        ]
        about = f"shares of {len(drawn.labels)} values"
        return {**common, "about": about, "range": about, "bands": areas, "opacity": 1}
    low, high = column.domain
    (curves,) = np.nan_to_num(bands(values[..., None]), nan=(low + high) / 2)
    below, _, middle, _, above = _HEIGHT * (1 - (curves - low) / (high - low))
    band = (_points([*x, *x[::-1]], [*below, *above[::-1]]), BLUE)
    return {
        **common,
        "about": "median and middle 80 %",
        "range": number_range(column),
        "bands": [band],
        "opacity": 0.6,
        "median": (_points(x, middle), VERMILION),
    }


def _points(x: Iterable[float], y: Iterable[float]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
