"""The privacy figures of the paper: where they come from, what is true, and how it is told."""

import json
import math

import pytest

from reproduce import table_budgets
from reproduce.claims import Claim, Stated, Steps, claims
from reproduce.readings import EXACT, READINGS, epsilon_of, largest_batch
from reproduce.result import Options
from reproduce.table_budgets import QUICK, epsilon_row, summary

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def quick():
    """Two figures, as `--quick` has them, and what it told."""
    told = []
    return table_budgets.run(Options(quick=True, progress=lambda *n: told.append(n))), told


@pytest.fixture(scope="module")
def rows(quick):
    return {row["what"]: row for row in quick[0].rows}


def test_the_table_is_renyi_accounting_and_holds(rows):
    assert rows["digit 7, no warm start"]["verdict"] == "from Renyi; holds"


def test_half_of_the_times_is_too_small_for_the_papers_neighbours(rows):
    assert "holds under add-remove only" in rows["5 of 10 times, a public choice"]["verdict"]


def test_exact_values_are_those_of_the_design(rows):
    digit = rows["digit 7, no warm start"]
    assert digit["add-remove"] == pytest.approx(0.602, abs=5e-4)
    assert digit["replace-one"] == pytest.approx(0.879, abs=5e-4)
    assert digit["Renyi"] == pytest.approx(1.277, abs=5e-4)
    assert digit["per particle"] == pytest.approx(194, abs=0.5)


def test_rows_are_flat_and_say_their_settings(quick):
    found, _ = quick
    assert [row["what"] for row in found.rows] == list(QUICK)
    for row in found.rows:
        assert all(isinstance(value, str | float | int | None) for value in row.values())
        assert "rho 5/626" in row["settings"]
    assert found.settings["loss grid, certified"] == 1e-4


def test_it_becomes_files(quick, tmp_path):
    found, _ = quick
    files = found.write(tmp_path)
    names = [f"table-budgets{end}" for end in (".csv", ".json", ".md", ".png", ".svg")]
    assert [path.name for path in files] == names
    assert json.loads(files[1].read_text())["rows"] == found.rows
    assert "| Table 2 | digit 7, no warm start |" in files[2].read_text()


def test_progress_reaches_the_end(quick):
    _, told = quick
    assert told[-1] == (2 * len(READINGS), 2 * len(READINGS))


# The figures ----------------------------------------------------------------------------------


def test_every_figure_is_named_once_and_has_a_place():
    listed = claims()
    assert len({claim.what for claim in listed}) == len(listed) == 20
    assert all(claim.where and claim.epsilon > 0 < claim.delta for claim in listed)


# The readings, on what has a closed form so that it is quick --------------------------------------


FULL = Claim("here", "one sum", 1.0, 1e-3, (Steps(4.0),))


def test_a_full_sum_replaced_moves_twice_as_far():
    added, replaced = (epsilon_of(FULL, reading) for reading in EXACT)
    twice = Claim("here", "half the noise", 1.0, 1e-3, (Steps(2.0),))
    assert replaced == pytest.approx(epsilon_of(twice, "add-remove"))
    assert added < replaced


def test_without_sampling_there_is_nothing_to_clip_per_particle():
    assert math.isnan(epsilon_of(FULL, "per particle"))
    assert epsilon_row(FULL, [0.5, 0.5, 0.5, 0.5, 0.5, math.nan])["per particle"] is None


def test_a_part_taken_at_its_word_has_exact_readings_only():
    claim = Claim("here", "a part", 1.0, 1e-2, (Stated(0.5, 1e-3), Steps(10.0)))
    assert math.isnan(epsilon_of(claim, "CLT"))
    assert math.isnan(epsilon_of(claim, "Renyi"))
    assert 0.5 < epsilon_of(claim, "add-remove") < epsilon_of(claim, "replace-one") < 1.0


def test_added_up_costs_more_than_together():
    parts = (Steps(8.0), Steps(6.0))
    apart = epsilon_of(Claim("here", "", 1.0, 1e-3, parts, "added up"), "replace-one")
    assert apart > 1.2 * epsilon_of(Claim("here", "", 1.0, 1e-3, parts), "replace-one")


def test_the_annealed_figure_leaves_room_for_batches_of_45_by_the_limit():
    (annealed,) = (claim for claim in claims() if claim.rule == "added up")
    assert largest_batch(annealed, "CLT") == 45


# The words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exact", "verdict"),
    [
        ((0.9, 0.95), "holds"),
        ((0.9, 1.1), "holds under add-remove only"),
        ((1.1, 1.2), "too small"),
    ],
)
def test_a_claim_holds_where_exact_values_allow_it(exact, verdict):
    row = epsilon_row(FULL, [0.5, 0.996, 3.0, *exact, math.nan])
    assert row["verdict"] == f"from Renyi; {verdict}"


def test_what_is_too_small_is_said_with_numbers(rows):
    listed = [claim for claim in claims() if claim.what in QUICK]
    told = " ".join(summary(listed, [rows[claim.what] for claim in listed], []))
    assert "1 of 2 figures hold under both relations" in told
    assert "0.340 (0.259 under add-remove and 0.392 under replace-one)" in told
    assert "194 for 'digit 7, no warm start'" in told
