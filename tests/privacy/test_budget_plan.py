"""The budget plan: what a fit may release is listed before the first release."""

import math

import numpy as np
import pytest

from privtraj.base.errors import BudgetError
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import HEAD_COUNT
from privtraj.measures.counts import CELLS, SURVEY
from privtraj.measures.gradients import STEP
from privtraj.measures.persistence import PERSISTENCE
from privtraj.measures.windows import LISTED, MOTION
from privtraj.privacy.events import ChosenTimes, GaussianSum, LaplaceCounts, Opaque
from privtraj.privacy.guard import CellCounts, Gaussian, Guard, Laplace, Release
from privtraj.privacy.ledger import BudgetPlan, Ledger, Planned
from privtraj.privacy.sums import ClippedSums
from privtraj.synthesizer import TrajectorySynthesizer

COUNTS = LaplaceCounts(0.1, "heads")
STEPS = GaussianSum(10.0, "step")
PLAN = BudgetPlan((Planned(COUNTS), Planned(STEPS, 4, shared=True)))


@pytest.mark.parametrize(
    "event",
    [
        LaplaceCounts(0.1, "tails"),
        LaplaceCounts(0.09, "heads"),
        LaplaceCounts(0.1, "heads", records=2),
        GaussianSum(100.0, "heads"),
        GaussianSum(9.0, "step"),
        GaussianSum(10.0, "step", together=True),
        GaussianSum(10.0, "step", rate=0.5),
        Opaque(0.1, 0.0, "heads"),
        ChosenTimes(0.5, STEPS, 1, "step"),
    ],
    ids=repr,
)
def test_what_is_not_on_the_plan_is_refused_though_the_budget_covers_it(event):
    ledger = Ledger(5.0, 1e-5, plan=PLAN)
    assert ledger.covers(event)
    with pytest.raises(BudgetError, match="not on the plan"):
        ledger.spend(event)
    assert ledger.events == ()
    Ledger(5.0, 1e-5).spend(event)


def test_a_release_is_made_as_often_as_planned():
    ledger = Ledger(5.0, 1e-5, plan=PLAN)
    ledger.spend(LaplaceCounts(0.1, "heads", slack=1e-20))  # the slack is no part of the plan
    with pytest.raises(BudgetError, match="or no more of it"):
        ledger.spend(COUNTS)
    for _ in range(4):
        ledger.spend(GaussianSum(1e3, "step"))
    with pytest.raises(BudgetError, match="or no more of it"):
        ledger.spend(GaussianSum(1e3, "step"))
    assert len(ledger.events) == 5


@pytest.mark.parametrize(
    ("sizes", "next_one"), [([20.0] * 3, 19.0), ([12.0, 20.0], 20.0), ([10.0], 1e4), ([], 9.9)]
)
def test_steps_share_what_they_may_tell_together(sizes, next_one):
    """Their z^-2 add up to at most that of the one event that was planned."""
    ledger = Ledger(5.0, 1e-5, plan=PLAN)
    for z in sizes:
        ledger.spend(GaussianSum(z, "step"))
    with pytest.raises(BudgetError, match="not on the plan"):
        ledger.spend(GaussianSum(next_one, "step"))
    assert len(ledger.events) == len(sizes)


def test_what_the_budget_refuses_stays_on_the_plan():
    ledger = Ledger(0.15, 0.0, plan=BudgetPlan((Planned(LaplaceCounts(0.1, "a"), 2),)))
    with pytest.raises(BudgetError, match="does not cover"):
        ledger.spend(LaplaceCounts(0.1, "a"), 2)
    ledger.spend(LaplaceCounts(0.1, "a"))


def test_a_guard_neither_answers_nor_draws_what_is_not_on_the_plan(snapshots_of, silent):
    source = silent()
    snapshots = snapshots_of([[(0.5, 0.5)], [], []])
    guard = snapshots.guarded(Guard, Ledger(5.0, 1e-5, plan=PLAN), source)
    with pytest.raises(BudgetError, match=r"'cells'.* is not on the plan"):
        guard.ask(Release(CellCounts(2), Laplace(0.1), "cells"))
    unplanned = ClippedSums(lambda rows, scale: rows * scale, np.ones(3), np.ones(3))
    with pytest.raises(BudgetError, match="not on the plan"):
        guard.ask(Release(unplanned, Gaussian(9.0), "step"))
    assert source.calls == 0
    guard.ask(Release(CellCounts(2), Laplace(0.1), "heads"))


