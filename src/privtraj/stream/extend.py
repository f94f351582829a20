"""A released model and a batch of further people become one model.

People of the batch are at later times, or at times that the model knows already, or both. If nobody
of them was in an earlier batch, all batches together cost a person what the dearest costs
(`privacy.accounting`, Parallel). The old model is the prior, and using it is free: nothing is asked
about its people again, and no row of theirs is needed.

What the model has released is read together with what the batch releases (`batches`).

past="keep": particles of times that were published stay to the bit, and new curves go on from them.
past="revise": windows that are still kept singly, or all, are read anew with what the batch knows.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints, along_main_axis, equal_weight
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import hat_functions
from privtraj.columns.kinds import of_tables
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import Task
from privtraj.model.model import TrajectoryModel
from privtraj.motion.process import matched
from privtraj.privacy import noise
from privtraj.privacy.certificate import (
    BATCHES,
    CAUTION,
    CHECKED,
    NEW_PEOPLE,
    STATED,
    Certificate,
    are_late,
    batch,
    certify,
    certify_disjoint,
    check_declared,
    stated_parallel,
    weaknesses,
)
from privtraj.privacy.guard import Watcher
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.recipe import Recipe
from privtraj.stream.batches import (
    Batch,
    Past,
    counted,
    counts_on,
    fitted,
    in_all_time,
    plan_counts,
    with_past,
)
from privtraj.stream.people import People
from privtraj.synthesizer import TrajectorySynthesizer

MATCHED = 512
"""Curves that are coupled at once; of more, those next to each other."""


def snapshots_of(model: TrajectoryModel, source: Any, **reading: Any) -> Snapshots:
    """The records of a table with the columns, bounds and domain of a model; only when they were
    recorded (`time_range`, `bins`) and how they are read has to be said."""
    columns = {column.name: column for column in of_tables(model.columns)}
    known = {"time": model.time_name, "columns": columns, "domain": model.domain}
    return Snapshots.from_table(source, **known, **reading)


def extended(
    model: TrajectoryModel,
    snapshots: Snapshots,
    *,
    past: Past = "keep",
    ledger: LedgerFile | None = None,
    new_people: bool = False,
    people: People | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    seed: int | None = None,
    declared: Mapping[str, str] | None = None,
    watcher: Watcher | None = None,
) -> TrajectoryModel:
    """See `TrajectoryModel.extend`."""
    stated, budget = model.certificate, {"epsilon": epsilon, "delta": delta}
    given = {name: value for name, value in budget.items() if value is not None}
    recipe = model.recipe  # of models without one, as it must have been
    if recipe is None:
        recipe = Recipe(stated.target_epsilon, stated.delta, adjacency=stated.adjacency)
    recipe = recipe.again(seed=seed, **given)
    _check(model, snapshots, recipe, past)
    said = stated.declared if declared is None else check_declared(declared)
    days = None if ledger is None else ledger.window_days
    claim: dict[str, Any] = {}
    if people is not None and ledger is not None and people.tells_apart(stated, ledger):
        claim = {"most": people.most_batches, "people": people.in_words(days)}
    elif new_people:
        claim = {"most": 1, "people": "stated by the steward, and not checked"}
    elif days or stated_parallel(stated.public_inputs.get(BATCHES, [])).most != 1:
        claim = {"most": None}
    if claim.get("most") != 1:
        claim["days"] = days
    maker = TrajectorySynthesizer.of(recipe)
    counts = counts_on(model, maker, snapshots)
    if counts:
        maker = TrajectorySynthesizer.of(recipe.again(particles=model.particles.shape[1]))
        plan = plan_counts(recipe, snapshots.shape.person.in_slabs())
    else:
        plan = maker.planned(in_all_time(model, snapshots))
    entry, axis = None, snapshots.axis
    if not (ledger is None and people is None):
        when = snapshots.public_inputs()["time range"]
        late = are_late([*_batches(model), batch(when, (0.0, 0.0))])[-1]
        kind = "late batch" if late else "batch"
        snapshots, entry = maker._reserved(ledger, snapshots, new_people, people, kind)
    spent, source = Ledger(*maker.budget, plan), noise.source_for(seed)
    joint = snapshots if counts else with_past(model, snapshots, seed)
    guard = joint.guarded(maker.guard_class, spent, source, watcher=watcher)
    rng = np.random.default_rng(seed)  # of all but the guard's noise
    task = Task(joint, maker.recipe or recipe, plan, rng)
    made = counted(model, guard, task, past) if counts else fitted(model, guard, task, past, axis)
    paid = certify(spent, public_inputs=snapshots.public_inputs(), private_noise=source.private)
    certificate = _certificate(model, snapshots, paid, made, claim)
    grown = _joined(model, made, replace(certificate, declared=said))
    if ledger is not None and entry is not None:
        try:
            ledger.settle(entry, spent_epsilon=paid.epsilon, model=grown.sha256)
        except InputError as error:  # the model is paid for: it must not be lost with the note
            warnings.warn(f"the reservation stands, but {error}", stacklevel=3)
    return grown


def _check(model: TrajectoryModel, snapshots: Snapshots, recipe: Recipe, past: str) -> None:
    """Refuse, before anything is spent, what cannot be added to this model."""
    if not isinstance(snapshots, Snapshots):
        raise InputError("extend takes Snapshots, from Snapshots.from_table or from_arrays")
    if past not in ("keep", "revise"):
        raise InputError(Arg("past"), " must be 'keep' or 'revise'")
    old, new = model.certificate.public_inputs, snapshots.public_inputs()
    for name in ("bounds", "domain", "most records of one person"):
        if old.get(name) != new.get(name):
            raise InputError(
                f"the batch has other {name} than the model: declare it as the model was, or fit a "
                "model of its own"
            )
    if snapshots.datetime != model.datetime:
        raise InputError("one of model and batch has dates, the other numbers as times")
    if recipe.public_counts is not None:
        raise InputError("a model with public numbers of people cannot be extended: fit anew")
    start, end = snapshots.axis.range
    if start < model.knots[0]:
        raise InputError("the batch begins before the model does: only later times can be added")
    if past == "keep" and end <= model.knots[-1]:
        raise InputError(
            "all times of the batch are in the model already, and the published past is kept: say ",
            Arg("past", "revise"),
            " to let these people improve it",
        )


# The grown model ----------------------------------------------------------------------------------


def _joined(model: TrajectoryModel, made: Batch, certificate: Certificate) -> TrajectoryModel:
    """The old particles up to `since`, and behind them those of the batch."""
    fresh, knots, near = made.marginals, made.knots, 1e-9 * model.scale.length
    revised = made.since < model.knots[-1]
    kept = model.knots < made.since - near if revised else model.knots <= made.since + near
    new = knots > (model.knots[kept][-1] + near if kept.any() else -np.inf)
    times, last = made.times, model.numeric_times[-1] + near
    times = np.append(model.numeric_times, times[times > last])
    particles, weights = fresh.particles.astype(np.float32).astype(np.float64), fresh.weights
    if particles.shape[1] != (m := model.particles.shape[1]):
        particles, weights = equal_weight(particles, weights, m), np.full((len(knots), m), 1 / m)
    if not model.curves:
        order = along_main_axis(particles)
        particles = np.take_along_axis(particles, order[..., None], axis=1)
        weights = np.take_along_axis(weights, order, axis=1)
    elif kept.any():
        end = np.clip(model.knots[kept][-1:], knots[0], knots[-1])
        seam = np.einsum("k,kmd->md", hat_functions(end, knots)[0], particles)
        particles = particles[:, _going_on(model.particles[kept][-1], seam)]
    told, numbers = dict(model.diagnostics), made.replaced
    for name, values in made.diagnostics.items():
        before = told.get(name)
        told[name] = [*before[: len(before) - numbers], *values] if before else values
    return replace(
        model,
        particles=np.concatenate([model.particles[kept], particles[new]]),
        weights=np.concatenate([model.weights[kept], weights[new]]),
        bandwidth=np.concatenate([model.bandwidth[kept], fresh.bandwidth[new]]),
        knots=np.concatenate([model.knots[kept], knots[new]]),
        numeric_times=times,
        diagnostics=told,
        settings={**model.settings, "windows": len(told["people_per_time"])},
        certificate=certificate,
        counted=made.counted,
        past_people=made.past_people,
    ).sealed()


def _going_on(ends: Floats, begins: Floats) -> Ints:
    """Which curve of those that begin (m, d) goes on from each that ends (m, d), with the least
    transport; of many, among those that are next to each other along the main axis."""
    order = np.empty(len(ends), np.int64)
    a, b = (along_main_axis(cloud[None])[0] for cloud in (ends, begins))
    for start in range(0, len(ends), MATCHED):
        one, other = a[start : start + MATCHED], b[start : start + MATCHED]
        order[one] = other[matched(ends[one], begins[other])]
    return order


def _batches(model: TrajectoryModel) -> list[dict[str, Any]]:
    """As its certificate states them; the first if it has no other."""
    stated = model.certificate
    if BATCHES in stated.public_inputs:
        return list(stated.public_inputs[BATCHES])
    when, day = stated.public_inputs["time range"], stated.declared.get("date", "")
    counted = float(sum(model.diagnostics.get("people_per_time") or [])) or None
    return [batch(when, stated.budget, released=day, counted=counted)]


def _certificate(
    model: TrajectoryModel,
    snapshots: Snapshots,
    paid: Certificate,
    made: Batch,
    claim: dict[str, Any],
) -> Certificate:
    """What all batches paid, as a tree; what is public of all of them.  claim: in how many batches
    people of this one are, as `batch` takes it."""
    before, axis = model.certificate, snapshots.axis
    old, new = before.public_inputs, snapshots.public_inputs()
    (first, last), when = old["time range"], new["time range"]
    claim |= {"released": dt.datetime.now(dt.UTC).date().isoformat(), "counted": made.people}
    public = {**old, BATCHES: [*_batches(model), batch(when, paid.budget, **claim)]}
    if axis.range[1] > model.knots[-1]:
        last = when[1]
    public["time range"] = [first, last]
    public.pop("bin times", None)
    for name in (STATED, CHECKED):
        said = [*old.get(name, []), *new.get(name, [])]
        if name == STATED and claim.get("people", "").startswith("stated"):
            said.append(NEW_PEOPLE)
        if said:
            public[name] = list(dict.fromkeys(said))
    windows = len(made.diagnostics["people_per_time"])
    found = {**before.found, "resolution in time": f"{windows} windows of the last batches"}
    found.pop(CAUTION, None)
    people = float(sum(made.diagnostics["people_per_time"])) or None
    for warning in weaknesses(0.0, paid.delta, people)[:1]:
        found[CAUTION] = warning
    both = [before, paid]
    apart = claim.get("most", 0) != 0
    return certify_disjoint(both, public_inputs=public, disjoint=apart, found=found)
