"""Checks of a released model: worth, guarantee, ranges, people, false detail, and their words."""

import math
import re
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import privtraj as pt
from mixed_clinic import COLUMNS, mixed_model
from privtraj.assess import quality as estimates
from privtraj.assess.ask import Answer
from privtraj.assess.common import Estimate
from privtraj.assess.groups import Group
from privtraj.assess.quality import Quality
from privtraj.assess.questions import Columns
from privtraj.base.errors import about
from privtraj.report.checks import (
    checks,
    fewest_told,
    gap,
    graded,
    small_groups,
    summary,
    worth_tables,
)
from privtraj.report.labels import percent, round_number, whole_number
from privtraj.report.page import report, settings
from privtraj.report.people import page_data, sampled

TIMES = (0.0, 10.0, 20.0)


@pytest.fixture(scope="module")
def model(reports):
    return reports("plain")[0]


def grades(model, quality=None, **diagnostics):
    changed = replace(model, diagnostics={**model.diagnostics, **diagnostics})
    return {c.name: c for c in checks(changed, sampled(changed).people, quality)}


# Grades and words ------------------------------------------------------------------------------


def test_grades_follow_the_limits():
    three = ["good", "good", "look closer", "look closer", "poor"]
    assert [graded(v, 0.1, 0.5) for v in (0.05, 0.1, 0.3, 0.5, 0.6)] == three
    assert [graded(v, 50, 5) for v in (60, 50, 10, 5, 4)] == three


@pytest.mark.parametrize(
    ("measure", "name", "key", "values"),
    [
        ("counts", "People in cells that stand out", "significant_share", ([0.9], [0.6], [0.1])),
        ("counts", "People per window of time", "people_per_time", ([900.0], [200.0], [20.0])),
        ("gradients", "Noise against bandwidth", "noise_over_bandwidth", (0.1, 0.4, 0.9)),
        ("gradients", "Effective temperature", "effective_temperature", (1.2, 4.0, 30.0)),
        ("gradients", "Sinkhorn error", "marginal_error", (0.001, 0.1, 0.5)),
    ],
)
def test_checks_follow_the_diagnostics(made_model, measure, name, key, values):
    model = made_model(measure=measure)
    found = [grades(model, **{key: value})[name].verdict for value in values]
    assert found == ["good", "look closer", "poor"]


def test_one_thin_time_is_worth_a_look(model):
    thin = grades(model, people_per_time=[900.0, 900, 900, 900, 40])
    assert thin["People per window of time"].verdict == "look closer"


def test_what_is_clipped_is_a_setting_of_gradients(made_model):
    made = dict(settings(made_model(measure="gradients"))["made"])
    assert made["clipping"].startswith("10\N{NO-BREAK SPACE}% of the model's own people")
    assert "clipping" not in dict(settings(made_model())["made"])


def test_a_model_without_diagnostics_still_has_checks(made_model):
    bare = replace(made_model(), diagnostics={}, settings={})
    assert set(grades(bare)) == {
        "Certainty of an attacker",
        "Delta against the people",
        "People at the bounds",
        "Blur of one person",
        "Sinkhorn error",
    }


def test_diagnostics_that_were_not_finite_are_passed_over(model):
    nan = float("nan")
    found = grades(model, significant_share=[nan, 0.9], people_per_time=[nan])
    assert "91" not in found["People in cells that stand out"].value
    assert "People per window of time" not in found


def test_the_summary_counts(model):
    good = [c for c in grades(model).values() if c.verdict == "good"]
    assert summary(good) == f"All {len(good)} checks are good."
    poor = replace(good[0], verdict="poor")
    assert summary([*good[1:], poor]).startswith(f"Of {len(good)} checks, poor: {poor.name} (")


def test_numbers_as_people_write_them():
    assert [percent(v) for v in (0, 0.0002, 0.0123, 0.5)] == [
        "0\xa0%", "less than 0.1\xa0%", "1.2\xa0%", "50\xa0%"
    ]  # fmt: skip
    assert [round_number(123456), round_number(3.14159)] == ["123\u202f000", "3.1"]
    assert whole_number(123456.4) == "123\u202f456"
    assert [about(n) for n in (0.4, 9.7, 13, 51.3, 137)] == ["0", "10", "15", "50", "150"]


def test_curves_are_not_coupled_for_a_check():
    model = mixed_model({name: COLUMNS[name] for name in ("weight", "stage")}, people=80)
    assert model.curves
    assert "Sinkhorn error" not in grades(model)


# Worth -----------------------------------------------------------------------------------------


