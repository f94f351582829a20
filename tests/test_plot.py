"""Plots: they show what was released, on the axes that they are given, and return them."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

import privtraj as pt
from privtraj.base.errors import InputError

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    clinic = pt.datasets.growth_clinic(2000, seed=0)
    snapshots = pt.Snapshots.from_table(
        clinic,
        time="age",
        time_range=(0, 20),
        bins=6,
        bounds={"height": (40, 210), "weight": (1, 140)},
    )
    return pt.TrajectorySynthesizer(epsilon=2.0, delta=1e-5, seed=0).fit(snapshots)


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def _paths(features, datetime=False, people=7, times=5):
    values = np.random.default_rng(0).random((people, times, len(features)))
    at = np.linspace(0, 3e7, times) + (1.6e9 if datetime else 0)
    return pt.Paths(values, at, tuple(features), "when", datetime)


def test_marginals_have_a_panel_per_feature_with_the_quantiles_of_the_people(model):
    paths = model.sample(500, seed=1)
    panels = pt.plot.marginals(paths)
    assert [panel.get_ylabel() for panel in panels] == ["height", "weight"]
    for k, panel in enumerate(panels):
        (median,) = [line for line in panel.lines if line.get_label() == "median"]
        np.testing.assert_allclose(median.get_ydata(), np.median(paths.values[:, :, k], axis=0))


def test_one_feature_gives_one_axes_and_the_ones_given_are_used(model, axes):
    assert pt.plot.marginals(model, "weight", ax=axes) is axes
    assert axes.get_ylabel() == "weight"
    assert axes.get_xlabel() == "age"


def test_a_model_is_sampled_the_same_way_each_time(model):
    first, again = (pt.plot.marginals(model, "height").lines[-1].get_ydata() for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_features_need_as_many_axes(model, axes):
    with pytest.raises(InputError, match="2 features need as many axes"):
        pt.plot.marginals(model, ax=axes)


@pytest.mark.parametrize("draw", [pt.plot.marginals, pt.plot.paths])
def test_a_name_that_nothing_has_is_refused(draw, model):
    with pytest.raises(InputError, match="no 'hight' to draw: choose among height, weight"):
        draw(model, "hight")


def test_paths_are_as_many_lines_as_asked_for_along_their_people():
    paths = _paths(["a", "b"])
    ax = pt.plot.paths(paths, n=3)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    (lines,) = ax.collections
    pieces = np.array(lines.get_segments())
    assert len(pieces) == 3 * 4
    np.testing.assert_allclose(pieces[:4, 0], paths.values[0, :-1])
    np.testing.assert_allclose(pieces[-1, 1], paths.values[-1, -1])


@pytest.mark.parametrize("datetime", [False, True])
def test_one_feature_is_drawn_over_time(datetime):
    paths = _paths(["a"], datetime)
    ax = pt.plot.paths(paths)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("when", "a")
    assert len(ax.lines) == 7
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("x", "y", "drawn"),
    [
        (None, None, ("a", "b")),
        ("c", None, ("c", "a")),
        (None, "a", ("when", "a")),
        (None, "c", ("a", "c")),
        ("when", "b", ("when", "b")),
    ],
)
def test_any_two_can_be_on_the_axes(x, y, drawn):
    ax = pt.plot.paths(_paths(["a", "b", "c"], datetime=True), x, y)
    assert (ax.get_xlabel(), ax.get_ylabel()) == drawn
    ax.figure.canvas.draw()


def test_maps_keep_their_proportions_and_others_fill_the_axes():
    assert pt.plot.paths(_paths(["x", "y"])).get_aspect() == 1
    assert pt.plot.paths(_paths(["height", "weight"])).get_aspect() == "auto"
    places = _paths(["lon", "lat"])
    north = pt.Paths(
        places.values + np.array([0, 60]), places.numeric_times, places.features, "when", False
    )
    assert pt.plot.paths(north).get_aspect() == pytest.approx(2, rel=0.05)  # 1 / cos 60


def test_the_budget_is_a_row_of_bars_that_ends_at_what_was_spent(model):
    bars = pt.plot.budget(model).patches
    assert len(bars) == len(model.certificate.ledger)
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    begins = [bar.get_x() for bar in bars]
    assert begins[0] == 0
    np.testing.assert_allclose(begins[1:], ends[:-1])
    assert ends[-1] == pytest.approx(model.certificate.epsilon)


def test_what_was_not_spent_is_a_bar_of_its_own(model):
    from dataclasses import replace

    certificate = replace(model.certificate, target_epsilon=3.0)
    ax = pt.plot.budget(certificate)
    assert ax.get_yticklabels()[-1].get_text() == "not spent"
    assert ax.patches[-1].get_width() == pytest.approx(3 - certificate.epsilon)


def test_the_trade_off_of_a_certificate_is_the_best_attack(model):
    ax = pt.plot.tradeoff(model)
    alarms, found = ax.lines[0].get_data()
    at = np.searchsorted(alarms, 0.1)
    promised = np.interp(0.1, alarms, found)
    assert promised == pytest.approx(
        model.certificate.attacker["true_positive_rate"]["0.1"], rel=0.02
    )
    assert (found >= alarms - 1e-12).all()
    assert 0 < at < len(alarms)


def test_the_trade_off_of_a_forecast_is_quality_against_epsilon():
    epsilons = np.array([0.5, 1, 2])
    forecast = SimpleNamespace(
        epsilons=epsilons, worth=40 * epsilons, low=20 * epsilons, high=60 * epsilons, epsilon=1.0
    )
    ax = pt.plot.tradeoff(forecast)
    np.testing.assert_array_equal(ax.lines[0].get_data(), [epsilons, 40 * epsilons])
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_a_guarantee_that_is_none_says_so(model):
    for draw in (pt.plot.budget, pt.plot.tradeoff):
        assert "NOT PRIVATE" in draw(model).get_title()


def test_other_things_are_refused_with_a_sentence():
    for draw in (pt.plot.paths, pt.plot.marginals, pt.plot.budget, pt.plot.tradeoff):
        with pytest.raises(InputError, match="takes"):
            draw([1, 2, 3])


@pytest.mark.slow
def test_matplotlib_is_not_loaded_before_something_is_drawn():
    code = "import sys, privtraj as pt; pt.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
