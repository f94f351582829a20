"""Figures of the measured theorems, from their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.errors import short
from privtraj.plot import BLUE, GREY, INK, VERMILION, decorate
from reproduce.drawing import blank, one_two_five
from reproduce.fits import Power, bound, curve, select
from reproduce.tables import Row, mean_of, means_along, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL = (4.4, 3.7)  # inches
_SHADES = (0.05, 0.8)  # of viridis, from the first line to the last


def figures(rows: list[Row]) -> dict[str, Figure]:
    """By file name."""
    return {
        "rates-convergence": _convergence(rows),
        "rates-statistics": _statistics(rows),
        "rates-paths": _paths(rows),
        "rates-discretisation": _discretisation(rows),
    }


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width, height = _PANEL
    figure = blank(width * count, height, ConstrainedLayoutEngine(wspace=0.06))
    return figure, list(np.ravel(figure.subplots(1, count)))


def _colours(count: int) -> list[Any]:
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(*_SHADES, count)))


def _finish(axes: Axes, x: str, y: str, title: str = "", corner: Any = "best") -> None:
    decorate(axes, x, y)
    axes.set_title(title, fontsize=10.5, color=INK, loc="left")
    axes.legend(frameon=False, fontsize=8.5, handlelength=1.6, labelcolor=INK, loc=corner)


def _logarithmic(axes: Axes, places: list[float]) -> None:
    """Both axes; ticks where something was measured, and at 1, 2, 5 of every decade."""
    from matplotlib.ticker import NullLocator

    axes.set(xscale="log", yscale="log")
    axes.set_xticks(places, labels=[short(place) for place in places])
    axes.xaxis.set_minor_locator(NullLocator())
    one_two_five(axes.yaxis)


def _convergence(rows: list[Row]) -> Figure:
    """A panel for every strength of the fit, a curve for every temperature."""
    decays = select(rows, "decay")
    kinds = sorted({(row["lam"], row["T"]) for row in decays})
    figure, panels = _panels(len(kinds))
    for axes, (lam, times) in zip(panels, kinds, strict=True):
        these = sorted(select(decays, "decay", lam=lam, T=times), key=lambda row: row["tau"])
        for row, colour in zip(these, _colours(len(these)), strict=True):
            _descent(axes, rows, row, colour)
        axes.plot([], [], color=GREY, lw=1.2, ls="--", label=r"printed rate, if $C_{LSI} = 1/v$")
        axes.set_yscale("log")
        highest = 15 * max(row["start"] - row["limit"] for row in these)
        lowest = min(row["noise"] for row in these) / 2
        if 0 < lowest < highest:
            axes.set_ylim(lowest, highest)
        title = rf"$T$ = {times}, $\lambda$ = {lam:g}"
        x, y = r"time of the dynamics, $k\eta$", r"$F - \min F$"
        _finish(axes, x, y, title, "upper right")
    return figure


def _descent(axes: Axes, rows: list[Row], line: Row, colour: Any) -> None:
    """Points down to the noise, the fitted exponential, and the decrease at the printed rate."""
    same = {name: line[name] for name in ("T", "lam", "tau")}
    t, value = curve(select(rows, "convergence", **same))
    shown = slice(int(np.argmax(value - line["limit"] < line["noise"])) or len(t))
    t, left = t[shown], value[shown] - line["limit"]
    label = rf"$\tau$ = {line['tau']:g}: rate {line['rate']:.3g}, printed {line['bound']:.2g}"
    axes.plot(t, left, "o", ms=3.8, color=colour, alpha=0.8, mew=0, label=label)
    span = t[line["first"] : line["last"]]
    axes.plot(span, line["size"] * np.exp(-line["rate"] * span), color=colour, lw=1.8)
    fastest = left[0] * np.exp(-line["bound"] * (t - t[0]))
    axes.plot(t, fastest, color=colour, lw=1.2, ls="--")
    for bent in select(rows, "curvature", **same):
        slowest = left[0] * np.exp(-2 * max(bent["least"], 0) * (t - t[0]))
        label = f"printed rate, at least {2 * bent['least']:.2g} (Bakry, Emery)"
        axes.fill_between(t, fastest, slowest, color=colour, alpha=0.12, lw=0, label=label)


def _statistics(rows: list[Row]) -> Figure:
    """Error over T for every N, over N for every T, and over the number of times drawn."""
    figure, (left, middle, right) = _panels(3)
    constant = select(rows, "constant")[0]["largest"]
    cells = select(rows, "statistics", noise=True, factor=1.0)
    _error(left, cells, "T", "N", constant)
    _error(middle, cells, "N", "T", constant)
    bare = select(rows, "statistics", noise=False)
    label = f"$N$ = {bare[0]['N']}, seen without noise"
    style: dict[str, Any] = {"lw": 1.2, "ms": 5}
    left.plot(*means_along(bare, "T", "error"), "x--", color=VERMILION, label=label, **style)
    between = means_along(select(rows, "interpolation"), "T", "error")
    left.plot(*between, color=GREY, lw=1.2, ls="-.", label="exact at the times, bridges between")
    _some_times(right, rows, constant)
    errors = [row["error"] for row in cells]
    for axes in (left, middle, right):
        axes.set_ylim(min(errors) / 1.5, 3 * max(errors))
    _finish(left, "times $T$", r"error, $\int d_H^2\,dt$", corner="upper right")
    _finish(middle, "people at each time $N$", "", corner="upper right")
    _finish(right, "times drawn at random", "", corner="lower left")
    return figure


def _error(axes: Axes, cells: list[Row], along: str, across: str, constant: float) -> None:
    """A line for every value of `across`, named at its end; the bound dotted."""
    fixed, places = values_of(cells, across), values_of(cells, along)
    for value, colour in zip(fixed, _colours(len(fixed)), strict=True):
        these = [select(cells, "statistics", **{across: value, along: at}) for at in places]
        _line(axes, places, these, colour)
        limits = [constant * bound(at[0]["T"], at[0]["N"]) for at in these]
        axes.plot(places, limits, color=colour, lw=1.1, ls=":")
        end = (places[-1], mean_of(these[-1], "error"))
        axes.annotate(f"  ${across}$ = {value}", end, color=colour, fontsize=8.5, va="center")
    axes.plot([], [], color=GREY, lw=1.1, ls=":", label=rf"{constant:.2g} $\times$ bound")
    _logarithmic(axes, places)
    axes.set_xlim(places[0] / 1.2, places[-1] * (places[-1] / places[0]) ** 0.27)


def _line(
    axes: Axes, places: list[int], groups: list[list[Row]], colour: Any, **style: Any
) -> None:
    """Mean error of the groups, with its standard deviation over seeds."""
    errors = [mean_of(group, "error") for group in groups]
    bars = [np.std([row["error"] for row in group]) for group in groups]
    axes.errorbar(places, errors, bars, fmt="o-", color=colour, ms=4.5, lw=1.6, **style)


def _some_times(axes: Axes, rows: list[Row], constant: float) -> None:
    """T^alpha times of T drawn at random: measured, as the corollary is printed, as it must be."""
    drawn = select(rows, "some times")
    whole, people = drawn[0]["T"], drawn[0]["N"]
    used = values_of(drawn, "used")
    places = [*used, whole]
    everything = select(rows, "statistics", T=whole, N=people, noise=True, factor=1.0)
    groups = [select(drawn, "some times", used=z) for z in used] + [everything]
    _line(axes, places, groups, INK, label=f"measured, of $T$ = {whole}, $N$ = {people}")
    named = rf"{constant:.2g} $\times$ bound"
    printed = [constant * bound(whole / z, people) for z in places]
    axes.plot(places, printed, color=VERMILION, lw=1.3, ls=":", label=f"{named}, as printed")
    meant = [constant * bound(z, people) for z in places]
    axes.plot(places, meant, color=BLUE, lw=1.5, ls=":", label=f"{named}, corrected")
    _logarithmic(axes, places)


def _paths(rows: list[Row]) -> Figure:
    """Marginals of sampled chains, and the cost of laws of paths with several couplings."""
    figure, (left, right) = _panels(2)
    sampled = [row for row in select(rows, "paths") if "paths" in row]
    count = [row["paths"] for row in sampled]
    for name, fmt, colour, label in (
        ("draws_squared_w2", "s--", GREY, "independent draws of particles"),
        ("squared_w2", "o-", VERMILION, "paths over entropic plans"),
    ):
        values = [row[name] for row in sampled]
        left.plot(count, values, fmt, color=colour, label=label, ms=4.5, lw=1.6)
    left.set(xscale="log", yscale="log")
    _finish(left, "number of paths", "squared $W_2$ to the particles", "marginals of the paths")
    coupled = {row["coupling"]: row for row in select(rows, "paths") if "coupling" in row}
    cost = [row["cost"] for row in coupled.values()]
    right.bar(list(coupled), cost, color=[VERMILION, BLUE, BLUE], width=0.55, zorder=2)
    value = coupled["entropic"]["transport"]
    label = rf"$\sum_i T_i / \Delta t_i$ = {value:.3f}"
    right.axhline(value, color=INK, lw=1.2, ls="--", label=label, zorder=3)
    x, y = "coupling of neighbouring times", r"$\tau H(R\,|\,W)$, up to the marginals' part"
    _finish(right, x, y, "objective over laws of paths", "upper right")
    right.grid(visible=False, axis="x")
    return figure


def _discretisation(rows: list[Row]) -> Figure:
    """Distance of G from its limit, over particles and over the step."""
    figure, (left, right) = _panels(2)
    _bias(left, rows, "particles", "m")
    _bias(right, rows, "steps", "eta")
    _finish(left, "particles $m$", r"$G - \lim G$", "finitely many particles")
    _finish(right, r"step $\eta$", "", "steps of finite size")
    return figure


def _bias(axes: Axes, rows: list[Row], check: str, name: str) -> None:
    line = select(rows, "power", of=check)[0]
    law = Power(line["limit"], line["factor"], line["exponent"])
    measured, values = means_along(select(rows, check), name, "G")
    places, above = np.array(measured, float), np.array(values) - law.limit
    axes.plot(places, above, "o", color=VERMILION, ms=6, label="measured", zorder=3)
    small, symbol, widest = (places, r"\eta^{", -1) if name == "eta" else (1 / places, "m^{-", 0)
    label = rf"$\propto {symbol}{law.exponent:.2f}}}$, fitted with the limit"
    axes.plot(places, law(small) - law.limit, color=INK, lw=1.5, label=label)
    guide = above[widest] / small[widest] * small
    axes.plot(places, guide, color=GREY, lw=1.2, ls="--", label=rf"$\propto {symbol}1}}$")
    _logarithmic(axes, measured)
