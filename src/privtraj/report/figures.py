"""Figures of a released model, which show sampled people only and may leave with it, and of an
audit: what the attack reached, and what the claim allows.

Figures are built without pyplot: nothing here opens a window or changes global settings.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, short
from privtraj.base.files import atomic_path
from privtraj.columns.precision import degrees
from privtraj.report import map_view, style
from privtraj.report.style import BLUE, GREY, INK, VERMILION, decorate, in_order, literal, spread
from privtraj.report.ticks import time_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privtraj.audit.findings import Audit, Finding
    from privtraj.model.model import TrajectoryModel
    from privtraj.model.paths import Paths

LARGEST_OVERVIEW = 8  # features drawn over time

_THIN_PATHS = 60
_CLOUD_MARKS = 6  # times on the colour bar
_CLOUD_DOTS = 1500
_COLUMNS = 3
_PANEL = (4.3, 3.7)  # inches
_AUDIT = (9.6, 4.4)  # inches
_RESOLUTION = 160  # dots per inch


def overview(model: TrajectoryModel, paths: Paths) -> Figure:
    """Sampled people over time, one panel per feature, and two numbers together: longitude and
    latitude on their map, or the first two.

    Each panel has a few single paths, the bands that hold the middle half and the middle 80 % of
    the people, and the median; that of a category has the shares of its values.
    """
    from matplotlib.figure import Figure

    shown = min(len(paths.features), LARGEST_OVERVIEW)
    numbers = [k for k, name in enumerate(paths.features) if not style.category(paths, name)]
    panels = shown + (len(numbers) > 1)
    columns = min(panels, _COLUMNS)
    rows = -(-panels // columns)
    size = (max(_PANEL[0] * columns, 6.4), _PANEL[1] * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    grid = figure.add_gridspec(rows, columns)
    axes = [figure.add_subplot(grid[divmod(k, columns)]) for k in range(panels)]
    for k in range(shown):
        column = style.category(paths, paths.features[k])
        if column is None:
            _over_time(axes[k], model, paths, k)
        else:
            style.draw_shares(axes[k], paths, column)
            style.share_legend(axes[k])
    if panels > shown:
        _together(axes[-1], paths, _pair(paths, model.bounds, numbers))
    _title(figure, model, paths, shown)
    if numbers and numbers[0] < shown:
        _legend(figure, axes[numbers[0]])
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
    lines = style.there(paths)[spread(len(paths), _THIN_PATHS)][:, order, feature].T
    marker = "o" if len(times) == 1 else ""
    axes.plot(times, lines, color=GREY, lw=0.5, alpha=0.35, marker=marker, zorder=2.5)
    style.draw_bands(axes, paths, feature)
    axes.plot([], [], color=GREY, lw=1, label="single synthetic people")
    # Short marks on the lower edge: between them a path is interpolated.
    edge = axes.get_xaxis_transform()
    axes.vlines(model.times, 0, 0.022, transform=edge, color=INK, lw=1, zorder=5)
    axes.plot([], [], color=INK, lw=0, marker="|", label="fitted times")


def _pair(paths: Paths, bounds: Floats, numbers: list[int]) -> list[int]:
    """The two numbers that are drawn together."""
    globe = degrees(paths.features, bounds)
    return numbers[:2] if globe is None else list(globe)


def _together(axes: Axes, paths: Paths, features: list[int]) -> None:
    """People in the plane of two features, each dot somebody at some time, coloured by it: all
    times alike, so that nothing looks empty where people pass between two of them."""
    order = in_order(paths)
    count = min(_CLOUD_DOTS, paths.present.size)
    who = np.arange(count) % len(paths)
    evenly = order[np.arange(count) * len(order) // count]
    when = np.random.default_rng(0).permutation(evenly)  # so that no time hides another
    there = paths.present[who, when]
    who, when = who[there], when[there]
    look: dict[str, Any] = {"cmap": "viridis", "s": 9, "alpha": 0.75, "lw": 0, "rasterized": True}
    x, y = paths.values[who, when][:, features].T
    dots = axes.scatter(x, y, c=paths.numeric_times[when], **look)
    decorate(axes, *(literal(paths.features[k]) for k in features))
    style.date_marks(axes, paths, *(paths.features[k] for k in features))
    map_view.draw_map(axes, paths, *(paths.features[k] for k in features))
    moments = paths.numeric_times[order[spread(len(order), _CLOUD_MARKS)]]
    labels = time_labels(moments, paths.datetime)
    bar = style.time_bar(axes, dots, paths.time_name, moments, labels)
    bar.ax.tick_params(labelsize=8.5, length=0, colors=INK)


def _title(figure: Figure, model: TrajectoryModel, paths: Paths, shown: int) -> None:
    promise = model.certificate
    people = f"{len(paths)} synthetic people"
    if shown < len(paths.features):
        people += f", first {shown} of {len(paths.features)} features"
    guarantee = (
        rf"differentially private: $\varepsilon$ = {promise.target_epsilon:g}, "
        rf"$\delta$ = {short(promise.delta)}, {promise.adjacency}"
    )
    if not promise.private:
        guarantee = f"NOT PRIVATE: {promise.caveat}, do not release"
    _suptitle(figure, f"{people}\n{guarantee}", bad=not promise.private)


def _suptitle(figure: Figure, text: str, bad: bool) -> None:
    figure.suptitle(text, fontsize=12, color=VERMILION if bad else INK, linespacing=1.5)


def _legend(figure: Figure, axes: Axes) -> None:
    named = axes.get_legend_handles_labels()
    columns = len(named[1]) if figure.get_figwidth() > 8 else 2
    figure.legend(*named, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


# What an audit found -------------------------------------------------------------------------


def audit_figure(audit: Audit) -> Figure:
    """Left: rates of the strongest attack in the region that its claim allows. Right: epsilon, as
    claimed, and at least as every attack found, with what it could have seen."""
    from matplotlib.figure import Figure

    rows = 1 + len(audit.findings)
    size = (_AUDIT[0], max(_AUDIT[1], 2.0 + 0.32 * rows))
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    rates, bars = figure.subplots(1, 2, width_ratios=(1.1, 1))
    _rates(rates, audit.strongest)
    _epsilons(bars, audit)
    violated = "VIOLATED: a lower bound exceeds the claim"
    if audit.violated and not any(one.violated for one in audit.findings):
        violated = "VIOLATED: the noise is not what the ledger states"
    title = (
        rf"claim: $\varepsilon$ = {audit.epsilon:.4g}, $\delta$ = {short(audit.delta)}, "
        f"{audit.adjacency}\n{violated if audit.violated else 'no violation found'} "
        f"({audit.view}, {audit.runs} runs, {100 * audit.confidence:g} % confidence)"
    )
    _suptitle(figure, title, bad=audit.violated)
    return figure


def _rates(axes: Axes, finding: Finding) -> None:
    allowed, area = finding.claim.true_positive_rates, "what the claim allows"
    style.attack_region(axes, allowed, "people found", lw=1.2, area=area)
    cuts = np.unique(np.concatenate([finding.scores_without, finding.scores_with]))[::-1]
    reached = [
        np.append(0.0, [(scores > cut).mean() for cut in cuts] + [1.0])
        for scores in (finding.scores_without, finding.scores_with)
    ]
    axes.plot(*reached, color=INK, lw=1.4, label="the strongest attack, all thresholds")
    # The rates that were tested, with lines to the bounds that go into epsilon.
    seen = finding.rates
    x, y = seen.false_positives / seen.absent, seen.true_positives / seen.present
    right, down = finding.false_positive_rate - x, y - finding.true_positive_rate
    look: dict[str, Any] = {"fmt": "o", "ms": 5, "color": VERMILION, "elinewidth": 1.4, "zorder": 5}
    label = "tested, with its uncertainty"
    axes.errorbar(x, y, xerr=[[0.0], [right]], yerr=[[down], [0.0]], label=label, **look)
    axes.legend(loc="lower right", fontsize=8.5, frameon=False)


def _epsilons(axes: Axes, audit: Audit) -> None:
    """A bar for the claim and for the bound of each attack; a line at what it could have seen."""
    findings = audit.findings
    canaries = len({one.canary for one in findings}) > 1
    amounts = [audit.epsilon, *(each for one in findings for each in (one.bound, one.could_see))]
    longest = 1.15 * max(*(value for value in amounts if math.isfinite(value)), 1e-3)
    bars: list[style.Bar] = [("claim", 0.0, min(audit.epsilon, longest), audit.epsilon, BLUE)]
    for one in findings:
        name = f"{one.attack}, {one.canary}" if canaries else one.attack
        colour = VERMILION if one.violated else GREY
        bars.append((name, 0.0, min(one.bound, longest), one.bound, colour))
    style.named_bars(axes, bars, r"$\varepsilon$", longest, size=10)
    seen = [min(one.could_see, longest) for one in findings]
    axes.scatter(seen, range(1, len(bars)), marker="|", s=120, color=INK)
    axes.set_title("bars: at least; marks: could have seen", fontsize=9, color=INK)
    axes.tick_params(axis="y", labelsize=8.5)
    if math.isfinite(audit.epsilon):
        axes.axvline(audit.epsilon, color=INK, lw=1, ls="--")
