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
from privtraj.base.space import written_times
from privtraj.privacy.certificate import records_in_words
from privtraj.privacy.ledger import up
from privtraj.report.checks import warnings
from privtraj.report.page import declared, render

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots
    from privtraj.model.model import TrajectoryModel
    from privtraj.model.paths import Paths
    from privtraj.privacy.certificate import Certificate

_ROWS = 6  # of a table of paths
_FEW = 6  # values of a category


def card(shown: Any) -> str:
    """The piece of HTML that a notebook shows of an object."""
    cards: dict[str, Callable[[Any], dict[str, Any]]] = {
        "Snapshots": _snapshots,
        "TrajectoryModel": _model,
        "Certificate": _certificate,
        "Paths": _paths,
    }
    parts = {"certificate": None, "note": "", "headed": False}
    return render("card.html", **parts | cards[type(shown).__name__](shown))


def _snapshots(snapshots: Snapshots) -> dict[str, Any]:
    """Public things alone: nothing that was counted or measured on the records."""
    first, last = written_times(snapshots.axis.range, snapshots.datetime)
    rows = [(snapshots.time_name, f"from {first} to {last}")]
    for one in declared(snapshots.columns):
        domain, more = one["domain"], len(one["listed"]) - _FEW
        if one["listed"]:
            domain = ", ".join(one["listed"][:_FEW]) + (f" and {more} more" if more > 0 else "")
        words = filter(None, [f"{one['kind']}: {domain}", one["more"]])
        rows.append((one["name"], ", ".join(words)))
    rows.append(("a person has", records_in_words(snapshots.public_inputs())))
    note = "Sensitive records, not shown. Only what is public about them:"
    return {"title": "Snapshots", "note": note, "rows": rows}


def _certificate(certificate: Certificate) -> dict[str, Any]:
    """The guarantee, what it means, and what was paid for."""
    lines = str(certificate).splitlines()[1 if certificate.private else 2 :]
    rows = [[line.replace("  ", "\N{EN SPACE}")] for line in lines]
    return {"title": "Privacy certificate", "certificate": certificate, "rows": rows}


def _model(model: TrajectoryModel) -> dict[str, Any]:
    """The guarantee, what it means, and the size; `pt.plot.marginals` draws the features."""
    certificate = model.certificate
    first, last = written_times(model.numeric_times, model.datetime)[[0, -1]]
    names = [column.name for column in model.columns if not column.of]
    promise = f"epsilon {up(certificate.epsilon)}, delta {short(certificate.delta)}"
    times, particles = len(model.numeric_times), model.particles.shape[1]
    rows = [
        ("guarantee", f"{promise}, {certificate.adjacency}" if certificate.private else "none"),
        ("which means", certificate.in_words),
        *(("warning", warning) for warning in warnings(model)),
        ("times of interest", f"{times}, {model.time_name} from {first} to {last}"),
        ("features", f"{len(names)}: {', '.join(names)}"),
        ("particles", f"{particles} per time, by {model.settings.get('measure', 'hand')}"),
    ]
    return {"title": "Synthetic trajectories", "certificate": certificate, "rows": rows}


def _paths(paths: Paths) -> dict[str, Any]:
    """The first rows of the long table; all of it is synthetic."""
    n, q, _ = paths.values.shape
    rows = np.cumsum(np.count_nonzero(paths.present, axis=1))
    first = slice(int(np.searchsorted(rows, _ROWS)) + 1)
    parent = None if paths.parent is None else paths.parent[first]
    few = replace(paths, values=paths.values[first], present=paths.present[first], parent=parent)
    table = few.to_arrow().slice(0, _ROWS).to_pydict()
    cells = [
        [f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
         for value in row]
        for row in zip(*table.values(), strict=True)
    ]  # fmt: skip
    note = f"{n} synthetic people at {q} times, {rows[-1]} rows"
    return {"title": "Paths", "note": note, "rows": [list(table), *cells], "headed": True}
