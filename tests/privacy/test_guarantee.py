"""Guarantees: what is sequential adds up, what is about different people costs the dearest.

The oracles compute on their own: epsilons and mus of trees by hand, worlds enumerated one by one.
"""

import json
import math
from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.errors import InputError
from privtraj.privacy.accounting import (
    DEEPEST,
    Parallel,
    Sequential,
    cost,
    epsilon_at,
    from_entries,
    releases,
    to_entries,
)
from privtraj.privacy.certificate import (
    Certificate,
    batch,
    certify,
    certify_disjoint,
    stated_parallel,
)
from privtraj.privacy.events import GaussianSum, LaplaceCounts, Opaque
from privtraj.privacy.ledger import Ledger

RELATIONS = ["add-remove", "replace-one"]


def laplace(epsilon, what="counts"):
    return LaplaceCounts(epsilon, what), 1


def gauss(z, what="sums", times=1):
    return GaussianSum(z, what), times


def test_parallel_costs_the_dearest_branch_and_sequential_the_sum():
    first, second = laplace(0.3), laplace(0.5)
    for relation, factor in (("add-remove", 1), ("replace-one", 2)):
        both = cost(Parallel((first, second)), relation)
        assert both.epsilon(0.0) == pytest.approx(0.5 * factor)
        assert cost(Sequential((first, second)), relation).epsilon(0.0) == pytest.approx(
            0.8 * factor
        )
        around = Sequential((laplace(0.1), Parallel((first, second)), laplace(0.2)))
        assert cost(around, relation).epsilon(0.0) == pytest.approx(0.8 * factor)
        again = Sequential((Parallel((first, second)), Parallel((second, first))))
        assert cost(again, relation).epsilon(0.0) == pytest.approx(1.0 * factor)
        assert cost(Parallel((around, first)), relation).epsilon(0.0) == pytest.approx(0.8 * factor)


def test_branches_of_different_kinds_are_as_bad_as_the_worse_one_at_every_delta():
    """Gaussian sums are the dearer ones at a small delta, counts at a large one."""
    one, other = gauss(2.0), laplace(1.2)
    both = cost(Parallel((one, other)), "add-remove")
    dearer = set()
    for delta in (1e-9, 1e-5, 1e-2, 0.1):
        each = [epsilon_at([leaf], delta, "add-remove") for leaf in (one, other)]
        assert both.epsilon(delta) == pytest.approx(max(each), rel=1e-9)
        dearer.add(int(np.argmax(each)))
    assert dearer == {0, 1}
    rates = np.array([0.001, 0.1, 0.5])
    each = [cost(leaf, "add-remove").true_positive_rates(rates) for leaf in (one, other)]
    np.testing.assert_allclose(both.true_positive_rates(rates), np.max(each, axis=0))
    assert both.gdp_mu is None
    assert cost(Parallel((one, gauss(3.0))), "add-remove").gdp_mu == pytest.approx(0.5)


def test_replacing_may_move_a_person_from_one_branch_to_another():
    """An opaque release that hides what is said, and not who is there, hides no move."""
    hidden = Opaque(0.1, 0.0, "elsewhere", "replace-one"), 1
    assert cost(hidden, "replace-one").epsilon(0.0) == pytest.approx(0.1)
    assert cost(Parallel((hidden,)), "replace-one").epsilon(0.0) == pytest.approx(0.1)
    assert cost(Parallel((hidden, laplace(0.1))), "replace-one").epsilon(1e-3) == math.inf


@given(st.lists(st.floats(0.5, 50.0), min_size=1, max_size=5))
def test_moving_costs_no_more_than_replacing_where_noise_is_gaussian(multipliers):
    tree = Parallel(tuple(map(gauss, multipliers)))
    assert cost(tree, "replace-one").gdp_mu == pytest.approx(2 / min(multipliers))
    assert cost(tree, "add-remove").gdp_mu == pytest.approx(1 / min(multipliers))


