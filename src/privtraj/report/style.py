"""The look that all figures share, and the pieces that several of them are made of.

Figures are drawn by matplotlib, which is loaded when something is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.files import atomic_path
from privtraj.columns.kinds import Category, Date
from privtraj.report.labels import Drawn, ribbons, shares_of
from privtraj.report.people import bands

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privtraj.model.paths import Paths

# Tints of blue, and vermilion, of the Okabe-Ito palette, which colour-blind readers tell apart.
PALE = "#d3e6f2"
BLUE = "#8cbfe0"
VERMILION = "#D55E00"
GREY = "#5f6b76"
INK = "#22272c"

Bar = tuple[str, float, float, float, str]  # name, from, to, number at the end, colour

_ALARMS = np.concatenate([[0.0], np.geomspace(1e-4, 0.02, 40), np.linspace(0.02, 1, 80)[1:]])


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


def literal(text: str) -> str:
    """A column's name as it is: matplotlib would read formulas between dollar signs."""
    return text.replace("$", r"\$")


# People ----------------------------------------------------------------------------------------


def in_order(paths: Paths) -> NDArray[np.intp]:
    """(q,) indices of the times from the first to the last."""
    return np.argsort(paths.numeric_times, kind="stable")


def there(paths: Paths) -> Floats:
    """(n, q, d) values, NaN where people are not there."""
    return np.where(paths.present[..., None], paths.values, np.nan)


def category(paths: Paths, name: str) -> Category | None:
    """The column of this name, if it is a category."""
    named = (one for one in paths.columns if one.name == name and isinstance(one, Category))
    return next(named, None)


def draw_bands(axes: Axes, paths: Paths, feature: int) -> None:
    """Median, middle half and middle 80 % of the people over time."""
    order = in_order(paths)
    times = paths.times[order]
    low, lower, middle, upper, high = bands(there(paths)[:, order, feature, None])[0]
    axes.fill_between(times, low, high, color=PALE, lw=0, label="middle 80 % of people")
    axes.fill_between(times, lower, upper, color=BLUE, lw=0, label="middle half of people")
    marker = "o" if len(times) == 1 else ""  # a line through one point would be invisible
    axes.plot(times, middle, color=VERMILION, lw=2.2, marker=marker, label="median", zorder=4)
    axes.margins(x=0.01)
    decorate(axes, literal(paths.time_name), literal(paths.features[feature]))
    time_axis(axes, paths.datetime)
    date_marks(axes, paths, up=paths.features[feature])


def drawn_levels(paths: Paths, column: Category) -> tuple[Drawn, Ints]:
    """The levels of a category as they are drawn, and those of people (n, q), in order of time;
    -1 for who is not there."""
    values = there(paths)[:, in_order(paths), paths.features.index(column.name)]
    levels = np.nan_to_num(values, nan=-1).astype(np.int64)
    return Drawn.of(column, shares_of(levels, column.levels).mean(axis=0)), levels


def draw_shares(axes: Axes, paths: Paths, column: Category) -> None:
    """Shares of the values of a category over time, as stacked bands."""
    drawn, levels = drawn_levels(paths, column)
    times, shares = paths.times[in_order(paths)], drawn.shares(levels)
    labels = [literal(label) for label in drawn.labels]
    if len(times) == 1:  # bands of one time would be invisible
        feet = np.cumsum(shares[0]) - shares[0]
        for k, (label, colour) in enumerate(zip(labels, drawn.colours, strict=True)):
            axes.bar(times, shares[0, k], bottom=feet[k], color=colour, label=label)
    else:
        look: dict[str, Any] = {"edgecolor": "white", "lw": 0.6}
        axes.stackplot(times, shares.T, labels=labels, colors=drawn.colours, **look)
    axes.set_ylim(0, 1)
    axes.margins(x=0)
    decorate(axes, literal(paths.time_name), f"share of people by {literal(column.name)}")
    time_axis(axes, paths.datetime)
    share_legend(axes)


