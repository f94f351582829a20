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

from privtraj.arrays import Floats
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Number
from privtraj.gradients.constants import CLIP_QUANTILE
from privtraj.report.templates import asset, percent, round_number

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel

Grade = Literal["good", "look closer", "poor", "for information"]

WALL = 0.02  # of the box, from either bound
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
    checks = (_worth, _head_count, _significant, _blur, _noise, _temperature, _couplings, _clipping)
    possible = [*(check(model) for check in checks), _walls(model, people)]
    return [verdict for verdict in possible if verdict is not None]


def graded(value: float, good: float, fair: float) -> Grade:
    """good: limit of a good value, fair: of one to look at; which way is better follows."""
    sign = 1 if good < fair else -1
    if sign * value <= sign * good:
        return "good"
    return "look closer" if sign * value <= sign * fair else "poor"


def judged(check: str, number: float | None, **words: str) -> Verdict:
    """A check of `verdicts.toml` on its number, None for information; words: of its sentences."""
    texts = _texts()[check]
    grade: Grade = "for information" if number is None else graded(number, *texts["limits"])
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


def expected_worth(model: TrajectoryModel) -> float | None:
    """The rule of thumb in people per time, where simulations have shown that it is cautious: not
    for marginals, whose rule knows nothing of how columns hang together."""
    by_tables = model.settings.get("measure") == "marginals"
    return None if by_tables else model.diagnostics.get("expected_worth")


def _worth(model: TrajectoryModel) -> Verdict | None:
    worth = expected_worth(model)
    if worth is None:
        return None
    return judged("worth", worth, people=round_number(max(worth, 0)))


def _head_count(model: TrajectoryModel) -> Verdict | None:
    people = _numbers(model, "people_per_time")
    if not people:
        return None
    middle, least = float(np.median(people)), min(people)
    exact = model.certificate.counts_are_public
    how = "Declared public by whoever made the fit." if exact else "Counted with noise, paid for."
    known = " to ".join(dict.fromkeys(map(round_number, (least, max(people)))))
    verdict = judged("people", model.certificate.target_epsilon * middle, range=known, how=how)
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
    return None if heat is None else judged("temperature", heat, heat=f"{heat:.3g}")


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


def _walls(model: TrajectoryModel, people: Floats) -> Verdict | None:
    if people.shape[2] == 0:
        return None
    near = ((people < WALL) | (people > 1 - WALL)).mean(axis=(0, 1))  # (d,)
    worst = int(np.argmax(near))
    share, name = float(near[worst]), _number_names(model)[worst]
    whose = f" for '{name}'" if len(near) > 1 else ""
    return judged("walls", share, share=percent(share), whose=whose, name=name, wall=percent(WALL))


def _number_names(model: TrajectoryModel) -> list[str]:
    return [column.name for column in model.columns if isinstance(column, Number)]


def _numbers(model: TrajectoryModel, name: str) -> list[float]:
    """A diagnostic of all times, less what was not finite."""
    return [value for value in model.diagnostics.get(name) or [] if value is not None]
