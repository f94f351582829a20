"""Plots of what was released: paths, marginals, the budget, what it trades for what, an audit.

    import privtraj as pt
    pt.plot.marginals(model)
    pt.plot.paths(model, "lon", "lat", n=200)
    pt.plot.shares(model, "stage")
    pt.plot.flows(model, "stage")

Every function takes `ax`, draws on new axes without it, and returns the axes it drew on, so that
titles and limits can be changed as usual. New axes are those of pyplot, which a notebook shows.
Nothing here sees data: a model is sampled, with a fixed seed, which costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.errors import InputError, short
from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Category
from privtraj.columns.precision import degrees
from privtraj.model.model import TrajectoryModel
from privtraj.model.paths import Paths
from privtraj.privacy.certificate import Certificate
from privtraj.report import maps, style
from privtraj.report.labels import three_times, time_labels
from privtraj.report.style import BLUE, GREY, INK, PALE, VERMILION, decorate, in_order, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privtraj.assess.forecast import Forecast
    from privtraj.audit.findings import Audit

_PEOPLE = 1000  # sampled from a model


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

    shown = _sampled(source)
    usual = [name for name in shown.features if not style.category(shown, name)]
    usual = usual or list(shown.features)
    across = x or (usual[0] if len(usual) > 1 and y != usual[0] else shown.time_name)
    up = y or next((name for name in usual if name != across), usual[0])
    _check_known((across, up), (*shown.features, shown.time_name))
    for name in (across, up):
        if style.category(shown, name):
            raise InputError(f"'{name}' is a category, which has no line: draw it with plot.shares")
    ax, order = _axes(ax), in_order(shown)
    people = np.unique(np.linspace(0, len(shown) - 1, min(len(shown), n)).round().astype(int))
    times = shown.numeric_times[order]
    known = np.concatenate([style.there(shown), np.zeros((*shown.values.shape[:2], 1))], axis=2)
    known[..., -1] = shown.numeric_times
    axes = [(*shown.features, shown.time_name).index(name) for name in (across, up)]
    lines = known[people][:, order][:, :, axes]  # (n, q, 2)
    if across == shown.time_name:
        ax.plot(shown.times[order], lines[:, :, 1].T, color=BLUE, lw=0.8, alpha=0.5)
        style.time_axis(ax, shown.datetime)
    else:  # in pieces, each in the colour of its time
        pieces = np.stack([lines[:, :-1], lines[:, 1:]], axis=2).reshape(-1, 2, 2)
        whole = ~np.isnan(pieces).any(axis=(1, 2))  # between two times at which they are there
        coloured = LineCollection(list(pieces[whole]), cmap="viridis", lw=0.9, alpha=0.6)
        coloured.set_array(np.tile((times[:-1] + times[1:]) / 2, len(lines))[whole])
        coloured.set_clim(times[0], times[-1])
        ax.add_collection(coloured)
        ax.autoscale_view()
        bar: Any = ax.figure.colorbar(coloured, ax=ax, pad=0.02, aspect=28)  # says which is when
        if bar.solids is not None:
            bar.solids.set_alpha(1)
        bar.outline.set_visible(False)
        if shown.datetime:
            marks, labels = style.date_ticks(*coloured.get_clim())
            bar.set_ticks(marks, labels=labels)
        bar.set_label(literal(shown.time_name), fontsize=10, color=INK)
        maps.draw_map(ax, shown, across, up)
    decorate(ax, literal(across), literal(up))
    style.date_marks(ax, shown, across, up)
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
    shown = _sampled(source)
    names = shown.features if features is None else features
    names = (names,) if isinstance(names, str) else tuple(names)
    _check_known(names, shown.features)
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
        if column := style.category(shown, name):
            style.draw_shares(panel, shown, column)
        else:
            style.draw_bands(panel, shown, shown.features.index(name))
            banded.append(panel)
    for panel in banded[:1]:  # all have the same legend
        panel.legend(fontsize=8.5, frameon=False)
    return panels[0] if count == 1 else np.array(panels, dtype=object)


def shares(source: Paths | TrajectoryModel, column: str, *, ax: Axes | None = None) -> Axes:
    """Shares of the values of a category over time, as stacked bands.

    The seven most frequent values have a colour each, all others one together.
    """
    shown = _sampled(source)
    category, ax = _category(shown, column), _axes(ax)
    style.draw_shares(ax, shown, category)
    return ax


def flows(
    source: Paths | TrajectoryModel, column: str, times: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Who goes from which value of a category to which between times, each band a share of people.

    times: of a model, when; by default the first, the middle and the last time. Of paths it must
    be left out: these have their times, of which as many are taken.
    """
    if isinstance(source, Paths):
        if times is not None:
            own = "paths have times of their own"
            raise InputError(f"{own}: leave out times, or draw a model at others")
        few = in_order(source)[three_times(len(source.numeric_times))]
        here: dict[str, Any] = {"values": source.values[:, few], "present": source.present[:, few]}
        shown = replace(source, numeric_times=source.numeric_times[few], **here)
    else:
        model = _model(source)
        at = model.times[three_times(len(model.times))] if times is None else times
        shown = model.sample(_PEOPLE, at, seed=0)
    category, ax = _category(shown, column), _axes(ax)
    labels = time_labels(shown.numeric_times[in_order(shown)], shown.datetime)
    style.draw_flows(ax, shown, category, labels)
    return ax


