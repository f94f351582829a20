"""People with several records: what they cost, and what a general theorem would have asked."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import cli
from privtraj.assess.plan import price
from privtraj.privacy.accounting import Tally, epsilon_at, tally
from privtraj.privacy.events import GaussianSum, LaplaceCounts, Opaque, Person
from privtraj.privacy.ledger import calibrate_gaussian, calibrate_laplace, calibrate_noise

FILE = Path(__file__).resolve().parents[2] / "experiments" / "records.py"
SPEC = importlib.util.spec_from_file_location("records", FILE)
experiment = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(experiment)
generic_epsilon = experiment.generic_epsilon

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
ADJACENCIES = ["add-remove", "replace-one"]


# The price ----------------------------------------------------------------------------------


@pytest.mark.parametrize("records", [1, 2, 3, 9])
def test_the_price_by_measure(records):
    assert price(records, "gradients", **BUDGET) == pytest.approx(math.sqrt(records))
    assert price(records, "gradients", together=True, **BUDGET) == records
    assert price(records, "counts", epsilon=1.0, delta=0.0) == pytest.approx(records)
    assert price(records, "counts", together=True, **BUDGET) == pytest.approx(1)
    assert price(records, "counts", **BUDGET) <= records * (1 + 1e-6)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("together", [False, True])
def test_the_price_of_gradients_is_what_the_accountant_asks(together, adjacency):
    one = calibrate_gaussian(*BUDGET.values(), adjacency)
    several = calibrate_gaussian(*BUDGET.values(), adjacency, person=Person(5, together))
    stated = price(5, "gradients", adjacency=adjacency, together=together, **BUDGET)
    assert one / several == pytest.approx(stated, rel=1e-6)


@settings(max_examples=40)
@given(st.floats(0.05, 8), st.sampled_from([0.0, 1e-9, 1e-5, 1e-2]), st.integers(2, 12))
def test_the_price_of_counts_is_what_the_accountant_asks(epsilon, delta, records):
    ratios = {}
    for together in (False, True):
        one = calibrate_laplace(epsilon, delta, "add-remove")
        person = Person(records, together)
        several = calibrate_laplace(epsilon, delta, "add-remove", person=person)
        ratios[together] = one / several
    assert 1 < ratios[False] <= records * (1 + 1e-6)
    for together, ratio in ratios.items():
        budget = {"epsilon": epsilon, "delta": delta, "together": together}
        assert price(records, "counts", **budget) == pytest.approx(ratio, rel=1e-6)
    assert ratios[True] == pytest.approx(1, rel=1e-6)  # people are counted then
    if delta == 0:
        assert ratios[False] == pytest.approx(records, rel=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("records", "rate", "steps", "adjacency"),
    [(4, 0.1, 50, "add-remove"), (3, 0.2, 8, "add-remove"), (4, 0.5, 4, "replace-one")],
)
def test_sampled_records_in_different_bins_cost_at_most_their_root(records, rate, steps, adjacency):
    """Nowhere more than for full sums, but for the grid; clearly more than for one record."""
    found = _sampled_price(records, rate, steps, adjacency, together=False)
    assert 1.2 < found <= math.sqrt(records) * (1 + 5e-3)


@pytest.mark.thorough
def test_sampled_records_together_cost_between_their_root_and_their_number():
    found = _sampled_price(3, 0.2, 8, "add-remove", together=True)
    assert math.sqrt(3) < found <= 3 * (1 + 5e-3)


def _sampled_price(records, rate, steps, adjacency, together):
    several, one = (
        calibrate_noise(*BUDGET.values(), adjacency, steps=steps, rate=rate, person=person)
        for person in (Person(records, together), Person(1, together))
    )
    return several / one


# The general theorem ------------------------------------------------------------------------

EVENTS = {
    "sum": lambda size, person: GaussianSum(1 / size, "", **person),
    "counts": lambda size, person: LaplaceCounts(size, "", **person),
}


@settings(max_examples=60)
@given(
    st.sampled_from(list(EVENTS)),
    st.floats(0.05, 1.5),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(ADJACENCIES),
    st.sampled_from([1e-8, 1e-5, 1e-3]),
)
def test_the_general_theorem_never_beats_the_exact_tally(
    kind, size, records, together, adjacency, delta
):
    person = {"records": records, "together": together}
    exact = epsilon_at([EVENTS[kind](size, person)], delta, adjacency)
    one = tally([EVENTS[kind](size, {})], adjacency)
    assert generic_epsilon(one, records, delta) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("records", [1, 2, 7])
def test_pure_guarantees_add_up_as_in_the_textbook(epsilon, records):
    """g records: g epsilon; and for counts nothing better is true."""
    counts = tally([LaplaceCounts(epsilon, "")], "add-remove")
    opaque = tally([Opaque(epsilon, 0.0, "")], "add-remove")
    for one in (counts, opaque):
        found = generic_epsilon(one, records, 0.0)
        assert records * epsilon <= found <= records * epsilon * (1 + 2e-4)
    exact = epsilon_at([LaplaceCounts(epsilon, "", records=records)], 0.0, "add-remove")
    assert exact == pytest.approx(records * epsilon)


@pytest.mark.parametrize(("mu", "records", "delta"), [(0.5, 3, 1e-5), (1.0, 2, 1e-6)])
def test_the_general_theorem_against_a_plain_search(mu, records, delta):
    one = tally([GaussianSum(1 / mu, "")], "add-remove")
    grid = np.arange(1, 4000) * 2e-3
    powers = sum(np.exp(k * grid) for k in range(records))
    least = grid[np.flatnonzero(np.array([one.delta(x) for x in grid]) * powers <= delta)[0]]
    assert generic_epsilon(one, records, delta) == pytest.approx(records * least, rel=2e-3)


def test_where_the_general_theorem_says_nothing():
    assert generic_epsilon(tally([Opaque(0.1, 1e-3, "")], "add-remove"), 2, 1e-4) == math.inf
    assert generic_epsilon(Tally("add-remove"), 2, 0.0) < 0.01  # nothing was released


# On the command line ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "options", "said"),
    [
        (2, ["4"], "people are counted, their records in equal parts"),
        (4, ["3"], "need 3 times the noise of one (gradients)"),
        (2, ["4", "--windows", "bins", "--measure", "gradients"], "need 2 times the noise of one"),
        (4, ["3", "--windows", "bins"], "need 1.7 times the noise of one (gradients)"),
        (
            4,
            ["3", "--windows", "bins"],
            "so --one-per-person random is better if people have fewer than that on average",
        ),
        (3, ["1"], None),
    ],
)
def test_the_command_line_says_what_records_cost(features, options, said, tmp_path, capsys):
    """Before the data are read: the file does not even exist."""
    names = [word for k in range(features) for word in ("--feature", f"x{k}", "0", "1")]
    words = ["--time", "t", "--person", "id", *names, "--time-range", "0", "9", "--bins", "9"]
    budget = ["--epsilon", "1", "--delta", "1e-5", "--out", str(tmp_path / "m.privtraj")]
    data = str(tmp_path / "none.csv")
    assert cli.main(["fit", data, *words, *budget, "--records-per-person", *options]) == 2
    *notes, error = capsys.readouterr().err.splitlines()
    assert "there is no file" in error
    assert len(notes) == (said is not None)
    assert said is None or said in notes[0]