def quality(*people, or_more=False):
    each = tuple(Estimate(n, n / 4, 2.5 * n) for n in people)
    whole = float(np.mean(people))
    return Quality(
        Estimate(whole, whole / 4, 2.5 * whole, or_more),
        TIMES[: len(people)],
        each,
        (
            Group("sex", "F", 0.4, 0.03, 1.2, "numbers"),
            Group("sex", "M", 0.6, 0.03, 0.3, ""),
            Group("code", "a", 0.048, 0.04, 0.3, ""),
        ),
        3,
    )


class Known:
    """Answers of which the values are known, and the intervals as wide as is said."""

    def __init__(self, model, correlation=0.8, half=0.14):
        self.columns, self.row = Columns(model), {"value": correlation, "people": 90, "lost": ""}
        self.half = half

    def ask(self, asked):
        value = self.row["value"]
        row = self.row | {"low": value - self.half, "high": value + self.half}
        return Answer("", "", tuple(row for _ in product(*(key.labels for key in asked.keys))))


@pytest.mark.parametrize(
    ("people", "expected"),
    [
        ((80, 90, 100), ["good", "good"]),
        ((8, 10, 60), ["good", "look closer"]),
        ((2, 3, 80), ["good", "poor"]),
        ((2, 3, 4), ["poor", "poor"]),
    ],
)
def test_grades_follow_worth_over_all_and_at_the_worst_time(model, people, expected):
    found = grades(model, quality(*people))
    assert [found[n].verdict for n in ("Worth", "The time that is known worst")] == expected


def test_times_and_groups_that_are_lost_are_marked(model):
    table = worth_tables(model, quality(3, 80, 90), Known(model))
    assert [row[0] for row in table["times"]] == ["0", "10", "20"]
    assert [row[3] for row in table["times"]] == [True, False, False]
    assert table["groups"][0][0] == "sex: F"
    assert [row[3] for row in table["groups"]] == [True, False, False]
    assert table["correlations"] == [("height, weight", "0.66 to 0.94")]
    fewer = worth_tables(model, quality(10, 20, 90), Known(model, half=0.9))
    assert [row[3] for row in fewer["times"]] == [False, False, False]  # a quarter of the mean, 40
    assert fewer["correlations"] == []  # an interval around 0 says nothing
    assert worth_tables(model, None, Known(model)) is None


def test_the_page_says_it_without_false_precision(model, monkeypatch):
    def page_with(found):
        monkeypatch.setattr(estimates, "quality_of", lambda model, progress=None: found)
        html = report(model).html()
        return " ".join(re.sub("<[^>]+>", " ", html[: html.index('id="data"')]).split())

    text = page_with(quality(51.3, 80.2, 63.9, or_more=True))
    assert "≈ 60 or more" in text
    assert "15 to 150 in nine cases of ten" in text
    assert "51.3" not in text
    without = page_with(None)
    assert "Worth of numbers" not in without
    assert "15 to 150" not in without


def test_bands_of_medians_are_as_wide_as_answers_in_shares_of_the_box(model):
    shown = sampled(model)
    height, weight = page_data(model, shown, Known(model, 100.0, half=5.0))["doubt"]
    sides = np.ptp(shown.bounds, axis=1)
    np.testing.assert_allclose(height, 5 / sides[0], atol=1e-5)
    np.testing.assert_allclose(weight, 5 / sides[1], atol=1e-5)
    wide = page_data(model, shown, Known(model, 100.0, half=60.0))["doubt"]
    assert wide == [None, None]  # wider than people themselves: it says nothing


# Ranges that miss the data ---------------------------------------------------------------------


def fitted(times, points, bounds, time_range, **settings):
    snapshots = pt.Snapshots.from_arrays(times, points, bounds=bounds, time_range=time_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pt.TrajectorySynthesizer(1.0, 1e-5, seed=0, **settings).fit(snapshots)


@pytest.fixture(scope="module")
def people():
    """Of 3,000: time in years, height in metres, weight in kilograms."""
    rng = np.random.default_rng(0)
    n = 3000
    return 10 * rng.random(n), rng.normal(1.7, 0.1, n), rng.normal(70, 12, n)


# At the bounds --------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_unit_mistake_is_poor_and_named(people):
    times, height, weight = people
    wrong = grades(fitted(times, np.c_[height, weight], [(40, 210), (1, 140)], (0, 10)))
    bounds = wrong["People at the bounds"]
    assert bounds.verdict == "poor"
    assert "lower bound of 'x1'" in bounds.value
    assert "the unit is another one" in bounds.sentence
    right = grades(fitted(times, np.c_[100 * height, weight], [(40, 210), (1, 140)], (0, 10)))
    assert right["People at the bounds"].verdict == "good"
    assert right["Range of time"].verdict == "good"


def test_a_coarse_model_shows_it_too(people):
    """With four cells a side, people at a bound fill a quarter of the box."""
    times, height, _ = people
    model = fitted(times, height, [(40, 210)], (0, 10), cells=4)
    assert grades(model)["People at the bounds"].verdict == "poor"


# The range of time ----------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("unit", "time_range", "where"),
    [(365.25, (0, 10), "at the end of"), (1.0, (0, 1000), "at the start of")],
    ids=["days for years", "much too wide"],
)
def test_a_time_range_that_misses_the_data_is_named_as_the_cause(people, unit, time_range, where):
    times, height, _ = people
    found = grades(fitted(unit * times, height, [(1, 2.5)], time_range))
    assert found["Range of time"].verdict == "poor"
    assert f"counted {where} the range" in found["Range of time"].sentence
    assert "More people or budget would not help" in found["Range of time"].sentence
    crowd = found["People per window of time"]
    assert "First look at the range of time" in crowd.sentence
    assert "more people" not in crowd.sentence


