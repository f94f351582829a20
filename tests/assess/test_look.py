"""A look at a table: what it counts is what is there, and what it says is no value of anybody."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from privtraj.assess import look
from privtraj.assess.findings import share
from privtraj.assess.look import how_read
from privtraj.assess.tally import Repeats, row_hashes, text_hashes
from privtraj.base.errors import InputError
from privtraj.data import sql
from privtraj.data.dialect import PLAIN
from privtraj.export import tables as export_tables

N = 200
SECRET = 123.4567
COLUMNS = {
    "sex": pt.Category(["F", "M"], fixed=True),
    "stage": pt.Ordered(["low", "mid", "high"], other="rest"),
    "smoker": pt.Boolean(missing=True),
    "visits": pt.Integer(0, 9),
    "born": pt.Date("1950-01-01", "2010-01-01"),
}
DECLARED = {
    "time": "day",
    "person": "id",
    "bounds": {"height": (40, 210)},
    "columns": COLUMNS,
    "time_range": (0, 100),
    "bins": 5,
}


def frame(**changes):
    rng = np.random.default_rng(4)
    plain = {
        "id": [f"P{k}" for k in range(N)],
        "day": np.linspace(0, 100, N),
        "height": np.r_[SECRET, rng.uniform(100, 190, N - 1)],
        "sex": ["F", "M"] * (N // 2),
        "stage": ["low", "mid", "high", "mid"] * (N // 4),
        "smoker": [True, False, None, True] * (N // 4),
        "visits": rng.integers(0, 10, N),
        "born": [dt.date(1960 + k % 40, 5, 6) for k in range(N)],
    }
    return pd.DataFrame(plain | changes)


def looked(table, **changes):
    return pt.check(table, **{**DECLARED, **changes})


def column(found, name):
    return next(one for one in found.columns if one["name"] == name)


def said(found, level):
    return [str(one) for one in found.findings if one.verdict == level]


# Every source and every kind ------------------------------------------------------------------


def _polars(table, folder):
    return pytest.importorskip("polars").from_pandas(table)


def _file(name):
    def make(table, folder):
        export_tables.write_table(pa.Table.from_pandas(table, preserve_index=False), folder / name)
        return folder / name

    return make


def _folder(table, folder):
    pytest.importorskip("duckdb")
    (folder / "parts").mkdir()
    for k, part in enumerate((table[:90], table[90:])):
        _file(f"parts/{k}.csv")(part, folder)
    return folder / "parts"


def _ibis(table, folder):
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    return ibis.memtable(table)


SOURCES = {
    "pandas": lambda table, folder: table,
    "polars": _polars,
    "arrow": lambda table, folder: pa.Table.from_pandas(table, preserve_index=False),
    "dictionary": lambda table, folder: {name: table[name] for name in table},
    **{name: _file(name) for name in ("t.csv", "t.csv.gz", "t.parquet", "t.feather")},
    "folder": _folder,
    "ibis": _ibis,
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_source_is_seen_alike(make, tmp_path):
    heights = frame()["height"].to_numpy().copy()
    heights[:20] = 500.0
    heights[20:23] = 210.0
    days = np.linspace(0, 100, N)
    days[:6] = -1.0
    found = looked(make(frame(height=heights, day=days), tmp_path))
    assert found.records == found.people == N
    assert found.fine
    height, time = column(found, "height"), column(found, "day")
    assert (height["below"], height["above"], height["at_high"]) == (0, 20, 3)
    assert (time["below"], time["above"], time["empty"]) == (6, 0, 0)
    assert column(found, "smoker")["missing"] == N // 4
    assert column(found, "born")["known"] == N
    assert column(found, "visits")["broken"] == 0
    assert len(said(found, "doubtful")) == 2
    assert not said(found, "refused")
    assert said(found, "note") == []


def test_it_says_first_that_it_is_never_for_release():
    found = looked(frame())
    assert str(found).splitlines()[0] == look.NOTICE
    assert "never for release" in look.NOTICE
    assert next(iter(found.to_dict())) == "notice"
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_no_sentence_has_a_value_in_it():
    wrong = frame(height=[str(SECRET), "12,5 secret", *["x"] * (N - 2)], sex=["Ottoline"] * N)
    found = looked(wrong)
    text = str(found) + json.dumps(found.to_dict())
    assert said(found, "refused")
    assert not any(secret in text for secret in (str(SECRET), "Ottoline", "secret", "P17"))


# Ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [10.0, 0.01, 1 / 2.54])
def test_a_unit_mistake_is_plainly_wrong(factor):
    found = looked(frame(height=frame()["height"] * factor), bounds={"height": (90, 210)})
    (wrong,) = found.wrong
    assert wrong.name == "height"
    assert wrong.what.startswith("100 % of the records have 'height' ")
    assert not found.fine


def test_half_outside_is_wrong_and_a_few_are_doubtful_and_fewer_nothing():
    def levels(outside):
        heights = frame()["height"].to_numpy().copy()
        heights[:outside] = 1.0
        return [one.verdict for one in looked(frame(height=heights)).findings]

    assert levels(101) == ["wrong"]
    assert levels(100) == ["doubtful"]
    assert levels(5) == ["doubtful"]
    assert levels(4) == []


def test_a_range_that_is_much_too_wide_is_doubtful():
    found = looked(frame(), bounds={"height": (0, 100_000)})
    assert "100 % of the values of 'height' are in 2 % of its range" in said(found, "doubtful")[0]
    assert found.fine


def test_many_exactly_at_a_bound_are_worth_a_note():
    heights = frame()["height"].to_numpy().copy()
    heights[:50] = 40.0
    assert (
        "25 % of the values of 'height' are its lower bound"
        in said(looked(frame(height=heights)), "note")[0]
    )


def test_times_in_another_unit():
    found = looked(frame(day=np.linspace(0, 100, N) * 365.25), time_range=(0, 100))
    assert [one.name for one in found.wrong] == ["day"]
    narrow = looked(frame(day=np.linspace(0, 100, N) / 365.25))
    assert "nearest to one of the 5 times of interest" in narrow.wrong[0].what


def test_times_that_nobody_is_near():
    found = looked(frame(day=np.repeat([0.0, 50.0], N // 2)), bins=11)
    assert column(found, "day")["empty"] == 9
    assert "9 of the 11 times of interest have no record" in said(found, "note")[0]


def test_angles_come_again_beyond_their_period():
    angles = np.arange(N) * 7.0
    found = looked(frame(height=angles), bounds=None, columns={"height": pt.Angle(360)})
    assert (column(found, "height")["below"], column(found, "height")["above"]) == (0, 0)
    assert found.fine


def test_dates_as_times():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), unit="D")
    found = looked(frame(day=days), time_range=("2020-01-01", "2020-03-01"))
    assert column(found, "day")["above"] == N - 61
    assert found.wrong[0].what.startswith("70 % of the records have 'day' after the time range")
    refused = said(looked(frame(day=days)), "refused")
    assert refused[0].startswith("the time column 'day' holds dates but time_range and bins are")


# What a fit refuses ---------------------------------------------------------------------------

HOLES = [None, *frame()["height"][1:]]
REFUSED = {
    "missing": {"height": HOLES},
    "infinite": {"height": [np.inf, *frame()["height"][1:]]},
    "not whole": {"visits": [0.5, *frame()["visits"][1:]]},
    "not declared": {"sex": ["X", *frame()["sex"][1:]]},
    "twice": {"id": ["P1", *frame()["id"][1:]]},
    "nobody": {"id": [None, *frame()["id"][1:]]},
    "dates for numbers": {"height": [dt.date(2020, 1, 1)] * N},
    "no dates": {"born": np.arange(N)},
    "lists": {"sex": [["F"]] * N},
}


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED)
def test_what_a_fit_refuses_is_told_in_its_own_words(changes):
    with pytest.raises(InputError) as refused:
        pt.Snapshots.from_table(frame(**changes), **DECLARED)
    found = looked(frame(**changes))
    assert str(refused.value) in said(found, "refused")
    assert not found.fine


def test_a_table_that_a_fit_takes_is_fine_and_back():
    for missing in ("refuse", "drop"):
        found = looked(frame(height=HOLES), missing=missing)
        assert found.fine == (missing == "drop")
    assert not looked(frame()[:9]).fine


@pytest.mark.parametrize(
    "height",
    [
        ["171,5", "", *map(str, frame()["height"][2:] * 10)],
        [f"{x:.1f}".replace(".", ",") for x in frame()["height"]],
        ["tall"] * N,
    ],
    ids=["one", "all", "words"],
)
def test_cells_that_cannot_be_read_are_told_as_by_a_fit_and_the_others_seen(height, tmp_path):
    path = _file("t.csv")(frame(height=height), tmp_path)
    with pytest.raises(InputError) as refused:
        pt.Snapshots.from_table(path, **DECLARED, missing="drop")
    found = looked(path, missing="drop")
    assert str(refused.value) in said(found, "refused")
    known = sum(cell.replace(".", "").isdigit() for cell in height)
    assert column(found, "height")["known"] == column(found, "height")["above"] == known
    assert column(found, "height")["missing"] == height.count("")
    assert column(found, "height")["unreadable"] == N - known - height.count("")


def test_a_declared_dialect_is_used_and_shown_and_another_one_is_guessed(tmp_path):
    commas = [f"{x:.1f}".replace(".", ",") for x in frame()["height"]]
    path = _file("t.csv")(frame(height=commas, day=np.arange(N) // 2), tmp_path)
    found = looked(path, csv={"decimal": ","})
    assert found.fine
    assert "decimal commas" in found.read[0]
    assert len(found.read) == 1
    assert "seems to have" in looked(path).read[1]
    odd = looked(path, csv={"unreadable": "missing"}, missing="drop")
    assert "they count as missing, as you declared" in said(odd, "doubtful")[0]


def test_times_of_another_kind_in_a_file(tmp_path):
    days = [f"2020-01-{1 + k % 28:02d}" for k in range(N)]
    path = _file("t.csv")(frame(day=days), tmp_path)
    with pytest.raises(InputError) as refused:
        pt.Snapshots.from_table(path, **DECLARED)
    assert said(looked(path), "refused") == [str(refused.value)]


def test_numbers_and_dates_that_are_stored_as_text():
    refused = said(looked(frame(height=["170", *["x"] * (N - 1)])), "refused")
    assert refused == [
        "the numbers of 'height' are stored as text, of which 199 of 200 cells do not read as "
        "numbers: turn them into numbers"
    ]
    born = ["1960-05-06"] * N
    assert looked(frame(born=born)).fine
    assert not looked(frame(born=["6 May", *born[1:]])).fine


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_large_files_come_by_pieces(suffix, tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr(sql, "LARGE_FILE", 100)
    monkeypatch.setattr(sql, "BATCH", 64)
    cells_of = list(map(str, frame()["height"])) if suffix == "csv" else list(frame()["height"])
    if suffix == "csv":
        cells_of[-1] = "12 cm"
    path = _file(f"t.{suffix}")(frame(height=cells_of), tmp_path)
    seen = []
    add = look.TableTally.add
    monkeypatch.setattr(
        look.TableTally, "add", lambda self, block: seen.append(len(block)) or add(self, block)
    )
    found = looked(path)
    assert sum(seen) == found.records == found.people == N
    if suffix == "csv":
        assert "1 of 200 cells of column 'height' are not numbers" in str(found)
    assert column(found, "height")["known"] == N - (suffix == "csv")


@pytest.mark.parametrize("dated", [False, True])
def test_ranges_are_counted_while_a_fit_checks_its_records(dated, tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    table = frame(stage=["low", "strange"] * (N // 2), height=[*([300.0] * 150), *([39.0] * 50)])
    more = {"time_range": (10, 100)}
    if dated:
        table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(table["day"] * 86400, unit="s")
        more = {"time_range": ("2024-01-11", "2024-04-10")}

    def counted_of(source):
        counts = pt.Snapshots.from_table(source, **{**DECLARED, **more}).range_counts
        return looked(source, counted=counts, **more)

    whole = looked(table, **more)
    for name in ("t.parquet", "u.parquet"):
        _file(name)(table[:90] if name[0] == "t" else table[90:], tmp_path)
    monkeypatch.setattr(look.TableTally, "add", None)  # nor are they read again in memory
    in_database, in_memory = map(counted_of, (tmp_path, table))
    assert in_database.records == in_memory.records == N
    for one, *others in zip(whole.columns, in_database.columns, in_memory.columns, strict=True):
        for fault in ("known", "below", "above", "undeclared", "empty"):
            for other in others:
                assert one.get(fault) == other.get(fault), (one["name"], fault)
    assert in_database.wrong == in_memory.wrong == whole.wrong
    assert len(whole.wrong) == 1


# People, rows, other columns ------------------------------------------------------------------


def test_people_with_more_records_than_stated():
    often = frame(id=[f"P{k // 4}" for k in range(N)])
    refused = said(looked(often), "refused")
    assert refused[0].startswith("50 of 50 people have more than one record")
    found = looked(often, records_per_person=3, one_per_bin=False)
    assert found.fine
    assert said(found, "note")[0].startswith(
        "50 of 50 people have more records than the 3 that are kept, one of them 4"
    )
    assert not said(looked(often, records_per_person=4, one_per_bin=False), "note")


def test_equal_rows():
    table = pd.concat([frame(), frame()[:7]])
    found = looked(table, one_per_person="random")
    assert said(found, "doubtful")[0].startswith(
        f"7 of {N + 7} records are equal to an earlier one"
    )
    alone = looked(table, person=None)
    assert any("7 of 207 records are equal" in one for one in said(alone, "doubtful"))
    assert any("nobody checks" in one for one in said(alone, "note"))


def test_columns_that_are_not_used_are_listed_by_kind():
    notes = said(looked(frame(remarks=["x"] * N, weight=np.ones(N))), "note")
    assert notes[0].startswith("columns of text are not used: 'remarks': declare one")
    assert notes[1] == "other columns are not used: 'weight'"


def test_categories():
    found = looked(frame(stage=["none"] * N))
    assert found.wrong[0].what == "100 % of the values of 'stage' are not declared"
    misspelt = looked(frame(sex=[" f", *frame()["sex"][1:]]))
    assert "1 of 200 values of 'sex' differ from a declared one" in said(misspelt, "doubtful")[0]


def test_places_outside_a_domain():
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    rng = np.random.default_rng(0)
    table = {"t": rng.uniform(0, 1, N), "x": rng.uniform(0, 2, N), "y": rng.uniform(0, 2, N)}
    how = {"time": "t", "bounds": {"x": (0, 2), "y": (0, 2)}, "time_range": (0, 1)}
    found = pt.check(table, **how, domain=pt.Domain.polygon(square))
    assert "of the places 'x', 'y' are not in the domain" in found.wrong[0].what


# Public numbers -------------------------------------------------------------------------------


def test_public_numbers_of_another_table_are_plainly_wrong():
    assert looked(frame(), public_counts=[N / 5] * 5, columns=None).fine
    found = looked(frame(), public_counts=[3 * N / 5] * 5, columns=None)
    assert found.wrong[0].what == "the table has 200 records, and the public numbers are 600"


# Small things ---------------------------------------------------------------------------------


def test_how_a_file_was_read(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1;2\n")
    (how,) = how_read(tmp_path / "t.csv", None, PLAIN)
    assert how.startswith("read from CSV with semicolons between cells, decimal points")
    assert how_read({"a": [1]}, None, PLAIN) == ["read from a table in memory (dict)"]
    assert how_read("postgresql://clerk:pw@host/db", "visits", PLAIN) == [
        "read from a database (postgresql), by its query"
    ]


def test_shares_do_not_round_to_nobody_or_everybody():
    assert share(0, 10) == "0 %"
    assert share(1, 10**6) == "below 0.1 %"
    assert share(10**6 - 1, 10**6) == "above 99.9 %"
    assert share(98, 100) == "98.0 %"
    assert share(50, 100) == "50 %"
    assert share(0, 0) == "0 %"


# What comes back ------------------------------------------------------------------------------


def hashed(numbers):
    return row_hashes(len(numbers), [np.asarray(numbers, np.float64)])


@given(st.lists(st.lists(st.integers(0, 20), max_size=30), max_size=6))
def test_what_fits_is_counted_exactly(blocks):
    repeats = Repeats(most=25)
    for block in blocks:
        repeats.add(hashed(block))
    every = [number for block in blocks for number in block]
    expected = np.unique(every, return_counts=True)[1] if every else []
    assert sorted(repeats.counts) == sorted(expected)
    assert repeats.scale == 1


def test_what_does_not_fit_is_estimated_in_bounded_memory():
    """100,000 things, every tenth of them three times: 1,000 to 2,000 of them are counted, so a
    number has a relative deviation of 3 % at most, and the limits are seven of them wide."""
    repeats = Repeats(most=2000)
    for start in range(0, 100_000, 1000):
        repeats.add(hashed(np.arange(start, start + 1000)))
        repeats.add(hashed(np.repeat(np.arange(start, start + 1000, 10), 2)))
        assert len(repeats.counts) <= 2000
    assert repeats.scale > 1
    assert set(repeats.counts) == {1, 3}
    assert 80_000 < len(repeats.counts) * repeats.scale < 120_000
    several = int((repeats.counts == 3).sum()) * repeats.scale
    assert 3_000 < several < 17_000


def test_rows_are_equal_where_their_values_are():
    one = np.array([0.0, -0.0, np.nan, -np.nan, 1.0, 2.0])
    two = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1.0])
    found = row_hashes(6, [one, two])
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found.tolist())) == 4


def test_names_that_read_differently_are_different_people():
    assert len(set(text_hashes(["a", "b", -1, -2, "07", "7"]).tolist())) == 6
    assert text_hashes(["a"]) == text_hashes(["a"])


def test_numbers_that_need_a_word_more_get_it_in_every_source():
    rng = np.random.default_rng(0)
    hb, crp = rng.normal(13, 1.5, 400), np.exp(3 + rng.standard_normal(400))
    table = {"t": rng.random(400), "hb": np.where(rng.random(400) < 0.1, -99, hb), "crp": crp}
    table["clinic"] = np.full(400, 2.5)
    bounds = {"hb": (5, 20), "crp": (0.1, 500), "clinic": (0, 5)}
    declared = {"time": "t", "time_range": (0, 1), "bounds": bounds}
    said = " ".join(one.sentence for one in pt.check(table, **declared).findings)
    assert "'hb' has values of -99" in said
    assert "missing=True, missing_codes=[-99]" in said
    assert "'crp' is skewed: if its ratios matter, declare pt.LogNumber" in said
    assert "all values of 'clinic' seem to be the same" in said
    columns = {
        "hb": pt.Number(5, 20, missing=True, missing_codes=[-99]),
        "crp": pt.LogNumber(0.1, 500),
    }
    again = pt.check(table, time="t", time_range=(0, 1), columns=columns)
    assert not [one for one in again.findings if one.name in columns]
    assert again.columns[1]["missing"] > 20
