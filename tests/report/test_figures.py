"""Figures: one panel per feature, the guarantee in the title, nothing opened."""

import subprocess
import sys

import numpy as np
import pytest

from privtraj.base.errors import InputError
from privtraj.model.model import TrajectoryModel
from privtraj.model.paths import Paths
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.ledger import Ledger
from privtraj.report.figures import LARGEST_OVERVIEW, overview, save_figure


def _model(features, *, datetime=False, private=True):
    ledger = Ledger(1.5, 1e-5)
    ledger.spend(LaplaceCounts(1.0, "people per cell"))
    times, particles, d = 4, 5, len(features)
    return TrajectoryModel(
        particles=np.random.default_rng(0).random((times, particles, d)),
        weights=np.full((times, particles), 1 / particles),
        bandwidth=np.full(times, 0.02),
        diffusivity=0.1,
        numeric_times=np.linspace(0, 3e7, times) + (1.6e9 if datetime else 0),
        bounds=np.tile([0.0, 100.0], (d, 1)),
        features=tuple(features),
        time_name="when",
        datetime=datetime,
        certificate=certify(ledger, public_inputs={}, private_noise=private),
    )


def _paths(model, times=21, people=30):
    at = np.linspace(*model.numeric_times[[0, -1]], times)
    values = np.random.default_rng(1).random((people, times, len(model.features))) * 100
    return Paths(values, at, model.features, model.time_name, model.datetime)


def _names(model):
    return model.features, model.time_name, model.datetime


def _texts(figure):
    return [t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text"))]


@pytest.mark.parametrize(("features", "axes"), [(["a"], 1), (["a", "b"], 4), (["a", "b", "c"], 5)])
def test_a_panel_per_feature_and_one_for_two_together(features, axes, tmp_path):
    model = _model(features)
    figure = overview(model, _paths(model))
    assert len(figure.axes) == axes  # the colour bar is one of them
    assert [panel.get_ylabel() for panel in figure.axes[: len(features)]] == features
    save_figure(figure, tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("private", "said"), [(True, "= 1.5, $\\delta$ = 1e-5"), (False, "NOT PRI")]
)
def test_the_title_states_the_guarantee(private, said):
    model = _model(["a"], private=private)
    title = overview(model, _paths(model)).get_suptitle()
    assert said in title
    assert ("add-remove" in title) == private


def test_dates_are_drawn_as_dates(tmp_path):
    model = _model(["a", "b"], datetime=True)
    figure = overview(model, _paths(model))
    save_figure(figure, tmp_path / "f.png")
    assert any(text in ("2021", "2021-Sep", "Jan") for text in _texts(figure))
    assert "2020-09-13" in _texts(figure)


def test_odd_names_one_time_few_people_and_unsorted_times(tmp_path):
    model = _model(["cost $ of $", "b_1^2"])
    one = _paths(model, times=1, people=1)
    save_figure(overview(model, one), tmp_path / "one.pdf")
    paths = _paths(model)
    mixed = Paths(paths.values, paths.numeric_times[::-1], *_names(model))
    line = overview(model, mixed).axes[0].lines[0]
    assert (np.diff(line.get_xdata()) > 0).all()


def test_many_features_are_cut_and_said_so():
    model = _model([f"x{k}" for k in range(LARGEST_OVERVIEW + 2)])
    figure = overview(model, _paths(model))
    assert len(figure.axes) == LARGEST_OVERVIEW + 2
    assert f"first {LARGEST_OVERVIEW} of" in figure.get_suptitle()


def test_saving_refuses_to_overwrite_and_unknown_formats(tmp_path):
    model = _model(["a"])
    figure = overview(model, _paths(model))
    (tmp_path / "f.png").write_text("precious")
    with pytest.raises(InputError, match="already exists"):
        save_figure(figure, tmp_path / "f.png")
    with pytest.raises(InputError, match="cannot be saved"):
        save_figure(figure, tmp_path / "f.xyz")
    assert (tmp_path / "f.png").read_text() == "precious"
    save_figure(figure, tmp_path / "f.png", force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["f.png"]
    assert (tmp_path / "f.png").stat().st_size > 1000


@pytest.mark.slow
def test_importing_figures_does_not_import_matplotlib():
    code = "import sys, privtraj.report.figures; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
