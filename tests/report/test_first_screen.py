"""Every sentence of a report's first screen, read back and compared with the numbers.

What the numbers are is computed here again: of one randomised response, which is the worst that an
epsilon allows, an attacker is right with chance e^epsilon / (1 + e^epsilon); of Gaussian sums of
noise z with chance Phi(1 / (2 z)); at a given delta these have the epsilon that the ledger states.
"""

import math
import re
from dataclasses import replace

import pytest
from scipy.stats import norm

from privtraj.privacy.calibration import calibrate_gaussian
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.statements import (
    BY_PERSON,
    CHECKED,
    EVERY_ROW,
    MOST_RECORDS,
    PUBLIC_COUNTS,
    STATED,
)
from privtraj.report.page import report

PEOPLE = 25_000  # of the models made here: enough for the least epsilon
WORDS = {  # what each word claims of the chance of being right
    "hardly shows": (0.5, 0.55),
    "shows faintly at most": (0.55, 0.75),
    "may show": (0.75, 0.9),
    "may show clearly": (0.9, 0.99),
    "may be plain to see": (0.99, 1.0),
}
CASES = {
    "epsilon 0.1": (0.1, 1e-6, "counts"),
    "epsilon 1": (1.0, 1e-6, "counts"),
    "epsilon 8": (8.0, 1e-6, "counts"),
    "epsilon 14": (14.0, 1e-6, "counts"),
    "epsilon 50": (50.0, 1e-6, "counts"),
    "pure": (1.0, 0.0, "counts"),
    "delta 0.5": (1.0, 0.5, "counts"),
    "delta 0.001": (1.0, 1e-3, "counts"),
    "small epsilon, delta 0.5": (0.1, 0.5, "sums"),
    "sums, epsilon 1": (1.0, 1e-6, "sums"),
    "sums, epsilon 8": (8.0, 1e-6, "sums"),
    "sums, epsilon 50": (50.0, 1e-6, "sums"),
}


def ledger_of(epsilon, delta, kind, adjacency="add-remove"):
    """A budget that one release spends, and the chance of being right that it leaves."""
    ledger = Ledger(epsilon, delta, adjacency)
    if kind == "counts":  # delta is not used by them: what it stands for is the promise
        ledger.spend(LaplaceCounts(epsilon, "people per cell"))
        return ledger, 1 / (1 + math.exp(-epsilon))
    mu = calibrate_gaussian(epsilon, delta, adjacency)
    ledger.spend(GaussianSum(1 / mu, "clipped sums of a step"))
    return ledger, float(norm.cdf(mu / 2))


