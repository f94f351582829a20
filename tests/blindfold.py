"""Fits that see nothing: whatever is asked, the guard answers what it answered about another table.

All that a fit makes, and all that it asks, is then a function of the answers, of public inputs and
of its seed; two tables that have nothing in common must give the same. `KINDS` has one fit for
every way to measure and every kind of release; `make fuzz` composes others.

The same kinds show that certificates are right: `another_epsilon` adds up the entries of a ledger
with another accountant, under either neighbouring relation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

import dp_accounting
import numpy as np
import pandas as pd
from dp_accounting import pld

import privtraj as pt
from privtraj.paper import SampledSynthesizer
from privtraj.privacy.guard import Guard

# Tables ---------------------------------------------------------------------------------------


class Crowd(NamedTuple):
    """People who have nothing in common with those of another: how many, where, how they move."""

    people: int
    place: float
    speed: float
    seed: int


CORNER, MOVING, OTHERS = Crowd(40, 0.1, 0.0, 1), Crowd(170, 0.85, -0.6, 2), Crowd(2000, 0.3, 0.4, 3)
"""Two tables to tell apart, and the one that all answers are about."""


@dataclass(frozen=True)
class Shape:
    """What is declared of a table: d numbers, and columns of other kinds; records of a person."""

    numbers: int = 2
    mixed: bool = False
    records: int = 1
    bins: bool = True
    domain: bool = False

    def declared(self) -> dict[str, Any]:
        """Arguments of `Snapshots.from_table`."""
        bounds = {f"x{k}": (0, 1) for k in range(self.numbers)}
        said: dict[str, Any] = {"time": "t", "bounds": bounds, "time_range": (0, 2)}
        if self.bins:
            said["bins"] = [0.0, 1.0, 2.0]
        if self.mixed:
            said["columns"] = {
                "sex": pt.Category(["F", "M"], fixed=True),
                "stage": pt.Ordered(["I", "II", "III"], missing=True),
                "smoker": bool,
                "marker": pt.Number(0, 100, missing=True),
                "hour": pt.Angle(24),
            }
        if self.records > 1:
            said |= {"person": "who", "records_per_person": self.records, "one_per_bin": False}
        if self.domain:
            ring = [[0, 0], [1, 0], [1, 0.9], [0.4, 0.9], [0.4, 1], [0, 1], [0, 0]]
            shape = {"type": "Polygon", "coordinates": [ring]}
            said["domain"] = pt.Domain.polygon(shape, x="x0", y="x1")
        return said

    def table(self, crowd: Crowd) -> pd.DataFrame:
        rng = np.random.default_rng(crowd.seed)
        n = crowd.people
        time = 2 * rng.beta(4 * crowd.place, 4 * (1 - crowd.place), n)
        at = crowd.place + crowd.speed * (time[:, None] - 1)
        hidden = rng.standard_normal((n, 2)) @ rng.standard_normal((2, self.numbers))
        points = np.clip(at + 0.05 * hidden, 0, 1)
        made = pd.DataFrame({"t": time, **{f"x{k}": points[:, k] for k in range(self.numbers)}})
        if self.records > 1:  # of few people several records, of many one
            made["who"] = np.arange(n) // (4 if crowd.place < 0.5 else 1)
        if self.mixed:
            ill = rng.random(n) < crowd.place
            made["sex"] = np.where(rng.random(n) < crowd.place, "F", "M")
            made["stage"] = np.where(ill, "III", "I")
            made.loc[rng.random(n) < crowd.place / 2, "stage"] = None
            made["smoker"] = rng.random(n) < 1 - crowd.place
            made["marker"] = np.where(ill, 80.0, 20.0) + rng.normal(0, 4, n)
            made.loc[rng.random(n) < 0.4 * crowd.place, "marker"] = np.nan
            made["hour"] = (24 * crowd.place + 3 * rng.standard_normal(n)) % 24
        return made

    def snapshots(self, crowd: Crowd) -> pt.Snapshots:
        return pt.Snapshots.from_table(self.table(crowd), **self.declared(), seed=1)


# Guards ---------------------------------------------------------------------------------------


def recording(tape: list[Any]) -> type[Guard]:
    """Guards that keep their answers."""

    class Recording(Guard):
        def ask(self, release: Any) -> Any:
            tape.append(super().ask(release))
            return _copied(tape[-1])

    return Recording


def replaying(tape: Sequence[Any]) -> type[Guard]:
    """Guards that ask and pay, and give the answers of a tape one after the other."""
    left = iter(tape)

    class Replaying(Guard):
        def ask(self, release: Any) -> Any:
            own, kept = super().ask(release), next(left, None)
            assert _like(own) == _like(kept), f"{release.what!r} is not what was asked before"
            return _copied(kept)

    return Replaying


def _copied(answer: Any) -> Any:
    return [each.copy() for each in answer] if isinstance(answer, list) else answer.copy()


def _like(answer: Any) -> Any:
    return [each.shape for each in answer] if isinstance(answer, list) else np.shape(answer)


class Questions:
    """All that was asked, without the answers."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def released(self, release: Any, shape: Any, answer: Any) -> None:
        self.asked.append((release.event(shape), described(release.question), described(shape)))


