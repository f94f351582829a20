"""The history of a model that grew by batches: what each counted and paid, and what has changed.

A period is what a batch has added to the times of the model; a batch at known times has none. Means
and shares x of periods, and half widths h of 90 % intervals, are answers of `assess.ask`. Noise
does not explain a change between two periods if

    |x_a - x_b| > z / SURE * hypot(h_a, h_b),    P(|Z| > z) = FALSE_ALARMS / comparisons,

Z being normal; first and last are compared, and each with the next, in all that is shown. So at
most `FALSE_ALARMS` of reports about people at rest name anything, if intervals hold and errors are
not opposed: of 40 (three batches of 300) none did, of 12 about a mean that moved by .8 sd, all.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise, zip_longest
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.ask import Answers, written
from privtraj.assess.common import SURE
from privtraj.assess.questions import Asked, Key
from privtraj.base.arrays import Floats
from privtraj.base.space import moment
from privtraj.columns.kinds import Category
from privtraj.privacy.certificate import BATCHES, COUNTED, batches_in_words
from privtraj.report.labels import cut, percent

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

FALSE_ALARMS = 0.05
MOST_PERIODS = 48  # of more, those next to each other become one
MOST_SHOWN, LARGEST = 12, 3  # numbers, and as many shares; of a category, the most frequent values


def history(model: TrajectoryModel) -> dict[str, Any] | None:
    """What the page says of batches and how many each counted; None of a model that is of one.

    periods: names.  series: answers of each period, and between which two they have changed.
    """
    batches = model.certificate.public_inputs.get(BATCHES, [])
    if len(batches) < 2:
        return None
    counted = model.certificate.found.get(COUNTED, "not kept").split(", ")
    ends = {0: float(model.knots[0])}  # when the times end that a batch has added
    for number, one in enumerate(batches, start=1):
        end = min(moment(one["to"])[0], float(model.knots[-1]))
        if end > max(ends.values()) or number == 1:
            ends[number] = end
    step = math.ceil((len(ends) - 1) / MOST_PERIODS)
    names = tuple(map(str, list(ends)[:0:-step][::-1]))  # the last one always
    edges = np.array([ends[int(name)] for name in ("0", *names)])
    when = Key("batch", names, lambda values: np.searchsorted(edges[1:-1], values[:, -1]))
    series = _answers(Answers(model), when, edges) if len(names) > 1 else []
    apart: dict[tuple[int, int, int], float] = {}
    for k, one in enumerate(series):
        for a, b in ((0, len(names) - 1), *pairwise(range(len(names)))):
            x, y = one["rows"][a], one["rows"][b]
            if x["low"] is not None and y["low"] is not None:
                halves = (max(r["high"] - r["value"], r["value"] - r["low"]) for r in (x, y))
                off = max(math.hypot(*halves), 1e-300) / SURE
                apart[k, a, b] = abs(x["value"] - y["value"]) / off
    limit = NormalDist().inv_cdf(1 - FALSE_ALARMS / 2 / max(len(apart), 1))
    for (k, a, b), away in apart.items():  # the first with the last before all others
        if away > limit:
            series[k].setdefault("changed", (a, b))
    return {
        "batches": list(zip_longest(batches, counted[: len(batches)], fillvalue="not kept")),
        "everybody": batches_in_words(batches)[-1],
        "periods": names,
        "series": series,
        "compared": len(apart),
        "alarms": FALSE_ALARMS,
    }


def _answers(answers: Answers, when: Key, edges: Floats) -> list[dict[str, Any]]:
    """Means of numbers, then shares of the most frequent values of categories, by period."""
    means, shares = list[Any](), list[Any]()
    digits = partial(written, digits=4)
    for k, column in enumerate(answers.columns.known[:-1]):
        name = cut(column.name)
        if isinstance(column, Category) and len(shares) < MOST_SHOWN:
            key = answers.columns.category(column.name)
            rows = answers.ask(Asked("share", keys=(when, key), edges=edges)).rows
            each = [(label, rows[j :: len(key.labels)]) for j, label in enumerate(key.labels)]
            each.sort(key=lambda one: -sum(row["value"] or 0.0 for row in one[1]))
            for label, own in each[: min(LARGEST, len(each) - 1)]:
                shares.append({"name": f"share {name}={cut(label)}", "rows": own, "write": percent})
        if k in answers.columns.numbers:
            rows = answers.ask(Asked("mean", (k,), keys=(when,), edges=edges)).rows
            means.append({"name": f"mean {name}", "rows": rows, "write": digits})
    return means[:MOST_SHOWN] + shares
