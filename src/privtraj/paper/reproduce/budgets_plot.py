"""The figure of the privacy figures: what the paper claims, and what is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privtraj.paper.reproduce.drawing import blank, one_two_five
from privtraj.paper.reproduce.tables import Row
from privtraj.report.style import BLUE, GREY, INK, VERMILION, decorate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE = "#c3cad1"
_RANGE = (0.016, 2.5)  # leaves room for words on the left
_EXACT = {"add-remove": BLUE, "replace-one": VERMILION}


def budgets_figure(rows: list[Row]) -> Figure:
    """Left: claimed and exact epsilon of every row. Right: if each particle were clipped alone."""
    figure = blank(9.6, 0.29 * len(rows) + 1.6)
    main, side = figure.subplots(1, 2, sharey=True, width_ratios=(2.6, 1))
    _claimed_and_exact(main, rows)
    apart = [(row["per particle"], k) for k, row in enumerate(rows) if row["per particle"]]
    side.scatter(*zip(*apart, strict=True), s=34, color=GREY)
    main.set_yticks(range(len(rows)), labels=[row["what"] for row in rows])
    main.set(xlim=_RANGE, ylim=(len(rows) - 0.4, -0.6))
    _axis(main, r"$\varepsilon$ at the $\delta$ of the figure")
    _axis(side, r"$\varepsilon$ if clipped per particle")
    side.tick_params(labelleft=False)
    _separate((main, side), rows)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9.5)
    return figure


def _claimed_and_exact(axes: Axes, rows: list[Row]) -> None:
    """Three marks on a line, coloured as far as the claim is too small."""
    for k, row in enumerate(rows):
        claimed, exact = row["claimed"], [row[name] for name in _EXACT]
        axes.plot([min(claimed, *exact), max(claimed, *exact)], [k, k], color=_LINE, lw=1.5)
        if claimed < max(exact):
            axes.plot([claimed, max(exact)], [k, k], color=VERMILION, lw=2)
    y = range(len(rows))
    for (name, colour), size in zip(_EXACT.items(), (62, 34), strict=True):
        values = [row[name] for row in rows]
        axes.scatter(values, y, s=size, color=colour, label=f"exact, {name}", zorder=3)
    values, label = [row["claimed"] for row in rows], "claimed in the paper"
    axes.scatter(values, y, s=110, color=INK, marker="|", lw=2, label=label, zorder=4)
    axes.plot([], [], color=VERMILION, lw=2, label="the claim is too small by this")


def _axis(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    one_two_five(axes.xaxis)
    decorate(axes, label, "")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _separate(panels: tuple[Axes, Axes], rows: list[Row]) -> None:
    """Where in the paper it stands, and a thin line before the next such place."""
    main, _ = panels
    for k, row in enumerate(rows):
        if k > 0 and row["where"] == rows[k - 1]["where"]:
            continue
        place = (0.01, k)
        across = main.get_yaxis_transform()
        main.annotate(row["where"], place, xycoords=across, va="center", color=GREY, fontsize=9)
        for axes in panels if k > 0 else ():
            axes.axhline(k - 0.5, color="#d9dee3", lw=0.8)