# Against worlds, one by one -------------------------------------------------------------------

leaf = st.builds(laplace, st.floats(0.05, 1.0)) | st.builds(gauss, st.floats(1.0, 20.0))
trees = st.recursive(
    leaf,
    lambda inner: (
        st.builds(lambda parts: Sequential(tuple(parts)), st.lists(inner, max_size=3))
        | st.builds(lambda parts: Parallel(tuple(parts)), st.lists(inner, max_size=3))
    ),
    max_leaves=8,
)


def worlds(tree):
    """Lists of the events that touch one person, for every branch they may be in."""
    if isinstance(tree, tuple):
        return [[tree]]
    if isinstance(tree, Parallel):
        return [world for branch in tree.branches for world in worlds(branch)] or [[]]
    return [list(chain.from_iterable(some)) for some in product(*map(worlds, tree.parts))]


@settings(max_examples=60, deadline=None)
@given(trees, st.sampled_from([1e-6, 1e-3]))
def test_a_tree_costs_its_worst_world(tree, delta):
    worst = max(epsilon_at(world, delta, "add-remove") for world in worlds(tree))
    assert cost(tree, "add-remove").epsilon(delta) == pytest.approx(worst, rel=1e-9, abs=1e-12)
    replaced = max(epsilon_at(world, delta, "replace-one") for world in worlds(tree))
    assert cost(tree, "replace-one").epsilon(delta) >= replaced * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(trees, st.sampled_from(RELATIONS))
def test_a_tree_is_written_and_read_again(tree, relation):
    entries = json.loads(json.dumps(to_entries(tree, relation)))
    again = from_entries(entries)
    assert list(to_entries(again, relation)) == entries
    assert cost(again, relation).epsilon(1e-5) == pytest.approx(cost(tree, relation).epsilon(1e-5))
    assert sum(times for _, times in releases(again)) == sum(times for _, times in releases(tree))


def test_an_adaptive_branch_is_bounded_by_simulation():
    """The second branch picks its noise by what the first has told; a person is in one of them.

    All outputs of two randomised responses are enumerated, so the largest ratio is exact.
    """

    def law(first, second):
        probability = {}
        for heard, told in product((0, 1), repeat=2):
            epsilon = 0.3 if heard else 0.7
            sure = [math.exp(e) / (1 + math.exp(e)) for e in (0.5, epsilon)]
            chances = [s if out == bit else 1 - s for s, out, bit in
                       zip(sure, (heard, told), (first, second), strict=True)]  # fmt: skip
            probability[heard, told] = chances[0] * chances[1]
        return probability

    stated = cost(Parallel((laplace(0.5), laplace(0.7))), "add-remove").epsilon(0.0)
    for there in product((0, 1), repeat=2):
        for changed in ((1 - there[0], there[1]), (there[0], 1 - there[1])):
            one, other = law(*there), law(*changed)
            worst = max(math.log(one[key] / other[key]) for key in one)
            assert worst <= stated + 1e-12


# People who return ----------------------------------------------------------------------------

months = st.lists(st.tuples(leaf, st.floats(0, 100), st.floats(0, 40)), min_size=1, max_size=5)


def streams(spans, most, days):
    """Sets of branches in which one person can be by records that are less than `days` apart: a
    record in each, at either end of its span or where those of others begin or end."""
    times = sorted({end for span in spans for end in span})
    places = [[t for t in times if a <= t <= b] for a, b in spans]
    for size in range(1, min(most or len(spans), len(spans)) + 1):
        for some in combinations(range(len(spans)), size):
            if any(max(ts) - min(ts) < days for ts in product(*(places[k] for k in some))):
                yield some


