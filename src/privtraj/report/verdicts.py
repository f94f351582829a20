"""Plain-language verdicts on a released model. Made from the model file alone: nothing is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privtraj.arrays import Floats
from privtraj.gradients.constants import CLIP_QUANTILE

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel

Grade = Literal["good", "look closer", "poor", "for information"]

WALL = 0.02  # of the box, from either bound


@dataclass(frozen=True)
class Verdict:
    """name: what was looked at.  value: the number, in words.  sentence: what it means."""

    name: str
    grade: Grade
    value: str
    sentence: str


def verdicts(model: TrajectoryModel, people: Floats) -> list[Verdict]:
    """All that can be said of the model; people: sampled ones (n, Q, d), shares of the box."""
    found = [
        _worth(model),
        _head_count(model),
        _believed(model),
        _blur(model),
        _noise(model),
        _temperature(model),
        _couplings(model),
        _clipping(model),
        _walls(model, people),
    ]
    return [verdict for verdict in found if verdict is not None]


def graded(value: float, good: float, fair: float) -> Grade:
    """good: limit of a good value, fair: of one to look at; which way is better follows."""
    sign = 1 if good < fair else -1
    return (
        "good" if sign * value <= sign * good else
        "look closer" if sign * value <= sign * fair else "poor"
    )  # fmt: skip


def summary(found: Sequence[Verdict]) -> str:
    """How many of each grade, in words."""
    counts = [(grade, sum(v.grade == grade for v in found)) for grade in ("poor", "look closer")]
    amiss = [
        f"{count} {'is' if count == 1 else 'are'} {_as_said(g)}" for g, count in counts if count
    ]
    judged = sum(v.grade != "for information" for v in found)
    if not amiss:
        return f"All {judged} checks are good."
    return f"Of {judged} checks, {' and '.join(amiss)}; the others are good."


def _as_said(grade: str) -> str:
    return "worth a closer look" if grade == "look closer" else grade


def _worth(model: TrajectoryModel) -> Verdict | None:
    worth = model.diagnostics.get("expected_worth")
    if worth is None:
        return None
    grade = graded(worth, 20, 5)
    told = {
        "good": "Shapes and shares can be read off; rare groups may be missing.",
        "look closer": "Trust centres and broad shapes; do not read small groups into it.",
        "poor": "Use fewer time bins or features, more people, or a larger epsilon.",
    }[grade]
    return Verdict(
        "Expected worth",
        grade,
        f"about {round_number(max(worth, 0))} people per time",
        "A cautious rule of thumb from the budget and the number of people alone: as much as so "
        "many people's raw records at each time would tell. Simulated fits often reach several "
        f"times that. {told}",
    )


def _head_count(model: TrajectoryModel) -> Verdict | None:
    people = _numbers(model, "people_per_time")
    if not people:
        return None
    epsilon = model.certificate.target_epsilon
    middle, least = float(np.median(people)), float(min(people))
    grade = graded(epsilon * middle, 300, 100)
    told = {
        "good": "That is enough people for this epsilon.",
        "look closer": "That is few for this epsilon: fewer time bins would put more in each.",
        "poor": "That is too few for this epsilon: use fewer time bins, or a larger epsilon.",
    }[grade]
    if least < middle / 4:
        grade = "look closer" if grade == "good" else grade
        told += " Some times have far fewer people than others and are known less well."
    exact = "people per time (declared public)" in model.certificate.public_inputs
    how = "Declared public by whoever made the fit." if exact else "Counted with noise, paid for."
    return Verdict(
        "People per time",
        grade,
        " to ".join(dict.fromkeys(map(round_number, (least, max(people))))),
        f"{how} {told}",
    )


def _believed(model: TrajectoryModel) -> Verdict | None:
    shares = _numbers(model, "significant_share")
    if not shares:
        return None
    mean, least = float(np.mean(shares)), float(min(shares))
    grade = graded(min(mean, least + 0.2), 0.8, 0.5)
    told = {
        "good": "Hardly anybody is lost in the noise.",
        "look closer": "The others stand in cells too thin to tell from noise: rare places and "
        "thin tails are missing or smeared.",
        "poor": "Most people cannot be told from noise: what is shown is coarse.",
    }[grade]
    return Verdict(
        "People in cells that stand out",
        grade,
        f"{percent(mean)}, at the worst time {percent(least)}",
        f"Share of people in cells whose noisy count noise alone would hardly produce. {told}",
    )


def _blur(model: TrajectoryModel) -> Verdict:
    """Bandwidth against the spread of the particles, per coordinate."""
    weights = model.weights[..., None] / model.weights.sum(axis=1)[:, None, None]
    mean = (weights * model.particles).sum(axis=1, keepdims=True)
    variance = (weights * (model.particles - mean) ** 2).sum(axis=1).mean(axis=1)
    total = np.sqrt(variance + model.bandwidth**2)
    ratio = float(np.mean(model.bandwidth / np.maximum(total, 1e-12)))
    grade = graded(ratio, 0.5, 0.8)
    told = {
        "good": "Differences between people are much larger than the blur.",
        "look closer": "Detail finer than this is smoothed away.",
        "poor": "Mostly a smooth cloud: centre and width can be read off, little else.",
    }[grade]
    return Verdict(
        "Blur of one person",
        grade,
        f"{percent(float(model.bandwidth.mean()))} of the box, {percent(ratio)} of the spread",
        f"Every synthetic person is a particle plus this much smooth noise. {told}",
    )


def _noise(model: TrajectoryModel) -> Verdict | None:
    ratio = model.diagnostics.get("noise_over_bandwidth")
    if ratio is None:
        if model.settings.get("measure") != "counts":
            return None
        return Verdict(
            "Noise against bandwidth",
            "for information",
            "no noisy steps",
            "Counts are paid for once, before anything moves, so no step carries privacy noise.",
        )
    grade = graded(ratio, 1 / 3, 0.5)
    told = {
        "good": "Well below a third, where a fit begins to fall apart.",
        "look closer": "Close to where a fit falls apart: fewer particles or steps would help.",
        "poor": "The noise of a step outruns the structure: fewer particles, or more budget.",
    }[grade]
    return Verdict(
        "Noise against bandwidth",
        grade,
        f"{ratio:.2g} in the last step",
        f"Privacy noise in a particle's last move, in units of the bandwidth. {told}",
    )


def _temperature(model: TrajectoryModel) -> Verdict | None:
    heat = model.diagnostics.get("effective_temperature")
    if heat is None:
        return None
    grade = graded(heat, 2, 10)
    told = {
        "good": "Privacy noise hardly adds to it.",
        "look closer": "Privacy noise is the larger part: groups are a little wider than asked.",
        "poor": "Privacy noise rules: particles wander more than the method asks for.",
    }[grade]
    return Verdict(
        "Effective temperature",
        grade,
        f"{heat:.3g} times the one asked for",
        f"How much the particles were shaken, against what the method wants. {told}",
    )


def _couplings(model: TrajectoryModel) -> Verdict:
    """Sinkhorn's error: of the last step, where there were steps, and of the plans of paths."""
    left = model._couplings("entropic").error
    during = model.diagnostics.get("marginal_error")
    worst = max(left, during or 0.0)
    grade = graded(worst, 0.02, 0.2)
    told = {
        "good": "Paths visit every place as often as they should.",
        "look closer": "It was repaired before paths are drawn, so marginals are right; a few "
        "paths take a longer way than they need to.",
        "poor": "It was repaired before paths are drawn, so marginals are right; who becomes whom "
        "should not be read closely.",
    }[grade]
    steps = "" if during is None else f", {during:.2g} in the last step"
    return Verdict(
        "Sinkhorn error",
        grade,
        f"{left:.2g} of the mass{steps}",
        f"Mass that the plans between neighbouring times put in the wrong place. {told}",
    )


