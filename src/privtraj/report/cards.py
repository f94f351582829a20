"""Cards: what a notebook shows of snapshots, models, certificates and paths.

Each is a piece of HTML with its own styles. Names of columns are the user's, so every text is
escaped. Colours follow the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privtraj.report.style import BLUE, VERMILION, short

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots
    from privtraj.model import TrajectoryModel
    from privtraj.paths import Paths
    from privtraj.privacy.certificate import Certificate

_CARD = (
    "display:inline-block;max-width:46em;padding:.7em 1em;border:1px solid #8886;"
    "border-radius:6px;line-height:1.45"
)
_WARNING = "color:#fff;background:#a84a00;padding:.2em .6em;border-radius:4px"
_WIDTH, _HEIGHT = 180, 70  # of a small picture
_MOST = 4  # small pictures
_ROWS = 6  # of a table of paths


def snapshots_card(snapshots: Snapshots) -> str:
    """Public things alone: nothing that was counted or measured on the records."""
    first, last = snapshots.bin_times[[0, -1]]
    rows = [
        (snapshots.time_name, f"{snapshots.n_times} bins from {first} to {last}"),
        *_box(snapshots.features, snapshots.bounds),
        ("records of one person", f"at most {snapshots.records_per_person}"),
    ]
    note = "Sensitive records, not shown. Only what is public about them:"
    return _card("Snapshots", _paragraph(note) + _table(rows))


def certificate_card(certificate: Certificate) -> str:
    """The guarantee, what it means, and what was paid for."""
    lines = str(certificate).splitlines()[1 if certificate.private else 2 :]
    text = "<br>".join(escape(line).replace("  ", "&ensp;") for line in lines)
    return _card("Privacy certificate", _warning(certificate) + f"<div>{text}</div>")


def model_card(model: TrajectoryModel) -> str:
    """The guarantee, the size, and small pictures of the first features over time."""
    certificate = model.certificate
    times, particles, d = model.particles.shape
    promise = f"epsilon {certificate.epsilon:.3g}, delta {short(certificate.delta)}"
    promise = f"{promise}, {certificate.adjacency}"
    rows = [
        ("guarantee", promise if certificate.private else "none"),
        ("times", f"{times}, {model.time_name} from {model.times[0]} to {model.times[-1]}"),
        ("features", f"{d}: {', '.join(model.features)}"),
        ("particles", f"{particles} per time, by {model.settings.get('measure', 'hand')}"),
    ]
    pictures = "".join(_picture(model, k) for k in range(min(d, _MOST)))
    shown = f'<div style="display:flex;flex-wrap:wrap;gap:1em">{pictures}</div>'
    return _card("Private trajectories", _warning(certificate) + _table(rows) + shown)


def paths_card(paths: Paths) -> str:
    """The first rows of the long table; all of it is synthetic."""
    n, q, _ = paths.values.shape
    few = replace(paths, values=paths.values[: -(-_ROWS // q)])
    first = few.to_arrow().slice(0, _ROWS).to_pydict()
    head = "".join(_cell(name, "th") for name in first)
    body = "".join(
        f"<tr>{''.join(_cell(_written(value)) for value in row)}</tr>"
        for row in zip(*first.values(), strict=True)
    )
    table = f'<table style="border-collapse:collapse"><tr>{head}</tr>{body}</table>'
    return _card("Paths", _paragraph(f"{n} synthetic people at {q} times, {n * q} rows") + table)


def _card(title: str, inside: str) -> str:
    return f'<div style="{_CARD}"><b>{escape(title)}</b>{inside}</div>'


def _paragraph(text: str) -> str:
    return f'<div style="margin:.3em 0">{escape(text)}</div>'


def _warning(certificate: Certificate) -> str:
    if certificate.private:
        return ""
    text = escape(f"NOT PRIVATE: {certificate.caveat}. Do not release it.")
    return f'<div style="margin:.4em 0"><span style="{_WARNING}">{text}</span></div>'


def _box(features: Sequence[str], bounds: NDArray[np.float64]) -> Iterable[tuple[str, str]]:
    for name, (low, high) in zip(features, bounds, strict=True):
        yield name, f"in [{low:g}, {high:g}]"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr>{_cell(name, 'th')}{_cell(value)}</tr>" for name, value in rows)
    return f'<table style="border-collapse:collapse;margin:.3em 0">{cells}</table>'


def _cell(text: str, kind: str = "td") -> str:
    style = "text-align:left;padding:.1em .9em .1em 0;background:none"
    return f'<{kind} style="{style}">{escape(text)}</{kind}>'


def _written(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _picture(model: TrajectoryModel, feature: int) -> str:
    """Median and middle 80 % of the particles over time, inside the public bounds."""
    clouds = model.marginals[:, :, feature]
    low, high = model.bounds[feature]
    knots = model.numeric_times
    x = _WIDTH * (knots - knots[0]) / (knots[-1] - knots[0])
    below, middle, above = _HEIGHT * (
        1 - (np.quantile(clouds, (0.1, 0.5, 0.9), axis=1) - low) / (high - low)
    )
    band = _points(np.append(x, x[::-1]), np.append(below, above[::-1]))
    name = escape(model.features[feature])
    return (
        f'<figure style="margin:.3em 0"><svg width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="median and middle 80 % of {name} over time">'
        f'<rect width="100%" height="100%" fill="none" stroke="#8886"/>'
        f'<polygon points="{band}" fill="{BLUE}" fill-opacity=".6"/>'
        f'<polyline points="{_points(x, middle)}" fill="none" stroke="{VERMILION}" '
        f'stroke-width="2"/></svg><figcaption>{name}, {low:g} to {high:g}</figcaption></figure>'
    )


def _points(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
