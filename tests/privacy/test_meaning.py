"""What a guarantee means: bounds that hold, words that follow them, warnings where they are due."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from privtraj.privacy import certificate as meaning
from privtraj.privacy.accounting import tally
from privtraj.privacy.certificate import (
    BY_PERSON,
    CAUTION,
    CHECKED,
    EVERY_ROW,
    MOST_RECORDS,
    STATED,
    Certificate,
    certify,
    records_in_words,
)
from privtraj.privacy.events import GaussianSum, LaplaceCounts, Opaque
from privtraj.privacy.ledger import Ledger

EVENTS = {
    "counts": [(LaplaceCounts(0.7, "a"), 1)],
    "many counts": [(LaplaceCounts(0.3, "a"), 5)],
    "several records": [(LaplaceCounts(0.2, "a", records=4, together=True), 1)],
    "sums": [(GaussianSum(2.0, "a"), 3)],
    "sampled sums": [(GaussianSum(1.0, "a", rate=0.2), 10)],
    "opaque": [(Opaque(1.0, 0.1, "a", "add-remove"), 1)],
}


def certified(epsilon, delta=0.0, *, adjacency="add-remove", private=True, **public):
    """Of one release of counts that spends the whole budget."""
    ledger = Ledger(epsilon, delta, adjacency)
    moved = 1 if adjacency == "add-remove" else 2
    ledger.spend(LaplaceCounts(epsilon / moved, "people per cell"))
    return certify(ledger, public_inputs=public, private_noise=private)


@pytest.mark.parametrize("delta", [1e-6, 1e-2, 0.3])
@pytest.mark.parametrize("name", EVENTS)
def test_the_bound_from_epsilon_and_delta_is_never_below_the_trade_off(name, delta):
    total = tally(EVENTS[name], "add-remove")
    bound = meaning.chance_right(total.epsilon(delta), delta)
    assert (1 + total.delta(0.0)) / 2 <= bound + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0, 50.0])
def test_counts_reach_the_bound(epsilon):
    """One randomised response is the worst that epsilon allows."""
    exact = 1 / (1 + math.exp(-epsilon))
    assert certified(epsilon).chance_right == pytest.approx(exact, abs=1e-9)
    assert meaning.chance_right(epsilon, 0.0) == pytest.approx(exact)


def test_the_bound_with_delta_is_reached_by_a_release_that_fails_with_delta():
    """(0, delta): it says who is there with chance delta, and is right delta / 2 more often."""
    assert meaning.chance_right(0.0, 0.3) == pytest.approx(0.65)
    assert meaning.chance_right(800.0, 0.5) == 1.0


def test_gaussian_noise_is_kinder_than_its_epsilon():
    ledger = Ledger(8.0, 1e-6, "add-remove")
    ledger.spend(GaussianSum(1.0, "sums"))
    certificate = certify(ledger, public_inputs={}, private_noise=True)
    assert certificate.chance_right == pytest.approx(norm.cdf(0.5), abs=1e-6)
    assert certificate.chance_right < meaning.chance_right(certificate.epsilon, 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "shows"),
    [
        (0.1, "hardly shows"),
        (1.0, "shows faintly at most"),
        (2.0, "may show"),
        (4.0, "may show clearly"),
        (8.0, "may be plain to see"),
        (50.0, "may be plain to see"),
    ],
)
def test_words_follow_epsilon(epsilon, shows):
    assert certified(epsilon).in_words == (
        f"whether any one person is in the data {shows} in what was released"
    )
    replaced = certified(epsilon, adjacency="replace-one")  # two halves, which hide a little more
    assert replaced.chance_right < certified(epsilon).chance_right or epsilon == 50
    assert replaced.in_words == (
        f"what any one person's records say {meaning.shows(replaced.chance_right)} in what was "
        "released"
    )


def test_no_chance_is_without_words():
    limits = [right for right, _ in meaning.STRENGTHS]
    assert limits == sorted(limits)
    assert limits[-1] == 1
    assert len({meaning.shows(limit) for limit in limits}) == len(limits)
    assert meaning.shows(1.0 + 1e-12) == meaning.STRENGTHS[-1][1]


def test_nothing_is_said_to_protect_where_nothing_does():
    open_one = certified(0.1, private=False)
    assert open_one.chance_right == 1.0
    assert open_one.in_words.startswith("nobody is protected")
    assert open_one.warnings == []  # NOT PRIVATE says more
    text = str(open_one)
    assert "Guarantee:" not in text
    assert "With private noise it would be differential privacy" in text
    assert "With private noise, an attack" in text


@given(st.floats(1e-3, 100.0))
def test_a_factor_is_never_less_than_it_is(epsilon):
    said = meaning.factor_in_words(epsilon)
    power = re.fullmatch(r"10 to the power of (\d+)", said)
    number = 10.0 ** int(power[1]) if power else float(said.replace(",", ""))
    assert math.exp(epsilon) <= number * (1 + 1e-9)
    assert number <= (10 if power else 1.1) * math.exp(epsilon) + 0.01


def test_a_factor_that_is_whole_is_said_as_it_is():
    for factor in range(2, 10):  # of which some are a little more as floats, as e^log(3) is
        assert meaning.factor_in_words(math.log(factor)) == f"{factor}"


@given(st.floats(1e-15, 0.999))
def test_a_chance_is_never_less_than_it_is(delta):
    said = meaning.chance_in_words(delta)
    if said.startswith("1 in "):
        number = 1 / float(said[5:].replace(",", ""))
    else:
        number = float(said[:-1]) / 100 if said.endswith("%") else float(said)
    assert delta <= number * (1 + 1e-5)
    assert number <= 1.12 * delta


def test_chances_as_people_say_them():
    assert [meaning.chance_in_words(d) for d in (0.5, 0.0015, 1e-5, 1e-12)] == [
        "50%", "1 in 660", "1 in 100,000", "1e-12"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("epsilon", "delta", "people", "warned"),
    [
        (1, 1e-5, 6000, ""),
        (8, 1e-5, 6000, ""),
        (8.01, 1e-5, 6000, "epsilon"),
        (1, 1 / 60_000, 6000, ""),
        (1, 1.01 / 60_000, 6000, "delta"),
        (1, 0.01, None, ""),  # any table has ten records
        (1, 0.011, None, "delta"),
        (1, 0.011, 3.0, "delta"),  # a noisy number of people
        (14, 0.5, 100, "epsilon delta"),
        (1, 0, 10**9, ""),
    ],
)
def test_warnings_are_due_above_their_limits(epsilon, delta, people, warned):
    found = meaning.weaknesses(epsilon, delta, people)
    assert " ".join(said.split()[0] for said in found) == warned


def test_a_warning_says_what_would_do():
    (said,) = meaning.weaknesses(1, 1e-3, 600)
    assert "about 600 people" in said
    advised = float(re.search(r"use at most (\S+)$", said)[1])
    assert meaning.weaknesses(1, advised, 600) == []
    (said,) = meaning.weaknesses(1, 1e-3, 600, at_most=True)
    assert "up to 600 people" in said


def test_a_certificate_carries_its_warnings():
    assert certified(1.0, 1e-5).warnings == []
    large, lax = certified(14.0, 1e-5), certified(1.0, 0.5)
    assert "WARNING: epsilon = 14 is above 8" in str(large)
    assert "WARNING: delta = 0.5 is large for any number of people" in str(lax)
    counted = certified(1.0, 1e-3, **{"people per time (declared public)": [300, 300]})
    assert "about 600 people" in counted.warnings[0]
    odd = certified(1.0, 1e-3, **{"people per time (declared public)": ["many"]})
    assert odd.warnings == []


def test_what_a_fit_found_of_its_delta_stays_on_the_certificate():
    ledger = Ledger(1.0, 1e-3, "add-remove")
    ledger.spend(LaplaceCounts(1.0, "people per cell"))
    (said,) = meaning.weaknesses(1.0, 1e-3, 600)
    found = {CAUTION: said}
    made = certify(ledger, public_inputs={}, private_noise=True, found=found)
    again = Certificate.from_dict(made.to_dict())
    assert again.warnings == [said]
    assert str(again).count("large for about 600 people") == 1
    assert f"{CAUTION}:" not in str(again)


@pytest.mark.parametrize(
    ("public", "said"),
    [
        ({}, ""),
        ({MOST_RECORDS: 1}, "at most one record"),  # of an old certificate
        (
            {MOST_RECORDS: 1, STATED: [EVERY_ROW]},
            "at most one record: stated by the steward, not checked",
        ),
        (
            {MOST_RECORDS: 1, CHECKED: [BY_PERSON]},
            "at most one record: checked, by the column that says whose they are",
        ),
        (
            {MOST_RECORDS: 3, CHECKED: [BY_PERSON]},
            "at most 3 records, each in a time bin of its own: checked, by the column that says "
            "whose they are",
        ),
    ],
)
def test_who_says_how_many_records_a_person_has(public, said):
    assert records_in_words(public) == said
    text = str(certified(1.0, **public))
    assert f"A person has {said}." in text if said else "A person has" not in text


def test_what_was_checked_is_a_list_of_lines():
    values = certified(1.0, **{MOST_RECORDS: 1, CHECKED: [BY_PERSON]}).to_dict()
    assert Certificate.from_dict(values).public_inputs[CHECKED] == [BY_PERSON]
    for bad in ("yes", [1], ["two\nlines"]):
        values["public_inputs"] = {CHECKED: bad}
        with pytest.raises(Exception, match="public_inputs cannot be read"):
            Certificate.from_dict(values)
