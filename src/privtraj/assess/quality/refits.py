"""Fits that are made again: of people drawn from a released model, with the noise that it had.

The parametric bootstrap. The model stands in for the population, as many people as were counted are
drawn from it, each at a moment of their own, and the same synthesizer is run on them with the same
budget. How far the new model is from the old one tells how far the old one may be from the truth.
Only what was released is used: it costs no privacy.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from privtraj.assess.planning.question import Question
from privtraj.assess.planning.trials import worth_once
from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import is_number
from privtraj.base.space import as_user_times
from privtraj.data.public import TimeAxis
from privtraj.data.snapshots import Snapshots
from privtraj.metrics.encoding import unit_points
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.rows import MemoryRows
from privtraj.privacy.statements import MOST_RECORDS, PUBLIC_COUNTS, SHARED_BINS
from privtraj.recipe import MeasureName, Recipe
from privtraj.synthesizer import TrajectorySynthesizer

RESOLUTION = ("particles", "steps", "cells", "slabs", "subspace", "bandwidth")
"""Settings that decide how fine a model can be; chosen by the fit itself unless set by hand."""
_MOMENTS = 64
"""At which people are who come at any time: more moments make more calls, and no other crowd."""


def can_be_refitted(model: TrajectoryModel) -> bool:
    """Whether it was made by a fit that can be made again from what it tells."""
    told = {"people_per_time", "people_lengths", "people_middles", "listed_times"}
    return model.settings.get("measure") in _measures() and told <= model.diagnostics.keys()


def refitted(model: TrajectoryModel, seed: int) -> TrajectoryModel:
    """A fit to people drawn from the model, to fewer with less noise where they are many."""
    asked = _question(model).simulated()
    rng = np.random.default_rng(seed)
    moments = np.sort(_moments(model, asked.records, rng))
    points = people_at(model, moments, seed)
    snapshots = _snapshots(model, moments, points, asked.people)
    public_counts = None
    if asked.public_counts:
        bins = snapshots.axis.bins.of(moments)
        public_counts = np.bincount(bins, minlength=snapshots.n_times).tolist()
    again = recipe_of(model).again(epsilon=asked.epsilon, public_counts=public_counts, seed=seed)
    with warnings.catch_warnings():  # that the budget buys little is what is found out here
        warnings.simplefilter("ignore")
        return TrajectorySynthesizer.of(again).fit(snapshots)


def recipe_of(model: TrajectoryModel) -> Recipe:
    """The recipe that made the model, with the process by which its people move now.

    A file of version 0.2 has none: the budget, the measure and what is public of features are then
    as the model tells, and settings that it does not tell are left to the fit.
    """
    if model.recipe is not None:
        return model.recipe.again(reference=model.reference)
    certificate = model.certificate
    return Recipe(
        certificate.target_epsilon,
        certificate.delta,
        adjacency=certificate.adjacency,
        measure=model.settings["measure"],
        time_coupling=model.settings.get("time_coupling"),
        reference=model.reference,
        growth=model.growth,
        **model.constraints.to_dict(),
    )


def worth_of_resolution(model: TrajectoryModel) -> float:
    """Worth that a resolution set by hand leaves, by fits to stand-ins; infinite where none is set.

    Refits cannot tell: people drawn from a model that is too coarse are described without error by
    one that is as coarse. Stand-ins are not drawn from it.
    """
    recipe, asked = recipe_of(model), _question(model)
    names = [name for name in RESOLUTION if is_number(getattr(recipe, name))]
    if not names or model.axes.mixed:
        return math.inf
    by_hand = tuple((name, getattr(recipe, name)) for name in names)
    return worth_once(replace(asked, public_counts=False, settings=by_hand))


def people_at(model: TrajectoryModel, moments: Floats, seed: int) -> Floats:
    """(n, d) in the unit cube: n people drawn from the model, each at one of the moments (n,)."""
    everybody = model if model.growth is None else model.with_growth(None)
    each, which = np.unique(moments, return_inverse=True)
    points = np.empty((len(moments), len(model.columns)))
    for k, time in enumerate(as_user_times(each, model.datetime)):
        those = np.flatnonzero(which == k)
        drawn = everybody.sample(len(those), times=[time], seed=seed + 7919 * k).values[:, 0]
        points[those] = unit_points(drawn, model.columns)
    return points


def read_times(model: TrajectoryModel, most: int) -> Floats:
    """When models are compared: the listed times, if people are at these, or even ones."""
    if model.diagnostics["listed_times"]:
        times = model.numeric_times
        return times[np.linspace(0, len(times) - 1, min(most, len(times))).round().astype(int)]
    start, end = model.knots[[0, -1]]
    return start + (end - start) * (np.arange(most) + 0.5) / most


def _measures() -> tuple[str, ...]:
    from typing import get_args

    return get_args(MeasureName)


def _question(model: TrajectoryModel) -> Question:
    """What was asked of the fit, as far as the model tells."""
    certificate, public = model.certificate, model.certificate.public_inputs
    records = max(float(np.sum(model.diagnostics["people_per_time"])), 2.0)
    each = int(public.get(MOST_RECORDS, 1))
    return Question(
        max(round(records / each), 2),
        None,
        model.axes.n_numbers or 1,
        certificate.target_epsilon,
        certificate.delta,
        certificate.adjacency,
        model.settings["measure"],
        PUBLIC_COUNTS in public,
        each,
    )


def _moments(model: TrajectoryModel, n: int, rng: np.random.Generator) -> Floats:
    """(n,) as the released numbers of people are spread over the slabs of time."""
    told = model.diagnostics
    people = np.maximum(np.asarray(told["people_per_time"], float), 0)
    slab = rng.choice(len(people), n, p=people / people.sum() if people.any() else None)
    if told["listed_times"]:
        ends = np.cumsum(np.asarray(told["people_lengths"], float)).astype(int)
        first = np.concatenate([[0], ends[:-1]])
        return model.numeric_times[rng.integers(first[slab], ends[slab])]
    edges = model.knots[0] + np.concatenate([[0.0], np.cumsum(told["people_lengths"])])
    at = edges[slab] + rng.random(n) * np.diff(edges)[slab]
    width = (edges[-1] - edges[0]) / _MOMENTS
    step = np.minimum(((at - edges[0]) / width).astype(int), _MOMENTS - 1)
    return np.clip(edges[0] + (step + 0.5) * width, *model.knots[[0, -1]])


def _snapshots(model: TrajectoryModel, moments: Floats, points: Floats, people: int) -> Snapshots:
    """The drawn people, with the public frame of the model."""
    public: dict[str, Any] = model.certificate.public_inputs
    each = int(public.get(MOST_RECORDS, 1))
    axis = TimeAxis(
        model.numeric_times.copy(), False, model.knots[[0, -1]].copy(), "bin times" in public
    )
    # in order of time, so that records of one person are far apart
    whose: Ints | None = np.arange(len(moments)) % people if each > 1 else None
    rows = MemoryRows(points.astype(np.float32), moments, b"", whose)
    return Snapshots(
        axis, model.columns, model.time_name, rows, each, SHARED_BINS in public, (), model.domain
    )
