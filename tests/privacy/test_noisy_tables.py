"""Several tables of counts as one Gaussian mechanism: sensitivity, noise, refusals, the ledger.

Statistical tests state their false-alarm rate; their seeds are fixed.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import privtraj as pt
from privtraj.audit.canaries import People
from privtraj.audit.transcript import Run, Transcript, added_by, standardised
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.privacy import noise
from privtraj.privacy.accounting import tally
from privtraj.privacy.events import GaussianSum, Person
from privtraj.privacy.guard import Gaussian, Guard, MemoryRows, PublicShape, Release, Table, Tables
from privtraj.privacy.ledger import Ledger

COLUMNS = {"sex": ["F", "M"], "stage": ["I", "II", "III"], "size": (0, 1)}
WHOLE = Slabs.between(np.empty(0))
AXES = Axes((2, 3, 0), (False,) * 3, (False,) * 3)


def guard_over(rows, source, epsilon=60.0, watcher=None, records=1, axes=AXES):
    shape = PublicShape(Slabs.around(np.arange(4.0)), axes, Person(records))
    return Guard(rows, shape, Ledger(epsilon, 1e-3), source, watcher=watcher)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    points = np.column_stack(
        [(rng.integers(0, 2, n) + 0.5) / 2, (rng.integers(0, 3, n) + 0.5) / 3, rng.random(n)]
    )
    return MemoryRows(points.astype(np.float32), rng.uniform(0, 3, n))


# What is counted ------------------------------------------------------------------------------


def test_without_noise_tables_are_the_exact_counts(silent):
    rows = people(500)
    halves = Slabs.between(np.array([1.5]))
    questions = [Table(WHOLE, (2, 3, 1)), Table(halves, (1, 1, 4), 3.0), Table(halves, (2, 1, 1))]
    answers = guard_over(rows, silent()).ask(Release(Tables(questions), Gaussian(2.0), "tables"))
    for question, answer in zip(questions, answers, strict=True):
        np.testing.assert_array_equal(answer, rows.cell_counts(question.windows, question.sides))
    assert [answer.shape for answer in answers] == [(1, 6), (2, 4), (2, 2)]


def test_tables_come_from_a_declared_table_of_columns_of_every_kind(silent):
    three = {"t": [0.0, 1.0, 2.0], "sex": list("FMF"), "stage": ["I", "III", "I"]}
    table = pd.concat([pd.DataFrame({**three, "size": [0.1, 0.9, 0.8]})] * 4)
    snapshots = pt.Snapshots.from_table(table, time="t", columns=COLUMNS, bins=[0, 1, 2])
    guard = snapshots.guarded(Guard, Ledger(60.0, 1e-3), silent())
    (pairs,) = guard.ask(Release(Tables([Table(WHOLE, (2, 3, 1))]), Gaussian(1.0), "pairs"))
    np.testing.assert_array_equal(pairs, [[8, 0, 0, 0, 0, 4]])


def test_cells_in_groups_are_added_up_and_an_audit_knows_it(silent):
    rows = people(300)
    groups = (None, np.array([1, 0, 1]), None)
    question, others = Table(WHOLE, (2, 3, 1), 1.0, groups), Table(WHOLE, (1, 1, 2))
    (answer, _) = guard_over(rows, silent()).ask(
        Release(Tables([question, others]), Gaussian(2.0), "tables")
    )
    exact = rows.cell_counts(WHOLE, (2, 3, 1)).reshape(2, 3)
    np.testing.assert_array_equal(answer[0].reshape(2, 2), [[r[1], r[0] + r[2]] for r in exact])
    everybody = People(rows.times, rows.points, np.ones(len(rows.times), np.int64))
    np.testing.assert_array_equal(
        added_by(everybody, Tables([question]), guard_over(rows, silent()).shape)[0], answer
    )


# Sensitivity ----------------------------------------------------------------------------------


def integers(rows, silent, questions, z, records):
    """All that is released of exact counts, in whole numbers before division."""
    answers = guard_over(rows, silent(), records=records).ask(
        Release(Tables(questions), Gaussian(z), "tables")
    )
    times = Tables(questions).multipliers(noise.GAUSSIAN_STD / z)
    parts = [a.ravel() * copies for a, copies in zip(answers, times.tolist(), strict=True)]
    return np.rint(np.concatenate(parts))


tables = st.lists(
    st.builds(
        Table,
        st.sampled_from(
            [
                WHOLE,
                Slabs.between(np.array([1.0])),
                Slabs.between(np.array([0.5, 2.0])),
                Slabs(np.array([0.5, 1.0]), np.array([0, -1, 0])),
            ]
        ),
        st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 5)),
        st.floats(0.05, 20.0),
    ).flatmap(
        lambda table: st.sampled_from(
            [table, replace(table, groups=(None, np.arange(table.sides[1]) % 2, None))]
        )
    ),
    min_size=1,
    max_size=5,
)
record = st.tuples(st.floats(0, 1, width=32), st.floats(0, 1, width=32), st.floats(0, 1, width=32))
records_at = st.lists(st.tuples(st.floats(0, 3), record), min_size=1, max_size=3)


@settings(max_examples=60)
@given(tables, records_at, records_at, st.floats(-0.2, 3).map(lambda e: 10.0**e))
def test_one_person_moves_all_tables_together_by_what_is_paid_for(silent, questions, one, other, z):
    """Brute force: with a person, without, and with another instead, of up to three records."""
    records = max(len(one), len(other))
    others = people(6)

    def released(extra):
        times = np.append(others.times, [t for t, _ in extra])
        points = np.array([*others.points.tolist(), *(p for _, p in extra)], np.float32)
        return integers(MemoryRows(points, times), silent, questions, z, records)

    event = Release(Tables(questions), Gaussian(z), "tables").event(
        guard_over(others, silent(), records=records).shape
    )
    without, present, instead = released([]), released(one), released(other)
    unit = noise.GAUSSIAN_STD / z
    rounding = 1 + 1e-12
    assert np.linalg.norm(present - without) <= event.sensitivity("add-remove") * unit * rounding
    assert np.linalg.norm(present - instead) <= event.sensitivity("replace-one") * unit * rounding


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40), st.floats(-2, 3).map(lambda e: 10.0**e)
)
def test_multipliers_are_whole_in_proportion_and_never_too_large(weights, z):
    times = Tables([Table(WHOLE, (1,), one) for one in weights]).multipliers(noise.GAUSSIAN_STD / z)
    largest = noise.GAUSSIAN_STD / z
    assert times.dtype.kind == "i"
    assert sum(int(copies) ** 2 for copies in times) <= largest**2
    shares = np.array(weights) / math.hypot(*weights)
    np.testing.assert_allclose(times, largest * shares, atol=1 + 1e-8 * largest)


# Noise ----------------------------------------------------------------------------------------


# The ledger -----------------------------------------------------------------------------------


class _Unread:
    """Rows that must not be looked at."""

    digest = b""

    def cell_counts(self, slabs, sides):
        raise AssertionError("rows were read")


def test_tables_are_one_event_for_which_all_noise_and_records_are_charged(silent):
    guard = guard_over(people(50), silent(), records=3)
    questions = [Table(WHOLE, (2, 3, 1)), Table(Slabs.between(np.array([1.0])), (2, 1, 5))]
    guard.ask(Release(Tables(questions), Gaussian(4.0), "shares"))
    ((event, times),) = guard.ledger.events
    slack = (6 + 20) * noise.GAUSSIAN_TV_PER_DRAW
    assert times == 1
    assert event == GaussianSum(4.0, "shares", slack, records=3, together=True)
    assert event.sensitivity("add-remove") == 3
    assert event.sensitivity("replace-one") == 6


@pytest.mark.parametrize(
    ("question", "z", "error"),
    [
        (Table(WHOLE, (2, 3)), 1.0, InputError),
        (Table(WHOLE, (2, 3, 0)), 1.0, InputError),
        (Table(WHOLE, (2, 3, 2**25)), 1.0, InputError),
        (Table(Slabs(np.array([1.0]), np.array([0])), (1, 1, 1)), 1.0, InputError),
        (Table(Slabs(np.array([2.0, 1.0]), np.arange(3)), (1, 1, 1)), 1.0, InputError),
        (Table(Slabs(np.array([1.0]), np.array([0, 2])), (1, 1, 1)), 1.0, InputError),
        (Table(WHOLE, (1, 1, 1), 0.0), 1.0, BudgetError),
        (Table(WHOLE, (1, 1, 1), -1.0), 1.0, BudgetError),
        (Table(WHOLE, (1, 1, 1), 1e-12), 1.0, BudgetError),
        (Table(WHOLE, (1, 1, 1)), 1e10, BudgetError),
        (Table(WHOLE, (1, 1, 1)), 1e-3, BudgetError),  # more than the ledger has
    ],
)
def test_what_cannot_be_answered_is_refused_before_it_is_paid_or_read(question, z, error):
    guard = guard_over(_Unread(), noise.SeededSource(0), epsilon=10.0)
    with pytest.raises(error):
        guard.ask(Release(Tables([Table(WHOLE, (2, 1, 1)), question]), Gaussian(z), "tables"))
    assert guard.ledger.events == ()


# What an audit sees ---------------------------------------------------------------------------


def test_a_transcript_has_the_noise_of_every_table_and_one_entry_for_all():
    """chi^2 of 6,000 numbers, two-sided at 1e-4."""
    rows = people(200)
    everybody = People(rows.times, rows.points, np.ones(len(rows.times), np.int64))
    nobody = People(rows.times[:0], rows.points[:0], everybody.copies[:0])
    who = People(np.array([0.3]), np.array([[0.25, 0.5, 0.4]], np.float32), np.array([1]))
    transcript = Transcript(type("Worlds", (tuple,), {})((everybody, nobody, who)))
    guard = guard_over(rows, noise.SeededSource(2), watcher=transcript)
    halves = Slabs.between(np.array([1.5]))
    guard.ask(
        Release(
            Tables([Table(WHOLE, (2, 1, 1000), 1.0), Table(halves, (1, 1, 2000), 2.0)]),
            Gaussian(1.5),
            "all",
        )
    )
    one, other = transcript.answers
    assert one.moved.sum() == pytest.approx(1 / math.sqrt(5), rel=1e-6)
    assert other.moved[0].sum() == pytest.approx(2 / math.sqrt(5), rel=1e-6)
    assert not other.moved[1].any()
    claim = tally(guard.ledger.events, "add-remove")
    run = Run(transcript, False, guard.ledger.events, claim)
    entries = list(run.entries())
    assert [entry for _, entry in entries] == [guard.ledger.events[0][0]] * 2
    rng = np.random.default_rng(0)
    numbers = [standardised(a.rest, entry, rng).ravel() for a, entry in entries]
    squares = float(sum((z**2).sum() for z in numbers))
    low, high = chi2.ppf([5e-5, 1 - 5e-5], 6000)
    assert low < squares < high


@pytest.mark.parametrize("tables", [2, 3, 5, 7])
def test_multipliers_keep_their_norm_exactly_whatever_floats_do(tables):
    """S / z just below sqrt(Q) times a whole number, where a product of floats may reach it."""
    question = Tables([Table(WHOLE, (1,))] * tables)
    for whole in range(2, 400):
        scale = math.nextafter(math.sqrt(tables) * whole, 0)
        copies = question.multipliers(scale).tolist()
        assert sum(one**2 for one in copies) <= Fraction(scale) ** 2


def test_tables_are_refused_where_one_would_not_be_counted_at_all():
    question, shape = Tables([Table(WHOLE, (1, 1, 1))] * 4), PublicShape(WHOLE, AXES, Person())
    question.check(shape, 2.0 + 1e-6)
    with pytest.raises(BudgetError, match="say nothing"):
        question.check(shape, 2.0 - 1e-6)
