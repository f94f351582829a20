"""Events: how far one person moves each, what follows from what, and what they refuse."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.errors import InputError
from privtraj.privacy.events import (
    ChosenTimes,
    Event,
    GaussianSum,
    LaplaceCounts,
    Opaque,
    SampledPair,
    check_adjacency,
    check_budget,
    people_moved,
)

ADJACENCIES = ["add-remove", "replace-one"]


# Sensitivity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("records", [1, 2, 4, 9])
def test_records_in_different_bins_move_a_sum_by_their_root(records):
    event = GaussianSum(1.0, "", records=records)
    assert [event.sensitivity(a) for a in ADJACENCIES] == [
        math.sqrt(records),
        2 * math.sqrt(records),
    ]


@pytest.mark.parametrize("records", [1, 2, 4, 9])
def test_records_that_may_be_together_move_a_sum_by_their_number(records):
    event = GaussianSum(1.0, "", records=records, together=True)
    assert [event.sensitivity(a) for a in ADJACENCIES] == [records, 2 * records]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("records", [1, 3])
def test_every_record_moves_a_count_by_one(records, together):
    event = LaplaceCounts(0.5, "", records=records, together=together)
    assert [event.sensitivity(a) for a in ADJACENCIES] == [records, 2 * records]
    for adjacency, people in zip(ADJACENCIES, (1, 2), strict=True):
        epsilon, responses = event.pair(adjacency).responses
        assert epsilon * responses == pytest.approx(0.5 * event.sensitivity(adjacency))
        assert responses == (people if together else people * records)


@settings(max_examples=60)
@given(st.floats(1e-6, 1), st.integers(1, 12), st.booleans())
def test_moves_are_the_law_of_how_many_records_of_one_bin_were_sampled(rate, records, together):
    event = GaussianSum(1.0, "", rate=rate, records=records, together=together)
    sizes, chances = map(np.array, SampledPair.of(event, "add-remove").moves())
    in_one_bin = records if together else 1
    assert sizes.tolist() == list(range(in_one_bin + 1))
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert (chances >= 0).all()
    assert sizes @ chances == pytest.approx(in_one_bin * rate, rel=1e-9)
    variance = sizes**2 @ chances - (sizes @ chances) ** 2
    assert variance == pytest.approx(in_one_bin * rate * (1 - rate), abs=1e-9)


# What follows from what -----------------------------------------------------------------------


def hockey_stick(p, q, epsilon):
    """The larger of the two divergences, max_A P(A) - e^eps Q(A) and the same backwards."""
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))


@settings(max_examples=100)
@given(st.integers(0, 10_000), st.floats(0.01, 2), st.floats(0.05, 3))
def test_replacing_costs_at_most_removing_and_adding(seed, epsilon, spread):
    """Three laws in a row, neighbours (epsilon, delta) apart: the ends are `under` apart."""
    rng = np.random.default_rng(seed)
    middle = rng.dirichlet(np.ones(5))
    ends = [middle * np.exp(spread * rng.standard_normal(5)) for _ in "ab"]
    first, last = (end / end.sum() for end in ends)
    delta = max(hockey_stick(first, middle, epsilon), hockey_stick(middle, last, epsilon))
    event = Opaque(epsilon, min(delta + 1e-12, 0.999), "")
    assert hockey_stick(first, last, 2 * epsilon) <= event.under("replace-one")[1] + 1e-12
    assert event.under("replace-one")[0] == 2 * epsilon


def test_the_cost_of_replacing_is_attained():
    """delta of removing then adding: nothing below (1 + e^epsilon) delta would be true."""
    epsilon, delta = 0.7, 0.01
    far = math.exp(epsilon) * delta
    middle = np.array([0.0, delta, 1 - delta])
    first = np.array([delta, far, 1 - delta - far])  # delta of middle's nothing, e^eps of its delta
    last = np.array([0.0, 0.0, 1.0])
    assert hockey_stick(first, middle, epsilon) <= delta + 1e-15
    assert hockey_stick(middle, last, epsilon) <= delta + 1e-15
    assert hockey_stick(first, last, 2 * epsilon) == pytest.approx(
        Opaque(epsilon, delta, "").under("replace-one")[1]
    )


def test_opaque_guarantees_say_nothing_beyond_their_adjacency():
    event = Opaque(1.0, 1e-6, "", "replace-one")
    assert event.under("replace-one") == (1.0, 1e-6)
    assert event.under("add-remove")[1] == 1.0
    assert Opaque(1.0, 0.0, "").under("replace-one") == (2.0, 0.0)
    assert Opaque(800.0, 1e-9, "").under("replace-one") == (1600.0, 1.0)


@settings(max_examples=100)
@given(st.integers(2, 30), st.integers(1, 30), st.integers(1, 6), st.sampled_from(ADJACENCIES))
def test_the_chance_of_a_chosen_bin_is_never_understated(bins, chosen, records, adjacency):
    """Against the hypergeometric probability that one of the person's bins is drawn."""
    chosen, touched = min(chosen, bins), min(bins, people_moved(adjacency) * records)
    missed = math.comb(bins - touched, chosen) / math.comb(bins, chosen)
    event = ChosenTimes(chosen / bins, GaussianSum(1.0, "", records=records), 3, "")
    assert 1 - missed - 1e-12 <= event.chance(adjacency) <= 1
    if touched == 1:
        assert event.chance(adjacency) == pytest.approx(chosen / bins)


