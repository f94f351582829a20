"""Three modes: the paper's annealed and warm-started runs, and ours, on the same people.

3000 people at each of ten times. Measured of every model, at what it really costs: squared W2 to
other real people, the share of people on each mode, and how many paths change mode. See
`three_modes` for the models and the measurements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privtraj.datasets import THREE_MODES_BOUNDS
from privtraj.plot import INK, decorate
from reproduce import three_modes
from reproduce.drawing import blank, dots
from reproduce.parallel import in_parallel
from reproduce.result import Options, Reproduction
from reproduce.tables import Row, markdown, matching, mean_of, spread, texts
from reproduce.three_modes import BOTH, GAP, QUICK, Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

NAME = "fig-multimodal"
SLOW_SEEDS = 2  # of the annealed run, which takes minutes
WEIGHT_TARGET, JUMP_TARGET = 0.05, 0.05
_WORDS = texts(NAME)


def run(options: Options) -> Reproduction:
    """Everything over options.seeds seeds, but for the annealed run, of at most SLOW_SEEDS."""
    size = QUICK if options.quick else Size()
    seeds = 1 if options.quick else options.seeds
    slow = min(seeds, SLOW_SEEDS)
    tasks: list[tuple[Any, ...]] = [("annealed", seed, size) for seed in range(slow)]
    rest = (*BOTH, "warm start", "warm start, dt 1", "truth")
    tasks += [(name, seed, size) for name in rest for seed in range(seeds)]
    # a quick run is one job, which stays in this process: others would take longer to start
    jobs = [(tasks,)] if options.quick else [([task],) for task in tasks]
    done: list[list[three_modes.Measured]] = in_parallel(_in_turn, jobs, options.progress)
    runs = [each for job in done for each in job]
    rows = [row for each in runs for row in each.rows]
    drawn = {title: panel for each in reversed(runs) for title, panel in each.drawn.items()}
    told = {"seeds": seeds, "seeds_annealed": slow, **three_modes.settings(size)}
    return Reproduction(NAME, told, rows, _text(rows, size, slow), {NAME: _figure(drawn)})


def _in_turn(tasks: list[tuple[Any, ...]]) -> list[three_modes.Measured]:
    return [three_modes.of_model(*task) for task in tasks]


def _figure(drawn: dict[str, three_modes.Panel]) -> Figure:
    ours = r"ours, (1, 10$^{-2}$), "
    panels = {
        "truth": "truth",
        "replace-one, entropic": f"{ours}replace-one\nentropic plans",
        "replace-one, exact": f"{ours}replace-one\nexact plans",
        "add-remove, exact": f"{ours}add-remove\nexact plans",
        "annealed": "paper, annealed\n" r"claimed (1.84, 10$^{-2}$)",
        "clusters alone": "paper, warm start\nprivate clusters, no step yet",
        "warm start": "paper, warm start, 50 steps\n" r"claimed (1, 10$^{-2}$)",
        "warm start, dt 1": "paper, warm start, 50 steps\n" r"d$t$ = 1 instead of 1/9",
    }
    figure = blank(12.6, 7.0)
    axes = figure.subplots(2, 4, sharex=True, sharey=True)
    for place, (name, title) in zip(axes.flat, panels.items(), strict=True):
        people = _panel(place, title, *drawn[name])
        place.label_outer()
    bar = figure.colorbar(people, ax=axes, aspect=34, pad=0.015, shrink=0.9)
    if bar.solids is not None:
        bar.solids.set_alpha(1)
    bar.outline.set_visible(False)
    bar.set_label("time", fontsize=10)
    bar.ax.tick_params(labelsize=9, length=0)
    return figure


def _panel(
    axes: Axes, title: str, clouds: three_modes.Values, lines: three_modes.Values
) -> PathCollection:
    """People at the ten times, coloured by time, and lines over them."""
    people = dots(axes, clouds, three_modes.MOMENTS, s=7, alpha=0.6, clip_on=False)
    axes.plot(*lines.transpose(2, 1, 0), color=INK, lw=0.6, alpha=0.45)
    decorate(axes, "x", "y")
    x, y = THREE_MODES_BOUNDS
    axes.set(xlim=x, ylim=y, aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    axes.set_title(title, fontsize=10, color=INK, linespacing=1.3)
    return people


def _text(rows: list[Row], size: Size, slow: int) -> str:
    groups = {name: matching(rows, model=name) for name in _WORDS["names"]}
    table = _table(groups)
    groups["ours"] = [row for row in rows if row["model"].startswith("ours")]
    mean, worst = (
        {
            name: {key: of(runs, key) for key, value in runs[0].items() if isinstance(value, float)}
            for name, runs in groups.items()
        }
        for of in (mean_of, _worst)
    )
    price, ours = groups["annealed"][0], mean["ours"]
    claim_holds = price["exact_epsilon_replace_one"] <= price["claimed_epsilon"]
    last, warm = (
        make(size, "replace-one").phases[-1]
        for make in (three_modes.annealed, three_modes.warm_started)
    )
    ever = {x: worst[f"ours, {x}"]["paths_exact"] for x in BOTH}
    return _WORDS["text"].format(
        size=size,
        modes=three_modes,
        slow=slow,
        table=table,
        mean=mean,
        worst=worst,
        price=price,
        warm=warm,
        apart=three_modes.APART_AT.sum(),
        holds="holds" if claim_holds else "does not hold",
        blur=last.tau * GAP,
        move=warm.eta / GAP,
        grown=mean["warm start"]["squared_w2"] / mean["clusters alone"]["squared_w2"],
        weight_met=_met(worst["ours"]["worst_weight"], WEIGHT_TARGET),
        weight_target=WEIGHT_TARGET,
        jump_met=_met(worst["ours"]["jumps_exact"], JUMP_TARGET),
        jump_target=JUMP_TARGET,
        per_path=" and ".join(
            f"{share:.1%} under {adjacency} ({_met(share, JUMP_TARGET)} it)"
            for adjacency, share in ever.items()
        ),
        forced=ours["forced_jumps"] / max(ours["jumps_exact"], 1e-12),
    )


def _table(groups: dict[str, list[Row]]) -> str:
    lines: list[tuple[str, ...]] = []
    for model, runs in groups.items():
        cost = max(row.get("exact_epsilon", 0.0) for row in runs)
        lines.append(
            (
                _WORDS["names"][model],
                f"{cost:.3f}" if cost else "-",
                spread((row["squared_w2"] for row in runs), 4),
                f"{_worst(runs, 'worst_weight'):.3f}",
                _jumps(runs, "entropic"),
                _jumps(runs, "own" if model == "truth" else "exact"),
            )
        )
    head = ("model", "exact epsilon", "squared W2", "worst weight", "jumps, entropic plans")
    return markdown((*head, "jumps, exact plans"), lines)


def _jumps(runs: list[Row], name: str) -> str:
    if f"jumps_{name}" not in runs[0]:
        return "-"
    return f"{mean_of(runs, f'jumps_{name}'):.2%} ({mean_of(runs, f'paths_{name}'):.1%})"


def _met(value: float, target: float) -> str:
    return "meets" if value < target else "misses"


def _worst(rows: list[Row], name: str) -> float:
    return max(row[name] for row in rows)
