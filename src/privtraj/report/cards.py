"""Cards: what a notebook shows of snapshots, models, certificates and paths.

Each is a piece of HTML with its own styles, made by `assets/card.html`. Colours follow the
notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.report.page_data import bands
from privtraj.report.style import BLUE, VERMILION
from privtraj.report.templates import render
from privtraj.space import as_user_times, unit_time
from privtraj.text import short

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots
    from privtraj.model import TrajectoryModel
    from privtraj.paths import Paths
    from privtraj.privacy.certificate import Certificate

_WIDTH, _HEIGHT = 180, 70  # of a small picture
_MOST = 4  # small pictures
_ROWS = 6  # of a table of paths


def snapshots_card(snapshots: Snapshots) -> str:
    """Public things alone: nothing that was counted or measured on the records."""
    first, last = as_user_times(snapshots.axis.range, snapshots.datetime)
    box = zip(snapshots.features, snapshots.bounds, strict=True)
    return _card(
        "Snapshots",
        note="Sensitive records, not shown. Only what is public about them:",
        facts=[
            (snapshots.time_name, f"from {first} to {last}"),
            *((name, f"in [{low:g}, {high:g}]") for name, (low, high) in box),
            ("records of one person", f"at most {snapshots.records_per_person}"),
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
    (_, particles, d), times = model.particles.shape, len(model.numeric_times)
    promise = f"epsilon {certificate.epsilon:.3g}, delta {short(certificate.delta)}"
    return _card(
        "Private trajectories",
        certificate=certificate,
        facts=[
            ("guarantee", f"{promise}, {certificate.adjacency}" if certificate.private else "none"),
            (
                "times of interest",
                f"{times}, {model.time_name} from {model.times[0]} to {model.times[-1]}",
            ),
            ("features", f"{d}: {', '.join(model.features)}"),
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
        rows=[
            [f"{value:.6g}" if isinstance(value, float) else value for value in row]
            for row in zip(*table.values(), strict=True)
        ],
    )


def _card(title: str, **parts: Any) -> str:
    """The parts that are there, in the template's order."""
    nothing = dict.fromkeys(("certificate", "note", "lines", "facts", "columns", "pictures"))
    return render("card.html", title=title, **{**nothing, **parts})


def _pictures(model: TrajectoryModel) -> list[dict[str, Any]]:
    """Median and middle 80 % of the particles over time, inside the public bounds."""
    x = _WIDTH * unit_time(model.numeric_times, model.numeric_times)
    quantiles = bands(model.marginals[:, :, :_MOST].swapaxes(0, 1))
    pictures = []
    for name, (low, high), curves in zip(model.features, model.bounds, quantiles, strict=False):
        below, _, middle, _, above = _HEIGHT * (1 - (curves - low) / (high - low))
        limits, size = f"{low:g} to {high:g}", (_WIDTH, _HEIGHT)
        band = (_points([*x, *x[::-1]], [*below, *above[::-1]]), BLUE)
        line = (_points(x, middle), VERMILION)
        parts = {"name": name, "range": limits, "size": size, "band": band, "median": line}
        pictures.append(parts)
    return pictures


def _points(x: Iterable[float], y: Iterable[float]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
