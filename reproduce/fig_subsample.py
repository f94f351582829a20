"""Digit 7 from some of its ten times: the paper's run, what dropping times costs, and the gaps.

The paper takes 5 of 10 times without its own private end points and claims (.34, 5e-4). Beside it:
the same with private means as end points; ours, at its stated budget, from the first, the last and
k - 2 other times, drawn without looking at anybody, scored at all ten; and the largest gap between
z of T times drawn at random, which Proposition 4.2 says is of the order of (T / z) log z.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.datasets import one_snapshot_each
from privtraj.metrics.distances import average_squared_w2, squared_w2_per_time
from privtraj.paper.synthesizer import PaperSynthesizer, Phase, TimeSample, WarmStart
from privtraj.plot import BLUE, GREY, VERMILION, decorate
from privtraj.privacy.events import Adjacency
from privtraj.synthesizer import TrajectorySynthesizer
from reproduce import digits
from reproduce.drawing import blank, dithered, grid, panel, thinned
from reproduce.parallel import call, in_parallel
from reproduce.recipes import UNSTATED, means_noise, recipe
from reproduce.result import Options, Reproduction
from reproduce.tables import Row, markdown, matching, means_along, spread, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "fig-subsample"
DIGIT, TIMES, DRAWN, STEPS = 7, 10, 5, 100
CLAIMED, DELTA = 0.34, 5e-4
OURS = (2.0, 1e-3)
STAGES = (0, 10, 30, STEPS)
KEPT = (3, 4, 5, 7, 10)
GAP_TIMES = (10, 30, 100, 300, 1000, 3000, 10_000)
GAP_POWERS = (0.5, 0.75)
GAP_DRAWS = 200
SCORES = ("squared_w2_all_times", "squared_w2_kept", "squared_w2_dropped")


def run(options: Options) -> Reproduction:
    """The recipe with seed 0; ours and the gaps over seeds."""
    seeds = 1 if options.quick else options.seeds
    tasks: list[tuple[Any, ...]] = [(recipe_runs, options.strokes)]
    kept = (DRAWN, TIMES) if options.quick else KEPT
    tasks += [(ours_from, options.strokes, k, s) for k in kept for s in range(seeds)]
    published, *ours = in_parallel(call, tasks, options.progress)
    lengths = GAP_TIMES[:3] if options.quick else GAP_TIMES
    gaps = [gap(times, power) for times in lengths for power in GAP_POWERS]
    rows = [*published["rows"], *(each["row"] for each in ours), *gaps]
    settings = {"digit": DIGIT, "times": TIMES, "drawn": DRAWN, "steps": STEPS, "delta": DELTA}
    repeated = {"ours": OURS, "seeds": seeds, "draws of times for the gaps": GAP_DRAWS}
    shown = next(each for each in ours if each["row"]["times_kept"] == DRAWN)
    figures = {NAME: _figure(published, shown), f"{NAME}-cost": _cost_figure(rows)}
    return Reproduction(NAME, settings | repeated | UNSTATED, rows, _text(rows), figures)


def some_times(people: int, adjacency: Adjacency, ends: bool) -> PaperSynthesizer:
    """5 of 10 times, or 3 of the inner 8 and private means at both ends."""
    end_points = WarmStart("means", means_noise(1.0, DELTA), spread=0.05) if ends else None
    inner = TimeSample(DRAWN - 2, TIMES - 2, end_points) if ends else TimeSample(DRAWN, TIMES)
    phases = [Phase(STEPS, 0.01, 1.0, 5 / people)]
    return recipe(phases, people, times=inner, delta=DELTA, adjacency=adjacency, seed=0)


def recipe_runs(path: Path) -> dict[str, Any]:
    """Both variants, what they cost under both adjacencies, and the stages of the first."""
    data = digits.load(path, DIGIT, TIMES, 0)
    rows, models = [], []
    stages: list[Floats] = []
    for ends in (False, True):
        watch = None if ends else stages.append
        model = some_times(data.people, "replace-one", ends).fit(data.snapshots, watch=watch)
        models.append(model)
        truth = [data.truth[int(t)] for t in model.numeric_times]
        rows.append(
            {
                "what": "recipe with private ends" if ends else "recipe",
                "times_kept": DRAWN,
                "seed": 0,
                "claimed_epsilon": None if ends else CLAIMED,
                "exact_epsilon_add_remove": some_times(data.people, "add-remove", ends).epsilon,
                "exact_epsilon_replace_one": model.certificate.epsilon,
                "squared_w2_at_its_times": average_squared_w2(model.marginals, truth),
            }
        )
    stages.append(models[0].marginals)
    return {
        "rows": rows,
        "stages": [stages[k] for k in STAGES],
        "stage moments": np.asarray(models[0].numeric_times) / (TIMES - 1),
        "true clouds": [dithered(thinned(cloud, 120)) for cloud in data.truth],
        "ends": models[1].marginals,
        "ends moments": np.asarray(models[1].numeric_times) / (TIMES - 1),
        "ends paths": digits.straight(models[1], 40),
    }


def ours_from(path: Path, kept: int, seed: int) -> dict[str, Any]:
    """Ours from `kept` times, both ends among them, scored at all ten."""
    data = digits.load(path, DIGIT, TIMES, seed)
    inner = np.random.default_rng(seed).permutation(np.arange(1, TIMES - 1))[: kept - 2]
    times = np.sort(np.append(inner, [0, TIMES - 1])).astype(float)
    snapshots = digits.snapshots_at(times, *one_snapshot_each(data.paths, seed))
    model = TrajectorySynthesizer(*OURS, seed=seed).fit(snapshots)
    every = np.arange(float(TIMES))
    released = np.swapaxes(model.sample(digits.RELEASED, times=every, seed=seed).values, 0, 1)
    errors = squared_w2_per_time(released, data.truth)
    dropped = ~np.isin(every, times)
    row = {
        "what": "ours",
        "times_kept": kept,
        "seed": seed,
        "stated_epsilon": OURS[0],
        "squared_w2_all_times": float(errors.mean()),
        "squared_w2_kept": float(errors[~dropped].mean()),
        "squared_w2_dropped": float(errors[dropped].mean()) if dropped.any() else None,
    }
    return {"row": row, "clouds": released[:, :120], "paths": digits.smooth(model, 40, TIMES, seed)}


def gap(times: int, power: float) -> Row:
    """Mean over draws of the largest gap between z = T^power of T - 1 times, ends added."""
    z = round(times**power)
    rng = np.random.default_rng(times)
    draws = (rng.choice(np.arange(1, times), z, replace=False) for _ in range(GAP_DRAWS))
    largest = [np.diff(np.sort(np.append(draw, [0, times]))).max() for draw in draws]
    order = times / z * np.log(z)
    return {
        "what": "largest gap",
        "T": times,
        "z": z,
        "power": power,
        "mean_largest_gap": float(np.mean(largest)),
        "T_over_z_log_z": float(order),
        "ratio": float(np.mean(largest) / order),
    }


def _figure(published: dict[str, Any], ours: dict[str, Any]) -> Figure:
    figure, (upper, lower) = grid(2, 4, 2.0)
    for place, stage, k in zip(upper, published["stages"], STAGES, strict=True):
        title = f"recipe, 5 of 10 times, step {k}"
        panel(place, title, clouds=stage, moments=published["stage moments"])
    panel(lower[0], "true marginals, all times", clouds=published["true clouds"])
    ends = {"clouds": published["ends"], "paths": published["ends paths"]}
    panel(lower[1], "recipe, private end points", **ends, moments=published["ends moments"])
    panel(lower[2], "ours from 5 of 10: all times", clouds=ours["clouds"])
    panel(lower[3], "ours from 5 of 10: 40 paths", paths=ours["paths"])
    return figure


def _cost_figure(rows: list[Row]) -> Figure:
    figure = blank(8.6, 3.3)
    for axes, draw in zip(figure.subplots(1, 2), (_cost, _gaps), strict=True):
        draw(axes, rows)
        axes.legend(frameon=False, fontsize=8.5)
    return figure


def _cost(axes: Axes, rows: list[Row]) -> None:
    """Squared W2 over the number of times kept."""
    style: dict[str, Any] = {"marker": "o", "ms": 4, "capsize": 2}
    for aside, key, colour, label in (
        (-0.09, "squared_w2_kept", BLUE, "at the kept times"),
        (0.09, "squared_w2_dropped", VERMILION, "at the dropped times"),
        (0.0, "squared_w2_all_times", GREY, "at all ten"),
    ):
        groups = {k: _values(rows, k, key) for k in KEPT if _values(rows, k, key)}
        means, bars = ([f(group) for group in groups.values()] for f in (np.mean, np.std))
        axes.errorbar(np.add(list(groups), aside), means, bars, color=colour, label=label, **style)
    axes.set(yscale="log", xticks=KEPT, xticklabels=KEPT)
    decorate(axes, "times kept, of ten", "squared W2, ours at (2, 1e-3)")


def _gaps(axes: Axes, rows: list[Row]) -> None:
    """Measured largest gaps, and the order that the proposition gives them."""
    for power, colour in zip(GAP_POWERS, (BLUE, VERMILION), strict=True):
        mine, label = matching(rows, power=power), rf"measured, $z = T^{{{power:g}}}$"
        measured = means_along(mine, "T", "mean_largest_gap")
        axes.plot(*measured, "o", ms=4, color=colour, label=label)
        axes.plot(*means_along(mine, "T", "T_over_z_log_z"), color=colour, lw=1)
    axes.plot([], [], color=GREY, lw=1, label=r"$(T / z) \log z$")
    axes.set(xscale="log", yscale="log")
    decorate(axes, "times T", "expected largest gap")


def _values(rows: list[Row], kept: int, key: str) -> list[float]:
    mine = matching(rows, what="ours", times_kept=kept)
    return [row[key] for row in mine if row[key] is not None]


def _text(rows: list[Row]) -> str:
    plain, ends = (row for row in rows if row["what"].startswith("recipe"))
    ratios = [row["ratio"] for row in matching(rows, what="largest gap")]
    lines: list[tuple[str, ...]] = []
    for kept in KEPT:
        scores = [_values(rows, kept, key) for key in SCORES]
        if scores[0]:
            told = (spread(values) if values else "-" for values in scores)
            lines.append((f"{kept} of {TIMES} times", *told))
    head = ("ours from", "all ten times", "kept times", "dropped times")
    return texts(NAME)["text"].format(
        claimed=CLAIMED,
        assumed=digits.ASSUMED,
        plain=plain,
        ends=ends,
        least=min(ratios),
        most=max(ratios),
        table=markdown(head, lines),
    )
