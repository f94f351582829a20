"""A public grid on the box, and the Jensen-Shannon divergence of what falls into its cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.errors import InputError
from privtraj.space import to_unit

MOST_CELLS = 4096
_CELLS = 36  # about so many unless told otherwise: six by six in two dimensions


def usual_cells(d: int) -> int:
    """Cells per feature unless told otherwise: 36, 6, 3, then 2 for one, two, three and more."""
    return max(2, int(_CELLS ** (1 / d) + 1e-9))


def grid_cells(points: Floats, bounds: Any, per_feature: int | None) -> tuple[Ints, int]:
    """The cell (...) of points (..., d), numbered 0 to C - 1, and C.

    Each feature's range (unit interval unless `bounds` (d, 2) are given) is cut in `per_feature`
    equal parts; what lies outside counts at the wall.
    """
    d = points.shape[-1]
    parts = usual_cells(d) if per_feature is None else per_feature
    if parts < 1 or parts**d > MOST_CELLS:
        raise InputError(
            f"{parts} cells for each of {d} features are too many or none: at most {MOST_CELLS} "
            "in all can be compared"
        )
    place = np.minimum((in_box(points, bounds) * parts).astype(np.int64), parts - 1)
    return place @ (parts ** np.arange(d)), parts**d


def in_box(points: Floats, bounds: Any) -> Floats:
    """Points (..., d) in shares of the box, clamped to it; without bounds it is the unit cube."""
    return to_unit(points, np.tile([0.0, 1.0], (points.shape[-1], 1)) if bounds is None else bounds)


def jensen_shannon(p: Any, q: Any) -> float:
    """JSD(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2 of counts or shares (C,), H in nats.

    Between 0, for equal shares, and ln 2 = 0.693, for shares that do not overlap; lower is better.
    """
    from scipy.special import entr

    p, q = (np.asarray(v, dtype=np.float64) for v in (p, q))
    if p.shape != q.shape or p.ndim != 1 or p.sum() <= 0 or q.sum() <= 0:
        raise InputError("two histograms over the same cells are needed, neither of them empty")
    p, q = p / p.sum(), q / q.sum()
    gap = entr((p + q) / 2).sum() - (entr(p).sum() + entr(q).sum()) / 2
    return float(np.clip(gap, 0.0, np.log(2)))


def jensen_shannon_of(a: Ints, b: Ints) -> float:
    """JSD of the labels that a (n,) and b (k,) hold."""
    labels, code = np.unique(np.concatenate([a, b]), return_inverse=True)
    p, q = (np.bincount(part, minlength=len(labels)) for part in np.split(code, [len(a)]))
    return jensen_shannon(p, q)
