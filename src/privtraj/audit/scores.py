"""Attacks: what somebody who sees a run would look at. A new one is a function below.

A look is a function of a run that returns numbers by name. `@attack` says what they are:

    each a score of its own     it says "present" where the score is above a threshold, which is
                                given, or found on half of the runs and tested on the others
    all of them learned from    `learned` finds the score on half of the runs

Only the first of them knows what the ledger claims; the others would not be misled by it. A number
that is named after a release is also held against that release's own entry in the ledger. It must
then have one law in each world, whatever was answered before, but for a shift of at most what the
entry allows: so the entry bounds it alone. NaN: this run cannot tell, and is left out.
"""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logsumexp

from privtraj.audit.canaries import People
from privtraj.audit.findings import best_threshold
from privtraj.audit.transcript import Answer, Run
from privtraj.base.arrays import Floats
from privtraj.columns.kinds import Axes
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.events import GaussianSum, LaplaceCounts

View = Literal["transcript", "released"]
Look = Callable[[Run], dict[str, float]]

ALL = "all answers, weighed by their claims"
DENSITY = "density of the model at the person"


@dataclass(frozen=True)
class Attack:
    """A look, and what is made of its numbers.

    view: what it needs to see.  learned: what it is called if its numbers are learned from.
    threshold: above which a score says "present"; None to find it.
    weight: of the audit's chance of a false alarm, its part beside the parts of the others.
    """

    look: Look
    view: View
    learned: str | None = None
    threshold: float | None = None
    weight: float = 1.0


ATTACKS: list[Attack] = []


def attack(view: View, **options: Any) -> Callable[[Look], Look]:
    """List a look among the attacks."""

    def listed(look: Look) -> Look:
        ATTACKS.append(Attack(look, view, **options))
        return look

    return listed


# The best there is, if the claims are true ------------------------------------------------------


@attack("transcript", threshold=0.0, weight=8.0)
def by_claims(run: Run) -> dict[str, float]:
    """No test is better than a threshold on this sum (Neyman and Pearson), and zero is the
    threshold of equal odds: nothing has to be tuned on runs."""
    return {ALL: log_likelihood_ratio(run.transcript.answers)}


def log_likelihood_ratio(answers: list[Answer]) -> float:
    """Of all the answers, `present` over `without`, for noise as it is stated.

    Parameters and clips follow from earlier answers and public coins, so the ratios of adaptive
    answers add up.

    counts   epsilon sum (|x - a| - |x - b|)                    a, b what the worlds add to it
    sums     l(b) - l(a),   l(v) = sum <x, v> / z^2 - |v|^2 / (2 z^2)
    sampled  the same of log(1 - q + q e^l)                                             at rate q
    """

    def evidence(answer: Answer) -> float:
        event = answer.event
        if isinstance(event, LaplaceCounts):
            return event.epsilon * _nearer(answer, answer.rest)
        assert isinstance(event, GaussianSum)

        def ratio(v: Floats) -> float:
            full = float(((answer.rest - v / 2) * v).sum()) / event.noise_multiplier**2
            if event.rate == 1 or not v.any():
                return full
            return float(np.logaddexp(math.log1p(-event.rate), math.log(event.rate) + full))

        return ratio(answer.present) - ratio(answer.without)

    return math.fsum(map(evidence, answers))


def _nearer(answer: Answer, x: Floats) -> float:
    """How much nearer x is to what the person adds than to what the other world adds."""
    return float((np.abs(x - answer.without) - np.abs(x - answer.present)).sum())


# Without the claims -----------------------------------------------------------------------------


@attack("transcript")
def each_release(run: Run) -> dict[str, float]:
    """Every release alone: its answers along the person."""
    return {
        what: sum(map(_along, answers)) if any(one.moved.any() for one in answers) else math.nan
        for what, answers in run.transcript.by_name()
    }


def _along(answer: Answer, by: int = 0) -> float:
    """<R, v> / |v|; R shifted by so many rows."""
    size = float(np.linalg.norm(answer.moved))
    if size == 0:
        return 0.0
    return float((np.roll(answer.rest, by, axis=0) * answer.moved).sum()) / size


@attack("transcript", learned="all answers, learned")
def traces(run: Run) -> dict[str, float]:
    """Of every release: where the person is, beside other times and other numbers; how large its
    numbers are, and how many."""
    found: dict[str, float] = defaultdict(float)
    for what, answers in run.transcript.by_name():
        for answer in answers:
            rest, moved = answer.rest, answer.moved != 0
            beside = rest[~moved & moved.any(axis=1, keepdims=True)]  # in the person's rows
            traces = {
                "here": _along(answer),
                "the row before": _along(answer, 1),
                # votes: the far tails of noise count for little
                "vote": _nearer(answer, rest),
                # the person's, if this row and the one before had the same noise
                "vote between times": _nearer(answer, rest - np.roll(rest, 1, axis=0)),
                "beside": float(beside.mean()) if beside.size else 0.0,
                "size": math.log1p(float(np.abs(rest).mean())),
                "rows": float(rest.shape[0]),
                "columns": math.log(rest.shape[1]),
            }
            for name, number in traces.items():
                found[f"{what}: {name}"] += number
    return found


# The released model -----------------------------------------------------------------------------