@settings(max_examples=40, deadline=None)
@given(months, st.sampled_from([1, 2, 3, None]), st.sampled_from([10.0, 45.0, math.inf]))
def test_who_is_in_several_batches_of_a_window_pays_for_the_worst_of_them(some, most, days):
    """Against all streams of one person, one by one."""
    spans = tuple((start, start + length) for _, start, length in some)
    leaves = tuple(one for one, _, _ in some)
    tree = Parallel(leaves, most, days, spans if math.isfinite(days) else ())
    sets = list(streams(spans, most, days))
    worst = max(epsilon_at([leaves[k] for k in one], 1e-4, "add-remove") for one in sets)
    assert cost(tree, "add-remove").epsilon(1e-4) == pytest.approx(worst, rel=1e-9)
    worst = max(epsilon_at([leaves[k] for k in one], 1e-4, "replace-one") for one in sets)
    assert cost(tree, "replace-one").epsilon(1e-4) >= worst * (1 - 1e-9)
    entries = json.loads(json.dumps(to_entries(tree, "add-remove"), allow_nan=False))
    assert list(to_entries(from_entries(entries), "add-remove")) == entries


EQUAL = [(3, math.inf, 3), (None, 30.0, 2), (None, 31.0, 3), (None, 365.0, 14), (2, 31.0, 2)]


@pytest.mark.parametrize(("most", "days", "pays"), EQUAL)
@pytest.mark.parametrize("relation", RELATIONS)
def test_equal_batches_cost_a_person_of_k_as_much_as_k_of_them(most, days, pays, relation):
    each = tuple(laplace(0.1) for _ in range(36))
    spans = tuple((30.0 * k, 30.0 * k + 30) for k in range(36))
    tree = Parallel(each, most, days, spans if math.isfinite(days) else ())
    whole = epsilon_at([(laplace(0.1)[0], pays)], 1e-5, relation)
    assert cost(tree, relation).epsilon(1e-5) == pytest.approx(whole, rel=1e-9)


TWO = [[0, 1], [1, 2]]
WRONG = [{"most": 0}, {"most": 2.5}, {"days": 3}, {"days": 3, "spans": TWO[:1]}]
WRONG += [{"days": -1, "spans": TWO}, {"days": 3, "spans": [[1, 0], [1, 2]]}, {"spans": TWO}]
WRONG += [{"days": 3, "spans": [[0, 1, 2], [1, 2]]}, {"days": 3, "spans": {"01": 2, "12": 3}}]


@pytest.mark.parametrize("wrong", WRONG)
def test_windows_that_cannot_be_are_refused(wrong):
    (entry,) = to_entries(Parallel((laplace(0.1), laplace(0.2))), "add-remove")
    with pytest.raises(InputError, match="its ledger cannot be read"):
        from_entries([{**entry, **wrong}])


# Ledger and certificate -----------------------------------------------------------------------


def month(z, delta=1e-5, adjacency="add-remove"):
    ledger = Ledger(4.0, delta, adjacency)
    ledger.spend(LaplaceCounts(0.05, "people per time"))
    ledger.spend(GaussianSum(z, "sums", 1e-18))
    return ledger


def certificate(ledger):
    return certify(ledger, public_inputs={}, private_noise=True)


def test_a_flat_ledger_is_written_as_a_flat_list():
    stated = certificate(month(3.0))
    assert [entry["mechanism"] for entry in stated.to_dict()["ledger"]] == [
        "discrete Laplace",
        "Gaussian",
    ]
    assert all(isinstance(part, tuple) for part in stated.guarantee.parts)
    assert Certificate.from_dict(json.loads(stated.to_json())) == stated


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_certificates_of_different_people_make_one_that_verifies(adjacency):
    each = [certificate(month(z, adjacency=adjacency)) for z in (4.0, 6.0, 5.0)]
    joined = certify_disjoint(each, public_inputs={})
    assert joined.verify() == pytest.approx(max(one.epsilon for one in each), rel=1e-6)
    again = Certificate.from_dict(json.loads(joined.to_json()))
    assert again.verify() == pytest.approx(joined.epsilon)
    assert again.spending() == pytest.approx([joined.epsilon])
    assert "3 groups of different people, of which the dearest counts" in str(again)
    assert again.mechanism == "discrete Laplace and Gaussian"
    year = certify_disjoint([joined, each[0]], public_inputs={})
    assert year.verify() == pytest.approx(joined.epsilon)
    moves = {"add-remove": 1, "replace-one": 2}[adjacency]  # between two branches at most
    assert year.slack == moves * max(one.slack for one in each)