def test_a_fit_that_buys_little_names_the_range_of_time(people):
    times, height, weight = people
    snapshots = pt.Snapshots.from_arrays(
        times * 365.25, np.c_[height, weight], bounds=[(1, 2.5), (1, 140)], time_range=(0, 10)
    )
    with pytest.warns(pt.LowBudgetWarning, match="one window of time holds"):
        pt.TrajectorySynthesizer(0.3, 1e-5, seed=0, windows=8).fit(snapshots)


# Gaps between cells ---------------------------------------------------------------------------


def test_smooth_people_have_no_gaps_and_people_in_the_middle_of_cells_do():
    rng = np.random.default_rng(3)
    smooth = np.clip(rng.normal(0.5, 0.12, (4000, 3, 1)), 0, 1)
    sides = np.full(3, 0.05)
    assert gap(smooth, sides) < 0.06  # a deviation is 0.008
    inner = (np.floor(smooth / 0.05) + 0.5 + 0.3 * (rng.random(smooth.shape) - 0.5)) * 0.05
    assert gap(inner, sides) == 1
    half = np.where(rng.random(smooth.shape) < 0.5, smooth, inner)
    assert gap(half, sides) == pytest.approx(0.5, abs=0.06)


def test_a_model_with_gaps_is_not_called_good(made_model):
    """Particles in the middle half of their cells of a tenth."""
    model = made_model(particles=400, cell_side=[0.1] * 5, people_middles=[0.0, 5, 10, 15, 20.0])
    cells = np.floor(model.particles / 0.1)
    inner = (cells + 0.5 + 0.5 * (model.particles / 0.1 - cells - 0.5)) * 0.1
    tight = np.full(5, 1e-3)
    assert grades(replace(model, bandwidth=tight))["Gaps between cells"].verdict == "good"
    gaps = grades(replace(model, particles=inner, bandwidth=tight))["Gaps between cells"]
    assert gaps.verdict == "look closer"  # between the times people cross the borders


# Small groups ---------------------------------------------------------------------------------


def test_noise_reaches_the_fewest_that_are_told_as_often_as_it_says():
    """P(discrete Laplace >= n) = e^(-epsilon n) / (1 + e^-epsilon), at most the bound used."""
    epsilon, cells = 0.8, 20_000
    fewest = fewest_told(epsilon, cells)
    assert cells * math.exp(-epsilon * fewest) / 2 == pytest.approx(0.05)
    rng = np.random.default_rng(4)
    p = 1 - math.exp(-epsilon)
    noise = rng.geometric(p, (200, cells)) - rng.geometric(p, (200, cells))
    # about 8 cells of 200 times 20,000 are expected; more than 30 have a chance below 1e-8
    assert (noise >= fewest).sum() < 30


@pytest.mark.parametrize(("extra", "share"), [(4, 0.02), (60, 0.0)])
def test_only_groups_that_noise_may_have_made_are_counted(extra, share):
    rng = np.random.default_rng(5)
    m = 200
    cloud = 0.3 + 0.05 * rng.random((1, m, 2))
    cloud[:, :extra] = 0.9
    found = small_groups(cloud, np.full((1, m), 1 / m), np.array([0.05]), np.array([0.025]))
    assert found == pytest.approx([share])


def test_a_model_that_shows_false_groups_is_not_called_good(made_model):
    model = made_model(particles=200, cell_side=[0.1] * 5)
    model = replace(model, settings={**model.settings, "cells_per_side": 10})
    assert grades(model)["Small groups"].verdict == "good"
    spoiled = model.particles.copy()
    spoiled[:, :4] = [0.05, 0.95]  # as many as 10 of 500 people
    small = grades(replace(model, particles=spoiled))["Small groups"]
    assert small.verdict == "look closer"
    spoiled[:, :60] = [0.05, 0.95]  # as many as 150, which noise does not make
    assert grades(replace(model, particles=spoiled))["Small groups"].verdict == "good"