def described(value: Any) -> Any:
    """All that a question is made of, as values that can be compared."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: described(getattr(value, each.name)) for each in fields(value)}
        return type(value).__name__, parts
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Mapping):
        return {key: described(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [described(each) for each in value]
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return array.dtype.str, array.shape, array.tobytes()
    return getattr(value, "__qualname__", type(value).__qualname__)


# Fits -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A fit: of which table, by which recipe."""

    shape: Shape = field(default_factory=Shape)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    made_by: type = pt.TrajectorySynthesizer

    def synthesizer(self) -> Any:
        return self.made_by(**({"epsilon": 2.0, "delta": 1e-5, "seed": 5} | dict(self.recipe)))


class Seen(NamedTuple):
    """What can be seen of a fit: the model, what was asked, what was warned of."""

    model: pt.TrajectoryModel
    asked: list[Any]
    warned: list[str]

    def released(self) -> tuple[Any, ...]:
        """All of it, as values that can be compared."""
        certificate = self.model.certificate
        told = (self.model.settings, self.model.diagnostics, certificate.to_json())
        return self.model.sha256, str(certificate), repr(told), self.asked, self.warned


def fitted(kind: Kind, crowd: Crowd, guard: type[Guard], looked: bool = False) -> Seen:
    """A fit by a guard; after a steward's look at the table, or without."""
    synthesizer, questions = kind.synthesizer(), Questions()
    pipeline = type("Guarded", (kind.made_by,), {"guard_class": guard})
    made = {each.name: getattr(synthesizer, each.name) for each in fields(synthesizer)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if looked:
            pt.check(kind.shape.table(crowd), **kind.shape.declared())
        caught.clear()
        model = pipeline(**made).fit(kind.shape.snapshots(crowd), watcher=questions)
    return Seen(model, questions.asked, [str(each.message) for each in caught])


def blindfolded(kind: Kind) -> tuple[Seen, Seen]:
    """The same answers about two tables that have nothing in common; one of them was looked at."""
    tape: list[Any] = []
    fitted(kind, OTHERS, recording(tape))
    return (
        fitted(kind, CORNER, replaying(tape), looked=kind.made_by is pt.TrajectorySynthesizer),
        fitted(kind, MOVING, replaying(tape)),
    )


SMALL = {"particles": 8, "steps": 3}
KINDS: dict[str, Kind] = {
    "counts at any time": Kind(Shape(bins=False)),
    "counts at listed times": Kind(Shape(), {"particles": 16}),
    "counts of bins": Kind(Shape(), {"particles": 16, "windows": "bins", "cells": 4}),
    "counts of windows set by hand": Kind(Shape(), {"particles": 16, "windows": 2}),
    "counts without delta": Kind(Shape(1), {"delta": 0.0}),
    "counts in a domain": Kind(Shape(domain=True), {"particles": 16}),
    "public counts": Kind(
        Shape(), {"adjacency": "replace-one", "public_counts": (30.0, 40.0, 50.0)}
    ),
    "growth": Kind(Shape(), {"particles": 16, "growth": "released by_place=learned"}),
    "persistence": Kind(Shape(records=3), {"particles": 16}),
    "gradients": Kind(Shape(3), SMALL),
    "gradients of default particles": Kind(Shape(3, bins=False)),
    "persistence beside gradients": Kind(Shape(records=3), {"measure": "gradients", **SMALL}),
    "subspace": Kind(Shape(8), SMALL),
    "tables": Kind(Shape(1, mixed=True)),
    "tables of several records": Kind(Shape(1, mixed=True, records=3, bins=False)),
    "tables of numbers": Kind(Shape(2), {"measure": "tables"}),
    "replaced people": Kind(Shape(3), {"adjacency": "replace-one", **SMALL}),
    "sampled": Kind(Shape(), {**SMALL, "rate": 0.5}, SampledSynthesizer),
}
"""Every way to measure, and every kind of release."""


# Another accountant ---------------------------------------------------------------------------

_Losses = pld.privacy_loss_distribution
_RELATIONS = {
    "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
}
GRID = 1e-4  # of losses: all are rounded up to it


def another_epsilon(entries: Sequence[Mapping[str, Any]], delta: float, adjacency: str) -> float:
    """What the entries of a certificate cost together, by dp-accounting and the argument of
    docs/privacy.md, theorem 3: nothing of `privtraj.privacy` takes part."""
    moved = {"add-remove": 1, "replace-one": 2}[adjacency]
    if delta == 0:
        return math.fsum(_pure(entry, moved) for entry in entries)
    whole = _Losses.identity(GRID)
    for entry in entries:
        whole = whole.compose(_losses(entry, moved, adjacency))
    return float(whole.get_epsilon_for_delta(delta))


def _pure(entry: Mapping[str, Any], moved: int) -> float:
    size = entry["weight"] if "weight" in entry else entry["records"]
    return float(moved * size * entry["times"] * entry["noise_epsilon"])


def _losses(entry: Mapping[str, Any], moved: int, adjacency: str) -> Any:
    g, together, times = entry["records"], entry["together"], entry["times"]
    match entry["mechanism"]:
        case "Gaussian":
            size = moved * (g if together else math.sqrt(g))
            one = _Losses.from_gaussian_mechanism(
                entry["noise_multiplier"], sensitivity=size, value_discretization_interval=GRID
            )
        case "discrete Laplace":
            one = _response(entry["noise_epsilon"] * (g if together else 1))
            times *= moved * (1 if together else g)
        case "per-person discrete Laplace":
            one = _response(entry["noise_epsilon"] * entry["weight"])
            times *= moved
        case "sampled Gaussian":
            assert g == 1, "only single records are added up here"
            accountant = pld.PLDAccountant(_RELATIONS[adjacency], GRID)
            event = dp_accounting.GaussianDpEvent(entry["noise_multiplier"])
            sampled = dp_accounting.PoissonSampledDpEvent(entry["rate"], event)
            accountant.compose(sampled, times)
            return accountant._pld
        case other:
            raise AssertionError(f"{other}: no other way to add it up is known here")
    return one.self_compose(times)


def _response(epsilon: float) -> Any:
    """Two signs with odds e^epsilon : 1, or 1 : e^epsilon."""
    lie = 1 / (1 + math.exp(epsilon))
    return _Losses.from_randomized_response(2 * lie, 2, value_discretization_interval=GRID)


def check_same(one: Seen, other: Seen) -> None:
    """Two fits of the same answers are one."""
    assert one.warned == other.warned
    assert one.asked == other.asked
    assert one.released() == other.released()


def check_certificate(seen: Seen) -> None:
    """Both relations cost what the other accountant says, to a thousandth; that one rounds up, and
    knows ideal noise only: at a large epsilon, how far noise is from it takes a part of delta."""
    certificate = seen.model.certificate
    kinds = {entry["mechanism"] for entry in certificate.ledger}
    assert kinds, "nothing was paid for"
    other = {"add-remove": "replace-one", "replace-one": "add-remove"}[certificate.adjacency]
    stated = {certificate.adjacency: certificate.epsilon}
    if not math.isinf(certificate.epsilon_other_adjacency):
        stated[other] = certificate.epsilon_other_adjacency
    for adjacency, epsilon in stated.items():
        off = (1 + math.exp(epsilon)) * certificate.slack if certificate.delta else 0.0
        found = another_epsilon(certificate.ledger, certificate.delta - off, adjacency)
        assert math.isclose(epsilon, found, rel_tol=2e-3, abs_tol=2e-3), (adjacency, epsilon, found)
    seen.model.verify()