def budget(source: TrajectoryModel | Certificate, *, ax: Axes | None = None) -> Axes:
    """Where epsilon went: what each release added, in the order in which it was paid for."""
    certificate = _certificate(source)
    target, spent = certificate.target_epsilon, 0.0
    bars: list[style.Bar] = []
    for entry, epsilon in zip(certificate.ledger, certificate.spending(), strict=True):
        name = f"{entry['what']}\n{entry['times']} x {entry['mechanism']}"
        bars.append((name, spent, spent + epsilon, epsilon, BLUE))
        spent += epsilon
    unspent = target - certificate.epsilon
    if unspent > 1e-3 * target:
        bars.append(("not spent", spent, spent + unspent, unspent, PALE))
    ax = _axes(ax)
    label = rf"$\varepsilon$ at $\delta$ = {short(certificate.delta)}"
    style.named_bars(ax, bars, label, target, size=9)
    ax.axvline(target, color=VERMILION, lw=1.2, ls="--")
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
        style.attack_region(
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

    The figure is made without pyplot, for a file: see `report.style.save_figure`.
    """
    from matplotlib.figure import Figure

    names = people.features[:8]
    numbers = [name for name in people.features if not style.category(people, name)]
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
    style.attack_region(rates, allowed, "people found", lw=1.2, area=area)
    cuts = np.unique(np.concatenate([finding.scores_without, finding.scores_with]))[::-1]
    reached = [
        np.append(0.0, [(scores > cut).mean() for cut in cuts] + [1.0])
        for scores in (finding.scores_without, finding.scores_with)
    ]
    rates.plot(*reached, color=INK, lw=1.4, label="the strongest attack, all thresholds")
    # The rates that were tested, with lines to the bounds that go into epsilon.
    seen = finding.rates
    x, y = seen.false_positives / seen.absent, seen.true_positives / seen.present
    right, down = finding.false_positive_rate - x, y - finding.true_positive_rate
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
    bars: list[style.Bar] = [("claim", 0.0, min(claim, longest), claim, BLUE)]
    for one in findings:
        name = f"{one.attack}, {one.canary}" if canaries else one.attack
        colour = VERMILION if one.violated else GREY
        bars.append((name, 0.0, min(one.bound, longest), one.bound, colour))
    style.named_bars(axes, bars, r"$\varepsilon$", longest, size=10)
    seen = [min(one.could_see, longest) for one in findings]
    axes.scatter(seen, range(1, len(bars)), marker="|", s=120, color=INK)
    axes.set_title("bars: at least; marks: could have seen", fontsize=9, color=INK)
    axes.tick_params(axis="y", labelsize=8.5)
    if np.isfinite(claim):
        axes.axvline(claim, color=INK, lw=1, ls="--")


def _sampled(source: Any) -> Paths:
    if isinstance(source, Paths):
        return source
    model = _model(source)
    knots = model.numeric_times
    times = np.union1d(np.linspace(knots[0], knots[-1], 101), knots)
    return model.sample(_PEOPLE, as_user_times(times, model.datetime), seed=0)


def _model(source: Any) -> TrajectoryModel:
    if not isinstance(source, TrajectoryModel):
        raise InputError("a plot of people takes the paths of a sample, or a model")
    return source


def _category(shown: Paths, name: str) -> Category:
    _check_known((name,), shown.features)
    column = style.category(shown, name)
    if column is None:
        raise InputError(f"'{name}' is no category: draw it with plot.marginals")
    return column


def _certificate(source: Any) -> Certificate:
    certificate = getattr(source, "certificate", source)
    if not isinstance(certificate, Certificate):
        raise InputError("a plot of a guarantee takes a model or its certificate")
    return certificate


def _check_known(names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"there is no '{name}' to draw: choose among {', '.join(known)}")


def _warn(ax: Axes, certificate: Certificate) -> None:
    if not certificate.private:
        ax.set_title(f"NOT PRIVATE: {certificate.caveat}", color=VERMILION, fontsize=10)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]