SETTINGS = [
    ({"measure": "counts"}, [LISTED, MOTION, HEAD_COUNT, CELLS]),
    ({"measure": "counts", "cells": 4, "windows": 2}, [LISTED, HEAD_COUNT, CELLS]),
    (
        {
            "measure": "counts",
            "adjacency": "replace-one",
            "public_counts": [30] * 3,
            "windows": "bins",
        },
        [SURVEY, CELLS],
    ),
    ({"measure": "gradients", "steps": 3, "particles": 4, "windows": "bins"}, [HEAD_COUNT, STEP]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "names"), SETTINGS, ids=str)
@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
def test_the_plan_of_a_fit_lists_its_releases_and_no_room_is_left(settings, names, snapshots_of):
    """Everything planned is made, and with the noise that the plan knew or as much as it allows."""
    stays_on_its_plan(snapshots_of([np.full((30, 2), 0.5)] * 3), settings, names)


TWICE = [
    ({"measure": "counts", "windows": "bins", "cells": 2}, [HEAD_COUNT, CELLS]),
    ({"measure": "counts", "windows": 2, "cells": 2, "delta": 0}, [LISTED, HEAD_COUNT, CELLS]),
    ({"measure": "gradients", "steps": 3, "particles": 4, "windows": "bins"}, [HEAD_COUNT, STEP]),
]


@pytest.mark.parametrize(("settings", "names"), TWICE, ids=str)
@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
def test_a_fit_of_people_with_two_records_stays_on_its_plan(settings, names):
    snapshots = Snapshots.from_arrays(
        np.tile([0.0, 1.0, 2.0], 30),
        np.full((90, 2), 0.5),
        bounds=[(0, 1)] * 2,
        bins=range(3),
        person=np.arange(90) // 2,
        records_per_person=2,
    )
    stays_on_its_plan(snapshots, settings, [*names, PERSISTENCE])


def stays_on_its_plan(snapshots, settings, names):
    settings = {"epsilon": 1.0, "delta": 1e-5, "seed": 1} | settings
    fit = TrajectorySynthesizer(**settings)
    plan = fit.planned(snapshots)
    assert [planned.event.what for planned in plan.releases] == names
    events = []

    class Watch:
        def released(self, release, shape, answer):
            events.append(release.event(shape))

    ledger = fit.fit(snapshots, watcher=Watch()).certificate.ledger
    assert [entry["what"] for entry in ledger] == names
    for event in events:
        plan = plan.after(event)
    for planned in plan.releases:
        assert planned.times == 0
        if planned.shared:
            assert planned.used == pytest.approx(planned.event.information, rel=1e-9)


@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
def test_a_fit_that_asks_for_more_than_its_plan_is_stopped(snapshots_of):
    class Curious(Guard):
        """Asks once more than it was asked."""

        def ask(self, release):
            super().ask(Release(CellCounts(2), Laplace(1e-3), "only a little"))
            return super().ask(release)

    class Pipeline(TrajectorySynthesizer):
        guard_class = Curious

    with pytest.raises(BudgetError, match=r"'only a little'.* is not on the plan"):
        Pipeline(1.0, 1e-5, seed=1).fit(snapshots_of([np.full((30, 2), 0.5)] * 3))


def test_shares_of_a_planned_release_add_up_however_often_they_are_asked():
    plan = BudgetPlan((Planned(GaussianSum(0.5, "steps"), 10, shared=True),))
    step = GaussianSum(1.5**-0.5, "steps")  # of which two and a half are planned
    with pytest.raises(BudgetError, match="not on the plan"):
        plan.after(step, 2).after(step, 1)
    assert plan.after(step, 2).releases[0].times == 8


def test_equal_shares_add_up_to_what_is_planned_whatever_floats_do():
    for many in range(1, 60):
        left = BudgetPlan((Planned(GaussianSum(0.7, "steps"), many, shared=True),))
        for _ in range(many):
            left = left.after(GaussianSum(0.7 * math.sqrt(many), "steps"))
