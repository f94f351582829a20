"""Cards: what a notebook shows of snapshots, models, certificates and paths.

Each is a piece of HTML with its own styles, made by `assets/card.html`. Colours follow the
notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.errors import short
from privtraj.columns.kinds import Angle, Category, Column, Date
from privtraj.columns.precision import written_times
from privtraj.privacy.ledger import up
from privtraj.privacy.statements import records_in_words
from privtraj.report.checks import warnings
from privtraj.report.labels import text_label
from privtraj.report.page import render

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots
    from privtraj.model.model import TrajectoryModel
    from privtraj.model.paths import Paths
    from privtraj.privacy.certificate import Certificate

_ROWS = 6  # of a table of paths
_FEW = 6  # values of a category


def card(shown: Any) -> str:
    """The piece of HTML that a notebook shows of an object."""
    cards: dict[str, Callable[[Any], str]] = {
        "Snapshots": snapshots_card,
        "TrajectoryModel": model_card,
        "Certificate": certificate_card,
        "Paths": paths_card,
    }
    return cards[type(shown).__name__](shown)


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
    """The guarantee, what it means, and the size; `pt.plot.marginals` draws the features."""
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
            ("times of interest", f"{times}, {model.time_name} from {first} to {last}"),
            ("features", f"{len(names)}: {', '.join(names)}"),
            ("particles", f"{particles} per time, by {model.settings.get('measure', 'hand')}"),
        ],
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
        rows=[[_text(value) for value in row] for row in zip(*table.values(), strict=True)],
    )


def _card(title: str, **parts: Any) -> str:
    """The parts that are there, in the template's order."""
    nothing = dict.fromkeys(("certificate", "note", "lines", "facts", "columns"))
    return render("card.html", title=title, **{**nothing, **parts})


def _domain(column: Column) -> str:
    """What is public of a column, in a few words."""
    if isinstance(column, Category):
        few = ", ".join(text_label(column, k) for k in range(min(_FEW, column.levels)))
        more = column.levels - _FEW
        return f"{column.kind}: {few}{f' and {more} more' if more > 0 else ''}"
    gaps = ", may be missing" if column.missing else ""
    if isinstance(column, Date | Angle):
        return f"{str(column).removeprefix(f'{column.name} ')}{gaps}"
    return f"in [{column.low:g}, {column.high:g}]{gaps}"


def _text(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
