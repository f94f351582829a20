"""Everything that a fit writes or asks depends on the data through the guard's answers alone.

With a guard that answers the same whatever the data, two tables that have nothing in common must
give the same files, to the last byte, and be asked the same questions: warm start, scale, clip,
slabs, bandwidth, stopping, settings, certificate.
"""

import warnings

import numpy as np
import pytest

from privtraj import LowBudgetWarning, Snapshots, TrajectorySynthesizer
from privtraj.paper import SampledSynthesizer
from privtraj.privacy.guard import CellCounts, LagTable
from privtraj.privacy.ledger_file import LedgerFile

SETTINGS = [
    {"measure": "counts", "particles": 16},
    {"measure": "counts", "particles": 16, "windows": "bins", "cells": 4},
    pytest.param({"measure": "gradients", "particles": 8, "steps": 3}, marks=pytest.mark.slow),
    pytest.param({"particles": 8, "steps": 3, "rate": 0.5}, marks=pytest.mark.slow),
]


def table(n, place, seed, **options):
    """n people around a place, at times of their own."""
    rng = np.random.default_rng(seed)
    return Snapshots.from_arrays(
        2 * rng.beta(4 * place, 4 * (1 - place), n),
        np.clip(place + 0.05 * rng.standard_normal((n, 2)), 0, 1),
        bounds=[(0, 1)] * 2,
        bins=[0.0, 1.0, 2.0],
        **options,
    )


class Questions:
    """All that was asked, without the answers."""

    def __init__(self):
        self.asked = []

    def released(self, release, shape, answer):
        question, event = release.question, release.event(shape)
        if isinstance(question, LagTable):
            parts = (question.times, question.thresholds, question.lag_edges)
            self.asked.append((event, [part.tolist() for part in parts], answer.shape))
            return
        slabs = (shape.windows.edges.tolist(), shape.windows.slab_of_piece.tolist())
        counts = isinstance(question, CellCounts)
        rest = question.sides if counts else question.clip.tolist()
        self.asked.append((event, slabs, rest, answer.shape))


@pytest.fixture(params=SETTINGS, ids=str)
def fits(request, blindfold):
    """Function: the model and the questions of a blindfolded fit of a table."""
    settings = dict(request.param)
    kind = SampledSynthesizer if "rate" in settings else TrajectorySynthesizer
    pipeline = type("Blindfolded", (kind,), {"guard_class": blindfold})

    def fit(snapshots):
        questions = Questions()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowBudgetWarning)
            synthesizer = pipeline(0.3, 1e-5, seed=5, **settings)
            return synthesizer.fit(snapshots, watcher=questions), questions.asked

    return fit


def test_files_and_questions_know_of_the_data_what_the_guard_has_told(fits, tmp_path):
    same_files_and_questions(fits, tmp_path, table(40, 0.1, 1), table(170, 0.9, 2))


def test_so_do_those_about_people_with_several_records(fits, tmp_path):
    """Of whom there are many in the one table, and none in the other."""
    several = {"records_per_person": 3, "one_per_bin": False}
    one = table(60, 0.1, 1, person=np.arange(60) // 4, **several)
    same_files_and_questions(fits, tmp_path, one, table(170, 0.9, 2, person=range(170), **several))


def same_files_and_questions(fits, tmp_path, *tables):
    assert tables[0]._digest != tables[1]._digest
    (one, first), (other, second) = map(fits, tables)
    assert first == second
    assert str(one.certificate) == str(other.certificate)
    assert one.certificate.to_json() == other.certificate.to_json()
    for name, model in (("one", one), ("other", other)):
        model.save(tmp_path / name, not_private=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_the_ledger_file_has_no_plain_hash_of_the_records(tmp_path):
    """It is for the house alone, and even there a guess costs a slow hash."""
    people = table(40, 0.1, 1)
    ledger = LedgerFile(tmp_path / "ledger", cap_epsilon=1.0, cap_delta=1e-4)
    ledger.reserve(people._digest, 0.5, 1e-5, "add-remove", "a fit")
    assert people._digest.hex()[:16] not in (tmp_path / "ledger").read_text()
