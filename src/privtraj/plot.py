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
from privtraj.report.labels import DAY, Drawn, shares_of
from privtraj.report.people import bands

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
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


def _mark(axis: Axis, dated: bool, most: int | None = None) -> None:
    """Marks of an axis that follow whoever moves or enlarges the plot; of numbers, at most so many
    where that is said."""
    if dated:
        locator, formatter = _date_marks()
        axis.set_major_locator(locator)
        axis.set_major_formatter(formatter)
    elif most is not None:
        from matplotlib.ticker import MaxNLocator

        axis.set_major_locator(MaxNLocator(most))


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


# People ----------------------------------------------------------------------------------------


class _Shown:
    """Sampled people as they are drawn, their times in order.

    times: (q,) numbers or datetime64.  values: (n, q, d), NaN where people are not there; dates in
    days since 1970, as matplotlib counts.
    """

    def __init__(self, source: Any) -> None:
        if not isinstance(source, Paths):
            model = _model(source)
            knots = model.numeric_times
            times = np.union1d(np.linspace(knots[0], knots[-1], 101), knots)
            source = model.sample(_PEOPLE, as_user_times(times, model.datetime), seed=0)
        order = np.argsort(source.numeric_times, kind="stable")
        self.paths, self.times = source, source.times[order]
        self.numeric_times = source.numeric_times[order]
        self.columns = {column.name: column for column in source.columns}
        values = np.where(source.present[..., None], source.values, np.nan)[:, order]
        self.values = values / [DAY if self.dated(name) else 1.0 for name in source.features]

    def dated(self, name: str) -> bool:
        """Whether an axis of this name, of a feature or of time, is one of dates."""
        if name in self.paths.features:
            return isinstance(self.columns.get(name), Date)
        return self.paths.datetime

    def category(self, name: str) -> Category | None:
        """The column of this name, if it is a category."""
        column = self.columns.get(name)
        return column if isinstance(column, Category) else None

    def of(self, name: str) -> Floats:
        """(n, q) of a feature or of time, as they are drawn."""
        if name in self.paths.features:
            return self.values[..., self.paths.features.index(name)]
        times = self.numeric_times / (DAY if self.paths.datetime else 1.0)
        return np.broadcast_to(times, self.values.shape[:2])

    def jumps(self, name: str) -> NDArray[np.bool_]:
        """(n, q - 1) where an angle passes its end, and a line is broken."""
        column = self.columns.get(name)
        period = column.period if isinstance(column, Angle) else np.inf
        return np.abs(np.diff(self.of(name))) > period / 2

    def check_known(self, names: Sequence[str], *others: str) -> None:
        for name in names:
            known = (*self.paths.features, *others)
            if name not in known:
                raise InputError(f"there is no '{name}' to draw: choose among {', '.join(known)}")


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
    from matplotlib.collections import LineCollection

    shown = _Shown(source)
    features, time = shown.paths.features, shown.paths.time_name
    usual = [name for name in features if not shown.category(name)] or list(features)
    across = x or (usual[0] if len(usual) > 1 and y != usual[0] else time)
    up = y or next((name for name in usual if name != across), usual[0])
    shown.check_known((across, up), time)
    for name in (across, up):
        if shown.category(name):
            raise InputError(
                f"'{name}' is a category, which has no line: draw it with plot.marginals"
            )
    ax, count = _axes(ax), len(shown.paths)
    people = np.unique(np.linspace(0, count - 1, min(count, n)).round().astype(int))
    if across == time:
        for line, jumps in zip(shown.of(up)[people], shown.jumps(up)[people], strict=True):
            gaps = np.flatnonzero(jumps) + 1
            broken = np.insert(line, gaps, np.nan)
            ax.plot(
                np.insert(shown.times, gaps, shown.times[gaps]), broken, BLUE, lw=0.8, alpha=0.5
            )
        _mark(ax.xaxis, shown.paths.datetime, most=5)
    else:  # in pieces, each in the colour of its time
        lines = np.stack([shown.of(across), shown.of(up)], axis=2)[people]  # (n, q, 2)
        pieces = np.stack([lines[:, :-1], lines[:, 1:]], axis=2)
        jumps = shown.jumps(across)[people] | shown.jumps(up)[people]
        whole = ~(np.isnan(pieces).any(axis=(2, 3)) | jumps)  # there at both times
        coloured = LineCollection(list(pieces[whole]), cmap="viridis", lw=0.9, alpha=0.6)
        times = shown.of(time)[people]
        coloured.set_array(((times[:, :-1] + times[:, 1:]) / 2)[whole])
        coloured.set_clim(times[0, 0], times[0, -1])
        ax.add_collection(coloured)
        ax.autoscale_view()
        locator, formatter = _date_marks() if shown.paths.datetime else (None, None)
        marks: dict[str, Any] = {"ticks": locator, "format": formatter}
        bar: Any = ax.figure.colorbar(coloured, ax=ax, pad=0.02, aspect=28, **marks)
        if bar.solids is not None:
            bar.solids.set_alpha(1)
        bar.outline.set_visible(False)
        bar.set_label(_literal(time), fontsize=10, color=INK)
        maps.draw_map(ax, shown.paths, across, up)
        _mark(ax.xaxis, shown.dated(across))
    decorate(ax, _literal(across), _literal(up))
    _mark(ax.yaxis, shown.dated(up))
    return ax


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
    shown.check_known(names)
    count = len(names)
    if ax is None:
        from matplotlib import pyplot

        rows, columns = -(-count // 3), min(count, 3)
        figure = pyplot.figure(figsize=(4.3 * columns, 3.4 * rows), layout="constrained")
        panels = [figure.add_subplot(rows, columns, k + 1) for k in range(count)]
    else:
        panels = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(panels) != count:
        raise InputError(f"{count} features need as many axes: ax has {len(panels)}")
    banded: list[Axes] = []
    for panel, name in zip(panels, names, strict=True):
        if column := shown.category(name):
            _draw_shares(panel, shown, column)
        else:
            _draw_bands(panel, shown, name)
            banded.append(panel)
    for panel in banded[:1]:  # all have the same legend
        panel.legend(fontsize=8.5, frameon=False)
    return panels[0] if count == 1 else np.array(panels, dtype=object)


def _draw_bands(axes: Axes, shown: _Shown, name: str) -> None:
    """Median, middle half and middle 80 % of the people over time."""
    low, lower, middle, upper, high = bands(shown.of(name)[..., None])[0]
    axes.fill_between(shown.times, low, high, color=PALE, lw=0, label="middle 80 % of people")
    axes.fill_between(shown.times, lower, upper, color=BLUE, lw=0, label="middle half of people")
    marker = "o" if len(shown.times) == 1 else ""  # a line through one point would be invisible
    axes.plot(shown.times, middle, VERMILION, lw=2.2, marker=marker, label="median", zorder=4)
    axes.margins(x=0.01)
    decorate(axes, _literal(shown.paths.time_name), _literal(name))
    _mark(axes.xaxis, shown.paths.datetime, most=5)
    _mark(axes.yaxis, shown.dated(name))


def _draw_shares(axes: Axes, shown: _Shown, column: Category) -> None:
    """Shares of the values of a category over time, as stacked bands."""
    levels = np.nan_to_num(shown.of(column.name), nan=-1).astype(np.int64)  # -1: not there
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
    decorate(axes, _literal(shown.paths.time_name), f"share of people by {_literal(column.name)}")
    _mark(axes.xaxis, shown.paths.datetime, most=5)
    handles, named = axes.get_legend_handles_labels()  # the upper first, as in the picture
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    axes.legend(handles[::-1], named[::-1], frameon=False, fontsize=8.5, **beside)


def _model(source: Any) -> TrajectoryModel:
    if not isinstance(source, TrajectoryModel):
        raise InputError("a plot of people takes the paths of a sample, or a model")
    return source


# Attacks and budgets ---------------------------------------------------------------------------


def budget(source: TrajectoryModel | Certificate, *, ax: Axes | None = None) -> Axes:
    """Where epsilon went: what each release added, in the order in which it was paid for."""
    certificate = _certificate(source)
    bars: list[Bar] = []
    end = 0.0
    for part in page.budget(certificate):
        start, end = end, end + part["epsilon"]
        colour = PALE if part["shade"] == "rest" else BLUE
        bars.append((part["what"], start, end, part["epsilon"], colour))
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
    if not isinstance(source, TrajectoryModel | Certificate) and not hasattr(source, "epsilons"):
        raise InputError("tradeoff takes a forecast of privtraj.plan, a model or a certificate")
    ax = _axes(ax)
    if isinstance(source, TrajectoryModel | Certificate):
        certificate, label = _certificate(source), "best possible attack"
        _attack_region(
            ax, lambda x: 1 - certificate.trade_off(x), "members found, at most", lw=2, label=label
        )
        _warn(ax, certificate)
    else:  # less than one person is drawn as half of one: the axis has no zero
        bands = source.low, source.worth, source.high
        low, middle, high = (np.maximum(people, 0.5) for people in bands)
        ax.fill_between(source.epsilons, low, high, color=PALE, lw=0, label="simulated fits")
        ax.plot(source.epsilons, middle, color=BLUE, lw=2, marker="o", ms=4, label="expected")
        ax.axvline(source.epsilon, color=VERMILION, lw=1.2, ls="--", label="asked for")
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(source.epsilons, labels=[f"{epsilon:.3g}" for epsilon in source.epsilons])
        ax.minorticks_off()
        decorate(ax, r"$\varepsilon$", "worth so many people per time")
    ax.legend(loc="lower right", fontsize=8.5, frameon=False)
    return ax


def overview(model: TrajectoryModel, people: Paths) -> Figure:
    """Sampled people over time, one panel per feature, and two numbers together: longitude and
    latitude on their map, or the first two. The title states the guarantee.

    The figure is made without pyplot, for a file: see `save_figure`.
    """
    from matplotlib.figure import Figure

    names = people.features[:8]
    numbers = [name for name in people.features if not _Shown(people).category(name)]
    count = len(names) + (len(numbers) > 1)
    rows, columns = -(-count // 3), min(count, 3)
    size = (max(4.3 * columns, 6.4), 3.7 * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = [figure.add_subplot(rows, columns, k + 1) for k in range(count)]
    marginals(people, names, ax=axes[: len(names)])
    if len(numbers) > 1:
        globe = degrees(people.features, model.bounds)
        paths(people, *([people.features[k] for k in globe] if globe else numbers[:2]), ax=axes[-1])
    promise = model.certificate
    title = f"{len(people)} synthetic people"
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


def audit(result: Audit) -> Figure:
    """Left: rates of the strongest attack in the region that its claim allows. Right: epsilon, as
    claimed, and at least as every attack found, with what it could have seen."""
    from matplotlib.figure import Figure

    size = (9.6, max(4.4, 2.32 + 0.32 * len(result.findings)))
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    rates, epsilons = figure.subplots(1, 2, width_ratios=(1.1, 1))
    finding, area = result.strongest, "what the claim allows"
    allowed = finding.claim.true_positive_rates
    _attack_region(rates, allowed, "people found", lw=1.2, area=area)
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
    rates.legend(loc="lower right", fontsize=8.5, frameon=False)
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
