"""What a page says of worth: over all, at each time, in groups, and how sure medians are."""

import re
from dataclasses import replace

import numpy as np
import pytest

import privtraj as pt
from privtraj.assess import quality as estimates
from privtraj.assess.common import Estimate
from privtraj.assess.quality import Group, Quality
from privtraj.base.errors import about
from privtraj.report.page import report
from privtraj.report.worth import half_width, is_lost, worth_tables, worth_verdicts

TIMES = (0.0, 1.0, 2.0)


def quality(*people, or_more=False, names=("x", "y")):
    each = tuple(Estimate(n, n / 4, 2.5 * n) for n in people)
    whole = float(np.mean(people))
    return Quality(
        Estimate(whole, whole / 4, 2.5 * whole, or_more),
        TIMES[: len(people)],
        each,
        (Group("sex", "F", 0.4, Estimate(2.0, 1.0, 4.0)),),
        {name: tuple(0.5 for _ in people) for name in names},
        {"sex": ((0.031, 0.031),) * len(people)},
        0.14,
        3,
    )


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    snapshots = pt.Snapshots.from_arrays(
        rng.uniform(0, 2, 600), rng.normal(0.5, 0.1, (600, 2)), bounds=[(0, 1)] * 2,
        features=["x", "y"], time_range=(0, 2),
    )  # fmt: skip
    return pt.TrajectorySynthesizer(8.0, 1e-5).fit(snapshots)


def page_with(model, found, monkeypatch):
    monkeypatch.setattr(estimates, "quality_of", lambda model, progress=None: found)
    return report(model).html()


@pytest.mark.parametrize(
    ("people", "grades"),
    [
        ((80, 90, 100), ["good", "good"]),
        ((8, 10, 60), ["good", "look closer"]),
        ((2, 3, 80), ["good", "poor"]),
        ((2, 3, 4), ["poor", "poor"]),
    ],
)
def test_grades_follow_worth_over_all_and_at_the_worst_time(model, people, grades):
    assert [v.grade for v in worth_verdicts(model, quality(*people))] == grades


def test_times_and_groups_that_are_lost_are_marked(model):
    table = worth_tables(model, quality(3, 80, 90))
    assert [row[0] for row in table["times"]] == ["0", "1", "2"]
    assert [row[3] for row in table["times"]] == [True, False, False]
    assert table["groups"][0][0] == "sex: F"
    assert table["groups"][0][3]
    assert table["shares"] == [("sex", "3")]
    assert is_lost(Estimate(10, 2, 20), 50)  # a quarter of what others are worth
    assert not is_lost(Estimate(20, 5, 40), 50)


def test_the_page_says_it_without_false_precision(model, monkeypatch):
    html = page_with(model, quality(51.3, 80.2, 63.9), monkeypatch)
    text = " ".join(re.sub("<[^>]+>", " ", html).split())
    assert "≈ 60" in text
    assert "about 60 people per time" in text
    assert "15 to 150 in nine cases of ten" in text
    assert "51.3" not in text
    assert 'class="sure"' in html
    assert "a correlation is within 0.14" in text


def test_as_good_as_can_be_told(model, monkeypatch):
    html = page_with(model, quality(400, 400, 400, or_more=True), monkeypatch)
    assert "≈ 400 or more" in html


def test_a_model_without_an_estimate_says_nothing_of_it(model, monkeypatch):
    html = page_with(model, None, monkeypatch)
    assert "Worth of positions" not in html
    assert "nine cases of ten" not in html
    assert worth_verdicts(model, None) == []
    assert worth_tables(model, None) is None


def test_bands_are_read_between_times():
    found = replace(quality(9, 9, 9), medians={"x": (1.0, 3.0, 3.0)})
    np.testing.assert_allclose(half_width(found, "x", np.array([0.0, 0.5, 2.0])), [1.0, 2.0, 3.0])
    assert half_width(found, "z", np.array([0.0])) is None
    assert half_width(None, "x", np.array([0.0])) is None


@pytest.mark.parametrize(
    ("people", "said"),
    [(0.4, "0"), (3.4, "3"), (9.7, "10"), (13, "15"), (51.3, "50"), (137, "150"), (480, "500")],
)
def test_numbers_of_people_are_round(people, said):
    assert about(people) == said
