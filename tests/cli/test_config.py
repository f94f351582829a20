"""The configuration file: it says what the options say, both ways, and explains its mistakes."""

import argparse
import datetime as dt
import inspect
import json
import re
import shlex
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privtraj import cli, recipe
from privtraj.base.errors import InputError
from privtraj.cli import config, fit, options, prepare, shared
from privtraj.cli.console import parser
from privtraj.cli.options import OPTIONS
from privtraj.columns.cells import words_of
from privtraj.columns.declared import declared_column
from privtraj.columns.kinds import KINDS
from privtraj.data.snapshots import Snapshots
from privtraj.synthesizer import TrajectorySynthesizer

GOOD = {
    "data": "clinic.csv",
    "time": "age",
    "person": "id",
    "feature": [["height", 40.0, 210.0], ["weight", 1.0, 140.0]],
    "time_range": [0.0, 20.0],
    "bins": 12,
    "epsilon": 1.0,
    "delta": 1e-5,
    "out": "growth.privtraj",
}
WORDS = [
    *["fit", "clinic.csv", "--time", "age", "--person", "id", "--time-range", "0", "20"],
    *["--feature", "height", "40", "210", "--feature", "weight", "1", "140", "--bins", "12"],
    *["--epsilon", "1", "--delta", "1e-5", "--out", "growth.privtraj"],
]


def parse(*words):
    return vars(fit.fit.settled(parser(fit.fit).parse_args([str(word) for word in words])))


