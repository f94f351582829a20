"""The properties of `make fuzz`, each on few cases; and that they can be refuted."""

from dataclasses import fields

import pytest
from hypothesis import Phase

import fuzz
from privtraj.privacy.events import Person
from privtraj.privacy.ledger import Ledger
from privtraj.recipe import Recipe

pytestmark = pytest.mark.slow
CASES = [
    ("neighbours", 12),
    ("payment", 12),
    ("databases", 5),
    pytest.param("recipes", 8, marks=pytest.mark.thorough),
]
FIXED = {"derandomize": True, "database": None, "phases": [Phase.generate]}  # not to shrink


@pytest.mark.parametrize(("name", "cases"), CASES)
def test_no_case_refutes_a_property_of_the_guard(name, cases):
    if name == "databases":
        pytest.importorskip("ibis")
        pytest.importorskip("duckdb")
    fuzz.run(name, max_examples=cases, **FIXED)


def test_records_that_meet_unpaid_in_a_slab_are_found(monkeypatch):
    """Two records of one person, in bins of their own, and a slab that holds both."""
    apart = fuzz.Table([[(1.0, 0.4, 0.4)]] * 10, most=2, one_per_bin=True, bins=True)
    question = fuzz.Question("sums", ((0.75,), (0, 1)), 1, 1.0, 2.0, 1e-3, 1.0)
    case = fuzz.Neighbours(apart, [(0.0, 0.1, 0.2), (0.7, 0.1, 0.2)], [], [question])
    fuzz.check_neighbours(case)
    monkeypatch.setattr(Person, "in_slabs", lambda person: person)
    with pytest.raises(AssertionError):
        fuzz.check_neighbours(case)


def test_a_ledger_that_pays_for_anything_is_found(monkeypatch):
    monkeypatch.setattr(Ledger, "spend", fuzz.Generous.spend)
    with pytest.raises(AssertionError):
        fuzz.run("payment", max_examples=50, **FIXED)


def test_recipes_have_every_setting():
    assert set(fuzz.SETTINGS) == {each.name for each in fields(Recipe)}


def test_no_time_is_no_case():
    assert fuzz.fuzz(0) == {}