def test_slack_of_chosen_times_is_that_of_all_their_releases():
    assert ChosenTimes(0.5, GaussianSum(1.0, "", 1e-9), 40, "").slack == pytest.approx(4e-8)


def test_pairs_are_equal_if_their_losses_are():
    def sampled(z, name, slack, rate, *person):
        return GaussianSum(z, name, slack, *person, rate=rate)

    def pair(event):
        return event.pair("add-remove")

    a, b = sampled(2.0, "a", 1e-9, 0.1, 3), sampled(2.0, "b", 1e-8, 0.1, 3)
    assert pair(a) == pair(b)
    assert pair(ChosenTimes(0.5, a, 4, "a")) == pair(ChosenTimes(0.5, b, 4, "b"))
    changes = [
        sampled(2.1, "a", 1e-9, 0.1, 3),
        sampled(2.0, "a", 1e-9, 0.2, 3),
        sampled(2.0, "a", 1e-9, 0.1, 2),
        sampled(2.0, "a", 1e-9, 0.1, 3, True),
    ]
    assert all(pair(a) != pair(other) for other in changes)
    assert pair(a) != a.pair("replace-one")
    assert pair(ChosenTimes(0.5, a, 4, "a")) != pair(ChosenTimes(0.5, a, 5, "a"))


# Mistakes -------------------------------------------------------------------------------------

MISTAKES = {
    "no noise": lambda: GaussianSum(0.0, ""),
    "negative noise": lambda: GaussianSum(-1.0, ""),
    "noise not a number": lambda: GaussianSum(math.nan, ""),
    "infinite noise": lambda: GaussianSum(math.inf, ""),
    "negative slack": lambda: GaussianSum(1.0, "", slack=-1e-12),
    "slack of one": lambda: LaplaceCounts(1.0, "", slack=1.0),
    "slack not a number": lambda: GaussianSum(1.0, "", slack=math.nan),
    "no rate": lambda: GaussianSum(1.0, "", rate=0.0),
    "rate above one": lambda: GaussianSum(1.0, "", rate=1.0 + 1e-12),
    "rate not a number": lambda: GaussianSum(1.0, "", rate=math.nan),
    "rate true": lambda: GaussianSum(1.0, "", rate=True),
    "no records": lambda: GaussianSum(1.0, "", records=0),
    "half a record": lambda: LaplaceCounts(1.0, "", records=1.5),
    "records true": lambda: GaussianSum(1.0, "", records=True),
    "no epsilon": lambda: LaplaceCounts(0.0, ""),
    "no weight": lambda: LaplaceCounts(1.0, "", weight=0),
    "infinite epsilon": lambda: LaplaceCounts(math.inf, ""),
    "opaque epsilon": lambda: Opaque(0.0, 1e-5, ""),
    "opaque delta": lambda: Opaque(1.0, 1.0, ""),
    "opaque adjacency": lambda: Opaque(1.0, 1e-5, "", "swap"),
    "no share": lambda: ChosenTimes(0.0, GaussianSum(1.0, ""), 1, ""),
    "share above one": lambda: ChosenTimes(1.5, GaussianSum(1.0, ""), 1, ""),
    "no releases": lambda: ChosenTimes(0.5, GaussianSum(1.0, ""), 0, ""),
    "adjacency": lambda: check_adjacency("add_remove"),
    "people moved": lambda: people_moved("both"),
    "budget text": lambda: check_budget("1", 1e-5),
    "budget true": lambda: check_budget(True, 1e-5),
    "budget delta none": lambda: check_budget(1.0, None),
    "delta one": lambda: check_budget(1.0, 1.0),
    "delta negative": lambda: check_budget(1.0, -1e-9),
}


