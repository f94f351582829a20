"""Panels of people moving in the plane, coloured by time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privtraj.arrays import Floats
from privtraj.report.style import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Box = tuple[float, float]

PANEL = 1.75  # inches


def grid(rows: int, columns: int, panel: float = PANEL) -> tuple[Figure, list[list[Axes]]]:
    """Empty square panels, and room for titles."""
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(panel * columns + 0.4, panel * rows + 0.5), layout="constrained", facecolor="white"
    )
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(row) for row in axes]


def panel(
    axes: Axes,
    title: str = "",
    label: str = "",
    *,
    clouds: Floats | list[Floats] | None = None,
    paths: Floats | None = None,
    moments: Floats | None = None,
    box: Box = (0.0, 1.0),
) -> None:
    """clouds: T of (n, 2), dots coloured by time.  paths: (n, q, 2), thin lines.

    moments: (T,) of the clouds as shares of the whole time, by which they are coloured.
    """
    if paths is not None:
        axes.plot(*paths.transpose(2, 1, 0), color=GREY, lw=0.45, alpha=0.55, zorder=1)
    if clouds is not None:
        when = np.linspace(0, 1, len(clouds)) if moments is None else moments
        _dots(axes, clouds, when)
    axes.set(xlim=box, ylim=box, aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_color("#c3cad1")
    if title:
        axes.set_title(title, fontsize=8.5, color=INK)
    if label:
        axes.set_ylabel(label, fontsize=9.5, color=INK)


def _dots(axes: Axes, clouds: Floats | list[Floats], when: Floats) -> None:
    """All times in one shuffled collection, so that none hides the others."""
    points = np.concatenate([np.asarray(cloud) for cloud in clouds])
    colour = np.repeat(when, [len(cloud) for cloud in clouds])
    order = np.random.default_rng(0).permutation(len(points))
    size = float(np.clip(1500 / len(points), 1.2, 8.0))
    x, y = points[order].T
    axes.scatter(
        x,
        y,
        c=colour[order],
        cmap="viridis",
        vmin=0,
        vmax=1,
        s=size,
        alpha=0.75,
        lw=0,
        zorder=2,
        rasterized=True,
    )


def dithered(values: Floats, width: float = 1 / 28, seed: int = 0) -> Floats:
    """Spread evenly over their pixels, for the eye."""
    moved: Floats = values + np.random.default_rng(seed).uniform(
        -width / 2, width / 2, values.shape
    )
    return moved


def thinned(cloud: Floats, n: int, seed: int = 0) -> Floats:
    """At most n of the points, at random."""
    rng = np.random.default_rng(seed)
    return cloud[rng.choice(len(cloud), min(n, len(cloud)), replace=False)]
