"""A weak guarantee is warned of before and after: at plan, at fit and on the certificate."""

import json
import re
import warnings

import numpy as np
import pytest

import privtraj as pt
from privtraj import cli
from privtraj.assess.plan import Question
from privtraj.privacy.certificate import BY_PERSON, CHECKED, EVERY_ROW, STATED
from privtraj.recipe import Recipe

PLAN = ["plan", "--people", "600", "--features", "1", "--column", "sex", "category", "values=F,M"]


@pytest.fixture
def table(tmp_path):
    rows = "".join(f"{k},{k % 10},{k % 7}\n" for k in range(200))
    (tmp_path / "d.csv").write_text(f"id,t,x\n{rows}")
    return str(tmp_path / "d.csv")


def fit(table, tmp_path, epsilon, delta, *more):
    words = ["fit", table, "--time", "t", "--feature", "x", "0", "7", "--time-range", "0", "9"]
    budget = ["--epsilon", epsilon, "--delta", delta, "--out", str(tmp_path / "m.privtraj")]
    return cli.main([*words, *budget, "--cells", "2", "--windows", "2", *more])


@pytest.mark.parametrize(
    ("epsilon", "delta", "warned"),
    [
        ("1", "1e-5", []),
        ("8", "1e-5", []),
        ("14", "1e-5", ["epsilon = 14 is above 8"]),
        ("1", "0.5", ["delta = 0.5 is large for about 600 people"]),
        ("1", "1e-3", ["delta = 0.001 is large for about 600 people"]),
        ("14", "0.5", ["epsilon = 14 is above 8", "delta = 0.5 is large"]),
    ],
)
def test_a_plan_warns(epsilon, delta, warned, capsys):
    words = [*PLAN, "--epsilon", epsilon, "--delta", delta]
    assert cli.main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert [said in text for said in warned] == [True] * len(warned)
    assert text.count("WARNING: epsilon") + text.count("WARNING: delta") == len(warned)
    assert cli.main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["weak_guarantee"]) == len(warned)


@pytest.mark.parametrize("declared", [pt.Number(0, 7), pt.Category(range(7))], ids=str)
def test_plan_and_certificate_say_the_same_of_an_attacker(declared):
    """Within what noise in whole numbers costs."""
    table = {"t": np.arange(200) % 10, "x": np.arange(200) % 7}
    declared_x = {"x": declared}
    snaps = pt.Snapshots.from_table(table, time="t", time_range=(0, 9), columns=declared_x)
    certificate = pt.TrajectorySynthesizer(1.0, 1e-5).fit(snaps).certificate
    columns = snaps.columns if isinstance(declared, pt.Category) else ()
    planned = Question(200, None, 1, Recipe(1.0, 1e-5), columns=columns).text()
    assert certificate.chance_right < 0.72  # .732 is what (epsilon, delta) alone say
    (said,) = re.findall(r"shows faintly at most: .* at most ([\d.]+)%", planned.replace("\n", " "))
    assert float(said) == pytest.approx(100 * certificate.chance_right, abs=0.2)


def test_a_fit_warns_before_and_on_its_certificate(table, tmp_path, capsys):
    assert fit(table, tmp_path, "14", "1e-5", "--person", "id") == 0
    shown = capsys.readouterr()
    assert "note: epsilon = 14 is above 8" in shown.err
    assert "WARNING: epsilon = 14 is above 8" in shown.out
    assert fit(table, tmp_path, "1", "0.5", "--person", "id", "--force", "--json") == 0
    shown = capsys.readouterr()
    assert "note: delta = 0.5 is large for any number of people" in shown.err
    (said,) = json.loads(shown.out)["warnings"]
    assert said.startswith("delta = 0.5 is large for about ")
    assert cli.main(["verify", str(tmp_path / "m.privtraj")]) == 0
    assert "WARNING: delta = 0.5 is large" in capsys.readouterr().out


def test_a_usual_fit_warns_of_nothing(table, tmp_path, capsys):
    assert fit(table, tmp_path, "1", "1e-5", "--person", "id", "--json") == 0
    shown = capsys.readouterr()
    assert "is large" not in shown.err
    assert json.loads(shown.out)["warnings"] == []


@pytest.mark.parametrize(
    ("person", "key", "said"),
    [([], STATED, EVERY_ROW), (["--person", "id"], CHECKED, BY_PERSON)],
    ids=["stated", "checked"],
)
def test_the_certificate_says_whether_records_were_counted(
    table, tmp_path, capsys, person, key, said
):
    beside = tmp_path / "c.json"
    assert fit(table, tmp_path, "1", "1e-5", *person, "--certificate", str(beside)) == 0
    out = capsys.readouterr().out
    assert ("stated by the steward, not checked" in out) == (key == STATED)
    public = json.loads(beside.read_text())["public_inputs"]
    assert public[key][0] == said
    assert (CHECKED in public) != (STATED in public)


# In Python ------------------------------------------------------------------------------------


def people(n=200):
    times, values = np.arange(n) % 10.0, np.arange(n) % 7.0
    return pt.Snapshots.from_arrays(times, values, bounds=[(0, 7)], time_range=(0, 9))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 14.0}, "epsilon = 14 is above 8"),
        ({"delta": 0.5}, "delta = 0.5 is large for any number"),
        ({"delta": 3e-3}, "delta = 0.003 is large for about"),  # known once they are counted
    ],
)
def test_a_fit_in_python_warns_once(settings, said):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pt.TrajectorySynthesizer(**settings, cells=2, windows=2).fit(people())
    weak = [w for w in caught if issubclass(w.category, pt.WeakGuaranteeWarning)]
    assert len(weak) == 1
    assert said in str(weak[0].message)
    assert weak[0].filename == __file__


def test_a_seeded_fit_has_no_guarantee_to_warn_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt.WeakGuaranteeWarning)
        pt.TrajectorySynthesizer(14.0, 0.5, seed=0, cells=2, windows=2).fit(people())
