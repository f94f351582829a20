"""The page of an evaluation: the model beside the raw data. It must not leave the room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.common import Finding
from privtraj.base.arrays import Floats
from privtraj.base.errors import about
from privtraj.base.space import to_unit
from privtraj.columns.kinds import Axes, Category, Column, Number, decoded, of_tables
from privtraj.report.checks import judged
from privtraj.report.labels import percent, shares_of, whole_number
from privtraj.report.page import Page, page, sha256
from privtraj.report.people import SEED, bands, densities, packed, page_data, sampled

if TYPE_CHECKING:
    from privtraj.metrics.evaluation import Evaluation
    from privtraj.metrics.records import Records
    from privtraj.metrics.table import Score
    from privtraj.model.model import TrajectoryModel

_LEAST = 8  # records at a time, for quantiles


def comparison(
    model: TrajectoryModel, evaluation: Evaluation, records: Records, seed: int = SEED
) -> Page:
    """The page of what `evaluate` says, with the records it says it of: some are on it."""
    shown = sampled(model, seed)
    clouds = records.clouds()
    worth, copies, own = evaluation.worth, evaluation.memorisation, evaluation.settings
    repeated = evaluation.repeated
    people = f"{about(worth.people)}{' or more' if worth.people >= worth.most else ''}"
    ground = [] if evaluation.ground is None else [str(evaluation.ground).removesuffix(".")]
    values = {
        "kind": "evaluation",
        "figures": [
            (people, "Worth, in people per time"),
            (percent(copies.share_close), "Very close to a real person"),
            (percent(copies.share_expected), "The same of other real people"),
        ],
        "people_worth": people,
        "checks": evaluation_checks(evaluation, people),
        "floor": own["floor"],
        "tables": {
            "Single times": list(map(_row, evaluation.scores)),
            "Whole paths": list(map(_row, evaluation.path_scores)),
            "Repeated records": [_row(repeated.score)] if repeated else [],
        },
        "columns": evaluation.to_dict()["columns"],
        "notes": [*evaluation.notes, *ground],
        "made": [
            ("records", whole_number(own["records"])),
            ("people", whole_number(own["people"])),
            ("synthetic people", whole_number(own["synthetic_people"])),
            ("floor", own["floor"]),
            ("times compared", str(len(own["times"]))),
            ("seed", str(own["seed"])),
            ("model is private", "yes" if own["private"] else f"no: {model.certificate.caveat}"),
            ("model sha256", sha256(model)),
        ],
    }
    data = page_data(model, shown)
    data["real"] = _real([_numbers(cloud, model.columns) for cloud in clouds], shown.ranges)
    _add_real_shares(data["categories"], clouds, model.columns)
    return page("comparison.html", model, shown, values, data)


def evaluation_checks(evaluation: Evaluation, people: str) -> list[Finding]:
    """Worth, copies, and how far from real people, in plain words."""
    worth, most = evaluation.worth, evaluation.worth.people >= evaluation.worth.most
    doubt = f"{about(worth.low)} to {about(worth.high)} in nine cases of ten"
    if most:
        doubt = f"These records cannot tell more than {about(worth.most)} people apart"
    words = {"people": people, "doubt": doubt, "ceiling": about(evaluation.worth_ceiling)}
    checks = [judged("measured_worth", math.inf if most else worth.people, **words)]
    both = {"records": evaluation.memorisation, "paths": evaluation.path_memorisation}
    for what, copies in both.items():
        if copies is not None:
            close, expected = copies.share_close, copies.share_expected
            words = {"what": what, "close": percent(close), "expected": percent(expected)}
            check = judged("copies", close / max(expected, 1e-9), **words)
            if math.isfinite(copies.ratio):
                far = f" Median distance: {copies.ratio:.2g} times theirs."
                check = replace(check, seen=(check.sentence + far,))
            checks.append(check)
    gaps = [score.gap for score in evaluation.scores if math.isfinite(score.gap)]
    if gaps:
        middle = float(np.median(gaps))
        checks.append(judged("distance", middle, middle=percent(max(middle, 0))))
    return checks


def _row(score: Score) -> dict[str, Any]:
    """One line of a table; gap: from floor to ceiling, None where that cannot be told."""
    known, numbers = math.isfinite(score.gap), (score.floor, score.value, score.ceiling)
    return {
        "label": score.label,
        "words": score.words[:1].lower() + score.words[1:],
        "numbers": [f"{v:.3g}" if math.isfinite(v) else "none" for v in numbers],
        "better": score.better,
        "gap": min(max(score.gap, 0.0), 1.0) if known else None,
        "grade": judged("distance", score.gap, middle="").verdict if known else "cannot tell",
    }


def _numbers(points: Floats, columns: Sequence[Column]) -> Floats:
    """(n, k) numbers of points (n, d), nan where missing."""
    coordinates = [column.from_unit(points[:, k]) for k, column in enumerate(columns)]
    table = decoded(columns, np.stack(coordinates, axis=1))
    pairs = enumerate(of_tables(columns))
    values = [to_unit(table[:, k], one.span) for k, one in pairs if isinstance(one, Number)]
    return np.stack(values, axis=1) if values else points[:, :0]


def _add_real_shares(
    categories: list[dict[str, Any]], clouds: list[Floats], columns: Sequence[Column]
) -> None:
    """To each category that is drawn: (T, L) shares of records, null where there are too few."""
    axes, drawn = Axes.of(columns), {one["name"]: one for one in categories}
    for k, column in enumerate(columns):
        if isinstance(column, Category) and not column.of:
            one = drawn[column.name]
            group, count = np.array(one["group"]), len(one["labels"])
            groups = [group[axes.level_of(cloud)[:, [k]]] for cloud in clouds]
            one["real"] = [
                shares_of(some, count)[0].round(5).tolist() if len(some) >= _LEAST else None
                for some in groups
            ]


def _real(clouds: list[Floats], ranges: Floats) -> dict[str, Any]:
    """Some records of each time, (d, n_i) after (d, n_i), their densities (d, T, bins), and of all
    of them at each time (T,) the five quantiles (d, 5), null where there are too few."""
    d, rng = clouds[0].shape[1], np.random.default_rng(SEED)
    most = int(np.clip(120_000 // (max(d, 1) * len(clouds)), 5, 400))  # drawn at each time
    some = [rng.permutation(x[~np.isnan(x).any(axis=1)])[:most] for x in clouds]
    counts = [len(x) for x in some]
    density = np.concatenate([densities(x[:, None], ranges) for x in clouds], axis=1)
    return {
        "counts": counts,
        "starts": np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int).tolist(),
        "points": packed(np.concatenate([x.T.ravel() for x in some])),
        "density": packed(density, "u1"),
        "bands": [
            np.nan_to_num(bands(x[:, None])[..., 0], nan=-1).round(5).tolist()
            if len(x) >= _LEAST
            else None
            for x in clouds
        ],
    }
