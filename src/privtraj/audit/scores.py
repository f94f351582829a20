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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from privtraj.audit.canaries import People
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
    """Log-likelihood ratio of everything, `present` over `without`, for noise as it is stated.

    Parameters and clips follow from earlier answers and public coins, so the ratios of adaptive
    answers add up. No test is better than a threshold on the sum (Neyman and Pearson), and zero is
    the threshold of equal odds: nothing has to be tuned on runs.
    """
    return {ALL: log_likelihood_ratio(run.transcript.answers)}


def log_likelihood_ratio(answers: list[Answer]) -> float:
    """Of all the answers."""
    return math.fsum(map(answer_evidence, answers))


def answer_evidence(answer: Answer) -> float:
    """Of one answer.

    counts   epsilon sum (|x - a| - |x - b|)                    a, b what the worlds add to it
    sums     l(b) - l(a),   l(v) = sum <x, v> / s^2 - |v|^2 / (2 s^2)                     s = c z
    sampled  the same of log(1 - q + q e^l)                                             at rate q
    """
    event, x = answer.event, answer.rest
    if isinstance(event, LaplaceCounts):
        return event.epsilon * float(_nearer(x, answer.without, answer.present))
    assert isinstance(event, GaussianSum)
    squared_noise = (answer.unit * event.noise_multiplier) ** 2

    def ratio(v: Floats) -> float:
        full = float(((x - v / 2) * v / squared_noise).sum())
        if event.rate == 1 or not v.any():
            return full
        return float(np.logaddexp(math.log1p(-event.rate), math.log(event.rate) + full))

    return ratio(answer.present) - ratio(answer.without)


def _nearer(x: Floats, a: Floats, b: Floats) -> float:
    """How much nearer x is to b than to a."""
    return float((np.abs(x - a) - np.abs(x - b)).sum())


# Without the claims -----------------------------------------------------------------------------


@attack("transcript")
def each_release(run: Run) -> dict[str, float]:
    """Every release alone: its answers, in units of what a record may add, along the person."""
    return {
        what: sum(map(_along, answers)) if any(_moves(one) for one in answers) else math.nan
        for what, answers in run.transcript.by_name()
    }


def _moves(answer: Answer) -> bool:
    return bool(answer.moved.any())


def _along(answer: Answer, by: int = 0) -> float:
    """<R, v> / |v|, in units of what a record may add; R shifted by so many rows."""
    direction = answer.moved / answer.unit
    size = float(np.linalg.norm(direction))
    if size == 0:
        return 0.0
    return float((np.roll(answer.rest / answer.unit, by, axis=0) * direction).sum()) / size


@attack("transcript", learned="all answers, learned")
def traces(run: Run) -> dict[str, float]:
    """Of every release: where the person is, beside other times and other numbers; how loud it is,
    and how large."""
    found = {}
    for what, answers in run.transcript.by_name():
        for name, of in _TRACES.items():
            found[f"{what}: {name}"] = math.fsum(map(of, answers))
    return found


def _vote(answer: Answer) -> float:
    """How much nearer to one world than to the other: the far tails of noise count for little."""
    return _nearer(*_in_units(answer, answer.rest))


def _vote_between_times(answer: Answer) -> float:
    """The same of the difference to the row before: the person's, if both had the same noise."""
    return _nearer(*_in_units(answer, answer.rest - np.roll(answer.rest, 1, axis=0)))


def _in_units(answer: Answer, x: Floats) -> tuple[Floats, Floats, Floats]:
    return x / answer.unit, answer.without / answer.unit, answer.present / answer.unit


def _rest_of_the_row(answer: Answer) -> float:
    """Mean of the numbers beside the person's, in the same rows."""
    moved = answer.moved != 0
    still = ~moved & moved.any(axis=1, keepdims=True)
    return float((answer.rest / answer.unit)[still].mean()) if still.any() else 0.0


_TRACES: dict[str, Callable[[Answer], float]] = {
    "here": _along,
    "the row before": lambda answer: _along(answer, 1),
    "vote": _vote,
    "vote between times": _vote_between_times,
    "beside": _rest_of_the_row,
    "loudness": lambda answer: math.log1p(float(np.abs(answer.rest / answer.unit).mean())),
    "rows": lambda answer: float(answer.rest.shape[0]),
    "columns": lambda answer: math.log(answer.rest.shape[1]),
}


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
            found |= {f"{name}: {key}": x for key, x in _around(model, time, point).items()}
    papers = {
        "settings": model.settings,
        "diagnostics": model.diagnostics,
        "found": model.certificate.found,
        "public": model.certificate.public_inputs,
    }
    return found | dict(_numbers(papers, ""))


def _around(model: TrajectoryModel, time: float, point: Floats) -> dict[str, float]:
    """Masses of particles near a place, at the nearest knot and on average over all."""
    at = int(np.argmin(np.abs(model.knots - time)))
    away = np.linalg.norm(model.particles - point, axis=2)
    near = {r: (model.weights * (away < r)).sum(axis=1) for r in RADII}
    masses = {f"mass within {r}": float(mass[at]) for r, mass in near.items()}
    usual = {f"usual mass within {r}": float(mass.mean()) for r, mass in near.items()}
    mean = float(model.weights[at] @ away[at])
    return {**masses, **usual, "distance": mean, "width": float(model.bandwidth[at])}


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


class Classifier(NamedTuple):
    """score = <w, clip((x - centre) / scale)> + bias, the log odds of `present`."""

    centre: Floats
    scale: Floats
    weights: Floats  # (f + 1,), the last of them the bias

    def __call__(self, features: Floats) -> Floats:
        """Scores (n,) of features (n, f)."""
        scores: Floats = _inputs(features, self.centre, self.scale) @ self.weights
        return scores


def learned(without: Floats, present: Floats) -> Classifier:
    """From features (n, f), (k, f) in the two worlds: Newton's method on
    sum log(1 + e^(-s <w, x>)) + ridge |w|^2 / 2,  s = -1 or 1."""
    features = np.concatenate([without, present])
    truth = np.repeat([0.0, 1.0], [len(without), len(present)])
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale <= 1e-9 * np.abs(centre)] = 1.0  # features that never change
    x = _inputs(features, centre, scale)
    weights = np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        odds = expit(x @ weights)
        gradient = x.T @ (odds - truth) + RIDGE * weights
        curvature = (x.T * (odds * (1 - odds))) @ x + RIDGE * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return Classifier(centre, scale, weights)


def held_out(without: Floats, present: Floats) -> tuple[Floats, Floats]:
    """Scores of all these runs, each by a classifier that did not see it: two folds."""
    scores = np.empty(len(without)), np.empty(len(present))
    for fold in (0, 1):
        classify = learned(without[fold::2], present[fold::2])
        for found, features in zip(scores, (without, present), strict=True):
            found[1 - fold :: 2] = classify(features[1 - fold :: 2])
    return scores


def _inputs(features: Floats, centre: Floats, scale: Floats) -> Floats:
    cut = np.clip((features - centre) / scale, -LARGEST, LARGEST)
    return np.column_stack([cut, np.ones(len(cut))])