def save(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# The keys are the options -----------------------------------------------------------------------


NOT_KEPT = {"help", "config", "write_config", "yes"}


def _options():
    commands = argparse.ArgumentParser().add_subparsers()
    fit.fit.add(commands)
    actions = [a for a in commands.choices["fit"]._actions if a.help != argparse.SUPPRESS]
    return {a.dest: a for a in actions if a.dest not in NOT_KEPT}


def test_every_choice_is_an_option_of_fit_that_says_what_the_configuration_says():
    assert set(OPTIONS) == set(_options())
    for name, option in _options().items():
        assert option.default is None, "so that a configuration can say it"
        assert OPTIONS[name].about in option.help


def test_what_a_configuration_shows_is_right():
    for option in OPTIONS.values():
        shown = option.default if option.example is None else option.example
        assert option.kind.read(shown) is not None


@pytest.mark.parametrize("function", [TrajectorySynthesizer, Snapshots.from_table])
def test_choices_have_the_defaults_of_the_function_that_takes_them(function):
    for name, parameter in inspect.signature(function).parameters.items():
        if name in OPTIONS and OPTIONS[name].default is not None:
            assert OPTIONS[name].default == parameter.default


def test_a_synthesizer_can_be_told_everything_on_the_command_line():
    taken = set(inspect.signature(TrajectorySynthesizer).parameters)
    assert taken <= set(OPTIONS)


@pytest.mark.parametrize(
    "name", [name for name, option in OPTIONS.items() if "whole" in option.kind.must]
)
def test_whole_numbers_have_the_limits_of_their_options(name):
    kind, option = OPTIONS[name].kind, OPTIONS[name].flag
    for value in (-1, 0, 1, 2, 10**9, 10**9 + 1):
        try:
            expected = parse(*WORDS, option, value)[name]
        except InputError:
            with pytest.raises(ValueError, match=r"^$"):
                kind.read(value)
        else:
            assert kind.read(value) == expected


# There and back -------------------------------------------------------------------------------


# a name in angle brackets is one that is still to be filled in
NAMES = st.text(min_size=1, max_size=12).filter(lambda s: not (s[0] == "<" and s[-1] == ">"))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DATES = st.one_of(
    st.datetimes().map(dt.datetime.isoformat),
    st.datetimes(timezones=st.just(dt.UTC)).map(dt.datetime.isoformat),
    st.dates().map(dt.date.isoformat),
)
MOMENTS = st.one_of(FLOATS, DATES)
FILES = st.from_regex(r"[a-z .é]{0,5}[a-z]\.[a-z]{2,4}", fullmatch=True).map(Path)
LEVELS = st.lists(
    st.one_of(NAMES, st.integers(-9, 9), st.booleans()), min_size=2, max_size=4, unique_by=str
)
ENDS = {"low": FLOATS, "high": FLOATS}
DOMAINS = {
    "number": ENDS,
    "integer": ENDS,
    "date": {"low": DATES, "high": DATES},
    "angle": {"period": FLOATS},
    "category": {"values": LEVELS, "other": NAMES},
    "ordered": {"values": LEVELS},
    "boolean": {},
}
YES = {word: st.booleans() for word in ("missing", "fixed")}
FORMS = [
    st.fixed_dictionaries({"kind": st.just(kind), **domain}, optional=YES)
    for kind, domain in DOMAINS.items()
]
SHORT_FORMS = (LEVELS, st.lists(FLOATS, min_size=2, max_size=2), st.just("boolean"))
VALUES = {
    recipe.TEXT: NAMES,
    options.FILE: FILES,
    options.SOURCE: st.one_of(FILES, st.just("duckdb://visits.duckdb")),
    recipe.NUMBER: FLOATS,
    recipe.BOOLEAN: st.booleans(),
    options.LINE: NAMES,
    options.RANGE: st.lists(MOMENTS, min_size=2, max_size=2),
    options.TIMES: st.lists(MOMENTS, min_size=1, max_size=4),
    recipe.NAMES: st.lists(NAMES, min_size=1, max_size=3),
    recipe.VALUES: st.lists(
        st.tuples(NAMES, FLOATS | st.booleans() | st.sampled_from(["A", "01067"])).map(list),
        min_size=1,
        max_size=3,
    ),
    recipe.STEPS: st.lists(st.tuples(NAMES, FLOATS).map(list), min_size=1, max_size=3),
    options.CSV: st.dictionaries(
        st.sampled_from(["decimal", "dates", "missing"]),
        NAMES | st.lists(NAMES, min_size=1, max_size=3),
        min_size=1,
    ),
    options.COLUMNS: st.dictionaries(
        NAMES, st.one_of(*FORMS, *SHORT_FORMS), min_size=1, max_size=3
    ),
    options.FEATURES: st.lists(st.tuples(NAMES, FLOATS, FLOATS).map(list), min_size=1, max_size=3),
}


def test_columns_of_every_kind_are_written_and_read():
    assert set(DOMAINS) == set(KINDS)


def _values(key):
    if key.kind in VALUES:
        return VALUES[key.kind]
    if key is OPTIONS["public_counts"]:
        return st.lists(st.floats(0, 1e6), min_size=2, max_size=4)
    if key.kind.words and key.kind.numbers is None:
        return st.sampled_from(key.kind.words)
    limits = re.search(r"(?:from|between) (\S+) (?:to|and) (\S+)", key.kind.must)
    if "whole" in key.kind.must:
        return st.integers(2, int(limits[2]) if limits else 10**9)
    if limits:
        return st.floats(float(limits[1]), float(limits[2]))
    return st.sampled_from(["released", 0.5, "released by_place=learned"])


CHOICES = st.fixed_dictionaries(
    {},
    optional={
        name: _values(key)
        for name, key in OPTIONS.items()
        if name not in ("bin_times", "force", "json", "quiet")
    },
)


@pytest.mark.slow
@settings(max_examples=80)
@given(options=CHOICES)
@example(options={"time": 'a "b" \\ \n\x7f\x85\ufeff\U0001f600 é', "epsilon": 1e-05})
@example(options={"query": "SELECT 'http://a@b?c' FROM x", "person": "://@"})
@example(options={"feature": [["no", 0.0, 1e300], ["x.y z", -5e-324, 1e16]]})
@example(options={"columns": {'a "b".c\n': ["<low>", "y"], "no": "boolean", "12": ["n", "yes"]}})
@example(options={"time": "2024-01-31", "person": "12", "query": "true", "time_range": [-0.0, 1.0]})
def test_what_is_written_reads_the_same(options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.toml"
        save(path, config.text(_placed(options, folder), path))
        defaults = {n: k.default for n, k in OPTIONS.items() if k.default is not None}
        for spoken in ("force", "json", "quiet"):
            defaults.pop(spoken)
        assert config.load(path) == defaults | _placed(options, folder)


def _placed(options, folder):
    """Files beside the configuration."""
    return {
        name: Path(folder) / value if isinstance(value, Path) else value
        for name, value in options.items()
    }


def test_a_fit_written_down_parses_to_the_same_fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [*WORDS, "--adjacency", "replace-one", "--time-coupling", "0.1"]
    args = parse(*words, "--write-config", "fit.toml")
    save(Path("fit.toml"), config.text(args, "fit.toml"))
    again = parse("fit", "--config", "fit.toml")
    del args["write_config"], again["write_config"], args["config"], again["config"]
    assert again == args


def test_files_are_found_from_the_folder_of_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "settings"
    folder.mkdir()
    path = save(folder / "fit.toml", config.text({"data": Path("clinic.csv")}, "settings/fit.toml"))
    assert config.load(path)["data"].resolve() == tmp_path / "clinic.csv"
    absolute = tmp_path / "clinic.csv"
    save(path, config.text({"data": absolute}, path))
    assert config.load(path)["data"] == absolute


def test_a_connection_string_that_may_hold_a_password_is_not_written(tmp_path):
    for secret in ("postgresql://me:hunter2@host/db", "postgresql://host/db?password=hunter2"):
        text = config.text({**GOOD, "data": secret}, tmp_path / "fit.toml")
        assert "hunter2" not in text
        assert "data" not in config.load(save(tmp_path / "fit.toml", text))
    harmless = config.text({"data": "duckdb://visits.duckdb"}, tmp_path / "fit.toml")
    loaded = config.load(save(tmp_path / "fit.toml", harmless))
    assert loaded["data"] == "duckdb://visits.duckdb"


# The command line wins --------------------------------------------------------------------------


@pytest.fixture
def good(tmp_path):
    return save(tmp_path / "fit.toml", config.text(GOOD | {"adjacency": "replace-one"}, "fit.toml"))


def test_the_file_alone_is_enough(good):
    args = parse("fit", "--config", good)
    expected = parse(*WORDS)
    assert args["data"] == good.parent / "clinic.csv"
    for name in ("time", "person", "feature", "time_range", "bins", "epsilon", "delta"):
        assert args[name] == expected[name], name
    assert args["run"] is fit.fit


def test_what_is_given_wins_even_if_it_is_the_default(good):
    args = parse(
        "fit", "other.csv", "--config", good, "--adjacency", "add-remove", "--epsilon", "3"
    )
    assert (args["data"], args["adjacency"], args["epsilon"]) == (
        Path("other.csv"),
        "add-remove",
        3,
    )
    assert parse("fit", "--config", good)["adjacency"] == "replace-one"


def test_a_parser_can_be_used_twice(good):
    once = parser(fit.fit)
    first = once.parse_args(["fit", "--config", str(good)])
    assert fit.fit.settled(once.parse_args(WORDS)).adjacency == "add-remove"
    assert once.parse_args(["fit", "--config", str(good)]) == first


def test_features_given_replace_all_of_the_file(good):
    args = parse("fit", "--config", good, "--feature", "bmi", "10", "50")
    assert args["feature"] == [["bmi", 10.0, 50.0]]


def test_bin_times_given_replace_bins(good):
    args = parse("fit", "--config", good, "--bin-times", "0", "2024-01-31")
    assert args["bins"] is None
    assert args["bin_times"] == [0.0, "2024-01-31"]


def test_a_choice_still_open_may_be_given(tmp_path):
    open_file = save(tmp_path / "fit.toml", prepare.template([("age", "number")], {}, "fit.toml"))
    words = ["--feature", "x", "0", "1", "--time-range", "0", "1", "--bins", "3"]
    args = parse("fit", "a.csv", "--config", open_file, *words, "--epsilon", "1", "--delta", "1e-5")
    assert args["time"] == "age"


# Columns of every kind ----------------------------------------------------------------------------

TYPED = {
    "hb number low=4 high=15 missing": {
        "kind": "number",
        "low": 4.0,
        "high": 15.0,
        "missing": True,
    },
    "kids integer low=-1 high=10": {"kind": "integer", "low": -1.0, "high": 10.0},
    "born date low=1950-01-01 high=2010-01-01": {
        "kind": "date",
        "low": "1950-01-01",
        "high": "2010-01-01",
    },
    "sex category values=F,M fixed": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "stage ordered values=I,II,III": {"kind": "ordered", "values": ["I", "II", "III"]},
    "smoker boolean missing=true fixed=false": {"kind": "boolean", "missing": True, "fixed": False},
    """code category 'values=["a,b", 2]' other=other""": {
        "kind": "category",
        "values": ["a,b", 2],
        "other": "other",
    },
    "'two words' category 'values=a b,c = d'": {"kind": "category", "values": ["a b", "c = d"]},
}


@pytest.mark.parametrize(("typed", "form"), TYPED.items(), ids=TYPED)
def test_a_column_can_be_typed(typed, form):
    words = shlex.split(typed)
    columns = parse(*WORDS, "--column", *words, "--column", "last", "boolean")["columns"]
    assert columns == {words[0]: form, "last": {"kind": "boolean"}}
    declared_column(words[0], columns[words[0]])  # refuses what is none
    again = words_of(words[0], columns[words[0]])
    kept = {word: value for word, value in form.items() if value is not False}
    assert parse(*WORDS, "--column", *again)["columns"] == {words[0]: kept}


def test_columns_typed_are_written_as_tables_that_read_the_same(tmp_path):
    typed = [word for line in TYPED for word in ("--column", *shlex.split(line))]
    columns = parse(*WORDS, *typed)["columns"]
    path = tmp_path / "fit.toml"
    assert config.load(save(path, config.text({"columns": columns}, path)))["columns"] == columns


def test_columns_given_replace_all_of_the_file(good):
    save(good, good.read_text() + "[columns.sex]\nvalues = ['F', 'M']\n")
    assert parse("fit", "--config", good)["columns"] == {"sex": {"values": ["F", "M"]}}
    given = parse("fit", "--config", good, "--column", "smoker", "boolean")["columns"]
    assert given == {"smoker": {"kind": "boolean"}}


COLUMNS = """
columns.hb = [4, 15]
[columns.born]
kind = "date"
low = 1950-01-01
high = 2010-01-01
[columns."two words"]
values = ["a", 2, true]
"""


def test_columns_as_people_write_them(tmp_path):
    assert config.load(save(tmp_path / "fit.toml", COLUMNS)) == {
        "columns": {
            "hb": [4, 15],
            "born": {"kind": "date", "low": "1950-01-01", "high": "2010-01-01"},
            "two words": {"values": ["a", 2, True]},
        }
    }


def test_a_fit_reads_the_columns_that_were_typed(tmp_path):
    """The library gets numbers and columns under the names and kinds that were declared."""
    words = ["--column", "sex", "category", "values=F,M", "fixed", "--column", "hb", "number"]
    args = parse(*WORDS, *words, "low=4", "high=15", "missing")
    names = ["height", "weight", "sex", "hb", "hb missing"]
    columns = shared.columns(args)
    assert [column.name for column in columns] == names
    assert [column.levels for column in columns] == [0, 0, 2, 0, 2]
    assert columns[2].fixed


def test_toml_dates(tmp_path):
    text = "bin_times = [2024-01-31, 2024-02-01T12:00:00Z, '2024-03-01']"
    times = config.load(save(tmp_path / "fit.toml", text))["bin_times"]
    assert times == ["2024-01-31", "2024-02-01T12:00:00+00:00", "2024-03-01"]


# Mistakes -----------------------------------------------------------------------------------------


MISTAKES = {
    "unknown key": ("epsilom = 1", "did you mean epsilon"),
    "unknown plural": ("features = [['a', 0, 1]]", "did you mean feature"),
    "with hyphens": ("time-range = [0, 1]", "did you mean time_range"),
    "far from any": ("zzzz = 1", "privtraj fit --help"),
    "a section": ("[fit]\nepsilon = 1", "has 'fit', which is not a choice of fit"),
    "number as text": ("epsilon = 'one'", "epsilon in .* must be a number"),
    "number as flag": ("epsilon = true", "epsilon in .* must be a number"),
    "infinite": ("epsilon = inf", "epsilon in .* must be a number"),
    "text as number": ("time = 3", "time in .* must be text, in quotes"),
    "empty text": ("time = ''", "time in .* must be text, in quotes"),
    "flag as text": ("new_people = 'yes'", "new_people in .* must be true or false"),
    "flag for numbers": ("public_counts = true", "public_counts in .* must be a list of numbers"),
    "negative number": (
        "public_counts = [1, -1]",
        "list of numbers that are not negative",
    ),
    "decimal": ("bins = 2.5", "bins in .* must be a whole number from 2 to"),
    "too few": ("bins = 1", "bins in .* must be a whole number from 2 to"),
    "too many": ("particles = 5000", "particles in .* must be a whole number from 2 to 4096"),
    "choice": ("adjacency = 'add-one'", "must be .add-remove. or .replace-one."),
    "range of one": ("time_range = [0]", "time_range in .* must be two times"),
    "range of three": ("time_range = [0, 1, 2]", "time_range in .* must be two times"),
    "range of words": ("time_range = ['soon', 'later']", "time_range in .* must be two times"),
    "range of a clock": ("time_range = [07:30:00, 08:00:00]", "time_range in .* must be two times"),
    "no times": ("bin_times = []", "bin_times in .* must be a list"),
    "feature flat": ("feature = ['height', 40, 210]", "feature in .* must be a list of columns"),
    "feature short": ("feature = [['height', 40]]", "feature in .* must be a list of columns"),
    "feature text": ("feature = [['height', 'a', 'b']]", "feature in .* must be a list of columns"),
    "csv alone": ("csv = 'german'", "csv in .* must be settings of a CSV file"),
    "csv of a number": ("csv.missing = 999", "csv in .* must be settings of a CSV file"),
    "csv open": ("csv.dates = '<dates>'", "csv in .* is still to be filled in for 'dates'"),
    "column alone": ("columns = 'sex'", "columns in .* must be a table for each, such as"),
    "column list": ("columns = [['sex', 'F', 'M']]", "columns in .* must be a table for each"),
    "column of nothing": ("columns.sex = {}", "columns in .* must be a table for each"),
    "column of a number": ("columns.sex = 2", "columns in .* must be a table for each"),
    "column without a name": ("columns.'' = ['F', 'M']", "columns in .* must be a table for each"),
    "column twice": ("columns.a = [0, 1]\ncolumns.a = [0, 1]\n\n", "not valid TOML near line 2"),
    "open values": (
        "columns.sex = { values = '<values>' }\ncolumns.a = { values = ['<low>', '<high>'] }",
        "columns in '.*fit.toml' is still to be filled in for 'sex': it must be",
    ),
    "open low": ("columns.a = { kind = 'date', low = '<low>' }", "still to be filled in for 'a'"),
    "feature table": ("[feature]\nheight = [40, 210]", "feature in .* must be a list of columns"),
    "both bins": ("bins = 3\nbin_times = [0, 1]", "exclude each other"),
    "open number": ("epsilon = '<epsilon>'", "epsilon in '.*fit.toml' is still to be filled in"),
    "open bounds": (
        "feature = [['a', 0, 1], ['b', '<low>', 2]]",
        "feature in '.*fit.toml' is still to be filled in for 'b': it must be",
    ),
    "open range": ("time_range = [0, '<end>']", "time_range in .* is still to be filled in"),
    "twice": ("epsilon = 1\nepsilon = 2\n\n", "not valid TOML near line 2"),
    "not TOML": ("epsilon: 1", "not valid TOML near line 1"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_name_the_key_and_the_file(text, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        config.load(save(tmp_path / "fit.toml", text))
    assert "fit.toml" in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*privtraj init"):
        config.load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="is no TOML"):
        config.load(save(tmp_path / "fit.json", "{}"))
    (tmp_path / "latin.toml").write_bytes(b"time = '\xe9'")
    with pytest.raises(InputError, match="UTF-8"):
        config.load(tmp_path / "latin.toml")


def test_a_mistake_ends_with_one_sentence_and_code_2(tmp_path, capsys):
    path = save(tmp_path / "fit.toml", "epsilom = 1")
    assert cli.main(["fit", "--config", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("privtraj: error: ")
    assert said.count("\n") == 1
    assert "did you mean epsilon?" in said


def test_a_pattern_is_all_columns_like_it(tmp_path, capsys):
    names = ["day", "X_pca-0", "X_pca-1", "X_pca-10", "weight [kg]", "gene_a"]
    table = np.random.default_rng(0).random((40, len(names)))
    data = tmp_path / "cells.csv"
    np.savetxt(data, table, delimiter=",", header=",".join(names), comments="")
    words = ["check", str(data), "--time", "day", "--time-range", "0", "1", "--json"]
    words += ["--feature", "X_pca-*", "-1", "1", "--feature", "weight [kg]", "0", "2"]
    assert cli.main([*words, "--column", "gene_*", "number", "low=0", "high=1", "missing"]) == 0
    seen = json.loads(capsys.readouterr().out)["columns"]
    assert [one["name"] for one in seen] == ["day", *names[1:]]
    assert cli.main([*words, "--feature", "X_umap-*", "-1", "1"]) == 2
    assert "no column of the data is like 'X_umap-*'" in capsys.readouterr().err
    form = tmp_path / "fit.toml"
    form.write_text('data = "cells.csv"\ntime = "day"\nfeature = [["X_pca-*", 0, 1]]\n')
    words = ["plan", "--people", "500", "--epsilon", "1", "--delta", "1e-5", "--config", str(form)]
    asked = prepare.plan.settled(parser(prepare.plan).parse_args(words))
    assert prepare.forecast_of(vars(asked))["features"] == 3
