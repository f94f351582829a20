"""Two eights, and how many writers have each: the paper leaves the digit out for the second one.

The strokes shown are two medoids: each is the stroke of a writer that is nearest, in squared
distance at 15 times, to all strokes that are nearer to it than to the other.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from reproduce.drawing import grid, panel
from reproduce.result import Options, Reproduction
from reproduce.strokes import strokes
from reproduce.tables import formatted, texts

NAME = "fig-eights"
TIMES, WRITERS, SWEEPS = 15, 1500, 20
_WORDS = texts(NAME)


def run(options: Options) -> Reproduction:
    """No fit: what the data are. A file without eights leaves the figure out."""
    assert options.strokes is not None  # which the registry has checked
    try:
        paths = strokes(options.strokes, 8, TIMES).astype(np.float64)[:WRITERS]
    except InputError as lacking:
        return Reproduction(NAME, {}, [], f"# Two eights\n\nNot drawn: {lacking}.\n", {})
    medoids, nearest = two_medoids(paths)
    figure, (axes,) = grid(1, 2)
    rows = []
    for k, title in enumerate(("classic 8", "the other 8")):
        one = paths[medoids[k]]
        panel(axes[k], title, paths=one[None], clouds=list(one[:, None]))
        share = float(np.mean(nearest == k))
        rows.append({"eight": title, "writers": int(np.sum(nearest == k)), "share": share})
    text = _WORDS["text"].format(table=formatted(rows, _WORDS["columns"]))
    return Reproduction(NAME, {"times": TIMES, "writers": len(paths)}, rows, text, {NAME: figure})


def two_medoids(paths: Floats) -> tuple[list[int], Floats]:
    """Indices of two strokes, the larger group's first, and which of them each stroke is nearer."""
    flat = paths.reshape(len(paths), -1)
    squares = (flat**2).sum(axis=1)
    apart = squares[:, None] + squares[None] - 2 * flat @ flat.T
    medoids = [int(apart.sum(axis=1).argmin())]
    medoids.append(int(apart[medoids[0]].argmax()))
    for _ in range(SWEEPS):
        nearest = apart[medoids].argmin(axis=0)
        inside = [np.flatnonzero(nearest == k) for k in range(2)]
        medoids = [int(i[apart[np.ix_(i, i)].sum(axis=1).argmin()]) for i in inside]
    if np.mean(nearest) > 0.5:
        medoids, nearest = medoids[::-1], 1 - nearest
    return medoids, nearest
