"""Plain-language verdicts on a released model. Made from the model file alone: nothing is spent.

What is computed stands here; names, limits and sentences stand in `assets/verdicts.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privtraj.assess.ranges import LIMITS, pile_up, timing
from privtraj.base.arrays import Floats
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Integer, Number
from privtraj.measures.counts.fit import CELLS
from privtraj.measures.gradients.constants import CLIP_QUANTILE
from privtraj.privacy import meaning
from privtraj.report import sections
from privtraj.report.false_detail import fewest_told, gap, small_groups
from privtraj.report.templates import asset, percent, percent_up, round_number, whole_number

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

Grade = Literal["good", "look closer", "poor", "for information"]

MOST_COUPLED = 2048
"""Curves up to which couplings are checked: 4,096 of them at five times took 80 s on busy cores."""


@dataclass(frozen=True)
class Verdict:
    """name: what was looked at.  value: the number, in words.  sentence: what it means."""

    name: str
    grade: Grade
    value: str
    sentence: str


def verdicts(model: TrajectoryModel, people: Floats) -> list[Verdict]:
    """All that can be said of the model; people: numbers of sampled ones (n, Q, k), as shares of
    the box."""
    first, rest = (_attacker, _delta, _timing, _head_count, _significant), (_groups, _blur)
    last = (_noise, _temperature, _couplings, _clipping, _walls)
    possible = [*(check(model) for check in (*first, *rest, *last)), _gaps(model, people)]
    return [verdict for verdict in possible if verdict is not None]


def graded(value: float, good: float, fair: float) -> Grade:
    """good: limit of a good value, fair: of one to look at; which way is better follows."""
    sign = 1 if good < fair else -1
    if sign * value <= sign * good:
        return "good"
    return "look closer" if sign * value <= sign * fair else "poor"


def judged(
    check: str, number: float | None, limits: tuple[float, float] | None = None, /, **words: str
) -> Verdict:
    """A check of `verdicts.toml` on its number, None for information; words: of its sentences.

    limits: of a good and a fair number, if not those of the file.
    """
    texts = _texts()[check]
    grade: Grade = "for information"
    if number is not None:
        grade = graded(number, *(limits or texts["limits"]))
    said = " ".join(texts[part] for part in ("sentence", grade) if part in texts)
    name, value = texts["name"].format(**words), texts["value"].format(**words)
    return Verdict(name, grade, value, said.format(**words))


@cache
def _texts() -> dict[str, dict[str, Any]]:
    return tomllib.loads(asset("verdicts.toml"))


def summary(judgements: Sequence[Verdict]) -> str:
    """How many of each grade, in words."""
    grades = [verdict.grade for verdict in judgements if verdict.grade != "for information"]
    poor, closer = grades.count("poor"), grades.count("look closer")
    amiss = [
        f"{count} {'is' if count == 1 else 'are'} {what}"
        for count, what in ((poor, "poor"), (closer, "worth a closer look"))
        if count
    ]
    if not amiss:
        return f"All {len(grades)} checks are good."
    return f"Of {len(grades)} checks, {' and '.join(amiss)}; the others are good."


def _attacker(model: TrajectoryModel) -> Verdict:
    """What the guarantee leaves to an attacker, which is most of what there is to say of it."""
    certificate = model.certificate
    said = sections.warnings(model)
    verdict = judged(
        "attacker",
        certificate.chance_right,
        right=percent_up(certificate.chance_right),
        words=certificate.in_words,
    )
    large = certificate.epsilon > meaning.LARGE_EPSILON and certificate.private
    grade: Grade = "look closer" if large and verdict.grade == "good" else verdict.grade
    more = " ".join(f"{one[:1].upper()}{one[1:]}." for one in said if one.startswith("epsilon"))
    return replace(verdict, grade=grade, sentence=f"{verdict.sentence} {more}".strip())


def _delta(model: TrajectoryModel) -> Verdict | None:
    """delta times the number of people, as far as that is known."""
    certificate, people = model.certificate, sum(_numbers(model, "people_per_time"))
    if not (certificate.private and certificate.delta):
        return None
    least = max(people, meaning.FEWEST_PEOPLE)
    some = f"about {whole_number(least)}" if people else f"{least} or more"
    return judged(
        "delta",
        certificate.delta * least,
        chance=meaning.chance(certificate.delta),
        people=some,
        limit=f"{meaning.EXPECTED_LOSSES / least:.1g}",
    )


def _timing(model: TrajectoryModel) -> Verdict | None:
    found = timing(model)
    if found is None:
        return None
    where = {0: "at the start of", -1: "at the end of", None: "in one part of"}[found.end]
    beyond = {0: "before it begins", -1: "after it ends", None: ""}[found.end]
    cause = f"the range misses records {beyond}, which count there, or" if beyond else "the range"
    words = {"time": model.time_name, "where": where, "cause": cause}
    numbers = {"share": percent(found.share), "empty": percent(found.empty)}
    return judged("timing", found.off, LIMITS["time"], **numbers, **words)


def _head_count(model: TrajectoryModel) -> Verdict | None:
    people = _numbers(model, "people_per_time")
    if not people:
        return None
    middle, least = float(np.median(people)), min(people)
    exact = model.certificate.counts_are_public
    how = "Declared public by whoever made the fit." if exact else "Counted with noise, paid for."
    written = whole_number if exact else round_number
    known = " to ".join(dict.fromkeys(map(written, (least, max(people)))))
    verdict = judged("people", model.certificate.target_epsilon * middle, range=known, how=how)
    filled = timing(model)
    if filled is not None and graded(filled.off, *LIMITS["time"]) != "good":
        cause = "First look at the range of time: people are in a small part of it."
        return replace(verdict, sentence=f"{how} {cause}")
    if least >= middle / 4:
        return verdict
    thin = "Some times have far fewer people than others and are known less well."
    grade: Grade = "look closer" if verdict.grade == "good" else verdict.grade
    return replace(verdict, grade=grade, sentence=f"{verdict.sentence} {thin}")


def _significant(model: TrajectoryModel) -> Verdict | None:
    shares = _numbers(model, "significant_share")
    if not shares:
        return None
    mean, least = float(np.mean(shares)), min(shares)
    return judged("significant", min(mean, least + 0.2), mean=percent(mean), least=percent(least))


def _blur(model: TrajectoryModel) -> Verdict | None:
    """Bandwidth against the spread of the particles, per coordinate of a number."""
    particles = model.particles[..., Axes.of(model.columns).numbers]
    if particles.shape[2] == 0:
        return None
    weights = model.weights[..., None] / model.weights.sum(axis=1)[:, None, None]
    mean = (weights * particles).sum(axis=1, keepdims=True)
    variance = (weights * (particles - mean) ** 2).sum(axis=1).mean(axis=1)
    total = np.sqrt(variance + model.bandwidth**2)
    ratio = float(np.mean(model.bandwidth / np.maximum(total, 1e-12)))
    box = percent(float(model.bandwidth.mean()))
    return judged("blur", ratio, box=box, spread=percent(ratio))


def _noise(model: TrajectoryModel) -> Verdict | None:
    ratio = model.diagnostics.get("noise_over_bandwidth")
    if ratio is not None:
        return judged("noise", ratio, ratio=f"{ratio:.2g}")
    return judged("no_noise", None) if model.settings.get("measure") == "counts" else None


def _temperature(model: TrajectoryModel) -> Verdict | None:
    heat = model.diagnostics.get("effective_temperature")
    return None if heat is None else judged("temperature", heat, heat=round_number(f"{heat:.2g}"))


def _couplings(model: TrajectoryModel) -> Verdict | None:
    """Sinkhorn's error: of the last step, where there were steps, and of the couplings of paths.

    Not of curves that are so many that coupling them, which they do without, takes minutes.
    """
    if model.curves and model.particles.shape[1] > MOST_COUPLED:
        return None
    left = model.couplings("entropic").error
    during = model.diagnostics.get("marginal_error")
    steps = "" if during is None else f", {during:.2g} in the last step"
    return judged("couplings", max(left, during or 0.0), error=f"{left:.2g}", steps=steps)


def _clipping(model: TrajectoryModel) -> Verdict | None:
    measure = model.settings.get("measure")
    if measure not in ("counts", "gradients"):
        return None
    return judged(f"clipped_{measure}", None, share=percent(1 - CLIP_QUANTILE))


def _walls(model: TrajectoryModel) -> Verdict | None:
    found = pile_up(model)
    if found is None:
        return None
    words = {"share": percent(found.share), "name": found.column, "wall": percent(found.wall)}
    return judged("walls", found.excess, LIMITS["bounds"], end=found.end, **words)


def _gaps(model: TrajectoryModel, people: Floats) -> Verdict | None:
    """Between cells, of numbers that are not rounded: these have gaps of their own."""
    sides = _cell_sides(model)
    smooth = [
        k
        for k, column in enumerate(_number_columns(model))
        if not isinstance(column, Integer) and column.name not in model.constraints.precision
    ]
    if not (sides and smooth) or max(sides) >= 1:
        return None
    at = np.linspace(0, 1, people.shape[1])
    found = gap(people[:, :, smooth], _at_times(model, sides, at))
    return judged("gaps", found, share=percent(found))


def _groups(model: TrajectoryModel) -> Verdict | None:
    """Small groups of people, of whom nobody can say that they are not noise."""
    sides, people = _cell_sides(model), _numbers(model, "people_per_time")
    noises = [e["noise_epsilon"] for e in model.certificate.ledger if e["what"] == CELLS]
    side = model.settings.get("cells_per_side")
    if not (sides and people and noises and side) or Axes.of(model.columns).mixed:
        return None
    start, end = model.knots[[0, -1]]
    at = (model.knots - start) / (end - start)
    cells = len(sides) * side ** model.particles.shape[2]
    found = small_groups(
        model.particles,
        model.weights,
        _at_times(model, sides, at),
        _at_times(model, people, at),
        fewest_told(min(noises), cells),
    )
    words = {"share": percent(found.share), "worst": percent(found.worst)}
    return judged("groups", found.share, fewest=round_number(f"{found.fewest:.2g}"), **words)


def _cell_sides(model: TrajectoryModel) -> list[float]:
    """Of each slab, if people were counted in cells."""
    return _numbers(model, "cell_side") if model.settings.get("measure") == "counts" else []


def _at_times(model: TrajectoryModel, values: Sequence[float], at: Floats) -> Floats:
    """(Q,) values (K,) of the slabs nearest to times `at` (Q,), shares of the range."""
    middles = np.array(_numbers(model, "people_middles"))
    if len(middles) != len(values):
        middles = np.linspace(0, 1, len(values))
    else:
        start, end = model.knots[[0, -1]]
        middles = (middles - start) / (end - start)
    nearest = np.abs(at[:, None] - middles).argmin(axis=1)
    return np.asarray(values)[nearest]


def _number_columns(model: TrajectoryModel) -> list[Number]:
    return [column for column in model.columns if isinstance(column, Number)]


def _numbers(model: TrajectoryModel, name: str) -> list[float]:
    """A diagnostic of all times, less what was not finite."""
    return [value for value in model.diagnostics.get(name) or [] if value is not None]
