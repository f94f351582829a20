"""Plots: they show what was released, on the axes that they are given, and return them."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

import privtraj as pt
from mixed_clinic import mixed_model
from privtraj.base.errors import InputError
from privtraj.plot import save_figure
from privtraj.report.labels import COLOURS, OTHERS_COLOUR
from privtraj.report.maps import draw_map

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


def test_a_number_is_drawn_by_the_values_of_a_category(axes):
    model = mixed_model()
    assert pt.plot.marginals(model, "hb", by="smoker", ax=axes) is axes
    no, yes = (np.nanmean(line.get_ydata()) for line in axes.lines)
    assert yes - no == pytest.approx(3, abs=0.3)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["yes", "no"]
    with pytest.raises(InputError, match="'weight' is not a category"):
        pt.plot.marginals(model, "hb", by="weight")


def test_people_are_coloured_by_a_category():
    ax = pt.plot.paths(mixed_model(), "hb", "weight", by="sex", n=60)
    drawn = {to_hex(line.get_color()).upper() for line in ax.lines}
    assert drawn == set(COLOURS[:2])
    assert len(ax.lines) == 60


def test_a_domain_is_behind_the_people(axes):
    triangle = {"type": "Polygon", "coordinates": [[[0, 0], [90, 0], [90, 90], [0, 0]]]}
    axes.set(xlim=(0, 60), ylim=(0, 60))
    draw_map(axes, _paths(["x", "y"]), "x", "y", pt.Domain.polygon(triangle, "x", "y"))
    (area,) = axes.patches
    assert area.get_path().contains_point((50, 20))
    assert not area.get_path().contains_point((20, 50))
    assert axes.get_xlim() == (0, 60)


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


@pytest.mark.slow
def test_matplotlib_is_not_loaded_before_something_is_drawn():
    code = "import sys, privtraj as pt; pt.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Categories ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    return mixed_model(people=100)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_shares_are_stacked_in_the_order_of_values(mixed):
    paths = mixed.sample(400, seed=1)
    axes = pt.plot.marginals(paths, "stage")
    assert legend(axes) == ["IV", "III", "II", "I"]
    assert axes.get_ylim() == (0, 1)
    layers = axes.collections
    top = layers[0].get_paths()[0].vertices
    level = paths.values[:, :, paths.features.index("stage")]
    for k, time in enumerate(paths.numeric_times):
        highest = top[np.isclose(top[:, 0], time), 1].max()
        assert highest == pytest.approx(np.mean(level[:, k] == 0), abs=1e-9)
    colours = [matplotlib.colors.to_hex(layer.get_facecolor()[0]).upper() for layer in layers]
    assert colours == list(COLOURS[:4])


def test_a_model_is_sampled_and_rare_values_are_one(mixed):
    axes = pt.plot.marginals(mixed, "code")
    assert legend(axes)[:2] == ["(missing)", "14 others"]
    assert matplotlib.colors.to_hex(axes.collections[7].get_facecolor()[0]) == OTHERS_COLOUR


def test_marginals_draw_each_column_as_its_kind_says(mixed):
    panels = pt.plot.marginals(mixed, ["stage", "hb", "born"])
    labels = [panel.get_ylabel() for panel in panels]
    assert labels == ["share of people by stage", "hb", "born"]
    assert legend(panels[1])[-1] == "median"
    years = [int(text.get_text()) for text in panels[2].get_yticklabels()]
    assert all(1940 <= year <= 2020 for year in years)
    median = next(line for line in panels[1].lines if line.get_label() == "median")
    assert np.isfinite(median.get_ydata()).all()


def test_paths_are_drawn_over_numbers_by_default(mixed):
    axes = pt.plot.paths(mixed, n=5)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hb", "weight")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda m: pt.plot.marginals(m, "colour"), "there is no 'colour' to draw"),
        (lambda m: pt.plot.paths(m, "hb", "stage"), "'stage' is a category"),
        (lambda m: pt.plot.marginals("model"), "takes the paths of a sample, or a model"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(mixed, draw, words):
    with pytest.raises(InputError, match=words):
        draw(mixed)


@pytest.mark.parametrize("span", [50.0, 3e4, 5e5, 2e7, 3e9])
def test_marks_of_dates_are_few(span):
    paths = pt.Paths(np.random.default_rng(0).random((3, 9, 2)), 1.6e9 + np.linspace(0, span, 9),
                     ("a", "b"), "when", True)  # fmt: skip
    over = pt.plot.paths(paths, "when", "a")
    bar = pt.plot.paths(paths, "a", "b").figure.axes[1]
    for axes, axis in ((over, over.xaxis), (bar, bar.yaxis)):
        axes.figure.canvas.draw()
        low, high = sorted(axis.get_view_interval())
        seen = [mark for mark in axis.get_majorticklocs() if low <= mark <= high]
        assert 2 <= len(seen) <= 7


def test_a_feature_of_dates_is_marked_by_dates():
    born = pt.Date("1940-01-01", "2020-12-31", "born")
    values = np.random.default_rng(0).uniform(born.low, born.high, (5, 4, 1))
    paths = pt.Paths(values, np.arange(4.0), ("born",), "year", False, columns=(born,))
    axes = pt.plot.paths(paths)
    axes.figure.canvas.draw()
    years = [int(text.get_text()) for text in axes.get_yticklabels()]
    assert all(1930 <= year <= 2030 for year in years)


def test_lines_of_an_angle_are_broken_where_it_begins_again():
    hour = pt.Angle(24.0, "hour")
    values = np.array([[[22.0, 0.1], [23.5, 0.2], [1.0, 0.3], [2.0, 0.4]]])
    columns = (hour, pt.Number(0, 1, "y"))
    paths = pt.Paths(values, np.arange(4.0), ("hour", "y"), "day", False, columns=columns)
    (line,) = pt.plot.paths(paths, "day", "hour").lines
    np.testing.assert_array_equal(line.get_ydata(), [22.0, 23.5, np.nan, 1.0, 2.0])
    (pieces,) = pt.plot.paths(paths, "y", "hour").collections
    assert [np.ptp(piece[:, 1]) for piece in pieces.get_segments()] == [1.5, 1.0]


# Places ----------------------------------------------------------------------------------------


def trips(features):
    values = np.random.default_rng(0).uniform([-9, 37], [0, 43], (20, 6, 2))
    return pt.Paths(values, np.arange(6.0), features, "hour", False)


def test_plots_of_places_stand_on_their_map():
    shown = pt.plot.paths(trips(("lon", "lat")))
    assert len(shown.patches) == 1
    assert shown.get_aspect() == pytest.approx(1 / np.cos(np.radians(40)), rel=0.02)
    plane = pt.plot.paths(trips(("x", "y")))
    assert len(plane.patches) == 0
    assert plane.get_aspect() == 1
    over_time = pt.plot.paths(trips(("lon", "lat")), "hour", "lat")
    assert len(over_time.patches) == 0


# Figures of files ------------------------------------------------------------------------------


def test_saving_refuses_to_overwrite_and_unknown_formats(tmp_path, axes):
    (tmp_path / "f.png").write_text("precious")
    with pytest.raises(InputError, match="already exists"):
        save_figure(axes.figure, tmp_path / "f.png")
    with pytest.raises(InputError, match="cannot be saved"):
        save_figure(axes.figure, tmp_path / "f.xyz")
    assert (tmp_path / "f.png").read_text() == "precious"
    save_figure(axes.figure, tmp_path / "f.png", force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["f.png"]
    assert (tmp_path / "f.png").stat().st_size > 1000
