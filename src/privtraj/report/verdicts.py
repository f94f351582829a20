"""Plain-language verdicts on a released model. Made from the model file alone: nothing is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from privtraj.arrays import Floats
from privtraj.gradients.moments import CLIP_QUANTILE
from privtraj.report.numbers import percent, round_number

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
    possible = [
        _worth(model),
        _head_count(model),
        _significant(model),
        _blur(model),
        _noise(model),
        _temperature(model),
        _couplings(model),
        _clipping(model),
        _walls(model, people),
    ]
    return [verdict for verdict in possible if verdict is not None]


def graded(value: float, good: float, fair: float) -> Grade:
    """good: limit of a good value, fair: of one to look at; which way is better follows."""
    sign = 1 if good < fair else -1
    return (
        "good" if sign * value <= sign * good else
        "look closer" if sign * value <= sign * fair else "poor"
    )  # fmt: skip


def judged(
    name: str,
    value: float,
    limits: tuple[float, float],
    written: str,
    sentence: str,
    advice: tuple[str, str, str],
    *more: str,
) -> Verdict:
    """limits: as in `graded`.  written: the value in words.  advice: if good, look closer, poor."""
    grade = graded(value, *limits)
    said = dict(zip(("good", "look closer", "poor"), advice, strict=True))[grade]
    return Verdict(name, grade, written, " ".join((sentence, said, *more)))


def summary(judgements: Sequence[Verdict]) -> str:
    """How many of each grade, in words."""
    grades = [verdict.grade for verdict in judgements if verdict.grade != "for information"]
    counts = {
        "poor": grades.count("poor"),
        "worth a closer look": grades.count("look closer"),
    }
    amiss = [f"{count} {'is' if count == 1 else 'are'} {g}" for g, count in counts.items() if count]
    if not amiss:
        return f"All {len(grades)} checks are good."
    return f"Of {len(grades)} checks, {' and '.join(amiss)}; the others are good."


def _worth(model: TrajectoryModel) -> Verdict | None:
    worth = model.diagnostics.get("expected_worth")
    if worth is None:
        return None
    return judged(
        "Expected worth",
        worth,
        (20, 5),
        f"about {round_number(max(worth, 0))} people per time",
        "A cautious rule of thumb from the budget and the number of people alone: as much as so "
        "many people's raw records at each time would tell. Simulated fits often reach several "
        "times that.",
        (
            "Shapes and shares can be read off; rare groups may be missing.",
            "Trust centres and broad shapes; do not read small groups into it.",
            "Use fewer time bins or features, more people, or a larger epsilon.",
        ),
    )


def _head_count(model: TrajectoryModel) -> Verdict | None:
    people = _numbers(model, "people_per_time")
    if not people:
        return None
    middle, least = float(np.median(people)), float(min(people))
    exact = "people per time (declared public)" in model.certificate.public_inputs
    verdict = judged(
        "People per time",
        model.certificate.target_epsilon * middle,
        (300, 100),
        " to ".join(dict.fromkeys(map(round_number, (least, max(people))))),
        "Declared public by whoever made the fit." if exact else "Counted with noise, paid for.",
        (
            "That is enough people for this epsilon.",
            "That is few for this epsilon: fewer time bins would put more in each.",
            "That is too few for this epsilon: use fewer time bins, or a larger epsilon.",
        ),
    )
    if least >= middle / 4:
        return verdict
    thin = "Some times have far fewer people than others and are known less well."
    grade: Grade = "look closer" if verdict.grade == "good" else verdict.grade
    return replace(verdict, grade=grade, sentence=f"{verdict.sentence} {thin}")


def _significant(model: TrajectoryModel) -> Verdict | None:
    shares = _numbers(model, "significant_share")
    if not shares:
        return None
    mean, least = float(np.mean(shares)), float(min(shares))
    return judged(
        "People in cells that stand out",
        min(mean, least + 0.2),
        (0.8, 0.5),
        f"{percent(mean)}, at the worst time {percent(least)}",
        "Share of people in cells whose noisy count noise alone would hardly produce.",
        (
            "Hardly anybody is lost in the noise.",
            "The others stand in cells too thin to tell from noise: rare places and thin tails "
            "are missing or smeared.",
            "Most people cannot be told from noise: what is shown is coarse.",
        ),
    )


def _blur(model: TrajectoryModel) -> Verdict:
    """Bandwidth against the spread of the particles, per coordinate."""
    weights = model.weights[..., None] / model.weights.sum(axis=1)[:, None, None]
    mean = (weights * model.particles).sum(axis=1, keepdims=True)
    variance = (weights * (model.particles - mean) ** 2).sum(axis=1).mean(axis=1)
    total = np.sqrt(variance + model.bandwidth**2)
    ratio = float(np.mean(model.bandwidth / np.maximum(total, 1e-12)))
    return judged(
        "Blur of one person",
        ratio,
        (0.5, 0.8),
        f"{percent(float(model.bandwidth.mean()))} of the box, {percent(ratio)} of the spread",
        "Every synthetic person is a particle plus this much smooth noise.",
        (
            "Differences between people are much larger than the blur.",
            "Detail finer than this is smoothed away.",
            "Mostly a smooth cloud: centre and width can be read off, little else.",
        ),
    )


def _noise(model: TrajectoryModel) -> Verdict | None:
    name = "Noise against bandwidth"
    ratio = model.diagnostics.get("noise_over_bandwidth")
    if ratio is not None:
        return judged(
            name,
            ratio,
            (1 / 3, 0.5),
            f"{ratio:.2g} in the last step",
            "Privacy noise in a particle's last move, in units of the bandwidth.",
            (
                "Well below a third, where a fit begins to fall apart.",
                "Close to where a fit falls apart: fewer particles or steps would help.",
                "The noise of a step outruns the structure: fewer particles, or more budget.",
            ),
        )
    if model.settings.get("measure") != "counts":
        return None
    said = "Counts are paid for once, before anything moves, so no step carries privacy noise."
    return Verdict(name, "for information", "no noisy steps", said)


def _temperature(model: TrajectoryModel) -> Verdict | None:
    heat = model.diagnostics.get("effective_temperature")
    if heat is None:
        return None
    return judged(
        "Effective temperature",
        heat,
        (2, 10),
        f"{heat:.3g} times the one asked for",
        "How much the particles were shaken, against what the method wants.",
        (
            "Privacy noise hardly adds to it.",
            "Privacy noise is the larger part: groups are a little wider than asked.",
            "Privacy noise rules: particles wander more than the method asks for.",
        ),
    )


def _couplings(model: TrajectoryModel) -> Verdict:
    """Sinkhorn's error: of the last step, where there were steps, and of the plans of paths."""
    left = model._couplings("entropic").error
    during = model.diagnostics.get("marginal_error")
    steps = "" if during is None else f", {during:.2g} in the last step"
    repaired = "It was repaired before paths are drawn, so marginals are right;"
    return judged(
        "Sinkhorn error",
        max(left, during or 0.0),
        (0.02, 0.2),
        f"{left:.2g} of the mass{steps}",
        "Mass that the plans between neighbouring times put in the wrong place.",
        (
            "Paths visit every place as often as they should.",
            f"{repaired} a few paths take a longer way than they need to.",
            f"{repaired} who becomes whom should not be read closely.",
        ),
    )


