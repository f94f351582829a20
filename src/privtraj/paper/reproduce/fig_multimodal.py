"""Three modes: the paper's annealed and warm-started runs, and ours, on the same people.

3000 people at each of ten times. Measured of every model, at what it really costs: squared W2 to
other real people, the share of people on each mode, and how many paths change mode. See
`three_modes` for the models and the measurements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privtraj.datasets import THREE_MODES_BOUNDS
from privtraj.paper.reproduce.drawing import blank, dots
from privtraj.paper.reproduce.modes import Values
from privtraj.paper.reproduce.parallel import in_parallel
from privtraj.paper.reproduce.result import Options, Reproduction
from privtraj.paper.reproduce.tables import Row, markdown, matching, mean_of, paragraphs, spread
from privtraj.paper.reproduce.three_modes import (
    APART_AT,
    BOTH,
    DELTA,
    EPSILON,
    GAP,
    MOMENTS,
    QUICK,
    TIMES,
    Measured,
    Panel,
    Size,
    annealed,
    of_model,
    settings,
    warm_started,
)
from privtraj.report.style import INK, decorate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

NAME = "fig-multimodal"
SLOW_SEEDS = 2  # of the annealed run, which takes minutes
WEIGHT_TARGET, JUMP_TARGET = 0.05, 0.05


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
    done: list[list[Measured]] = in_parallel(_in_turn, jobs, options.progress)
    runs = [each for job in done for each in job]
    rows = [row for each in runs for row in each.rows]
    drawn = {title: panel for each in reversed(runs) for title, panel in each.drawn.items()}
    told = {"seeds": seeds, "seeds_annealed": slow, **settings(size)}
    return Reproduction(NAME, told, rows, _text(rows, size, slow), {NAME: _figure(drawn)})


def _in_turn(tasks: list[tuple[Any, ...]]) -> list[Measured]:
    return [of_model(*task) for task in tasks]


# The figure -----------------------------------------------------------------------------------


def _figure(drawn: dict[str, Panel]) -> Figure:
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


def _panel(axes: Axes, title: str, clouds: Values, lines: Values) -> PathCollection:
    """People at the ten times, coloured by time, and lines over them."""
    people = dots(axes, clouds, MOMENTS, s=7, alpha=0.6, clip_on=False)
    axes.plot(*lines.transpose(2, 1, 0), color=INK, lw=0.6, alpha=0.45)
    decorate(axes, "x", "y")
    x, y = THREE_MODES_BOUNDS
    axes.set(xlim=x, ylim=y, aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    axes.set_title(title, fontsize=10, color=INK, linespacing=1.3)
    return people


# The words ------------------------------------------------------------------------------------


def _text(rows: list[Row], size: Size, slow: int) -> str:
    return paragraphs(
        "# Three modes",
        *(["A quick run: its numbers mean nothing."] if size == QUICK else []),
        f"{size.people} people at each of {TIMES} times, delta {DELTA:g}. Mean (standard "
        "deviation) over seeds; epsilon composed exactly under replace-one, the paper's "
        "neighbours, unless add-remove is said. Squared W2: average over times, "
        f"{size.released} released people against {size.people} other real ones; of the "
        "paper's recipe particles as they are. Worst weight: largest distance of the share of "
        "people nearest to a mode from 1/3, over modes, seeds and the "
        f"{APART_AT.sum()} times at which modes are apart (at the first and the last time they "
        "coincide). Jumps: share of pairs of consecutive such times at which a path of "
        "particles is nearest to different modes; in brackets, share of paths that ever do.",
        _table(rows),
        _agreement(rows),
        _disagreement(rows, size),
        _on_ours(rows),
        "**Not stated, or ours.** The paper does not state lambda and sigma (1 and .1), "
        f"nor rho ({size.batch}/N, which gives its 1.84 by Renyi accounting, see "
        "`table-budgets`). C, sigma and tau are in units of the data, whose public box is "
        "[-1.5, 1.5]^2; the annealed particles begin uniformly on [-1, 1]^2. Clips are joint "
        "over particles and sums are divided by rho N. In place of the k-means code that the "
        "paper used, which is not private as written, noisy Lloyd steps release sums and "
        f"counts together; they get what the {_steps(size)} iterations leave of the budget, "
        "at this delta nearly all of it, and so more than the paper's two thirds. The annealed "
        f"run, which is slow, was repeated with {slow} seeds.",
    )


def _table(rows: list[Row]) -> str:
    names = {
        "truth": "real people, own paths",
        "truth, identities dropped": "real people, identities dropped",
        "annealed": "paper, annealed",
        "clusters alone": "paper, clusters alone",
        "warm start": "paper, warm start",
        "warm start, dt 1": "paper, warm start, dt = 1",
        "ours, add-remove": "ours, add-remove",
        "ours, replace-one": "ours, replace-one",
    }
    lines: list[tuple[str, ...]] = []
    for model, title in names.items():
        runs = _of(rows, model)
        cost = max(row.get("exact_epsilon", 0.0) for row in runs)
        lines.append(
            (
                title,
                f"{cost:.3f}" if cost else "-",
                spread((row["squared_w2"] for row in runs), 4),
                f"{_worst(runs, 'worst_weight'):.3f}",
                _told(runs, "entropic"),
                _told(runs, "own" if model == "truth" else "exact"),
            )
        )
    head = ("model", "exact epsilon", "squared W2", "worst weight", "jumps, entropic plans")
    return markdown((*head, "jumps, exact plans"), lines)


def _told(runs: list[Row], name: str) -> str:
    if f"jumps_{name}" not in runs[0]:
        return "-"
    return f"{mean_of(runs, f'jumps_{name}'):.2%} ({mean_of(runs, f'paths_{name}'):.1%})"


def _agreement(rows: list[Row]) -> str:
    price, ours = _of(rows, "annealed")[0], _ours(rows)
    start, claimed = _of(rows, "clusters alone"), price["claimed_epsilon"]
    holds = "holds" if price["exact_epsilon_replace_one"] <= claimed else "does not hold"
    return (
        f"**Agrees.** The annealed run's claim of {claimed:.2f} {holds}: its phases "
        f"cost {price['exact_epsilon_replace_one']:.3f} composed exactly "
        f"({price['exact_epsilon_add_remove']:.3f} under add-remove), and "
        f"{price['added_epsilon_replace_one']:.3f} ({price['added_epsilon_add_remove']:.3f}) where "
        "each is taken at a third of delta and added, as the paper does. It does end far "
        "from the people. Private clusters with noisy counts do get the weights right, to within "
        f"{_worst(start, 'worst_weight'):.3f} with 50 particles. And entropic plans of the "
        "paper's diffusivity do cross between modes: with tau = 1, "
        f"{mean_of(ours, 'jumps_entropic_at_tau_1'):.0%} of the transitions of our models jump."
    )


def _disagreement(rows: list[Row], size: Size) -> str:
    warm, cold = warm_started(size, "replace-one").phases[0], _of(rows, "annealed")
    last = annealed(size, "replace-one").phases[-1]
    truth, ends, calm = (_of(rows, x) for x in ("truth", "warm start", "warm start, dt 1"))
    error, at_first = (mean_of(x, "squared_w2") for x in (ends, _of(rows, "clusters alone")))
    return (
        "**Does not.** As printed, the steps do not keep three modes. Couplings of regularisation "
        f"tau dt, {last.tau * GAP:.2f} or more in squared units of the data, blur partners over "
        "about a third of the distance between modes and more, every neighbour pulls a particle "
        "to the mean of its partners, and nothing in Algorithm 1 holds against it: its noise is "
        "that of privacy and not of temperature tau, and gradients have norm at most C over all "
        f"particles. The annealed particles end within {mean_of(cold, 'spread'):.3f} of their "
        f"mean, where people are {mean_of(truth, 'spread'):.2f} from theirs; that none of them "
        "jumps means nothing, as all are on one mode. In the warm "
        f"start, a neighbour moves a particle by eta / dt = {warm.eta / GAP:.1f} of its distance "
        "per step, and above .5 such steps overshoot and grow: after "
        f"{warm.iterations} of them {mean_of(ends, 'on_wall'):.0%} of the particles are on the "
        f"walls of the box, at a squared W2 of {error:.1f}, {error / at_first:.0f} times that of "
        "the clusters they began from. Were the time between neighbours the unit (dt = 1), "
        "steps would not overshoot, but the particles would end within "
        f"{mean_of(calm, 'spread'):.3f} of their mean all the same, at a squared W2 of "
        f"{mean_of(calm, 'squared_w2'):.2f}."
    )


def _on_ours(rows: list[Row]) -> str:
    ours = _ours(rows)
    weight, jump = _worst(ours, "worst_weight"), _worst(ours, "jumps_exact")
    ever = {x: _worst(_of(rows, f"ours, {x}"), "paths_exact") for x in BOTH}
    per_path = " and ".join(
        f"{share:.1%} under {adjacency} ({_met(share, JUMP_TARGET)} it)"
        for adjacency, share in ever.items()
    )
    floor = _of(rows, "truth, identities dropped")
    forced = mean_of(ours, "forced_jumps") / max(mean_of(ours, "jumps_exact"), 1e-12)
    return (
        f"**Ours**, at ({EPSILON:g}, {DELTA:g}). Weights are within {weight:.3f} of 1/3 in every "
        f"run, at every time ({_met(weight, WEIGHT_TARGET)} the target of {WEIGHT_TARGET:g}). With "
        f"exact plans at most {jump:.2%} of transitions jump ({_met(jump, JUMP_TARGET)} the target "
        f"of {JUMP_TARGET:.0%}); counted per path, at most {per_path}. "
        f"{forced:.0%} of these jumps are forced: weights of neighbouring times differ by their "
        "privacy noise, and what a mode gains must come from the next one. The others are next to "
        "the ends, where modes are close and there are people between them. Real people whose "
        f"identities were dropped jump at {mean_of(floor, 'jumps_exact'):.2%} of transitions. With "
        f"each person's observation noise it is {mean_of(ours, 'jumps_exact_with_noise'):.2%} "
        f"instead of {mean_of(ours, 'jumps_exact'):.2%}."
    )


def _met(value: float, target: float) -> str:
    return "meets" if value < target else "misses"


def _steps(size: Size) -> int:
    return warm_started(size, "replace-one").phases[0].iterations


def _of(rows: list[Row], model: str) -> list[Row]:
    return matching(rows, model=model)


def _ours(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["model"].startswith("ours")]


def _worst(rows: list[Row], name: str) -> float:
    return max(row[name] for row in rows)
