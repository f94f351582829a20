"""Times nobody was seen at: leave one interior time out, predict it, compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.metrics.clouds import cloud, distinct, pair, reading_times
from privtraj.metrics.transport import wasserstein2, weighted_cost

Predict = Callable[[list[Floats], Floats, float], Any]


@dataclass(frozen=True)
class HeldOut:
    """W2 to the people at a time that was left out; lower is better.

    value: of the prediction.  previous, next: of the real people at the neighbouring times.
    midpoint: of the displacement interpolation of these real neighbours, a strong reference that
    no private method has.
    """

    time: float
    value: float
    previous: float
    next: float
    midpoint: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def held_out_w2(
    prediction: Any,
    clouds: Sequence[Any],
    times: Any,
    left_out: int,
    *,
    n: int = 1000,
    seed: int = 0,
) -> HeldOut:
    """Score a prediction of the people at times[left_out], an interior time.

    prediction: cloud (k, d), or a model that was fitted without that time (anything with `sample`),
    of which n people are drawn.  clouds: T clouds of real people.  times: (T,) increasing.
    """
    at = reading_times(times, len(clouds), "cloud")
    if not 0 < left_out < len(at) - 1:
        raise InputError("only a time between the first and the last can be left out")
    if hasattr(prediction, "sample"):
        when = np.asarray(times)[left_out : left_out + 1]  # as given: numbers or dates
        drawn = prediction.sample(n, when, seed=seed).values[:, 0]
        prediction = drawn[~np.isnan(drawn).any(axis=1)]  # who is there
    before, here, after = (cloud(clouds[left_out + step]) for step in (-1, 0, 1))
    share = (at[left_out] - at[left_out - 1]) / (at[left_out + 1] - at[left_out - 1])
    middle, mass = displacement_interpolation(before, after, float(share))
    square = weighted_cost(middle, mass, *distinct(here), "sqeuclidean")
    return HeldOut(
        time=float(at[left_out]),
        value=wasserstein2(prediction, here),
        previous=wasserstein2(before, here),
        next=wasserstein2(after, here),
        midpoint=float(np.sqrt(square)),
    )


def leave_one_out(predict: Predict, clouds: Sequence[Any], times: Any) -> list[HeldOut]:
    """`held_out_w2` of every interior time.

    predict(clouds without it, times without it, the time) fits what it likes and returns a cloud
    (k, d) of people at that time.
    """
    at = reading_times(times, len(clouds), "cloud")
    known = [cloud(points) for points in clouds]
    scores = []
    for i in range(1, len(at) - 1):
        rest = known[:i] + known[i + 1 :]
        prediction = predict(rest, np.delete(at, i), float(at[i]))
        scores.append(held_out_w2(prediction, known, at, i))
    return scores


def displacement_interpolation(a: Any, b: Any, share: float) -> tuple[Floats, Floats]:
    """The points (1 - s) x + s y and masses of the optimal plan between clouds (n, d), (k, d).

    s = share: 0 is a, 1 is b, 1/2 their midpoint in W2. At most n + k - 1 points; masses sum to 1.
    """
    import ot

    if not 0 <= share <= 1:
        raise InputError("the share of the way must lie between 0 and 1")
    x, y = pair(a, b)
    (x, mass), (y, other) = distinct(x), distinct(y)
    plan = ot.emd(mass, other, ot.dist(x, y), numItermax=5_000_000)
    i, j = np.nonzero(plan)
    moved = plan[i, j]
    return (1 - share) * x[i] + share * y[j], moved / moved.sum()