def _clipping(model: TrajectoryModel) -> Verdict | None:
    share = percent(1 - CLIP_QUANTILE)
    told = {
        "counts": (
            "nothing is clipped",
            "A person is counted in one cell; there is nothing to shorten. Values outside the "
            "public bounds are moved to the bound.",
        ),
        "gradients": (
            f"{share} of the model's own people, by design",
            f"The clip is set where it shortens {share} of people whom the model itself would "
            "produce. The share of real people it shortened is private, was not paid for, and is "
            "not known to anybody.",
        ),
    }.get(str(model.settings.get("measure")))
    return told and Verdict("Clipping", "for information", *told)


def _walls(model: TrajectoryModel, people: Floats) -> Verdict:
    near = ((people < WALL) | (people > 1 - WALL)).mean(axis=(0, 1))  # (d,)
    worst = int(np.argmax(near))
    share, name = float(near[worst]), model.features[worst]
    return judged(
        "People near the bounds",
        share,
        (0.05, 0.2),
        f"{percent(share)} for '{name}'" if len(near) > 1 else percent(share),
        f"Share of synthetic people within {percent(WALL)} of a public bound, for the feature "
        "with most of them.",
        (
            "No sign that bounds cut people off.",
            f"If real values of '{name}' can lie beyond its bounds, widen them.",
            f"The bounds of '{name}' look too tight: values beyond were moved to them.",
        ),
    )


def _numbers(model: TrajectoryModel, name: str) -> list[float]:
    """A diagnostic of all times, less what was not finite."""
    return [value for value in model.diagnostics.get(name) or [] if value is not None]
