"""The figure of an audit: what the attack reached, and what the claim allows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.audit.attack import Audit
from privtraj.report.drawing import Bar, attack_region, named_bars
from privtraj.report.style import BLUE, GREY, INK, VERMILION
from privtraj.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (9.6, 4.4)  # inches


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
    attack_region(
        axes, audit.claim.true_positive_rates, "people found", lw=1.2, area="what the claim allows"
    )
    cuts = np.unique(np.concatenate([audit.scores_without, audit.scores_with]))[::-1]
    reached = [
        np.append(0.0, [(scores > cut).mean() for cut in cuts] + [1.0])
        for scores in (audit.scores_without, audit.scores_with)
    ]
    axes.plot(*reached, color=INK, lw=1.4, label="the attack, all thresholds")
    _point(axes, audit)
    axes.legend(loc="lower right", fontsize=8.5, frameon=False)


def _point(axes: Axes, audit: Audit) -> None:
    """The rates that were tested, with lines to the bounds that go into epsilon."""
    seen = audit.rates
    x, y = seen.false_positives / seen.absent, seen.true_positives / seen.present
    right, down = audit.false_positive_rate - x, y - audit.true_positive_rate
    look: dict[str, Any] = {"fmt": "o", "ms": 5, "color": VERMILION, "elinewidth": 1.4, "zorder": 5}
    label = "tested, with its uncertainty"
    axes.errorbar(x, y, xerr=[[0.0], [right]], yerr=[[down], [0.0]], label=label, **look)


def _epsilons(axes: Axes, audit: Audit) -> None:
    amounts = {
        "claim": audit.epsilon,
        "at least, for noise of\nthe claimed shape": audit.epsilon_shape,
        "at least, from the\nrates alone": audit.epsilon_threshold,
    }
    longest = 1.15 * max(*(value for value in amounts.values() if math.isfinite(value)), 1e-3)
    bars: list[Bar] = []
    for name, value in amounts.items():
        colour = BLUE if name == "claim" else VERMILION if value > audit.epsilon else GREY
        bars.append((name, 0.0, min(value, longest), value, colour))
    named_bars(axes, bars, r"$\varepsilon$", longest, size=10)
    if math.isfinite(audit.epsilon):
        axes.axvline(audit.epsilon, color=INK, lw=1, ls="--")
