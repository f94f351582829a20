"""Plots of categories: shares over time, and who goes from which value to which."""

import matplotlib
import numpy as np
import pytest

import privtraj as pt
from mixed_clinic import mixed_model
from privtraj.base.errors import InputError
from privtraj.report.levels import COLOURS, OTHERS_COLOUR

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    return mixed_model(people=100)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_shares_are_stacked_in_the_order_of_values(model):
    paths = model.sample(400, seed=1)
    axes = pt.plot.shares(paths, "stage")
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


def test_a_model_is_sampled_and_rare_values_are_one(model):
    axes = pt.plot.shares(model, "code")
    assert legend(axes)[:2] == ["(missing)", "14 others"]
    assert matplotlib.colors.to_hex(axes.collections[7].get_facecolor()[0]) == OTHERS_COLOUR


def test_flows_have_bars_at_three_times_and_ribbons_between(model):
    axes = pt.plot.flows(model, "stage")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2"]
    assert len(axes.patches) == 3 * 4
    assert len(axes.collections) >= 2 * 4
    heights = np.array([bar.get_height() for bar in axes.patches]).reshape(4, 3)
    np.testing.assert_allclose(heights.sum(axis=0), 1)
    two = pt.plot.flows(model, "smoker", times=[0.0, 0.5])
    assert [text.get_text() for text in two.get_xticklabels()] == ["0", "0.5"]
    of_paths = pt.plot.flows(model.sample(50, [2.0, 0.0, 0.5, 1.0], seed=0), "smoker")
    assert [text.get_text() for text in of_paths.get_xticklabels()] == ["0", "1", "2"]


def test_marginals_draw_each_column_as_its_kind_says(model):
    panels = pt.plot.marginals(model, ["stage", "hb", "born"])
    labels = [panel.get_ylabel() for panel in panels]
    assert labels == ["share of people by stage", "hb", "born"]
    assert legend(panels[1])[-1] == "median"
    years = [int(text.get_text()) for text in panels[2].get_yticklabels()]
    assert all(1940 <= year <= 2020 for year in years)
    median = next(line for line in panels[1].lines if line.get_label() == "median")
    assert np.isfinite(median.get_ydata()).all()


def test_paths_are_drawn_over_numbers_by_default(model):
    axes = pt.plot.paths(model, n=5)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hb", "weight")


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda m: pt.plot.shares(m, "hb"), "'hb' is no category"),
        (lambda m: pt.plot.flows(m, "colour"), "there is no 'colour' to draw"),
        (lambda m: pt.plot.paths(m, "hb", "stage"), "'stage' is a category"),
        (lambda m: pt.plot.flows(m.sample(5), "stage", times=[1]), "times of their own"),
        (lambda m: pt.plot.flows("model", "stage"), "takes the paths of a sample, or a model"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(model, draw, words):
    with pytest.raises(InputError, match=words):
        draw(model)
