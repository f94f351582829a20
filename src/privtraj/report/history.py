"""The history of a model that grew by batches: what each counted and paid, and what has changed.

A period is what a batch has added to the times of the model; a batch at known times has none. Means
and shares x_k of K periods, and half widths h_k of 90 % intervals, are answers of `assess.ask`. Of
each number two kinds of differences are looked at, in deviations of their noise: between all that
came before a moment and all after it (K - 1), and between one period and all others (K),

    z = (mean of x inside - mean of x outside) / sqrt(1 / sum_inside w + 1 / sum_outside w),

means weighed by w_k = (SURE / h_k)^2. The largest |z| of people at rest has the law of the same of
K independent normals, of which `DRAWS` are drawn: its rank among them is a p-value that is exact
for any number of draws. A number has changed if p times the numbers shown is at most
`FALSE_ALARMS`. So at most that share of reports about people at rest names anything, if intervals
hold and errors of periods are not opposed to each other; those of one model are alike, as what it
has released of one time speaks of others, so that alarms are rarer.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.ask import Answers, written
from privtraj.assess.common import SURE
from privtraj.assess.questions import Asked, Key
from privtraj.base.arrays import Floats
from privtraj.base.space import moment
from privtraj.columns.kinds import Category
from privtraj.privacy.certificate import BATCHES, are_late, batches_in_words
from privtraj.report.labels import cut, percent

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

FALSE_ALARMS, DRAWS = 0.05, 4000
MOST_PERIODS = 48  # of more, those next to each other become one
MOST_SHOWN, LARGEST = 12, 3  # numbers, and as many shares; of a category, the most frequent values


def history(model: TrajectoryModel) -> dict[str, Any] | None:
    """What the page says of batches and how many each counted; None of a model that is of one.

    periods: names.  series: answers of each period; `changed` in words, of those that have.
    """
    batches = model.certificate.public_inputs.get(BATCHES, [])
    if len(batches) < 2:
        return None
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
    compared = [one for one in series if sum(row["low"] is not None for row in one["rows"]) > 1]
    for one in compared:
        chance, words = _difference(one, names)
        if chance * len(compared) <= FALSE_ALARMS:
            one["changed"] = words
    return {
        "batches": [
            {"counted": None, **one, "late": late}
            for one, late in zip(batches, are_late(batches), strict=True)
        ],
        "everybody": batches_in_words(batches)[-1],
        "periods": names,
        "series": series,
        "compared": len(compared),
        "alarms": FALSE_ALARMS,
    }


def _difference(one: dict[str, Any], names: tuple[str, ...]) -> tuple[float, str]:
    """The p-value of the largest difference, and which it is."""
    pairs = zip(names, one["rows"], strict=True)
    known = [(name, row) for name, row in pairs if row["low"] is not None]
    values = np.array([row["value"] for _, row in known])
    halves = [max(row["high"] - row["value"], row["value"] - row["low"]) for _, row in known]
    noise = np.maximum(halves, 1e-300 + 1e-12 * np.max(halves)) / SURE
    index, weight = np.arange(len(known)), (noise.min() / noise) ** 2  # w, in units of the largest
    inside = np.concatenate([index >= index[1:, None], index == index[:, None]])
    of = [weight * some / (some @ weight)[:, None] for some in (inside, ~inside)]  # their means
    variance = sum(1 / (some @ weight) for some in (inside, ~inside)) * noise.min() ** 2
    apart = (of[0] - of[1]) / np.sqrt(variance)[:, None]
    seen = np.abs(apart @ values)
    rest = np.random.default_rng(0).standard_normal((DRAWS, len(known))) * noise
    largest = int(seen.argmax())
    rank = np.sum(np.abs(rest @ apart.T).max(axis=1) >= seen[largest])
    value, other = (one["write"](float(mean[largest] @ values)) for mean in of)
    if largest < len(known) - 1:
        before, since = (name for name, _ in known[largest : largest + 2])
        words = f"{other} up to batch {before}, {value} since batch {since}"
    else:
        words = f"{value} in batch {known[largest - len(known) + 1][0]}, {other} in all others"
    return (1 + rank) / (1 + DRAWS), words


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
