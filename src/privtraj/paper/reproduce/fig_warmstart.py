"""Six digits from private means, in the paper's four columns, and what ours makes of them.

Column 1: 50 people's true paths; 2: marginals; 3: private means at each time; 4: the recipe's
particles and paths along entropic plans; 5 and 6: ours at the same stated (2, 1e-3).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.paper.reproduce.digits import (
    ASSUMED,
    CLAIMED,
    DIGITS,
    QUICK_DIGITS,
    clouds,
    error,
    load,
    warm_recipe,
)
from privtraj.paper.reproduce.drawing import dithered, grid, panel, thinned
from privtraj.paper.reproduce.parallel import in_parallel
from privtraj.paper.reproduce.result import Options, Reproduction, markdown
from privtraj.synthesizer import TrajectorySynthesizer

NAME = "fig-warmstart"
TIMES, SHOWN, SEED = 10, 50, 0


def run(options: Options) -> Reproduction:
    """One seed; the figures of Table 1 over seeds are in `table-w2`."""
    digits = QUICK_DIGITS if options.quick else DIGITS
    drawn = in_parallel(columns, [(options.strokes, digit) for digit in digits], options.progress)
    rows = [
        {
            "digit": digit,
            "people_per_time": found["people"],
            "recipe_squared_w2": found["recipe error"],
            "recipe_exact_epsilon": found["recipe epsilon"],
            "ours_squared_w2": found["ours error"],
            "ours_exact_epsilon": found["ours epsilon"],
        }
        for digit, found in zip(digits, drawn, strict=True)
    ]
    settings = {"times": TIMES, "seed": SEED, "paths": SHOWN, **CLAIMED, "adjacency": "replace-one"}
    return Reproduction(NAME, settings, rows, _text(rows), {NAME: _figure(digits, drawn)})


def columns(path: Path, digit: int) -> dict[str, Any]:
    """What the panels of one digit show."""
    data = load(path, digit, TIMES, SEED)
    seen: list[Floats] = []
    recipe = warm_recipe(data.people, SEED).fit(data.snapshots, watch=seen.append)
    ours = TrajectorySynthesizer(*CLAIMED.values(), adjacency="replace-one", seed=SEED).fit(
        data.snapshots
    )
    plain: dict[str, Any] = {"observation_noise": False, "interpolation": "linear", "seed": SEED}
    fine = np.linspace(0, TIMES - 1, 8 * (TIMES - 1) + 1)
    return {
        "people": data.people,
        "true paths": dithered(thinned(data.paths, SHOWN)),
        "true clouds": [dithered(thinned(cloud, 150)) for cloud in data.truth],
        "means": seen[0].mean(axis=1),
        "recipe clouds": recipe.marginals,
        "recipe paths": recipe.sample(SHOWN, **plain).values,
        "recipe error": error(recipe, data.truth, SEED),
        "recipe epsilon": recipe.certificate.epsilon,
        "ours clouds": clouds(ours, SEED)[:, :150],
        "ours paths": ours.sample(SHOWN, times=fine, interpolation="spline", seed=SEED).values,
        "ours error": error(ours, data.truth, SEED),
        "ours epsilon": ours.certificate.epsilon,
    }


def _figure(digits: tuple[int, ...], drawn: list[dict[str, Any]]) -> Any:
    figure, axes = grid(len(digits), 6)
    heads = (
        f"{SHOWN} true paths",
        "true marginals",
        "private means",
        "paper's recipe",
        "ours: marginals",
        f"ours: {SHOWN} paths",
    )
    for i, (digit, found, row) in enumerate(zip(digits, drawn, axes, strict=True)):
        title = dict(enumerate(heads)) if i == 0 else {}
        panel(row[0], title.get(0, ""), f"{digit}", paths=found["true paths"])
        panel(row[1], title.get(1, ""), clouds=found["true clouds"])
        panel(row[2], title.get(2, ""), clouds=found["means"][:, None])
        row[2].plot(*found["means"].T, color="#9aa4ad", lw=0.8, zorder=1)
        panel(row[3], title.get(3, ""), clouds=found["recipe clouds"], paths=found["recipe paths"])
        panel(row[4], title.get(4, ""), clouds=found["ours clouds"])
        panel(row[5], title.get(5, ""), paths=found["ours paths"])
        cost = r"$\varepsilon$ = {:.2f}".format
        row[3].set_xlabel(cost(found["recipe epsilon"]), fontsize=7.5)
        row[5].set_xlabel(cost(found["ours epsilon"]), fontsize=7.5)
    return figure


def _text(rows: list[dict[str, Any]]) -> str:
    table = markdown(
        ("digit", "recipe, squared W2", "exact epsilon", "ours, squared W2", "exact epsilon"),
        [
            (
                str(row["digit"]),
                f"{row['recipe_squared_w2']:.4f}",
                f"{row['recipe_exact_epsilon']:.3f}",
                f"{row['ours_squared_w2']:.4f}",
                f"{row['ours_exact_epsilon']:.3f}",
            )
            for row in rows
        ],
    )
    return "\n\n".join(
        [
            "# Six digits from private means",
            "The paper's figure of warm-started runs, claimed at (2, 1e-3); replace-one, epsilon "
            f"at delta 1e-3. {ASSUMED}",
            table,
            "**Agrees.** Private means follow the stroke, and the recipe's particles stay with "
            "them; paths along the plans follow the digit.",
            "**Does not.** The width of the marginals is not learned: twenty steps of size .001 "
            "with a joint clip of 1 leave every particle next to its mean.",
        ]
    )
