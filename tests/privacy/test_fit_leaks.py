"""Everything that a fit writes or asks depends on the data through the guard's answers alone.

With a guard that gives the same answers whatever the data (`blindfold`), two tables that have
nothing in common must give the same files, to the last byte, the same warnings, and be asked the
same questions: warm start, scale, clip, windows, bandwidth, stopping, settings, certificate. One of
them was looked at before, by `check`: that changes nothing either.
"""

from functools import cache

import numpy as np
import pytest

import blindfold
from blindfold import CORNER, KINDS, Shape
from privtraj.privacy.guard import Question
from privtraj.privacy.ledger_file import LedgerFile

SEVERAL = [name for name, kind in KINDS.items() if kind.shape.records > 1]
FAST = {"counts at any time", "counts of bins", "counts without delta", "public counts"}
LONG = {
    "gradients of default particles",
    "tables of numbers",
    "tables of several records",
    "replaced people",
}

fits = cache(lambda name: blindfold.blindfolded(KINDS[name]))


def each(names):
    def marks(name):
        return [pytest.mark.thorough] * (name in LONG) + [pytest.mark.slow] * (name not in FAST)

    return [pytest.param(name, marks=marks(name)) for name in names]


@pytest.mark.parametrize("name", each(name for name in KINDS if name not in SEVERAL))
def test_files_and_questions_know_of_the_data_what_the_guard_has_told(name, tmp_path):
    same_files_and_questions(name, tmp_path)


@pytest.mark.parametrize("name", each(SEVERAL))
def test_so_do_those_about_people_with_several_records(name, tmp_path):
    """Of whom there are many in the one table, and none in the other."""
    same_files_and_questions(name, tmp_path)


def same_files_and_questions(name, tmp_path):
    one, other = fits(name)
    assert one.asked
    blindfold.check_same(one, other)
    for file, seen in (("one", one), ("other", other)):
        seen.model.save(tmp_path / file, not_private=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("name", each(KINDS))
def test_a_certificate_costs_under_both_relations_what_another_accountant_says(name):
    blindfold.check_certificate(fits(name)[0])


@pytest.mark.thorough
def test_the_kinds_ask_every_question_that_there_is():
    """A new question needs a fit here, or its measure leaves the blindfold."""
    asked = {part[1][0] for name in KINDS for part in fits(name)[0].asked}
    known = {
        kind.__name__ for kind in Question.registered if kind.__module__.startswith("privtraj")
    }
    assert asked == known


def test_the_tables_have_nothing_in_common():
    """They differ in what a leak would show: their sizes and places."""
    tables = [Shape().snapshots(crowd) for crowd in (CORNER, blindfold.MOVING)]
    assert tables[0]._digest != tables[1]._digest
    assert len({len(table._rows.points) for table in tables}) == 2
    means = [table._rows.points.mean(axis=0) for table in tables]
    assert np.abs(means[0] - means[1]).min() > 0.2


def test_the_ledger_file_has_no_plain_hash_of_the_records(tmp_path):
    """It is for the house alone, and even there a guess costs a slow hash."""
    people = Shape().snapshots(CORNER)
    ledger = LedgerFile(tmp_path / "ledger", cap_epsilon=1.0, cap_delta=1e-4)
    ledger.reserve(people._digest, 0.5, 1e-5, "add-remove", "a fit")
    assert people._digest.hex()[:16] not in (tmp_path / "ledger").read_text()
