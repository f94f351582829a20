"""The figure of an audit: what the attack reached, and what the claim allows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privtraj.audit.attack import Audit
from privtraj.report.style import BLUE, GREY, INK, PALE, VERMILION, decorate
from privtraj.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (9.6, 4.4)  # inches
_ALARMS = np.concatenate([np.geomspace(1e-4, 0.02, 25), np.linspace(0.02, 1, 80)[1:]])


def audit_figure(audit: Audit) -> Figure:
    """Left: rates of the attack in the region that the claim allows. Right: epsilon, three ways."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained", facecolor="white")
    rates, bars = figure.subplots(1, 2, width_ratios=(1.1, 1))
    _rates(rates, audit)
    _epsilons(bars, audit)
    verdict = (
        "VIOLATED: a lower bound exceeds the claim" if audit.violated else "no violation found"
    )
    figure.suptitle(
        rf"claim: $\varepsilon$ = {audit.epsilon:.4g}, $\delta$ = {short(audit.delta)}, "
        f"{audit.adjacency}\n{verdict} ({audit.view}, {audit.runs} runs, "
        f"{100 * audit.confidence:g} % confidence)",
        fontsize=12,
        color=VERMILION if audit.violated else INK,
        linespacing=1.5,
    )
    return figure


def _rates(axes: Axes, audit: Audit) -> None:
    alarms = np.append(0.0, _ALARMS)
    allowed = audit.claim.true_positive_rates(alarms)
    axes.fill_between(alarms, alarms, allowed, color=PALE, lw=0, label="what the claim allows")
    axes.plot(alarms, allowed, color=BLUE, lw=1.2)
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", label="guessing")
    cuts = np.unique(np.concatenate([audit.scores_without, audit.scores_with]))[::-1]
    reached = [
        np.append(0.0, [(scores > cut).mean() for cut in cuts] + [1.0])
        for scores in (audit.scores_without, audit.scores_with)
    ]
    axes.plot(*reached, color=INK, lw=1.4, label="the attack, all thresholds")
    _point(axes, audit)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    decorate(axes, "false alarms", "people found")
    axes.legend(loc="lower right", fontsize=8.5, frameon=False)


def _point(axes: Axes, audit: Audit) -> None:
    """The rates that were tested, with lines to the bounds that go into epsilon."""
    seen = audit.rates
    x, y = seen.false_positives / seen.absent, seen.true_positives / seen.present
    spread = ([[0.0], [audit.false_positive_rate - x]], [[y - audit.true_positive_rate], [0.0]])
    axes.errorbar(
        x,
        y,
        xerr=spread[0],
        yerr=spread[1],
        fmt="o",
        ms=5,
        color=VERMILION,
        elinewidth=1.4,
        label="tested, with its uncertainty",
        zorder=5,
    )


def _epsilons(axes: Axes, audit: Audit) -> None:
    bars = {
        "claim": audit.epsilon,
        "at least, for noise of\nthe claimed shape": audit.epsilon_shape,
        "at least, from the\nrates alone": audit.epsilon_threshold,
    }
    finite = [value for value in bars.values() if math.isfinite(value)]
    longest = 1.15 * max(*finite, 1e-3)
    for row, value in enumerate(bars.values()):
        beyond = row > 0 and value > audit.epsilon
        colour = BLUE if row == 0 else VERMILION if beyond else GREY
        axes.barh(row, min(value, longest), color=colour, height=0.55)
        axes.annotate(
            f" {value:.3g}", (min(value, longest), row), va="center", fontsize=10, color=INK
        )
    if math.isfinite(audit.epsilon):
        axes.axvline(audit.epsilon, color=INK, lw=1, ls="--")
    axes.set_yticks(range(len(bars)), labels=list(bars))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * longest)
    decorate(axes, r"$\varepsilon$", "")
    axes.grid(visible=False, axis="y")
