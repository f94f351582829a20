"""Plots of what was released: paths and marginals.

    import privtraj as pt
    pt.plot.marginals(model)
    pt.plot.paths(model, "lon", "lat", n=200)
    pt.plot.marginals(model, "stage")
    pt.plot.marginals(model, "hba1c", by="diagnosis")

Every function takes `ax`, draws on new axes without it, and returns the axes it drew on, so that
titles and limits can be changed as usual. New axes are those of pyplot, which a notebook shows.
Nothing here sees data: a model is sampled, with a fixed seed, which costs no privacy. matplotlib is
loaded when something is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.errors import InputError
from privtraj.base.files import atomic_path
from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Angle, Category, Date
from privtraj.model.model import TrajectoryModel
from privtraj.model.paths import Paths
from privtraj.report import maps
from privtraj.report.labels import DAY, Drawn, shares_of
from privtraj.report.people import bands

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Tints of blue, and vermilion, of the Okabe-Ito palette, which colour-blind readers tell apart.
PALE = "#d3e6f2"
BLUE = "#8cbfe0"
VERMILION = "#D55E00"
GREY = "#5f6b76"
INK = "#22272c"

_PEOPLE = 1000  # sampled from a model
FEWEST = 20  # of them in a group, for a mean


# What all figures share ------------------------------------------------------------------------


def save_figure(figure: Figure, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write the figure in the format of the suffix (.png, .pdf, .svg), whole or not at all."""
    suffix = Path(path).suffix.lower().lstrip(".")
    if suffix not in figure.canvas.get_supported_filetypes():
        raise InputError(f"a figure cannot be saved as '{Path(path).name}': use .png, .pdf or .svg")
    with atomic_path(path, force) as temporary:
        figure.savefig(temporary, format=suffix, dpi=160)


