"""Plots of what was released: paths, marginals, the budget, what it trades for what, an audit.

    import privtraj as pt
    pt.plot.marginals(model)
    pt.plot.paths(model, "lon", "lat", n=200)
    pt.plot.marginals(model, "stage")

Every function takes `ax`, draws on new axes without it, and returns the axes it drew on, so that
titles and limits can be changed as usual. New axes are those of pyplot, which a notebook shows.
Nothing here sees data: a model is sampled, with a fixed seed, which costs no privacy. matplotlib is
loaded when something is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, short
from privtraj.base.files import atomic_path
from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Angle, Category, Date
from privtraj.columns.precision import degrees
from privtraj.model.model import TrajectoryModel
from privtraj.model.paths import Paths
from privtraj.privacy.certificate import Certificate
from privtraj.report import maps, page
from privtraj.report.labels import DAY, Drawn, cut, shares_of
from privtraj.report.people import bands

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privtraj.assess.plan import Forecast
    from privtraj.audit.findings import Audit

# Tints of blue, and vermilion, of the Okabe-Ito palette, which colour-blind readers tell apart.
PALE = "#d3e6f2"
BLUE = "#8cbfe0"
VERMILION = "#D55E00"
GREY = "#5f6b76"
INK = "#22272c"

Bar = tuple[str, float, float, float, str]  # name, from, to, number at the end, colour

_PEOPLE = 1000  # sampled from a model
_ALARMS = np.concatenate([[0.0], np.geomspace(1e-4, 0.02, 40), np.linspace(0.02, 1, 80)[1:]])


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


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _legend(ax: Axes, *which: Any, **where: Any) -> None:
    ax.legend(*which, fontsize=8.5, frameon=False, **where)


# People ----------------------------------------------------------------------------------------


class _Shown:
    """Sampled people as they are drawn, their times in order.

    values: {name: (n, q)} of time and of the features, NaN where people are not there; dates in
    days since 1970, as matplotlib counts.  dates: names of those.
    """

    def __init__(self, source: Any) -> None:
        if isinstance(source, TrajectoryModel):
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
    ax: Axes | None = None,
) -> Axes:
    """Single synthetic people, each a line that is coloured by time.

    x, y: names of features, or of the time. By default the first two features, and the only one
    over time. Places on a map, such as lon and lat or x and y, keep their proportions, and coasts
    and borders stand behind longitude and latitude.
    """
    shown = _Shown(source)
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
    ax, count = _axes(ax), len(shown.paths)
    people = np.unique(np.linspace(0, count - 1, min(count, n)).round().astype(int))
    if across == time:
        for line, jumps in zip(shown.values[up][people], shown.jumps(up)[people], strict=True):
            gaps = np.flatnonzero(jumps) + 1
            at = np.insert(shown.times, gaps, shown.times[gaps])
            ax.plot(at, np.insert(line, gaps, np.nan), BLUE, lw=0.8, alpha=0.5)
    else:
        _draw_pieces(ax, shown, people, across, up)
        maps.draw_map(ax, shown.paths, across, up)
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
    ax: Axes | Sequence[Axes] | None = None,
) -> Axes | NDArray[Any]:
    """Median, middle half and middle 80 % of the people over time, one panel per feature; of a
    category the shares of its values.

    Returns the axes, or an array of them if several features are drawn.
    """
    shown = _Shown(source)
    names = shown.paths.features if features is None else features
    names = (names,) if isinstance(names, str) else tuple(names)
    shown.check_known(names, shown.paths.features)
    if ax is None:
        from matplotlib import pyplot

        panels = _panels(pyplot.figure(layout="constrained"), len(names), 3.4)
    else:
        panels = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(panels) != len(names):
        raise InputError(f"{len(names)} features need as many axes: ax has {len(panels)}")
    for panel, name in zip(panels, names, strict=True):
        (_draw_shares if shown.category(name) else _draw_bands)(panel, shown, name)
    banded = [p for p, name in zip(panels, names, strict=True) if not shown.category(name)]
    for panel in banded[:1]:  # all have the same legend
        _legend(panel)
    return panels[0] if len(panels) == 1 else np.array(panels, dtype=object)


def _panels(figure: Figure, count: int, height: float, more: float = 0.0) -> list[Axes]:
    """Three in a row, of this height, and so much more for a title."""
    rows, columns = -(-count // 3), min(count, 3)
    figure.set_size_inches(max(4.3 * columns, 6.4 if more else 0.0), height * rows + more)
    return [figure.add_subplot(rows, columns, k + 1) for k in range(count)]


def _draw_bands(axes: Axes, shown: _Shown, name: str) -> None:
    """Median, middle half and middle 80 % of the people over time."""
    low, lower, middle, upper, high = bands(shown.values[name][..., None])[0]
    axes.fill_between(shown.times, low, high, color=PALE, lw=0, label="middle 80 % of people")
    axes.fill_between(shown.times, lower, upper, color=BLUE, lw=0, label="middle half of people")
    marker = "o" if len(shown.times) == 1 else ""  # a line through one point would be invisible
    axes.plot(shown.times, middle, VERMILION, lw=2.2, marker=marker, label="median", zorder=4)
    axes.margins(x=0.01)
    shown.decorate(axes, shown.time, name)


def _draw_shares(axes: Axes, shown: _Shown, name: str) -> None:
    """Shares of the values of a category over time, as stacked bands."""
    column = shown.category(name)
    assert column is not None
    levels = np.nan_to_num(shown.values[name], nan=-1).astype(np.int64)  # -1: not there
    drawn = Drawn.of(column, shares_of(levels, column.levels).mean(axis=0))
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
    handles, named = axes.get_legend_handles_labels()  # the upper first, as in the picture
    _legend(axes, handles[::-1], named[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5))


def overview(model: TrajectoryModel, people: Paths) -> Figure:
    """Sampled people over time, one panel per feature, and two numbers together: longitude and
    latitude on their map, or the first two. The title states the guarantee.

    The figure is made without pyplot, for a file: see `save_figure`.
    """
    from matplotlib.figure import Figure

    names, shown = people.features[:8], _Shown(people)
    numbers = [name for name in people.features if not shown.category(name)]
    figure = Figure(layout="constrained", facecolor="white")
    axes = _panels(figure, len(names) + (len(numbers) > 1), 3.7, more=0.9)
    marginals(people, names, ax=axes[: len(names)])
    if len(numbers) > 1:
        globe = degrees(people.features, model.bounds)
        paths(people, *([people.features[k] for k in globe] if globe else numbers[:2]), ax=axes[-1])
    promise, title = model.certificate, f"{len(people)} synthetic people"
    if len(names) < len(people.features):
        title += f", first {len(names)} of {len(people.features)} features"
    title += (
        f"\ndifferentially private: $\\varepsilon$ = {promise.target_epsilon:g}, "
        f"$\\delta$ = {short(promise.delta)}, {promise.adjacency}"
        if promise.private
        else f"\nNOT PRIVATE: {promise.caveat}, do not release"
    )
    figure.suptitle(title, fontsize=12, color=INK if promise.private else VERMILION)
    return figure


# Attacks and budgets ---------------------------------------------------------------------------


def budget(source: TrajectoryModel | Certificate, *, ax: Axes | None = None) -> Axes:
    """Where epsilon went: what each release added, in the order in which it was paid for."""
    certificate = _certificate(source)
    bars: list[Bar] = []
    end = 0.0
    for part in page.budget(certificate):
        start, end = end, end + part["epsilon"]
        colour = PALE if part["shade"] == "rest" else BLUE
        bars.append((cut(part["what"]), start, end, part["epsilon"], colour))
    ax = _axes(ax)
    label = rf"$\varepsilon$ at $\delta$ = {short(certificate.delta)}"
    _named_bars(ax, bars, label, certificate.target_epsilon, size=9)
    ax.axvline(certificate.target_epsilon, color=VERMILION, lw=1.2, ls="--")
    _warn(ax, certificate)
    return ax


def tradeoff(source: Forecast | TrajectoryModel | Certificate, *, ax: Axes | None = None) -> Axes:
    """What is traded for what.

    Of a forecast: quality, in people per time whose raw records would be as good, against epsilon.
    Of a model or certificate: the members that the best attack can find against its false alarms.
    """
    if isinstance(source, TrajectoryModel | Certificate):
        ax, certificate = _axes(ax), _certificate(source)
        edge: dict[str, Any] = {"lw": 2, "label": "best possible attack"}
        rates = certificate.cost.true_positive_rates
        _attack_region(ax, rates, "members found, at most", **edge)
        _warn(ax, certificate)
    elif not hasattr(source, "epsilons"):
        raise InputError("tradeoff takes a forecast of privtraj.plan, a model or a certificate")
    else:  # less than one person is drawn as half of one: the axis has no zero
        ax, at = _axes(ax), source.epsilons
        low, middle, high = (np.maximum(n, 0.5) for n in (source.low, source.worth, source.high))
        ax.fill_between(at, low, high, color=PALE, lw=0, label="simulated fits")
        ax.plot(at, middle, color=BLUE, lw=2, marker="o", ms=4, label="expected")
        ax.axvline(source.epsilon, color=VERMILION, lw=1.2, ls="--", label="asked for")
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(at, labels=[f"{epsilon:.3g}" for epsilon in at])
        ax.minorticks_off()
        decorate(ax, r"$\varepsilon$", "worth so many people per time")
    _legend(ax, loc="lower right")
    return ax


def audit(result: Audit) -> Figure:
    """Left: rates of the strongest attack in the region that its claim allows. Right: epsilon, as
    claimed, and at least as every attack found, with what it could have seen."""
    from matplotlib.figure import Figure

    size = (9.6, max(4.4, 2.32 + 0.32 * len(result.findings)))
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    rates, epsilons = figure.subplots(1, 2, width_ratios=(1.1, 1))
    finding, area = result.strongest, "what the claim allows"
    _attack_region(rates, finding.claim.true_positive_rates, "people found", lw=1.2, area=area)
    cuts = np.unique(np.concatenate([finding.scores_without, finding.scores_with]))[::-1]
    reached = [
        np.append(0.0, [(scores > cut).mean() for cut in cuts] + [1.0])
        for scores in (finding.scores_without, finding.scores_with)
    ]
    rates.plot(*reached, color=INK, lw=1.4, label="the strongest attack, all thresholds")
    # The rates that were tested, with lines to the bounds that go into epsilon.
    seen = finding.rates
    x, y = seen.false_positives / seen.absent, seen.true_positives / seen.present
    right, down = finding.bounds[0] - x, y - finding.bounds[1]
    look: dict[str, Any] = {"fmt": "o", "ms": 5, "color": VERMILION, "elinewidth": 1.4, "zorder": 5}
    label = "tested, with its uncertainty"
    rates.errorbar(x, y, xerr=[[0.0], [right]], yerr=[[down], [0.0]], label=label, **look)
    _legend(rates, loc="lower right")
    _epsilons(epsilons, result)
    verdict = "no violation found"
    if result.violated:
        found = any(one.violated for one in result.findings)
        why = "a lower bound exceeds the claim" if found else "the noise is not what is stated"
        verdict = f"VIOLATED: {why}"
    title = (
        rf"claim: $\varepsilon$ = {result.epsilon:.4g}, $\delta$ = {short(result.delta)}, "
        f"{result.adjacency}\n{verdict} ({result.view}, {result.runs} runs, "
        f"{100 * result.confidence:g} % confidence)"
    )
    figure.suptitle(title, fontsize=12, color=VERMILION if result.violated else INK)
    return figure


def _epsilons(axes: Axes, result: Audit) -> None:
    """A bar for the claim and for the bound of each attack; a line at what it could have seen."""
    findings, claim = result.findings, result.epsilon
    canaries = len({one.canary for one in findings}) > 1
    amounts = [claim, *(each for one in findings for each in (one.bound, one.could_see))]
    longest = 1.15 * max(*filter(np.isfinite, amounts), 1e-3)
    bars: list[Bar] = [("claim", 0.0, min(claim, longest), claim, BLUE)]
    for one in findings:
        name = f"{one.attack}, {one.canary}" if canaries else one.attack
        colour = VERMILION if one.violated else GREY
        bars.append((name, 0.0, min(one.bound, longest), one.bound, colour))
    _named_bars(axes, bars, r"$\varepsilon$", longest, size=10)
    seen = [min(one.could_see, longest) for one in findings]
    axes.scatter(seen, range(1, len(bars)), marker="|", s=120, color=INK)
    axes.set_title("bars: at least; marks: could have seen", fontsize=9, color=INK)
    axes.tick_params(axis="y", labelsize=8.5)
    if np.isfinite(claim):
        axes.axvline(claim, color=INK, lw=1, ls="--")


def _attack_region(
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


def _named_bars(axes: Axes, bars: Sequence[Bar], label: str, longest: float, size: float) -> None:
    """Bars along an axis that ends after `longest`, the first on top, numbers at their ends."""
    for row, (_, start, end, number, colour) in enumerate(bars):
        axes.barh(row, end - start, left=start, color=colour, height=0.55)
        axes.annotate(f" {number:.3g}", (end, row), va="center", fontsize=size, color=INK)
    axes.set_yticks(range(len(bars)), labels=[_literal(name) for name, *_ in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * longest)
    decorate(axes, label, "")
    axes.grid(visible=False, axis="y")


def _certificate(source: Any) -> Certificate:
    certificate = getattr(source, "certificate", source)
    if not isinstance(certificate, Certificate):
        raise InputError("a plot of a guarantee takes a model or its certificate")
    return certificate


def _warn(ax: Axes, certificate: Certificate) -> None:
    if not certificate.private:
        ax.set_title(f"NOT PRIVATE: {certificate.caveat}", color=VERMILION, fontsize=10)
