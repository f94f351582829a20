"""Six digits from private means, in the paper's four columns, and what ours makes of them.

Column 1: 50 people's true paths; 2: marginals; 3: private means at each time; 4: the recipe's
particles and paths along entropic plans; 5 and 6: ours at the same stated (2, 1e-3).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privtraj.base.arrays import Floats
from reproduce import digits
from reproduce.digits import ADJACENCY, ASSUMED, CLAIMED, SEED, SHOWN, Compared
from reproduce.drawing import dithered, gallery, thinned
from reproduce.parallel import in_parallel
from reproduce.result import Options, Reproduction
from reproduce.tables import formatted, texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "fig-warmstart"
TIMES = 10
COLUMNS = {
    f"{SHOWN} true paths": {"paths": "true paths"},
    "true marginals": {"clouds": "true clouds"},
    "private means": {"clouds": "means"},
    "paper's recipe": {"clouds": "recipe clouds", "paths": "recipe paths"},
    "ours: marginals": {"clouds": "ours clouds"},
    f"ours: {SHOWN} paths": {"paths": "ours paths"},
}
_WORDS = texts(NAME)


def run(options: Options) -> Reproduction:
    """One seed; the figures of Table 1 over seeds are in `table-w2`."""
    shown = digits.QUICK_DIGITS if options.quick else digits.DIGITS
    runs = in_parallel(both, [(options.strokes, digit) for digit in shown], options.progress)
    rows = [each.row for each in runs]
    text = _WORDS["text"].format(assumed=ASSUMED, table=formatted(rows, _WORDS["columns"]))
    settings = {"times": TIMES, "seed": SEED, "paths": SHOWN, **CLAIMED, "adjacency": ADJACENCY}
    return Reproduction(NAME, settings, rows, text, {NAME: _figure(shown, runs)})


def both(path: Path, digit: int) -> Compared:
    """The recipe and ours on one digit, and the private means that the recipe began from."""
    data = digits.load(path, digit, TIMES, SEED)
    seen: list[Floats] = []
    published = digits.warm_recipe(data.people, SEED).fit(data.snapshots, watch=seen.append)
    row, drawn = digits.compared(data, published, CLAIMED["epsilon"], CLAIMED["delta"], 150)
    means = seen[0].mean(axis=1, keepdims=True)
    true = dithered(thinned(data.paths, SHOWN))
    return Compared({"digit": digit, **row}, {**drawn, "true paths": true, "means": means})


def _figure(shown: tuple[int, ...], runs: list[Compared]) -> Figure:
    figure, axes = gallery(shown, COLUMNS, [each.drawn for each in runs])
    for (row, drawn), places in zip(runs, axes, strict=True):
        places[2].plot(*drawn["means"][:, 0].T, color="#9aa4ad", lw=0.8, zorder=1)
        for place, name in ((places[3], "recipe"), (places[5], "ours")):
            cost = rf"$\varepsilon$ = {row[f'{name}_exact_epsilon']:.2f}"
            place.set_xlabel(cost, fontsize=7.5)
    return figure