def decorate(axes: Axes, x: str, y: str) -> None:
    """Labels, a quiet grid, no box."""
    axes.set_xlabel(x, fontsize=10, color=INK)
    axes.set_ylabel(y, fontsize=10, color=INK)
    axes.tick_params(labelsize=9, colors=INK, length=3, color="#9aa4ad")
    axes.grid(color="#d9dee3", lw=0.6, alpha=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#9aa4ad")


def _literal(text: str) -> str:
    """A column's name as it is: matplotlib would read formulas between dollar signs."""
    return text.replace("$", r"\$")


def _date_marks() -> tuple[Any, Any]:
    """A locator of few and readable dates, and how they are written."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=6)
    return locator, ConciseDateFormatter(locator)


def _legend(ax: Axes, *which: Any, **where: Any) -> None:
    ax.legend(*which, fontsize=8.5, frameon=False, **where)


# People ----------------------------------------------------------------------------------------


class _Shown:
    """Sampled people as they are drawn, their times in order.

    values: {name: (n, q)} of time and of the features, NaN where people are not there; dates in
    days since 1970, as matplotlib counts.  dates: names of those.
    """

    def __init__(self, source: Any) -> None:
        self.domain = None
        if isinstance(source, TrajectoryModel):
            self.domain = source.domain
            knots, datetime = source.numeric_times, source.datetime
            times = np.union1d(np.linspace(knots[0], knots[-1], 101), knots)
            source = source.sample(_PEOPLE, as_user_times(times, datetime), seed=0)
        if not isinstance(source, Paths):
            raise InputError("a plot of people takes the paths of a sample, or a model")
        order = np.argsort(source.numeric_times, kind="stable")
        there = np.where(source.present[..., None], source.values, np.nan)[:, order]
        times = np.broadcast_to(source.numeric_times[order], there.shape[:2])
        self.paths, self.time = source, source.time_name
        self.columns = {column.name: column for column in source.columns}
        named = zip(source.features, np.moveaxis(there, 2, 0), strict=True)
        self.values = {self.time: times, **dict(named)}
        self.dates = {name for name, column in self.columns.items() if isinstance(column, Date)}
        if source.datetime and self.time not in source.features:
            self.dates.add(self.time)
        for name in self.dates:
            self.values[name] = self.values[name] / DAY
        self.times = times[0] / (DAY if source.datetime else 1.0)

    def category(self, name: str) -> Category | None:
        """The column of this name, if it is a category."""
        column = self.columns.get(name)
        return column if isinstance(column, Category) else None

    def drawn(self, name: str) -> tuple[NDArray[np.int64], Drawn]:
        """Levels (n, q) of a category, -1 for who is not there, and how they are drawn."""
        column = self.category(name)
        if column is None:
            raise InputError(f"'{name}' is not a category, by which people could be told apart")
        levels = np.nan_to_num(self.values[name], nan=-1).astype(np.int64)
        return levels, Drawn.of(column, shares_of(levels, column.levels).mean(axis=0))

    def jumps(self, name: str) -> NDArray[np.bool_]:
        """(n, q - 1) where an angle passes its end, and a line is broken."""
        column = self.columns.get(name)
        period = column.period if isinstance(column, Angle) else np.inf
        return np.abs(np.diff(self.values[name])) > period / 2

    def check_known(self, names: Sequence[str], known: Sequence[str]) -> None:
        for name in names:
            if name not in known:
                raise InputError(f"there is no '{name}' to draw: choose among {', '.join(known)}")

    def decorate(self, axes: Axes, across: str, up: str, label: str = "") -> None:
        """As `decorate`, with marks of dates and few marks of time, which follow whoever moves or
        enlarges the plot.  label: of the axis upwards, if not its name."""
        from matplotlib.ticker import MaxNLocator

        for axis, name in ((axes.xaxis, across), (axes.yaxis, up)):
            if name in self.dates:
                locator, formatter = _date_marks()
                axis.set_major_locator(locator)
                axis.set_major_formatter(formatter)
            elif name == self.time:
                axis.set_major_locator(MaxNLocator(5))
        decorate(axes, _literal(across), label or _literal(up))


def paths(
    source: Paths | TrajectoryModel,
    x: str | None = None,
    y: str | None = None,
    *,
    n: int = 100,
    by: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Single synthetic people, each a line that is coloured by time, or by what they are at first.

    x, y: names of features, or of the time. By default the first two features, and the only one
    over time. Places on a map, such as lon and lat or x and y, keep their proportions; coasts and
    borders stand behind longitude and latitude, and behind people of a model its domain.
    by: a category.
    """
    shown = _Shown(source)
    shown.check_known([] if by is None else [by], shown.paths.features)
    features, time = shown.paths.features, shown.time
    usual = [name for name in features if not shown.category(name)] or list(features)
    across = x or (usual[0] if len(usual) > 1 and y != usual[0] else time)
    up = y or next((name for name in usual if name != across), usual[0])
    shown.check_known((across, up), (*features, time))
    for name in (across, up):
        if shown.category(name):
            raise InputError(
                f"'{name}' is a category, which has no line: draw it with plot.marginals"
            )
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(layout="constrained")[1]
    count = len(shown.paths)
    people = np.unique(np.linspace(0, count - 1, min(count, n)).round().astype(int))
    look = dict.fromkeys(people.tolist(), BLUE)
    if by is not None:
        levels, drawn = shown.drawn(by)
        first = levels[np.arange(count), (levels >= 0).argmax(axis=1)]  # where they begin
        look = {k: drawn.colours[drawn.group[first[k]]] for k in look}
        _key(ax, drawn)
    if across == time or by is not None:
        for k, colour in look.items():
            gaps = np.flatnonzero(shown.jumps(across)[k] | shown.jumps(up)[k]) + 1
            at = shown.times if across == time else shown.values[across][k]
            line = np.insert(shown.values[up][k], gaps, np.nan)
            ax.plot(np.insert(at, gaps, at[gaps]), line, colour, lw=0.8, alpha=0.5)
    else:
        _draw_pieces(ax, shown, people, across, up)
    if across != time:
        maps.draw_map(ax, shown.paths, across, up, shown.domain)
    shown.decorate(ax, across, up)
    return ax


def _draw_pieces(ax: Axes, shown: _Shown, people: NDArray[Any], across: str, up: str) -> None:
    """Lines of people in pieces, each in the colour of its time, and a bar of these colours."""
    from matplotlib.collections import LineCollection

    lines = np.stack([shown.values[across], shown.values[up]], axis=2)[people]  # (n, q, 2)
    pieces = np.stack([lines[:, :-1], lines[:, 1:]], axis=2)
    jumps = shown.jumps(across)[people] | shown.jumps(up)[people]
    whole = ~(np.isnan(pieces).any(axis=(2, 3)) | jumps)  # there at both times
    middles = np.broadcast_to((shown.times[:-1] + shown.times[1:]) / 2, whole.shape)
    coloured = LineCollection(list(pieces[whole]), cmap="viridis", lw=0.9, alpha=0.6)
    coloured.set_array(middles[whole])
    coloured.set_clim(shown.times[0], shown.times[-1])
    ax.add_collection(coloured)
    ax.autoscale_view()
    locator, formatter = _date_marks() if shown.paths.datetime else (None, None)
    marks: dict[str, Any] = {"ticks": locator, "format": formatter}
    bar: Any = ax.figure.colorbar(coloured, ax=ax, pad=0.02, aspect=28, **marks)
    if bar.solids is not None:
        bar.solids.set_alpha(1)
    bar.outline.set_visible(False)
    bar.set_label(_literal(shown.time), fontsize=10, color=INK)


def marginals(
    source: Paths | TrajectoryModel,
    features: str | Sequence[str] | None = None,
    *,
    by: str | None = None,
    ax: Axes | Sequence[Axes] | None = None,
) -> Axes | NDArray[Any]:
    """Median, middle half and middle 80 % of the people over time, one panel per feature; of a
    category the shares of its values.

    by: a category, for the mean and the middle half of those who have each of its values instead.
    Returns the axes, or an array of them if several features are drawn.
    """
    shown = _Shown(source)
    names = shown.paths.features if features is None else features
    names = (names,) if isinstance(names, str) else tuple(names)
    shown.check_known((*names, *([] if by is None else [by])), shown.paths.features)
    if ax is None:
        from matplotlib import pyplot

        rows, columns = -(-len(names) // 3), min(len(names), 3)  # three in a row
        figure = pyplot.figure(layout="constrained", figsize=(4.3 * columns, 3.4 * rows))
        panels = [figure.add_subplot(rows, columns, k + 1) for k in range(len(names))]
    else:
        panels = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(panels) != len(names):
        raise InputError(f"{len(names)} features need as many axes: ax has {len(panels)}")
    for panel, name in zip(panels, names, strict=True):
        if shown.category(name):
            _draw_shares(panel, shown, name)
        elif by is not None:
            _draw_groups(panel, shown, name, by)
        else:
            _draw_bands(panel, shown, name)
    banded = [p for p, name in zip(panels, names, strict=True) if not shown.category(name)]
    for panel in banded[: by is None]:  # all have the same legend
        _legend(panel)
    return panels[0] if len(panels) == 1 else np.array(panels, dtype=object)


def _draw_bands(axes: Axes, shown: _Shown, name: str) -> None:
    """Median, middle half and middle 80 % of the people over time."""
    low, lower, middle, upper, high = bands(shown.values[name][..., None])[0]
    axes.fill_between(shown.times, low, high, color=PALE, lw=0, label="middle 80 % of people")
    axes.fill_between(shown.times, lower, upper, color=BLUE, lw=0, label="middle half of people")
    marker = "o" if len(shown.times) == 1 else ""  # a line through one point would be invisible
    axes.plot(shown.times, middle, VERMILION, lw=2.2, marker=marker, label="median", zorder=4)
    axes.margins(x=0.01)
    shown.decorate(axes, shown.time, name)


def _draw_groups(axes: Axes, shown: _Shown, name: str, by: str) -> None:
    """Mean and middle half of the people with each value of a category over time."""
    levels, drawn = shown.drawn(by)
    for k, colour in enumerate(drawn.colours):
        who = (levels >= 0) & (drawn.group[levels] == k) & ~np.isnan(shown.values[name])
        many = who.sum(axis=0)
        mean = np.where(who, shown.values[name], 0).sum(axis=0) / np.maximum(many, 1)
        lower, upper = bands(np.where(who, shown.values[name], np.nan)[..., None], (0.25, 0.75))[0]
        enough = many >= FEWEST
        look: dict[str, Any] = {"where": enough, "color": colour, "lw": 0, "alpha": 0.15}
        axes.fill_between(shown.times, lower, upper, **look)
        axes.plot(shown.times, np.where(enough, mean, np.nan), color=colour, lw=2)
    axes.margins(x=0.01)
    shown.decorate(axes, shown.time, name)
    _key(axes, drawn)


def _draw_shares(axes: Axes, shown: _Shown, name: str) -> None:
    """Shares of the values of a category over time, as stacked bands."""
    levels, drawn = shown.drawn(name)
    held, labels = drawn.shares(levels), [_literal(label) for label in drawn.labels]
    if len(shown.times) == 1:  # bands of one time would be invisible
        feet = np.cumsum(held[0]) - held[0]
        for k, (label, colour) in enumerate(zip(labels, drawn.colours, strict=True)):
            axes.bar(shown.times, held[0, k], bottom=feet[k], color=colour, label=label)
    else:
        look: dict[str, Any] = {"edgecolor": "white", "lw": 0.6}
        axes.stackplot(shown.times, held.T, labels=labels, colors=drawn.colours, **look)
    axes.margins(x=0)
    axes.set_ylim(0, 1)
    shown.decorate(axes, shown.time, name, f"share of people by {_literal(name)}")
    _key(axes, drawn)


def _key(axes: Axes, drawn: Drawn) -> None:
    """What the colours of a category mean, the upper first, as in the picture."""
    from matplotlib.patches import Patch

    keys = [Patch(color=colour, label=_literal(label))
            for label, colour in zip(drawn.labels, drawn.colours, strict=True)]  # fmt: skip
    _legend(axes, handles=keys[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5))