@pytest.mark.parametrize("wrong", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused_in_one_sentence(wrong):
    with pytest.raises(InputError, match=r"^[^.]*(\.\d[^.]*)*[^.]$"):
        wrong()


# What is said about an event ------------------------------------------------------------------

EVERY = [
    GaussianSum(2.0, "sum", records=3),
    LaplaceCounts(0.4, "counts", records=2, together=True),
    LaplaceCounts(0.4, "pairs", records=2, together=True, weight=6),
    Opaque(0.3, 1e-6, "elsewhere", "replace-one"),
    GaussianSum(2.0, "batch", rate=0.1),
    ChosenTimes(0.5, GaussianSum(2.0, "chosen"), 4, "chosen"),
    ChosenTimes(0.5, GaussianSum(2.0, "chosen", rate=0.2), 4, "chosen"),
]


@pytest.mark.parametrize("event", EVERY, ids=repr)
def test_an_entry_of_a_certificate_is_the_event_again(event):
    entry = event.to_dict("add-remove", 7)
    assert (entry["what"], entry["times"], entry["mechanism"]) == (event.what, 7, event.mechanism)
    assert Event.from_dict(entry) == event
    assert event.ideal() == event


@pytest.mark.parametrize("event", EVERY, ids=repr)
def test_the_words_of_an_event_name_it_and_how_often(event):
    assert event.describe().startswith(f"{event.what!r} (")
    assert event.describe(3) == f"3 x {event.describe()}"
    known = {"noise multiplier", "sampling rate", "epsilon", "delta", "steps"}
    said = event.in_words.removeprefix(f"{event.mechanism} noise, ").split(", ")
    names = {one.rpartition(" ")[0] for one in said}
    assert names
    assert names <= known | {"share of the times", "weight of a person"}


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_the_noise_has_the_stated_variance(epsilon):
    """Against the law itself, summed term by term."""
    x = np.arange(-3000, 3001)
    law = np.exp(-epsilon * np.abs(x))
    assert LaplaceCounts(epsilon, "").noise_variance == pytest.approx(law @ x**2 / law.sum())
    assert GaussianSum(epsilon, "").noise_variance == pytest.approx(epsilon**2)


def test_an_entry_with_the_fields_of_another_mechanism_is_none():
    for event, extra in [
        (GaussianSum(2.0, "sum"), {"rate": 0.01}),
        (LaplaceCounts(1.0, "counts", records=9), {"weight": 1}),
        (GaussianSum(2.0, "sum", rate=0.5), {"rate": 1.0}),
    ]:
        with pytest.raises(InputError, match="not that of an event"):
            Event.from_dict({**event.to_dict("add-remove"), **extra})


def test_an_entry_counts_every_release():
    one = LaplaceCounts(0.3, "counts", records=2)
    assert one.cost("replace-one", 5)["epsilon"] == pytest.approx(2 * 2 * 5 * 0.3)
    assert one.cost("add-remove", 1)["epsilon"] == pytest.approx(0.6)


def test_the_limit_of_sampled_steps_is_that_of_all_steps_and_records():
    step = SampledPair.of(GaussianSum(20.0, "step", records=3, rate=0.1), "add-remove")
    assert step.limit_mu_squared(5) == pytest.approx(0.01 * 15 * math.expm1(1 / 400))
    assert (
        SampledPair.of(GaussianSum(20.0, "step", rate=0.1), "replace-one").limit_mu_squared(5)
        is None
    )


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("times", [1, 7, 5000])
@pytest.mark.parametrize(
    ("z", "rate", "records", "together"),
    [(2.0, 0.3, 1, False), (0.9, 0.01, 3, False), (3.0, 0.2, 4, True)],
)
def test_points_of_a_grid_are_told_from_the_second_moment(
    adjacency, times, z, rate, records, together
):
    """E[e^{j j' / z^2}] - 1 over all pairs of numbers of sampled records, one by one."""
    pair = SampledPair(z, rate, records, together, adjacency, None, 3)
    g, n = (records, 3 * times) if together else (1, 3 * times * records)
    chances = [math.comb(g, j) * rate**j * (1 - rate) ** (g - j) for j in range(g + 1)]
    variance = -1.0
    for (j, p), (k, q) in product(enumerate(chances), repeat=2):
        variance += p * q * math.exp(j * k / z**2)
    sides = {"add-remove": 1, "replace-one": 2}[adjacency]
    one = sides * ((g / z) ** 2 / 2 + 10 * g / z)
    both = one + min(n * one, 20 * sides * math.sqrt(n * variance))
    assert pair.points(times, 1e-3) == pytest.approx(both / 1e-3, rel=1e-9)


@pytest.mark.parametrize(("z", "records"), [(0.01, 1), (0.1, 10)])
def test_points_of_sums_with_hardly_any_noise_are_told_too(z, records):
    """Of a certificate that is anybody's: e^(1 / z^2) is beyond all floats."""
    points = SampledPair(z, 0.1, records, True, "add-remove").points(10, 1e-4)
    assert 1e7 < points < math.inf
