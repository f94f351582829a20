"""The page of an evaluation: the model beside the raw data. It must not leave the room."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import about
from privtraj.base.files import write_text
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Category, Column, Flag, Number
from privtraj.metrics.columns import is_missing
from privtraj.report.levels import shares_of
from privtraj.report.page import Page, check_name, page
from privtraj.report.page_data import QUANTILES, SEED, bands, densities, packed, sampled
from privtraj.report.sections import sha256
from privtraj.report.templates import percent, whole_number
from privtraj.report.verdicts import Verdict, judged

if TYPE_CHECKING:
    from privtraj.metrics.evaluation import Evaluation
    from privtraj.metrics.records import Memorisation, Records
    from privtraj.metrics.table import Score
    from privtraj.model.model import TrajectoryModel


_NUMBERS = 120_000  # of real records that are drawn
_MOST = 400  # of them at each time
_LEAST = 8  # at a time, for quantiles


def write_comparison(
    model: TrajectoryModel,
    evaluation: Evaluation,
    records: Records,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    seed: int = SEED,
) -> None:
    """Write the page as one .html file, whole or not at all; it holds raw records."""
    check_name(path)
    write_text(comparison(model, evaluation, records, seed).html(), path, force)


def comparison(
    model: TrajectoryModel, evaluation: Evaluation, records: Records, seed: int = SEED
) -> Page:
    """The page of what `evaluate` says, with the records it says it of."""
    shown = sampled(model, seed)
    clouds = records.clouds()
    worth, copies = _people_worth(evaluation), evaluation.memorisation
    values = {
        "kind": "evaluation",
        "figures": [
            (worth, "Worth, in people per time"),
            (percent(copies.share_close), "Very close to a real person"),
            (percent(copies.share_expected), "The same of other real people"),
        ],
        "people_worth": worth,
        "verdicts": evaluation_verdicts(evaluation),
        "floor": evaluation.settings["floor"],
        "tables": {
            "Single times": list(map(_row, evaluation.scores)),
            "Whole paths": list(map(_row, evaluation.path_scores)),
            "Repeated records": [_row(evaluation.repeated.score)] if evaluation.repeated else [],
        },
        "columns": evaluation.columns,
        "notes": [*evaluation.notes, *_on_the_ground(evaluation)],
        "made": _made(model, evaluation),
    }
    numbers = [_numbers(cloud, model.columns) for cloud in clouds]
    data = {"real": _real(numbers, shown.ranges)}
    shares = _shares(clouds, model.columns)
    return page("comparison.html", model, shown, values, data, _bands(numbers), shares)


def _on_the_ground(evaluation: Evaluation) -> list[str]:
    return [] if evaluation.ground is None else [str(evaluation.ground).removesuffix(".")]


def evaluation_verdicts(evaluation: Evaluation) -> list[Verdict]:
    """Worth, copies, and how far from real people, in plain words."""
    verdicts = [_worth(evaluation), _copies("records", evaluation.memorisation)]
    if evaluation.path_memorisation is not None:
        verdicts.append(_copies("paths", evaluation.path_memorisation))
    gaps = [score.gap for score in evaluation.scores if math.isfinite(score.gap)]
    if gaps:
        middle = float(np.median(gaps))
        verdicts.append(judged("distance", middle, middle=percent(max(middle, 0))))
    return verdicts


def _people_worth(evaluation: Evaluation) -> str:
    worth = evaluation.worth
    return f"{about(worth.people)}{' or more' if worth.people >= worth.most else ''}"


def _worth(evaluation: Evaluation) -> Verdict:
    worth = evaluation.worth
    most = worth.people >= worth.most
    doubt = f"{about(worth.low)} to {about(worth.high)} in nine cases of ten"
    if most:
        doubt = f"These records cannot tell more than {about(worth.most)} people apart"
    return judged(
        "measured_worth",
        math.inf if most else worth.people,
        people=_people_worth(evaluation),
        doubt=doubt,
        ceiling=about(evaluation.worth_ceiling),
    )


def _copies(what: str, copies: Memorisation) -> Verdict:
    close, expected, ratio = copies.share_close, copies.share_expected, copies.ratio
    excess = close / max(expected, 1e-9)
    words = {"what": what, "close": percent(close), "expected": percent(expected)}
    verdict = judged("copies", excess, **words)
    far = f" Median distance: {ratio:.2g} times theirs." if math.isfinite(ratio) else ""
    return replace(verdict, sentence=verdict.sentence + far)


def _row(score: Score) -> dict[str, Any]:
    """One line of a table; gap: from floor to ceiling, None where that cannot be told."""
    known = math.isfinite(score.gap)
    numbers = (score.floor, score.value, score.ceiling)
    return {
        "label": score.label,
        "name": score.name,
        "numbers": [f"{v:.3g}" if math.isfinite(v) else "none" for v in numbers],
        "better": score.better,
        "gap": min(max(score.gap, 0.0), 1.0) if known else None,
        "grade": judged("distance", score.gap, middle="").grade if known else "for information",
    }


def _made(model: TrajectoryModel, evaluation: Evaluation) -> list[tuple[str, str]]:
    settings = evaluation.settings
    return [
        ("records", whole_number(settings["records"])),
        ("people", whole_number(settings["people"])),
        ("synthetic people", whole_number(settings["synthetic_people"])),
        ("floor", settings["floor"]),
        ("times compared", str(len(settings["times"]))),
        ("seed", str(settings["seed"])),
        ("model is private", "yes" if settings["private"] else f"no: {model.certificate.caveat}"),
        ("model sha256", sha256(model)),
    ]


def _numbers(points: Floats, columns: Sequence[Column]) -> Floats:
    """(n, k) numbers of points (n, d), nan where missing."""
    places = [k for k, column in enumerate(columns) if isinstance(column, Number)]
    values = [np.where(is_missing(points, columns, k), np.nan, points[:, k]) for k in places]
    return np.stack(values, axis=1) if values else points[:, :0]


def _shares(clouds: list[Floats], columns: Sequence[Column]) -> dict[str, Floats]:
    """{category: (T, C)} shares of its levels, nan where there are too few records."""
    axes = Axes.of(columns)
    levels = [axes.level_of(cloud) for cloud in clouds]
    found = {}
    for k, column in enumerate(columns):
        if isinstance(column, Category) and not isinstance(column, Flag):
            few = np.full((1, column.levels), np.nan)
            each = [
                shares_of(one[:, [k]], column.levels) if len(one) >= _LEAST else few
                for one in levels
            ]
            found[column.name] = np.concatenate(each)
    return found


def _bands(clouds: list[Floats]) -> Floats:
    """(d, 5, T) quantiles of clouds (n_i, d), nan where there are too few."""
    few = np.full((clouds[0].shape[1], len(QUANTILES), 1), np.nan)
    return np.concatenate([bands(x[:, None]) if len(x) >= _LEAST else few for x in clouds], axis=2)


def _real(clouds: list[Floats], ranges: Floats) -> dict[str, Any]:
    """Some records of each time, (d, n_i) after (d, n_i), and their densities (d, T, bins)."""
    d = clouds[0].shape[1]
    most = int(np.clip(_NUMBERS // (max(d, 1) * len(clouds)), 5, _MOST))
    rng = np.random.default_rng(SEED)
    whole = [x[~np.isnan(x).any(axis=1)] for x in clouds]
    some = [rng.permutation(x)[:most] for x in whole]
    counts = [len(x) for x in some]
    blank = np.zeros((d, 1, 1))
    heaps = [densities(x[:, None], ranges) if len(x) else blank for x in clouds]
    bins = max(heap.shape[2] for heap in heaps)
    density = np.concatenate([np.broadcast_to(heap, (d, 1, bins)) for heap in heaps], axis=1)
    return {
        "counts": counts,
        "starts": np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int).tolist(),
        "points": packed(np.concatenate([x.T.ravel() for x in some])),
        "density": packed(density, "u1"),
    }
