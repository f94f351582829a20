"""Plans for mixed columns: how the fit will measure and why, and nothing that is not known."""

import json
import math

import pytest

import privtraj as pt
from privtraj import cli
from privtraj.assess.planning import planner
from privtraj.assess.planning.mixed import MixedForecast
from privtraj.columns.axes import Axes
from privtraj.columns.declared import declared_columns
from privtraj.privacy.accounting import epsilon_at
from privtraj.privacy.events import GaussianSum

COLUMNS = {"sex": pt.Category(["F", "M"], fixed=True), "code": list("abcdef"), "smoker": bool}


def test_a_plan_of_categories_says_the_measure_and_why():
    made = pt.plan(6000, features=3, columns=COLUMNS)
    assert isinstance(made, MixedForecast)
    assert (made.numbers, made.categories, made.values, made.combinations) == (3, 3, 10, 24)
    synthesizer = pt.TrajectorySynthesizer(1.0, 1e-5)
    numbers = {f"x{k}": (0, 1) for k in range(3)}
    axes = Axes.of(declared_columns(None, None, columns=numbers | COLUMNS))
    assert made.measure == synthesizer.measure_for(axes) == "marginals"
    text = str(made)
    assert "private marginals, because there are 3 categories among the columns" in text
    assert "not promised" in text
    assert "worth" not in text


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"measure": "counts"}, "you set it by hand"),
        ({"delta": 0.0}, "delta is 0, and only counts do without one"),
    ],
)
def test_the_reason_is_the_one_that_decides(chosen, reason):
    made = pt.plan(500, columns=COLUMNS, **chosen)
    assert (made.measure, made.reason) == ("counts", reason)


def test_the_noise_is_what_the_whole_budget_buys():
    made = pt.plan(500, columns=COLUMNS, epsilon=1.0, delta=1e-5)
    spent = epsilon_at([GaussianSum(made.count_noise, "")], 1e-5, "add-remove")
    assert spent == pytest.approx(1.0, rel=1e-3)
    less = pt.plan(500, columns=COLUMNS, epsilon=1.0, delta=1e-5, adjacency="replace-one")
    assert less.count_noise == pytest.approx(2 * made.count_noise, rel=1e-3)
    pure = pt.plan(500, columns=COLUMNS, epsilon=0.5, delta=0.0)
    assert pure.count_noise == pytest.approx(math.sqrt(2) / 0.5, rel=1e-3)


def test_many_values_of_few_people_are_warned_of():
    assert pt.plan(6000, columns=COLUMNS).warning is None
    many = {"code": [f"c{k}" for k in range(200)]}
    made = pt.plan(100, columns=many, epsilon=0.1)
    assert "100 people are few for 200 values" in made.warning
    assert "WARNING" in str(made)


def test_columns_of_numbers_are_simulated_as_features_are(monkeypatch):
    asked = []
    monkeypatch.setattr(planner, "_kept", lambda question: asked.append(question) or "kept")
    both = pt.plan(100, features=1, columns={"y": (0, 1), "k": pt.Integer(0, 5)})
    assert both == "kept"
    assert pt.plan(100, features=3) == "kept"
    assert asked[0] == asked[1]
    gaps = pt.plan(100, columns={"y": pt.Number(0, 1, missing=True)})
    assert isinstance(gaps, MixedForecast)
    assert gaps.reason.startswith("some numbers may be missing")


def test_the_command_takes_columns_and_configurations(capsys, tmp_path):
    words = ["--people", "6000", "--column", "sex", "category", "values=F,M", "fixed"]
    assert cli.main(["plan", *words, "--features", "2"]) == 0
    text = capsys.readouterr().out
    assert "2 numbers and 1 category of 2 values together" in text
    config = tmp_path / "fit.toml"
    config.write_text(
        'feature = [["height", 40, 210]]\nepsilon = 0.5\ndelta = 1e-6\n'
        'columns.sex = { kind = "category", values = ["F", "M"], fixed = true }\n'
    )
    assert cli.main(["plan", "--people", "6000", "--config", str(config), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["numbers"], told["categories"], told["privacy_spent"]) == (1, 1, 0)
    assert told["question"]["epsilon"] == 0.5
