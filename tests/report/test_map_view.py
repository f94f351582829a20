"""Pictures of longitude and latitude: the map behind them, ways in kilometres, proportions."""

import base64

import numpy as np
import pytest
from matplotlib.figure import Figure

import privtraj as pt
from privtraj.base.space import from_unit
from privtraj.columns.precision import kilometres
from privtraj.model.paths import Paths
from privtraj.report.figures import overview
from privtraj.report.map_view import SEA, backdrop, draw_backdrop, two_digits, ways, window
from privtraj.report.page import report
from privtraj.report.page_data import sampled

EUROPE = np.array([[-10.0, 30.0], [36.0, 60.0]])


@pytest.fixture(scope="module")
def model(made_model):
    return made_model(features=("lon", "lat"), bounds=EUROPE, dates=True, times=4)


def test_a_window_holds_the_box_and_is_wide_enough_for_any_picture():
    for bounds in (
        EUROPE,
        np.array([[13.0, 13.1], [52.0, 53.0]]),
        np.array([[0.0, 9.0], [5.0, 6.0]]),
    ):
        west, east, south, north = window(bounds)
        assert west <= bounds[0, 0] < bounds[0, 1] <= east
        assert south <= bounds[1, 0] < bounds[1, 1] <= north
        shrink = np.cos(np.radians(bounds[1].mean()))
        sides = (east - west) * shrink, north - south
        assert sides[0] == pytest.approx(sides[1], rel=1e-6) or north == 90
        assert max(sides) >= 2 * max(np.ptp(bounds[0]) * shrink, np.ptp(bounds[1])) - 1e-9
    assert window(np.array([[-180.0, 180.0], [-80.0, 80.0]])) == (-180, 180, -90, 90)


def test_a_page_holds_the_outlines_of_its_window(model):
    made = backdrop(sampled(model))
    assert made["axes"] == (0, 1)
    for kind in ("land", "borders"):
        points = np.frombuffer(base64.b64decode(made[kind]["points"]), "<u2")
        assert len(points) == 2 * sum(made[kind]["sizes"]) > 500
    assert len(made["land"]["points"]) < 300_000
    assert report(model).data["backdrop"] == made


def test_other_features_have_no_map(made_model):
    shown = sampled(made_model(features=("x", "y"), bounds=EUROPE))
    assert backdrop(shown) is None
    assert ways(shown, "age", False) is None
    html = report(made_model(features=("x", "y"), bounds=EUROPE)).html()
    assert "Natural Earth" not in html


def test_ways_are_kilometres_of_the_people_drawn(model):
    shown = sampled(model)
    found = ways(shown, model.time_name, True)
    places = from_unit(shown.people, shown.bounds)
    lengths = kilometres(places[:, :-1], places[:, 1:]).sum(axis=1)
    assert float(found.usual) == pytest.approx(np.median(lengths), rel=0.05)
    assert float(found.low) <= float(found.usual) <= float(found.high)
    whole = lengths.sum() / (len(lengths) * (shown.times[-1] - shown.times[0]) / 3600)
    assert float(found.speed) == pytest.approx(whole, rel=0.3)  # the median of near the mean
    assert found.unit == "km/h"
    html = report(model).html()
    assert f"the median is {found.usual} km" in html
    assert "Natural Earth" in html


def test_two_digits_are_enough():
    assert [two_digits(v) for v in (14.23, 0.3714, 1234.0, 0.0)] == ["14", "0.37", "1200", "0"]


def test_a_figure_keeps_its_limits_and_gets_land_and_sea():
    axes = Figure().add_subplot()
    axes.set(xlim=(-11, -7), ylim=(36, 42))
    draw_backdrop(axes)
    assert axes.get_xlim() == (-11, -7)
    assert axes.get_ylim() == (36, 42)
    (land,) = axes.patches
    assert land.get_path().contains_point((-8.0, 39.5))
    assert not land.get_path().contains_point((-10.5, 38.5))
    assert len(axes.collections) == 1  # borders
    assert np.allclose(axes.get_facecolor()[:3], [int(SEA[k : k + 2], 16) / 255 for k in (1, 3, 5)])


def trips(features):
    values = np.random.default_rng(0).uniform([-9, 37], [0, 43], (20, 6, 2))
    return Paths(values, np.arange(6.0), features, "hour", False)


def test_plots_of_places_stand_on_their_map():
    from matplotlib import pyplot

    shown = pt.plot.paths(trips(("lon", "lat")))
    assert len(shown.patches) == 1
    assert shown.get_aspect() == pytest.approx(1 / np.cos(np.radians(40)), rel=0.02)
    plane = pt.plot.paths(trips(("x", "y")))
    assert len(plane.patches) == 0
    assert plane.get_aspect() == 1
    over_time = pt.plot.paths(trips(("lon", "lat")), "hour", "lat")
    assert len(over_time.patches) == 0
    pyplot.close("all")


def test_the_overview_draws_places_on_their_map_wherever_they_stand(made_model):
    bounds = np.array([[0.0, 100.0], [36.0, 60.0], [-10.0, 30.0]])
    model = made_model(features=("age", "lat", "lon"), bounds=bounds, time_name="day")
    together = overview(model, model.sample(50, seed=0)).axes[3]
    assert (together.get_xlabel(), together.get_ylabel()) == ("lon", "lat")
    assert len(together.patches) == 1


def test_the_overview_shows_people_at_all_times(made_model):
    model = made_model(times=3)
    paths = model.sample(40, np.linspace(0, 20, 101), seed=0)
    dots = overview(model, paths).axes[2].collections[0]
    when = np.unique(dots.get_array())
    assert len(when) == 101
    assert len(dots.get_offsets()) == 1500