@attack("released")
def density(run: Run) -> dict[str, float]:
    """Log density of the people that the model would sample: at `present`, less at `without`."""
    if run.model is None:
        return {}
    _, without, present = run.transcript.worlds
    return {DENSITY: log_density(run.model, present) - log_density(run.model, without)}


def log_density(model: TrajectoryModel, people: People) -> float:
    """Of all these records: sum_y log sum_k w_k N(y; x_k, sigma^2 I) over the numbers, times the
    share OTHER_LEVEL for every category in which y is not as the particle is."""
    total, axes = 0.0, Axes.of(model.columns)
    for time, point, copies in zip(*people, strict=True):
        at = int(np.argmin(np.abs(model.knots - time)))
        sigma, d = max(float(model.bandwidth[at]), LEAST_WIDTH), int(axes.numbers.sum())
        distance = ((model.particles[at] - point)[:, axes.numbers] ** 2).sum(axis=1)
        others = (axes.level_of(model.particles[at]) != axes.level_of(point)).sum(axis=1)
        exponents = others * math.log(OTHER_LEVEL) - distance / (2 * sigma**2)
        kernel = logsumexp(exponents, b=model.weights[at])
        total += copies * (float(kernel) - d * math.log(sigma * math.sqrt(2 * math.pi)))
    return total


OTHER_LEVEL, LEAST_WIDTH = 1e-3, 1e-3
"""What keeps the density of a mixed model above 0: by level, and as a share of the box."""
RADII = (0.1, 0.25, 0.5)  # of the box, around the person


@attack("released", learned="the model, learned")
def written(run: Run) -> dict[str, float]:
    """Masses around the person, then and at other times, and all else that stands in the model."""
    if run.model is None:
        return {}
    model, worlds = run.model, run.transcript.worlds
    found = dict(density(run))
    for name, people in (("present", worlds.present), ("without", worlds.without)):
        for time, point, _ in zip(*people, strict=True):
            at = int(np.argmin(np.abs(model.knots - time)))
            away = np.linalg.norm(model.particles - point, axis=2)
            for r in RADII:
                mass = (model.weights * (away < r)).sum(axis=1)
                found[f"{name}: mass within {r}"] = float(mass[at])
                found[f"{name}: usual mass within {r}"] = float(mass.mean())
            found[f"{name}: distance"] = float(model.weights[at] @ away[at])
            found[f"{name}: width"] = float(model.bandwidth[at])
    papers = {
        "settings": model.settings,
        "diagnostics": model.diagnostics,
        "found": model.certificate.found,
        "public": model.certificate.public_inputs,
    }
    return found | dict(_numbers(papers, ""))


def _numbers(value: Any, name: str) -> Iterator[tuple[str, float]]:
    """Whatever is written, as numbers by name: lists by their ends and mean, texts by a hash."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(part, f"{name}/{key}")
    elif isinstance(value, list | tuple) and all(isinstance(x, int | float) for x in value):
        known = value or [0.0]
        yield f"{name}/mean", math.fsum(known) / len(known)
        yield f"{name}/first", float(known[0])
        yield f"{name}/last", float(known[-1])
    elif isinstance(value, int | float):
        yield name, float(value)
    else:
        yield name, zlib.crc32(repr(value).encode()) / 2**32


RIDGE = 1.0  # precision of a weight's prior; features have variance one
LARGEST = 8.0  # standard deviations beyond which a feature is cut
NEWTON_STEPS = 20


def learned(without: Floats, present: Floats) -> Callable[[Floats], Floats]:
    """Scores (n,) of features (n, f), learned from those in the two worlds: the log odds of
    `present`, <w, clip((x - centre) / scale)> + bias, by Newton's method on
    sum log(1 + e^(-s <w, x>)) + ridge |w|^2 / 2,  s = -1 or 1."""
    known = np.concatenate([without, present])
    truth = np.repeat([0.0, 1.0], [len(without), len(present)])
    centre, scale = known.mean(axis=0), known.std(axis=0)
    scale[scale <= 1e-9 * np.abs(centre)] = 1.0  # features that never change

    def inputs(features: Floats) -> Floats:
        cut = np.clip((features - centre) / scale, -LARGEST, LARGEST)
        return np.column_stack([cut, np.ones(len(cut))])

    x = inputs(known)
    weights = np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        odds = expit(x @ weights)
        gradient = x.T @ (odds - truth) + RIDGE * weights
        curvature = (x.T * (odds * (1 - odds))) @ x + RIDGE * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return lambda features: inputs(features) @ weights


def learned_scores(
    without: Floats, present: Floats, confidence: float
) -> tuple[Floats, Floats, float]:
    """Scores of the second half of the runs, and a threshold, learned from the first half: from
    scores of its runs, each by a classifier that did not see it, in two folds."""
    halves = len(without) // 2, len(present) // 2
    known = without[: halves[0]], present[: halves[1]]
    held_out = np.empty(halves[0]), np.empty(halves[1])
    for fold in (0, 1):
        classify = learned(*(features[fold::2] for features in known))
        for found, features in zip(held_out, known, strict=True):
            found[1 - fold :: 2] = classify(features[1 - fold :: 2])
    threshold, classify = best_threshold(*held_out, confidence), learned(*known)
    return classify(without[halves[0] :]), classify(present[halves[1] :]), threshold
