"""Properties of the guard on random tables, neighbours, slabs and questions; and a way to run them.

    make fuzz                       for ten minutes
    make fuzz FUZZ_SECONDS=60       for one
    PYTHONPATH=tests python -m fuzz 60 --seed 3     with the cases of a seed that was printed

`tests/privacy/test_fuzz.py` runs the same with few examples. A property is a strategy and a check:

neighbours   Without noise, no answer moves by more than its entry in the ledger states when a
             person is added, removed or replaced, and what is paid does not depend on the table.
payment      Every answer is one more entry, paid before its noise is drawn; a refusal is none, and
             draws, answers and tells nothing. The ledger's sum is that of its entries.
databases    Rows in a database are counted as in memory, and no person more often than declared.
recipes      Fits by any recipe of any table (`blindfold`): with the same answers, tables that have
             nothing in common give the same model, certificate, warnings and questions, whether or
             not a steward has looked; another accountant finds both epsilons; and what is refused
             is refused before anything is asked, in the same words, whatever the table.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

import blindfold
from privtraj import Snapshots
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.measures.likelihood import Mixture, mass_weight, weights_and_residual
from privtraj.privacy import noise
from privtraj.privacy.accounting import epsilon_at
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.guard import CellCounts, Gaussian, Guard, Laplace, Release
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.pairs import KINDS, LagTable
from privtraj.privacy.sums import ClippedSums, KernelSum, KernelSums, kernel_lattice, lattice_unit

D, M, WIDTH = 2, 3, 5  # features, particles of a kernel sum, numbers of a plain one
ADJACENCIES = ("add-remove", "replace-one")
ROUNDING = 1 + 1e-9  # of float64, in which released integers are read

# Tables ---------------------------------------------------------------------------------------

moments = st.sampled_from([-7.0, 0.0, 0.5, 0.6, 1.0, 1.5, 2.0, 99.0]) | st.floats(-1, 3)
values = st.sampled_from([-1e9, 0.0, 0.25, 0.5, 1.0, 1e9]) | st.floats(-0.5, 1.5)
records = st.tuples(moments, values, values)
Records = list[tuple[float, float, float]]


class Table(NamedTuple):
    """Records of many people, and what is declared of them."""

    crowd: list[Records]  # of each person
    most: int
    one_per_bin: bool
    bins: bool

    def declared(self) -> dict[str, Any]:
        when: dict[str, Any] = {"bins": [0.0, 1.0, 2.0]} if self.bins else {"time_range": (0, 2)}
        several = {"records_per_person": self.most} if self.most > 1 else {}
        choice = {} if several else {"one_per_person": "random"}
        return {**when, **several, **choice, "one_per_bin": self.one_per_bin, "seed": 1}

    def columns(self, *more: Records) -> tuple[Any, Any, list[str]]:
        """Times (n,), points (n, D) and people (n,), with those of more people."""
        people = [*self.crowd, *more]
        rows = np.array([row for person in people for row in person]).reshape(-1, 1 + D)
        who = [f"p{k}" for k, person in enumerate(people) for _ in person]
        return rows[:, 0], rows[:, 1:], who

    def snapshots(self, *more: Records) -> Snapshots:
        times, points, who = self.columns(*more)
        limits = [(0.0, 1.0)] * D
        return Snapshots.from_arrays(times, points, bounds=limits, person=who, **self.declared())


tables = st.builds(
    Table,
    st.lists(st.lists(records, min_size=1, max_size=3), min_size=10, max_size=14),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)

# Questions ------------------------------------------------------------------------------------


def power_of_ten(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


def wild(rows: Any, scale: Any) -> Any:
    """Vectors from tiny to overflowing, some infinite, some not numbers; of each row alone."""
    base = (rows - 0.45) @ jnp.sin(jnp.arange(D * WIDTH, dtype=jnp.float32)).reshape(D, WIDTH)
    vectors = jnp.sinh(30 * scale * base)
    vectors = jnp.where(rows[:, 1:] > 0.8, jnp.inf, vectors)
    return jnp.where(rows[:, :1] > 0.95, jnp.nan, vectors)


def loud(distance: Any, mixture: Mixture) -> tuple[Any, Any]:
    """Weights as of the dynamics, but for people near the walls, who are no numbers or too long."""
    weight, rest = weights_and_residual(distance, mixture)
    far = distance[:, :1]
    return jnp.where(far > 0.6, 1e30, jnp.where(far < 0.01, jnp.nan, weight)), rest


class Question(NamedTuple):
    """One question; edges of its slabs, and numbers of the pieces between; None for the bins."""

    kind: str
    cut: tuple[tuple[float, ...], tuple[int, ...]] | None
    side: int
    epsilon: float
    multiplier: float
    clip: float
    rate: float

    def guard(self, guard: Guard) -> Guard:
        if self.cut is None:
            return guard
        edges, numbers = self.cut
        return guard.in_slabs(Slabs(np.array(edges), np.array(numbers)))

    def ask(self, whole: Guard) -> np.ndarray:
        """The answer, in units of the noise: integers, or those of standard deviation S."""
        guard = self.guard(whole)
        if self.kind == "counts":
            return guard.ask(Release(CellCounts(self.side), Laplace(self.epsilon), self.kind))
        if self.kind == "thirds":
            return guard.ask(Release(_thirds(self.side), Laplace(self.epsilon), self.kind))
        guard, k = guard.at_rate(self.rate), guard.n_times
        clip = self.clip * np.arange(1.0, k + 1)
        if self.kind == "sums":
            scale = jnp.ones(k, jnp.float32)
            answer = guard.ask(
                Release(ClippedSums(wild, scale, clip), Gaussian(self.multiplier), self.kind)
            )
            return answer / lattice_unit(clip, noise.GAUSSIAN_STD / self.multiplier, WIDTH)[:, None]
        kernel = _kernel(k)
        answer = guard.ask(
            Release(KernelSums(loud, kernel, clip), Gaussian(self.multiplier), self.kind)
        )
        lattice = kernel_lattice(clip, noise.GAUSSIAN_STD / self.multiplier, kernel.centres)
        return answer / lattice.unit[:, None]

    def draws(self, guard: Guard) -> int:
        """Least number of words that the noise takes."""
        if self.kind == "thirds":
            return _thirds(1).lag_bins * KINDS * D
        cells = {"counts": self.side**D, "sums": WIDTH, "kernel sums": M * D + M + 1}[self.kind]
        return self.guard(guard).n_times * cells * (1 if self.kind == "counts" else 3)


def _thirds(each: int) -> LagTable:
    cuts = np.random.default_rng(0).uniform(0, 1, (3, D, 2))
    return LagTable(np.arange(3.0), np.sort(cuts, axis=-1), np.array([0.1, 1.0]), each)


def _kernel(times: int) -> KernelSum:
    centres = np.random.default_rng(0).uniform(-0.2, 1.2, (times, M, D)).astype(np.float32)
    mixture = Mixture(centres, np.zeros((times, M), np.float32), np.full(times, 0.2, np.float32))
    return KernelSum(centres, np.asarray(mass_weight(mixture)), mixture)


cuts = st.sampled_from(
    [
        None,
        ((), (0,)),
        ((0.75,), (0, 1)),
        ((0.5, 1.5), (0, 1, 0)),
        ((0.2, 1.0, 1.5), (-1, 1, 0, 1)),
        ((0.5, 1.0), (2, 0, 1)),
    ]
)
questions = st.builds(
    Question,
    st.sampled_from(["counts", "thirds", "sums", "kernel sums"]),
    cuts,
    st.integers(1, 4),
    power_of_ten(-2, 0.5),
    power_of_ten(-0.3, 3),
    power_of_ten(-3, 1),
    st.sampled_from([1.0, 0.9, 0.3]),
)


class Words:
    """Seeded words, or words at which nobody draws any noise; counts how many were drawn."""

    private = False

    def __init__(self, seed: int | None) -> None:
        self.drawn = 0
        self._bits = None if seed is None else noise.SeededSource(seed)

    def words(self, count: int) -> np.ndarray:
        self.drawn += count
        middle = np.full(count, 1 << 63, dtype=np.uint64)
        return middle if self._bits is None else self._bits.words(count)


class Generous(Ledger):
    """Writes down what is spent and pays for anything."""

    def spend(self, event: Any, times: int = 1) -> None:
        self.events = (*self.events, (event, times))


# Properties -----------------------------------------------------------------------------------


class Neighbours(NamedTuple):
    table: Table
    mine: Records
    other: Records
    asked: list[Question]


def check_neighbours(case: Neighbours) -> None:
    """Without a person, with them, with other records in their place."""
    told = []
    for more in ([], case.mine, case.other):
        ledger = Generous(1.0, 1e-5)
        snapshots = case.table.snapshots(more)
        guard = snapshots.guarded(Guard, ledger, Words(None))
        told.append(([question.ask(guard) for question in case.asked], ledger.events))
    (without, paid), (present, also), (instead, again) = told
    assert paid == also == again
    pairs = [("add-remove", present, without), ("add-remove", instead, without)]
    for adjacency, first, second in [*pairs, ("replace-one", present, instead)]:
        for (event, times), a, b in zip(paid, first, second, strict=True):
            assert times == 1
            stated = event.sensitivity(adjacency)
            if isinstance(event, LaplaceCounts):
                assert np.abs(a - b).sum() <= stated * ROUNDING
            else:
                unit = noise.GAUSSIAN_STD / event.noise_multiplier
                assert np.linalg.norm(np.float64(a - b)) <= stated * unit * ROUNDING


class Payment(NamedTuple):
    table: Table
    asked: list[Question]
    epsilon: float
    delta: float
    adjacency: str


class Told:
    """How many answers left the guard."""

    def __init__(self) -> None:
        self.answers = 0

    def released(self, release: Any, shape: Any, answer: Any) -> None:
        self.answers += 1


def check_payment(case: Payment) -> None:
    """One question after the other, until the budget refuses, and beyond."""
    ledger = Ledger(case.epsilon, case.delta, case.adjacency)  # type: ignore[arg-type]
    source, told = Words(1), Told()
    guard = case.table.snapshots().guarded(Guard, ledger, source, watcher=told)
    for question in case.asked:
        asked = question._replace(rate=1.0)  # sampled sums take too long to account for
        before = (ledger.events, ledger.tally, source.drawn, told.answers)
        try:
            asked.ask(guard)
        except BudgetError:
            assert (ledger.events, ledger.tally, source.drawn, told.answers) == before
            continue
        (event, times) = ledger.events[-1]
        assert (len(ledger.events), told.answers) == (len(before[0]) + 1, before[3] + 1)
        assert (event.what, times) == (asked.kind, 1)
        assert event.person == asked.guard(guard).shape.person
        if hasattr(event, "noise_multiplier"):
            assert event.noise_multiplier == asked.multiplier
        else:
            assert event.epsilon == asked.epsilon
        assert source.drawn >= before[2] + asked.draws(guard)
    spent = epsilon_at(ledger.events, case.delta, ledger.adjacency)
    assert ledger.spent() <= case.epsilon
    assert math.isclose(ledger.spent(), spent, rel_tol=1e-9, abs_tol=1e-12)
    certificate = certify(ledger, public_inputs={}, private_noise=False)
    assert math.isclose(certificate.verify(), spent, rel_tol=1e-9, abs_tol=1e-12)


class Stored(NamedTuple):
    table: Table
    question: Question


def check_databases(case: Stored) -> None:
    """The same table in memory and in DuckDB."""
    import ibis
    import pandas as pd

    times, points, who = case.table.columns()
    frame = pd.DataFrame({"t": times, "x": points[:, 0], "y": points[:, 1], "who": who})
    public = {"time": "t", "bounds": {"x": (0, 1), "y": (0, 1)}, "person": "who"}
    public |= case.table.declared()
    answers = []
    for source in (frame, ibis.memtable(frame)):
        ledger = Generous(1.0, 1e-5)
        snapshots = Snapshots.from_table(source, **public)
        guard = snapshots.guarded(Guard, ledger, Words(None))
        told = [case.question._replace(kind=kind).ask(guard) for kind in ("counts", "thirds")]
        answers.append((*told, snapshots._digest, ledger.events))
    (memory, pairs, *rest), (stored, also_pairs, *also) = answers
    np.testing.assert_array_equal(memory, stored)
    np.testing.assert_array_equal(pairs, also_pairs)
    assert rest == also
    assert memory.sum() <= case.table.most * len(case.table.crowd)


# Recipes --------------------------------------------------------------------------------------

SETTINGS: dict[str, st.SearchStrategy[Any]] = {
    "epsilon": power_of_ten(-1, 1),
    "delta": st.sampled_from([0.0, 1e-6, 1e-3]),
    "adjacency": st.sampled_from(ADJACENCIES),
    "measure": st.sampled_from(["auto", "counts", "gradients", "tables"]),
    "seed": st.integers(0, 9),
    "public_counts": st.sampled_from([(30.0, 40.0, 50.0), (0.0, 1.0, 900.0)]),
    "count_share": st.floats(0.01, 0.9),
    "particles": st.integers(2, 24),
    "steps": st.integers(2, 4),
    "cells": st.integers(2, 6),
    "windows": st.sampled_from(["auto", "bins", 2, 5]),
    "subspace": st.sampled_from(["auto", "off", 1, 3]),
    "bandwidth": st.floats(0.01, 0.3),
    "time_coupling": st.sampled_from([0.0, 0.5, 3.0]),
    "diffusivity": power_of_ten(-4, 0),
    "reference": st.sampled_from(["auto", "inertia memory=1", "brownian diffusivity=0.05"]),
    "monotone": st.sampled_from([["x0"], {"x0": "falling"}]),
    "ageing": st.just(["x0"]),
    "precision": st.sampled_from([{"x0": 0.1}, {"x0": 0.5}]),
    "constant": st.sampled_from([{"site": "A"}, {"x0": 1}]),
    "zone": st.just({"t": "Europe/Berlin"}),
    "persistence": st.sampled_from(["auto", "off"]),
    "growth": st.sampled_from(["released", "released turnover=0.5", 0.7]),
}
"""What every setting of `Recipe` may be."""
ALWAYS = ("epsilon", "delta", "seed", "particles", "steps")  # so that fits are small


class Recipes(NamedTuple):
    shape: blindfold.Shape
    recipe: dict[str, Any]


def _possible(shape: blindfold.Shape, recipe: dict[str, Any]) -> Recipes:
    """A domain is of two numbers; public counts are those of bins, and of people replaced; and
    where there is a category, only tables with a delta are of use. Most are then not refused."""
    shape = replace(shape, domain=shape.domain and shape.numbers > 1 and not shape.mixed)
    if shape.mixed:
        recipe = {**recipe, "measure": "tables", "delta": max(recipe["delta"], 1e-6)}
    if "public_counts" in recipe:
        shape, recipe = replace(shape, bins=True), {**recipe, "adjacency": "replace-one"}
    return Recipes(shape, recipe)


recipes = st.builds(
    _possible,
    st.builds(
        blindfold.Shape,
        st.integers(1, 7),
        st.booleans(),
        st.sampled_from([1, 1, 3]),
        st.booleans(),
        st.booleans(),
    ),
    st.fixed_dictionaries(
        {name: SETTINGS[name] for name in ALWAYS},
        optional={name: SETTINGS[name] for name in SETTINGS if name not in ALWAYS},
    ),
)


def check_recipes(case: Recipes) -> None:
    """Fits of two tables with the answers of a third."""
    kind = blindfold.Kind(case.shape, case.recipe)
    tape: list[Any] = []
    refused = _refusal(kind, blindfold.OTHERS, blindfold.recording(tape))
    if refused is not None:
        assert not tape, f"refused after {len(tape)} answers: {refused}"
        for crowd in (blindfold.CORNER, blindfold.MOVING):
            assert _refusal(kind, crowd, Guard) == refused
        return
    one = blindfold.fitted(kind, blindfold.CORNER, blindfold.replaying(tape), looked=True)
    other = blindfold.fitted(kind, blindfold.MOVING, blindfold.replaying(tape))
    blindfold.check_same(one, other)
    blindfold.check_certificate(one)


def _refusal(kind: blindfold.Kind, crowd: blindfold.Crowd, guard: Any) -> str | None:
    try:
        blindfold.fitted(kind, crowd, guard)
    except (InputError, BudgetError) as error:
        return str(error)
    return None


LONG = {"recipes": {"max_examples": 25, "phases": (Phase.reuse, Phase.generate)}}
"""Options of properties whose cases take long: fewer at a time, and none is made small."""

PROPERTIES: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "neighbours": (
        st.builds(
            Neighbours,
            tables,
            st.lists(records, max_size=5),
            st.lists(records, max_size=5),
            st.lists(questions, min_size=1, max_size=3),
        ),
        check_neighbours,
    ),
    "payment": (
        st.builds(
            Payment,
            tables,
            st.lists(questions, min_size=1, max_size=8),
            power_of_ten(-1, 1),
            st.sampled_from([0.0, 1e-6, 1e-3]),
            st.sampled_from(ADJACENCIES),
        ),
        check_payment,
    ),
    "databases": (st.builds(Stored, tables, questions), check_databases),
    "recipes": (recipes, check_recipes),
}

# Running them ---------------------------------------------------------------------------------


def run(name: str, check: Any = None, start: int | None = None, **options: Any) -> None:
    """Look for a case that refutes a property, from a seed; raises what its check raises."""
    strategy, own = PROPERTIES[name]
    test = given(strategy)(_named(name, check or own))
    if start is not None:
        test = seed(start)(test)
    settings(deadline=None, suppress_health_check=list(HealthCheck), **options)(test)()


def _named(name: str, check: Any) -> Any:
    def property_(case: Any) -> None:
        check(case)

    property_.__name__ = property_.__qualname__ = f"check_{name}"
    return property_


def fuzz(seconds: float, start: int | None = None) -> Counter[str]:
    """All properties in turns, for so long: how many cases each was tried on. Seeds are printed,
    and go on from `start`."""
    first = time.time_ns() % 10**9 if start is None else start
    end, tried, refuted = time.monotonic() + seconds, Counter[str](), set[str]()

    def counting(name: str) -> Any:
        def check(case: Any) -> None:
            if time.monotonic() > end and name not in refuted:  # else it is made as small as can be
                return
            tried[name] += 1
            try:
                PROPERTIES[name][1](case)
            except Exception:
                if name not in refuted:  # seen at once, and again when it was made small
                    print(f"refuted by {case!r}", flush=True)
                refuted.add(name)
                raise

        return check

    database = DirectoryBasedExampleDatabase(".hypothesis")  # failures are tried first next time
    for number in itertools.count(first):
        if time.monotonic() >= end:
            break
        print(f"seed {number}", flush=True)
        for name in PROPERTIES:
            options = {"max_examples": 200, "database": database, "print_blob": True}
            run(name, counting(name), number, **options | LONG.get(name, {}))
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("seconds", type=float, nargs="?", default=600.0)
    parser.add_argument("--seed", type=int, help="as an earlier run has printed")
    asked = parser.parse_args()
    tried = fuzz(asked.seconds, asked.seed)
    print("no property was refuted: " + ", ".join(f"{n} x {name}" for name, n in tried.items()))


if __name__ == "__main__":
    sys.exit(main())
