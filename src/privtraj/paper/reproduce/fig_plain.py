"""Six digits without a warm start: 250 steps from N(1/2, .2 I), at ten or fifteen times.

The paper's appendix: eta .01, rho 5/N, T = 10 for digits 1 and 7 and 15 for the others, with the
budgets of its table at delta 1e-4. Ours beside it spends what the paper claims.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from privtraj.paper.reproduce.digits import (
    ASSUMED,
    DIGITS,
    QUICK_DIGITS,
    clouds,
    error,
    load,
    plain_recipe,
)
from privtraj.paper.reproduce.drawing import dithered, grid, panel, thinned
from privtraj.paper.reproduce.parallel import in_parallel
from privtraj.paper.reproduce.result import Options, Reproduction, markdown
from privtraj.synthesizer import TrajectorySynthesizer

NAME = "fig-plain"
SHOWN, SEED, DELTA = 50, 0, 1e-4
TIMES = {1: 10, 2: 15, 3: 15, 6: 15, 7: 10, 9: 15}
CLAIMED = {1: 1.19, 2: 1.98, 3: 1.92, 6: 1.05, 7: 1.28, 9: 1.98}


def run(options: Options) -> Reproduction:
    """One seed."""
    digits = QUICK_DIGITS if options.quick else DIGITS
    drawn = in_parallel(columns, [(options.strokes, digit) for digit in digits], options.progress)
    rows = [found.pop("row") for found in drawn]
    settings = {"seed": SEED, "delta": DELTA, "adjacency": "replace-one", "paths": SHOWN}
    return Reproduction(NAME, settings, rows, _text(rows), {NAME: _figure(digits, drawn)})


def columns(path: Path, digit: int) -> dict[str, Any]:
    """What the panels of one digit show, and its row of numbers."""
    times, claimed = TIMES[digit], CLAIMED[digit]
    data = load(path, digit, times, SEED)
    recipe = plain_recipe(data.people, SEED).fit(data.snapshots)
    ours = TrajectorySynthesizer(claimed, DELTA, adjacency="replace-one", seed=SEED).fit(
        data.snapshots
    )
    plain: dict[str, Any] = {"observation_noise": False, "interpolation": "linear", "seed": SEED}
    fine = np.linspace(0, times - 1, 8 * (times - 1) + 1)
    return {
        "row": {
            "digit": digit,
            "times": times,
            "people_per_time": data.people,
            "claimed_epsilon": claimed,
            "recipe_exact_epsilon": recipe.certificate.epsilon,
            "recipe_squared_w2": error(recipe, data.truth, SEED),
            "ours_exact_epsilon": ours.certificate.epsilon,
            "ours_squared_w2": error(ours, data.truth, SEED),
        },
        "true clouds": [dithered(thinned(cloud, 100)) for cloud in data.truth],
        "recipe clouds": recipe.marginals,
        "recipe paths": recipe.sample(SHOWN, **plain).values,
        "ours clouds": clouds(ours, SEED)[:, :100],
        "ours paths": ours.sample(SHOWN, times=fine, interpolation="spline", seed=SEED).values,
    }


def _figure(digits: tuple[int, ...], drawn: list[dict[str, Any]]) -> Any:
    figure, axes = grid(len(digits), 5)
    heads = (
        "true marginals",
        "recipe: particles",
        "recipe: paths",
        "ours: marginals",
        "ours: paths",
    )
    for i, (digit, found, row) in enumerate(zip(digits, drawn, axes, strict=True)):
        shown = [
            {"clouds": found["true clouds"]},
            {"clouds": found["recipe clouds"]},
            {"paths": found["recipe paths"]},
            {"clouds": found["ours clouds"]},
            {"paths": found["ours paths"]},
        ]
        for j, (place, content) in enumerate(zip(row, shown, strict=True)):
            panel(place, heads[j] if i == 0 else "", str(digit) if j == 0 else "", **content)
    return figure


def _text(rows: list[dict[str, Any]]) -> str:
    table = markdown(
        ("digit", "T", "N", "claimed", "recipe's exact", "recipe", "ours at the claimed", "ours"),
        [
            (
                str(row["digit"]),
                str(row["times"]),
                str(row["people_per_time"]),
                f"{row['claimed_epsilon']:.2f}",
                f"{row['recipe_exact_epsilon']:.3f}",
                f"{row['recipe_squared_w2']:.4f}",
                f"{row['ours_exact_epsilon']:.3f}",
                f"{row['ours_squared_w2']:.4f}",
            )
            for row in rows
        ],
    )
    wrong = [row for row in rows if row["recipe_exact_epsilon"] > row["claimed_epsilon"]]
    broken = ", ".join(str(row["digit"]) for row in wrong)
    better = [row["recipe_squared_w2"] / row["ours_squared_w2"] for row in rows]
    return "\n\n".join(
        [
            "# Six digits without a warm start",
            f"Epsilon at delta 1e-4 under replace-one, squared W2 averaged over time. {ASSUMED}",
            table,
            "**Agrees.** The printed budgets hold for "
            f"{len(rows) - len(wrong)} of {len(rows)} digits"
            + (f"; digit {broken} costs more than printed." if broken else "."),
            "**Does not.** At the printed settings, as we read them, all marginals contract onto "
            "a short curve: with regularisation tau dt, about a tenth of the squared box, partners "
            "are nearly independent and the transport pulls every particle to the mean of the "
            "neighbouring times, which gradients of norm at most C over all particles do not undo. "
            f"Ours, at the claimed epsilon, is {min(better):.0f} to {max(better):.0f} times nearer "
            "in squared W2.",
        ]
    )