def _clipping(model: TrajectoryModel) -> Verdict | None:
    measure = model.settings.get("measure")
    if measure == "counts":
        return Verdict(
            "Clipping",
            "for information",
            "nothing is clipped",
            "A person is counted in one cell; there is nothing to shorten. Values outside the "
            "public bounds are moved to the bound.",
        )
    if measure != "gradients":
        return None
    share = percent(1 - CLIP_QUANTILE)
    return Verdict(
        "Clipping",
        "for information",
        f"{share} of the model's own people, by design",
        f"The clip is set where it shortens {share} of people whom the model itself would "
        "produce. The share of real people it shortened is private, was not paid for, and is not "
        "known to anybody.",
    )


def _walls(model: TrajectoryModel, people: Floats) -> Verdict:
    near = ((people < WALL) | (people > 1 - WALL)).mean(axis=(0, 1))  # (d,)
    worst = int(np.argmax(near))
    share = float(near[worst])
    grade = graded(share, 0.05, 0.2)
    name = model.features[worst]
    told = {
        "good": "No sign that bounds cut people off.",
        "look closer": f"If real values of '{name}' can lie beyond its bounds, widen them.",
        "poor": f"The bounds of '{name}' look too tight: values beyond were moved to them.",
    }[grade]
    return Verdict(
        "People near the bounds",
        grade,
        f"{percent(share)} for '{name}'" if len(near) > 1 else percent(share),
        f"Share of synthetic people within {percent(WALL)} of a public bound, for the feature "
        f"with most of them. {told}",
    )


def _numbers(model: TrajectoryModel, name: str) -> list[float]:
    """A diagnostic of all times, less what was not finite."""
    return [value for value in model.diagnostics.get(name) or [] if value is not None]


def percent(share: float) -> str:
    """A share as people write it."""
    value = 100 * share
    if 0 < value < 0.1:
        return "less than 0.1\N{NO-BREAK SPACE}%"
    digits = f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
    return f"{digits}\N{NO-BREAK SPACE}%"


def round_number(value: Any) -> str:
    """At most three digits, with a narrow space between thousands."""
    value = float(value)
    if abs(value) < 1000:
        return f"{value:.3g}" if abs(value) < 10 else f"{value:.0f}"
    return f"{float(f'{value:.3g}'):,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