def first_screen(model):
    """The text of everything up to the end of the guarantee."""
    html = report(model).html()
    screen = html[html.index("<body>") : html.index("</section>")]
    text = re.sub(r"<(style|script).*?</\1>", " ", screen, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", text).replace("&nbsp;", " ").replace("&#39;", "'")
    return " ".join(text.split())


def number(pattern, text):
    return float(re.search(pattern, text)[1].replace(",", ""))


@pytest.fixture
def model_of(made_model):
    """A model with the certificate of a ledger."""

    def make(ledger, private=True, **public):
        public = {MOST_RECORDS: 1, **public}
        return replace(
            made_model(people_per_time=[PEOPLE / 5] * 5),
            certificate=certify(ledger, public_inputs=public, private_noise=private),
        ).sealed()

    return make


@pytest.mark.parametrize("case", CASES)
def test_every_claim_is_that_of_the_numbers(model_of, case):
    epsilon, delta, kind = CASES[case]
    ledger, right = ledger_of(epsilon, delta, kind)
    model = model_of(ledger)
    text = first_screen(model)
    stated = model.certificate.epsilon

    # what is promised, in words and on the dial
    (said,) = re.findall(
        r"Whether any one person is in the data (.*?) in what was released\.", text
    )
    low, high = WORDS[said]
    assert low - 1e-9 <= right <= high + 1e-9
    for pattern in (
        r"The best attacker is right about whether a given person is in the data in at most "
        r"([\d.]+) % of cases",
        r"Best attacker is right, at most ([\d.]+) %",
    ):
        assert right <= number(pattern, text) / 100 + 1e-9 <= right + 0.0011

    # what epsilon and delta are
    assert stated <= number(r"epsilon = ([\d.]+)", text) <= 1.001 * stated
    factor = re.search(r"by a factor of at most (\d[\d.,]*?|10 to the power of \d+)[,.] ", text)[1]
    power = re.fullmatch(r"10 to the power of (\d+)", factor)
    most = 10.0 ** int(power[1]) if power else float(factor.replace(",", ""))
    assert math.exp(stated) <= most * (1 + 1e-9) <= 10 * math.exp(stated) * 1.1
    chance = re.search(r"plus a chance of (\S+%|1 in [\d,]*\d)", text)
    assert bool(chance) == (delta > 0)
    if chance:
        said = chance[1]
        value = (
            float(said[:-1]) / 100 if said.endswith("%") else 1 / float(said[5:].replace(",", ""))
        )
        assert delta <= value * (1 + 1e-9) <= 1.1 * delta

    # the table of false alarms: no attack on one person finds more than e^epsilon a + delta
    rates = re.findall(r"([\d.]+) % [^%]*?([\d.]+) %", text[text.index("False alarms") :])
    assert [float(alarm) for alarm, _ in rates] == [0.1, 1, 10]
    highest = model.certificate.attacker["true_positive_rate"].values()
    for (alarm, found), least in zip(rates, highest, strict=True):
        assert least <= float(found) / 100 + 1e-9
        assert least <= math.exp(stated) * float(alarm) / 100 + delta + 1e-9

    # warnings, and checks that fail
    weak_epsilon, weak_delta = epsilon > 8, delta * PEOPLE > 0.1
    assert ("Weak guarantee" in text) == (weak_epsilon or weak_delta)
    assert ("is above 8" in text) == weak_epsilon
    assert ("is large for about 25,000 people" in text) == weak_delta
    good, all_of_them = map(int, re.search(r"Checks that are good (\d+) of (\d+)", text).groups())
    assert (good == all_of_them) == (right <= 0.75 and not weak_epsilon and not weak_delta)


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_said_that_only_a_small_epsilon_makes_true(model_of, case):
    text = first_screen(model_of(ledger_of(*CASES[case])[0])).lower()
    for word in ("almost the same", "do not exist", "private model", "protected", "safe "):
        assert word not in text, word


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 50.0])
def test_other_guarantees_have_words_of_their_own(model_of, epsilon):
    ledger, _ = ledger_of(epsilon, 1e-6, "sums", "replace-one")
    counted = model_of(ledger, **{PUBLIC_COUNTS: [520] * 5, "bin times": ["0"] * 5})
    text = first_screen(counted)
    assert "What any one person's records say, beyond their time bins, " in text
    assert "Whether any one person is in the data" not in text
    assert "Not protected whether one person is in the data, and in which time bins" in text
    plain = first_screen(model_of(ledger))
    assert "What any one person's records say " in plain
    assert "beyond their time bins" not in plain


@pytest.mark.parametrize("epsilon", [0.1, 50.0])
def test_without_private_noise_there_is_no_guarantee_at_any_epsilon(model_of, epsilon):
    text = first_screen(model_of(ledger_of(epsilon, 1e-6, "counts")[0], private=False))
    assert "NOT PRIVATE: do not release" in text
    assert "There is no guarantee" in text
    assert "Guarantee none" in text
    assert not any(word in text for word in WORDS)
    good, all_of_them = map(int, re.search(r"Checks that are good (\d+) of (\d+)", text).groups())
    assert good < all_of_them


@pytest.mark.parametrize(
    ("public", "said"),
    [
        ({}, "A person has at most one record Noise"),
        ({STATED: [EVERY_ROW]}, "at most one record: stated by the steward, not checked"),
        ({CHECKED: [BY_PERSON]}, "at most one record: checked, by the column that says whose"),
        (
            {MOST_RECORDS: 3, CHECKED: [BY_PERSON]},
            "at most 3 records, each in a time bin of its own: checked",
        ),
    ],
)
def test_who_says_how_many_records_a_person_has(model_of, public, said):
    assert said in first_screen(model_of(ledger_of(1.0, 1e-6, "counts")[0], **public))
