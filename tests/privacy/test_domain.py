"""The domain of the guarantee: a table is refused before anything is paid for, or answered in full.

Whether a table is refused depends on its records and is not paid for, so only the steward may see
it: as an exception, with nothing spent, nothing written and nothing released. From the first
payment on, nothing that depends on records may stop a fit.
"""

import ast
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import baselines
import privtraj as pt
from privtraj import cli, paper
from privtraj.base.errors import InputError
from privtraj.data.records import MIN_RECORDS
from privtraj.measures.persistence import PERSISTENCE
from privtraj.privacy.ledger import Ledger

SOURCE = Path(pt.__file__).parent
T, N = 4, 40
RNG = np.random.default_rng(0)
WHEN, WHERE = np.arange(N) % T, RNG.uniform(size=(N, 2))

KINDS = {
    "counts": lambda: pt.TrajectorySynthesizer(2.0, 1e-5, particles=8),
    "pure": lambda: pt.TrajectorySynthesizer(2.0, 0.0, windows="bins", cells=4, particles=8),
    "gradients": lambda: pt.TrajectorySynthesizer(
        2.0, 1e-5, measure="gradients", windows="bins", particles=4, steps=2
    ),
    "baseline": lambda: baselines.ThresholdedHistogram(2.0, 1e-5, points=8),
    "paper": lambda: paper.PaperSynthesizer(
        [paper.Phase(2, 0.01, 9.0)], m=4, start=paper.WarmStart("means", 9.0)
    ),
}
ANSWERED = {
    "as few as there may be": (WHEN[:MIN_RECORDS], WHERE[:MIN_RECORDS]),
    "all in one place": (WHEN, np.full((N, 2), 0.5)),
    "all in one corner": (WHEN, np.ones((N, 2))),
    "all at one time": (np.zeros(N), WHERE),
    "beyond the box": (WHEN, 1e300 * np.sign(WHERE - 0.5)),
    "beyond the range of time": (1e9 * np.sign(WHEN - 1.5), WHERE),
    "the smallest numbers there are": (WHEN * 5e-324, WHERE * 5e-324),
}
HOLE, FAR = WHERE.copy(), WHERE.copy()
HOLE[3, 1], FAR[7, 0] = np.nan, np.inf
IDS = np.arange(N)
REFUSED = {
    "too few": (WHEN[: MIN_RECORDS - 1], WHERE[: MIN_RECORDS - 1], None),
    "a hole": (WHEN, HOLE, None),
    "an infinite value": (WHEN, FAR, None),
    "a second record": (WHEN, WHERE, IDS // 2),
    "a missing name": (WHEN, WHERE, [None, *map(str, IDS[1:])]),
    "one name too few": (WHEN, WHERE, IDS[1:]),
}


def fitted(kind, when, where, person=None, **options):
    snapshots = pt.Snapshots.from_arrays(
        when, where, person=person, bounds=[(0, 1)] * 2, bins=np.arange(float(T)), **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.LowBudgetWarning)
        return KINDS[kind]().fit(snapshots)


def releases(model):
    return [(entry["what"], entry["times"]) for entry in model.certificate.ledger]


@cache
def usual(kind):
    """What a kind of fit releases of a table like any other."""
    return releases(fitted(kind, WHEN, WHERE))


@pytest.fixture
def spent(monkeypatch):
    """All that was paid for, by any ledger."""
    events, spend = [], Ledger.spend

    def watched(ledger, event, times=1):
        spend(ledger, event, times)
        events.append(event)

    monkeypatch.setattr(Ledger, "spend", watched)
    return events


@pytest.mark.parametrize("table", ANSWERED)
@pytest.mark.parametrize("kind", ["pure", "baseline", "paper"])
def test_a_table_that_passes_is_answered_in_full(kind, table):
    """The very releases of any other table: none is left out, and nothing stops half way."""
    assert releases(fitted(kind, *ANSWERED[table])) == usual(kind)


@pytest.mark.parametrize("table", ANSWERED)
def test_so_is_one_of_people_with_several_records(table):
    """Nobody, somebody or everybody has a second one; how many is not asked."""
    when, where = ANSWERED[table]
    people = {"records_per_person": 3, "one_per_bin": False}
    told = [
        releases(fitted("pure", when, where, who, **people))
        for who in (np.arange(len(when)), np.arange(len(when)) // 2, np.arange(len(when)) // 3)
    ]
    assert told[0][-1] == (PERSISTENCE, 1)
    assert told[0] == told[1] == told[2]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["all in one corner", "all at one time"])
@pytest.mark.parametrize("kind", ["counts", "gradients"])
def test_so_is_one_whose_fit_takes_longer(kind, table):
    assert releases(fitted(kind, *ANSWERED[table])) == usual(kind)


@pytest.mark.parametrize("table", REFUSED)
def test_a_table_that_does_not_is_refused_before_anything_is_paid_for(table, spent):
    for kind in KINDS:
        with pytest.raises(InputError):
            fitted(kind, *REFUSED[table])
    assert spent == []


def test_a_refusal_is_for_the_stewards_eyes_alone(tmp_path, capsys):
    """One line on the terminal: no file, no line in a ledger, nothing on standard output."""
    ledger, out = tmp_path / "l.jsonl", [tmp_path / "m.privtraj", tmp_path / "c.json"]
    base = ["--time", "t", "--person", "id", "--feature", "x", "0", "1", "--bin-times", "0", "1"]
    base += ["--epsilon", "1", "--delta", "1e-5", "--ledger", str(ledger), "--json"]
    base += ["--cap-epsilon", "5", "--cap-delta", "1e-3"]
    base += ["--out", str(out[0]), "--certificate", str(out[1]), "--cells", "2"]
    good = [f"{k % 2},p{k},0.5" for k in range(20)]
    tables = {
        "good.csv": good,
        "few.csv": good[:9],
        "hole.csv": [*good, "1,p99,"],
        "twice.csv": [*good, "1,p3,0.5"],
        "nobody.csv": [*good, "1,,0.5"],
        "text.csv": [*good, "1,p99,tall"],
    }
    for name, rows in tables.items():
        (tmp_path / name).write_text("\n".join(["t,id,x", *rows, ""]))
        words = ["fit", str(tmp_path / name), *base]
        if name == "good.csv":
            assert cli.main(words) == 0
            before = ledger.read_bytes()
            for path in out:
                path.unlink()
            capsys.readouterr()
            continue
        assert cli.main(words) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("privtraj: error:") == 1
        assert ledger.read_bytes() == before
        assert not any(path.exists() for path in out)


# The source ---------------------------------------------------------------------------------------


def functions(path):
    """Functions and methods of a module of the package, by name."""
    tree = ast.parse((SOURCE / path).read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def raises(node):
    return [part for part in ast.walk(node) if isinstance(part, ast.Raise | ast.Assert)]


def payments(node):
    """Lines at which a function pays: it calls `spend` or `reserve`."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    names = {id(call): getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls}
    return [call.lineno for call in calls if names[id(call)] in ("spend", "reserve")]


PUBLIC = {
    "guard": {"__post_init__", "check", "check_windows", "_check_sides", "multipliers", "at_times"},
    "pairs": {"__post_init__", "check"},
    "sums": {"check", "lattice_unit"},
}


@pytest.mark.parametrize("module", PUBLIC)
def test_whoever_adds_up_rows_refuses_nothing(module):
    """These see public and released numbers alone, and are called before there is a payment."""
    refusing = {node.name for node in functions(f"privacy/{module}.py") if raises(node)}
    assert refusing == PUBLIC[module]
    for node in functions(f"privacy/{module}.py"):
        if node.name in refusing:
            assert "view" not in {argument.arg for argument in node.args.args}


@pytest.mark.parametrize("path", ["privacy/guard.py", "privacy/ledger.py"])
def test_a_guard_refuses_before_it_pays_and_never_after(path):
    paying = [node for node in functions(path) if payments(node)]
    assert paying
    for node in paying:
        first = min(payments(node))
        assert all(part.lineno < first for part in raises(node)), node.name
        called = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
        late = [part for part in called if part.lineno > first]
        assert not any("check" in ast.unparse(part.func) for part in late), node.name


def test_what_a_guard_asks_after_paying_refuses_nothing():
    """What is called with rows in hand, after the payment."""
    asked = {"total", "answer", "chunked", "taking_part", "draw", "coins"}
    found = [
        node for path in ("guard", "pairs", "sums") for node in functions(f"privacy/{path}.py")
    ]
    assert asked <= {node.name for node in found}
    assert [node.name for node in found if node.name in asked and raises(node)] == []


def test_rows_in_a_database_refuse_only_a_table_that_changed():
    """Which no table does that stays as it is: on the domain it is no function of the records."""
    tree = ast.parse((SOURCE / "data/sql_rows.py").read_text("utf-8"))
    (rows,) = [node for node in tree.body if getattr(node, "name", "") == "SqlRows"]
    assert {ast.unparse(part) for part in raises(rows)} == {"raise _changed()"}


def test_the_page_lists_every_module_that_can_refuse_a_table():
    """Those that make snapshots, and the ledger; whoever adds one adds a line."""
    page = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text("utf-8")
    section = page.split("## The domain")[1].split("\n## ")[0]
    listed = set(re.findall(r"^\| `([a-z_/]+\.py)`", section, re.MULTILINE))
    modules = [path.relative_to(SOURCE).as_posix() for path in (SOURCE / "data").glob("*.py")]
    refusing = {path for path in modules if any(map(raises, functions(path)))}
    assert listed == {*refusing, "privacy/ledger_file.py", "stream/people.py"}
