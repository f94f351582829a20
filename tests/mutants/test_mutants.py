"""The planted breaks fit the source as it is, and the runner tells caught from overlooked.

`make mutants` plants all of them; here are three, and three that must not pass for caught.
"""

import ast
import fnmatch
import re
import tomllib
from collections import Counter
from dataclasses import replace

import pytest

from mutants import __main__ as runner
from mutants import operators, shards, suite
from mutants.suite import ROOT, SOURCE

MUTANTS = suite.load()
ROUNDED = "tests/privacy/test_ledger.py::test_rounding_is_always_the_careful_way"
OTHER = "tests/privacy/test_ledger.py::test_bad_budgets_are_refused"
EDIT = MUTANTS["epsilon-printed-rounded-down"]


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_fits_the_source_and_is_other_code(mutant):
    text = (SOURCE / mutant.file).read_text("utf-8")
    assert ast.dump(ast.parse(mutant.applied(text))) != ast.dump(ast.parse(text))


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_the_tests_that_a_mutant_names_are_there(mutant):
    assert mutant.caught_by
    for test in mutant.caught_by:
        path, _, function = test.partition("::")
        assert f"def {function.split('[')[0]}(" in (ROOT / path).read_text("utf-8")


def test_there_are_at_least_forty_and_no_two_are_the_same():
    edits = {(mutant.file, *mutant.edits) for mutant in MUTANTS.values()}
    assert len(edits) == len(MUTANTS) >= 40


def test_every_theorem_names_code_tests_and_breaks_that_exist():
    section = suite.PAGE.read_text("utf-8").split("\n## Theorems")[1].split("\n## ")[0]
    theorems = section.split("\n### ")[1:]
    assert len(theorems) >= 10
    named = set()
    for theorem in theorems:
        lines = dict(re.findall(r"^- (Code|Checked by|Breaks): (.*)$", theorem, re.MULTILINE))
        code, tests, breaks = (
            re.findall(r"`([\w./-]+)`", lines.get(key, ""))
            for key in ("Code", "Checked by", "Breaks")
        )
        assert code, theorem
        assert tests, theorem
        assert all((SOURCE / file).is_file() for file in code), code
        assert all((ROOT / "tests" / file).is_file() for file in tests), tests
        assert set(breaks) <= set(MUTANTS), set(breaks) - set(MUTANTS)
        named |= set(breaks)
    assert len(named) >= 50


@pytest.mark.parametrize("text", ["", "two two"])
def test_a_mutant_whose_text_is_not_there_once_is_stale(text):
    with pytest.raises(suite.StaleMutant, match="not once"):
        replace(EDIT, old="two", new="three").applied(text)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Function: the outcome of a mutant, by its named tests and, if these pass, by others."""
    cache = tmp_path_factory.mktemp("compiled")
    return lambda mutant, otherwise=(): runner.judged(mutant, cache, otherwise)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", ["plan-not-enforced", "ledger-file-not-flushed"])
def test_a_planted_break_is_caught(judged, name):
    outcome = judged(MUTANTS[name])
    assert (outcome.name, outcome.said) == (name, runner.CAUGHT)
    assert outcome.why.split("[")[0] in MUTANTS[name].caught_by


@pytest.mark.thorough
@pytest.mark.slow
def test_a_break_that_the_named_tests_overlook_is_looked_for_elsewhere(judged):
    outcome = judged(replace(EDIT, caught_by=[OTHER]), otherwise=[ROUNDED])
    assert (outcome.said, outcome.why) == (runner.ELSEWHERE, ROUNDED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("new", "said", "why"),
    [
        (
            "return _rounded(value, towards=ROUND_CEILING, digits=digits)",
            runner.SURVIVED,
            EDIT.breaks,
        ),
        pytest.param(
            "return _rounded(value, ROUND_UPWARDS, digits)",
            runner.USELESS,
            "NameError",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "return _rounded(value, ROUND_CEILING, digits",
            runner.USELESS,
            "pytest said",
            marks=pytest.mark.thorough,
        ),
    ],
    ids=["harmless", "broken code", "no code"],
)
def test_what_no_assertion_catches_is_not_called_caught(judged, new, said, why):
    outcome = judged(replace(EDIT, new=new, caught_by=[ROUNDED]))
    assert outcome.said == said
    assert why in outcome.why


# By operators -----------------------------------------------------------------------------------

FOUND = operators.planted()


@pytest.mark.thorough
def test_operators_find_hundreds_of_breaks_and_each_is_other_code():
    assert len({each.name for each in FOUND}) == len(FOUND) > 400
    for each in operators.sampled(FOUND, 100, 0):
        text = (SOURCE / each.file).read_text("utf-8")
        assert ast.dump(ast.parse(each.text)) != ast.dump(ast.parse(text)), each.name
    listed = [line.split()[0] for line in operators.__doc__.splitlines() if line.startswith("  ")]
    assert {each.name.split()[0] for each in FOUND} == set(listed)


def test_explanations_are_of_breaks_that_there_are():
    known = tomllib.loads(operators.EXPLAINED.read_text("utf-8"))["survivors"]
    unused = [name for name in known if not fnmatch.filter([each.name for each in FOUND], name)]
    assert unused == []
    assert all(len(why) > 20 for why in known.values())


def test_what_became_of_the_breaks_is_known_and_no_survivor_is_unexplained():
    """Of the last whole run (`make operators SAMPLE=all`), in which few breaks of now are new."""
    _, rows = shards.stored(FOUND)
    said = Counter(row.said for row in rows.values())
    assert list(rows) == [each.name for each in FOUND]
    assert [row.name for row in rows.values() if row.said == shards.SURVIVED] == []
    assert said[shards.OPEN] <= len(FOUND) / 4
    assert said[shards.CAUGHT] >= 0.95 * (len(FOUND) - said[shards.OPEN])
    tests = {row.by.split("::")[0] for row in rows.values() if "::" in row.by}
    assert [test for test in tests if not (ROOT / test).is_file()] == []
