"""Panels of people moving in the plane, coloured by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import short
from privtraj.plot import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

Box = tuple[float, float]
Clouds = NDArray[Any] | Sequence[NDArray[Any]]

PANEL = 1.75  # inches


def blank(width: float, height: float, layout: Any = "constrained") -> Figure:
    """An empty figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout, facecolor="white")


def grid(rows: int, columns: int, panel: float = PANEL) -> tuple[Figure, list[list[Axes]]]:
    """Empty square panels, and room for titles."""
    figure = blank(panel * columns + 0.4, panel * rows + 0.5)
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(row) for row in axes]


def gallery(
    labels: Sequence[int],
    columns: Mapping[str, Mapping[str, str]],
    drawn: Sequence[Mapping[str, Any]],
) -> tuple[Figure, list[list[Axes]]]:
    """A row of panels for every label, from what is drawn of it.

    columns: title, and which of the drawn a panel shows as its clouds and paths.
    """
    figure, axes = grid(len(labels), len(columns))
    for i, (label, row) in enumerate(zip(labels, drawn, strict=True)):
        for j, (title, parts) in enumerate(columns.items()):
            content = {kind: row[name] for kind, name in parts.items()}
            panel(axes[i][j], title if i == 0 else "", str(label) if j == 0 else "", **content)
    return figure, axes


def panel(
    axes: Axes,
    title: str = "",
    label: str = "",
    *,
    clouds: Clouds | None = None,
    paths: NDArray[Any] | None = None,
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
        size = float(np.clip(1500 / sum(map(len, clouds)), 1.2, 8.0))
        dots(axes, clouds, when, s=size, alpha=0.75, zorder=2)
    axes.set(xlim=box, ylim=box, aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_color("#c3cad1")
    if title:
        axes.set_title(title, fontsize=8.5, color=INK)
    if label:
        axes.set_ylabel(label, fontsize=9.5, color=INK)


def dots(axes: Axes, clouds: Clouds, when: Floats, **style: Any) -> PathCollection:
    """T clouds (n, 2) coloured by their times (T,) in [0, 1].

    All times are in one shuffled collection, so that none hides the others.
    """
    points = np.concatenate([np.asarray(cloud) for cloud in clouds])
    colour = np.repeat(when, [len(cloud) for cloud in clouds])
    order = np.random.default_rng(0).permutation(len(points))
    x, y = points[order].T
    scale: dict[str, Any] = {"c": colour[order], "cmap": "viridis", "vmin": 0, "vmax": 1}
    return axes.scatter(x, y, **scale, lw=0, rasterized=True, **style)


def one_two_five(axis: Axis) -> None:
    """Ticks at 1, 2, 5 of every decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def dithered(values: Floats, width: float = 1 / 28, seed: int = 0) -> Floats:
    """Spread evenly over their pixels, for the eye."""
    offsets = np.random.default_rng(seed).uniform(-width / 2, width / 2, values.shape)
    return np.asarray(values + offsets)


def thinned(cloud: Floats, n: int, seed: int = 0) -> Floats:
    """At most n of the points, at random."""
    rng = np.random.default_rng(seed)
    return cloud[rng.choice(len(cloud), min(n, len(cloud)), replace=False)]