def test_whoever_may_be_in_several_batches_has_the_slack_of_all_of_them():
    each = [certificate(month(z)) for z in (4.0, 6.0, 5.0)]
    joined = certify_disjoint(each[:2], public_inputs={})
    paid = [(f"2026-0{k}-01", f"2026-0{k}-28") for k in (1, 2, 3)]
    batches = [batch(when, (4.0, 1e-5), most) for when, most in zip(paid, (0, 1, 2), strict=True)]
    year = certify_disjoint([joined, each[2]], public_inputs={"batches": batches})
    assert year.slack == pytest.approx(sum(one.slack for one in each), abs=0)


def test_batches_with_dates_are_in_days():
    dates = [("2026-01-01", "2026-01-31"), ("2026-02-01T12:00", "2026-02-28")]
    batches = [batch(when, (1.0, 1e-5), None, days=30.0) for when in dates]
    (first, last), (later, _) = stated_parallel(batches).spans
    assert (last - first, later - last) == (30.0, 1.5)


def test_a_tree_that_was_changed_does_not_verify():
    joined = certify_disjoint([certificate(month(z)) for z in (4.0, 6.0)], public_inputs={})
    values = json.loads(joined.to_json())
    values["ledger"][0]["branches"][0][1]["noise_multiplier"] = 9.0
    with pytest.raises(InputError, match="was changed"):
        Certificate.from_dict(values).verify()
    for branches in (None, [1], [[{"what": "x"}]], "text"):
        values["ledger"][0]["branches"] = branches
        with pytest.raises(InputError, match="its ledger cannot be read"):
            Certificate.from_dict(values)
    deep = []
    for _ in range(DEEPEST + 2):
        deep = [{"what": "x", "times": 1, "mechanism": "parallel", "branches": [deep]}]
    with pytest.raises(InputError, match="its ledger cannot be read"):
        Certificate.from_dict({**values, "ledger": deep})


def test_people_who_are_counted_twice_are_no_parallel():
    with pytest.raises(InputError, match="same adjacency"):
        certify_disjoint(
            [certificate(month(4.0)), certificate(month(4.0, adjacency="replace-one"))],
            public_inputs={},
        )


def test_slack_of_other_people_is_not_lost_on_the_way():
    before = certificate(month(4.0))
    assert before.guarantee.slack == before.slack > 0
    loud = replace(before, slack=1e-6)
    assert certify_disjoint([loud, certificate(month(5.0))], public_inputs={}).slack == 1e-6


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 1.0])
def test_the_worst_of_several_ways_is_the_largest_at_every_epsilon(epsilon):
    few = Sequential(((LaplaceCounts(0.4, "counts"), 1),))
    many = Sequential(((GaussianSum(3.0, "sum"), 1),))
    both = cost(Parallel((few, many)), "add-remove")
    alone = [cost(one, "add-remove").delta(epsilon) for one in (few, many)]
    assert both.delta(epsilon) == pytest.approx(max(alone), rel=1e-9)


@pytest.mark.parametrize("branch", [laplace(0.3), gauss(2.0), (GaussianSum(4.0, "", rate=0.1), 1)])
def test_a_branch_that_tells_less_in_every_part_is_no_way_of_its_own(branch):
    """Composing would be slower by every branch: a model of many months has one for each."""
    event, _ = branch
    dearest = cost((event, 3), "add-remove")
    assert cost(Parallel(((event, 2), (event, 3), (event, 1))), "add-remove") == dearest