def draw_flows(axes: Axes, paths: Paths, column: Category, labels: Sequence[str]) -> None:
    """Who goes from which value of a category to which, between the times of the paths.

    labels: (q,) what the times are called.
    """
    drawn, levels = drawn_levels(paths, column)
    shares, width, q = drawn.shares(levels), 0.08, len(labels)
    for k, (name, colour) in enumerate(zip(drawn.labels, drawn.colours, strict=True)):
        foot = shares[:, :k].sum(axis=1)
        axes.bar(range(q), shares[:, k], width, bottom=foot, color=colour, label=literal(name))
    bend = np.linspace(0, 1, 40)
    smooth = bend**2 * (3 - 2 * bend)
    for step, table in enumerate(drawn.flows(levels)):
        x = step + width / 2 + bend * (1 - width)
        for i, _, share, start, end in ribbons(table):
            low = start + smooth * (end - start)
            axes.fill_between(x, low, low + share, color=drawn.colours[i], alpha=0.45, lw=0)
    axes.set_ylim(0, 1)
    decorate(axes, literal(paths.time_name), f"share of people by {literal(column.name)}")
    axes.set_xticks(range(q), labels=labels)
    axes.grid(visible=False)
    share_legend(axes)


def share_legend(axes: Axes) -> None:
    """What the colours of shares or flows mean, beside them, the upper first as in the picture."""
    handles, labels = axes.get_legend_handles_labels()
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=8.5, **beside)


# Time ------------------------------------------------------------------------------------------


def time_axis(axes: Axes, datetime: bool) -> None:
    """Few and readable marks on the time axis; they follow whoever moves or enlarges the plot."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    locator = AutoDateLocator(maxticks=6) if datetime else MaxNLocator(5)
    axes.xaxis.set_major_locator(locator)
    if datetime:
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def date_ticks(low: float, high: float) -> tuple[Floats, list[str]]:
    """Whole dates between two moments in seconds since 1970, and what to write there."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date

    day = 86400.0  # matplotlib counts in days
    locator = AutoDateLocator(maxticks=6)
    marks = np.array(locator.tick_values(num2date(low / day), num2date(high / day)))
    marks = marks[(marks >= low / day) & (marks <= high / day)]
    return marks * day, ConciseDateFormatter(locator).format_ticks(marks)


def date_marks(axes: Axes, paths: Paths, across: str = "", up: str = "") -> None:
    """Dates where an axis has a feature that is one, whose numbers are seconds since 1970."""
    for column in paths.columns:
        if isinstance(column, Date) and column.name in (across, up):
            upright = column.name == up
            marks, labels = date_ticks(*(axes.get_ylim() if upright else axes.get_xlim()))
            (axes.yaxis if upright else axes.xaxis).set_ticks(marks, labels=labels)


# Attacks and budgets ---------------------------------------------------------------------------


def attack_region(
    axes: Axes, rates: Callable[[Floats], Floats], upward: str, area: str | None = None, **edge: Any
) -> None:
    """Where attacks may lie: people found against false alarms, up to `rates`.

    upward: what that axis is.  area, edge: label of the region, look of its upper edge.
    """
    highest = rates(_ALARMS)
    axes.fill_between(_ALARMS, _ALARMS, highest, color=PALE, lw=0, label=area)
    axes.plot(_ALARMS, highest, color=BLUE, **edge)
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", label="guessing")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    decorate(axes, "false alarms", upward)


def named_bars(axes: Axes, bars: Sequence[Bar], label: str, longest: float, size: float) -> None:
    """Bars along an axis that ends after `longest`, the first on top, numbers at their ends."""
    for row, (_, start, end, number, colour) in enumerate(bars):
        axes.barh(row, end - start, left=start, color=colour, height=0.55)
        axes.annotate(f" {number:.3g}", (end, row), va="center", fontsize=size, color=INK)
    axes.set_yticks(range(len(bars)), labels=[literal(name) for name, *_ in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * longest)
    decorate(axes, label, "")
    axes.grid(visible=False, axis="y")
