"""Figures of a released model. They show sampled people only, so they may leave with the model.

Figures are built without pyplot: nothing here opens a window or changes global settings.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.errors import InputError
from privtraj.files import atomic_path
from privtraj.report.drawing import (
    draw_bands,
    in_order,
    literal,
    spread,
    time_bar,
)
from privtraj.report.style import GREY, INK, VERMILION, decorate
from privtraj.report.ticks import time_labels
from privtraj.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privtraj.model import TrajectoryModel
    from privtraj.paths import Paths

LARGEST_OVERVIEW = 8  # features drawn over time

_THIN_PATHS = 60
_CLOUD_TIMES = 6
_CLOUD_PEOPLE = 250
_COLUMNS = 3
_PANEL = (4.3, 3.7)  # inches
_RESOLUTION = 160  # dots per inch


def overview(model: TrajectoryModel, paths: Paths) -> Figure:
    """Sampled people over time, one panel per feature, and the first two features together.

    Each panel has a few single paths, the bands that hold the middle half and the middle 80 % of
    the people, and the median.
    """
    from matplotlib.figure import Figure

    shown = min(len(paths.features), LARGEST_OVERVIEW)
    panels = shown + (len(paths.features) > 1)
    columns = min(panels, _COLUMNS)
    rows = -(-panels // columns)
    size = (max(_PANEL[0] * columns, 6.4), _PANEL[1] * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    grid = figure.add_gridspec(rows, columns)
    axes = [figure.add_subplot(grid[divmod(k, columns)]) for k in range(panels)]
    for k in range(shown):
        _over_time(axes[k], model, paths, k)
    if panels > shown:
        _together(axes[-1], paths)
    _title(figure, model, paths, shown)
    _legend(figure, axes[0])
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write the figure in the format of the suffix (.png, .pdf, .svg), whole or not at all."""
    suffix = Path(path).suffix.lower().lstrip(".")
    if suffix not in figure.canvas.get_supported_filetypes():
        raise InputError(f"a figure cannot be saved as '{Path(path).name}': use .png, .pdf or .svg")
    with atomic_path(path, force) as temporary:
        figure.savefig(temporary, format=suffix, dpi=_RESOLUTION)


def _over_time(axes: Axes, model: TrajectoryModel, paths: Paths, feature: int) -> None:
    order = in_order(paths)
    times = paths.times[order]
    lines = paths.values[spread(len(paths), _THIN_PATHS)][:, order, feature].T
    marker = "o" if len(times) == 1 else ""
    axes.plot(times, lines, color=GREY, lw=0.5, alpha=0.35, marker=marker, zorder=2.5)
    draw_bands(axes, paths, feature)
    axes.plot([], [], color=GREY, lw=1, label="single synthetic people")
    _mark_bins(axes, model)


def _mark_bins(axes: Axes, model: TrajectoryModel) -> None:
    """Short marks on the lower edge: between them a path is interpolated."""
    edge = axes.get_xaxis_transform()
    axes.vlines(model.times, 0, 0.022, transform=edge, color=INK, lw=1, zorder=5)
    axes.plot([], [], color=INK, lw=0, marker="|", label="fitted times")


def _together(axes: Axes, paths: Paths) -> None:
    """People in the plane of the first two features at a few times, coloured by time."""
    order = in_order(paths)
    chosen = order[spread(len(order), _CLOUD_TIMES)]
    people = spread(len(paths), _CLOUD_PEOPLE)
    moments = paths.numeric_times[chosen]
    points = paths.values[people][:, chosen, :2].reshape(-1, 2)
    when = np.tile(moments, len(people))
    shuffled = np.random.default_rng(0).permutation(len(points))  # so that no time hides another
    look: dict[str, Any] = {"cmap": "viridis", "s": 9, "alpha": 0.75, "lw": 0, "rasterized": True}
    x, y = points[shuffled].T
    dots = axes.scatter(x, y, c=when[shuffled], **look)
    decorate(axes, literal(paths.features[0]), literal(paths.features[1]))
    labels = time_labels(moments, paths.datetime)
    bar = time_bar(axes, dots, paths.time_name, moments, labels)
    bar.ax.tick_params(labelsize=8.5, length=0, colors=INK)


def _title(figure: Figure, model: TrajectoryModel, paths: Paths, shown: int) -> None:
    promise = model.certificate
    people = f"{len(paths)} synthetic people"
    if shown < len(paths.features):
        people += f", first {shown} of {len(paths.features)} features"
    guarantee = (
        rf"differentially private: $\varepsilon$ = {promise.target_epsilon:g}, "
        rf"$\delta$ = {short(promise.delta)}, {promise.adjacency}"
        if promise.private
        else f"NOT PRIVATE: {promise.caveat}, do not release"
    )
    colour = INK if promise.private else VERMILION
    figure.suptitle(f"{people}\n{guarantee}", fontsize=12, color=colour, linespacing=1.5)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = len(labels) if figure.get_figwidth() > 8 else 2
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
