"""Who a record belongs to, as a value of any Arrow type: one person, or one sentence."""

import uuid
from decimal import Decimal

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.errors import InputError
from privtraj.columns.cells import identifier
from privtraj.data import records
from privtraj.data.snapshots import Snapshots
from privtraj.data.sql_rows import SqlRows
from privtraj.privacy.certificate import BY_PERSON, CHECKED, COMPARED, records_in_words

N = 12
K = list(range(N))
WORDS = [f"p{k}" for k in K]
BYTES = [bytes([255, k]) for k in K]
UUIDS = pa.array([bytes([k] * 16) for k in K], pa.binary(16))

PLAIN = {
    "int8": pa.array(K, pa.int8()),
    "uint64": pa.array([2**64 - 1 - k for k in K], pa.uint64()),
    "float16": pa.array(np.arange(N, dtype=np.float16)),
    "float32": pa.array([2**24 - 1 - k for k in K], pa.float32()),
    "float64": pa.array([2.0**53 - 1 - k for k in K]),
    "decimal32": pa.array(map(Decimal, K), pa.decimal32(5, 1)),
    "decimal64": pa.array(map(Decimal, K), pa.decimal64(12, 1)),
    "decimal128": pa.array(map(Decimal, K), pa.decimal128(30, 2)),
    "decimal256": pa.array(map(Decimal, K), pa.decimal256(50, 2)),
    "text": pa.array(WORDS),
    "large text": pa.array(WORDS, pa.large_string()),
    "text view": pa.array(WORDS, pa.string_view()),
    "bytes": pa.array(BYTES),
    "large bytes": pa.array(BYTES, pa.large_binary()),
    "bytes of one size": pa.array(BYTES, pa.binary(2)),
    "bytes view": pa.array(BYTES, pa.binary_view()),
    "categories": pa.array(WORDS).dictionary_encode(),
    "categories of numbers": pa.array(K).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays(np.arange(1, N + 1, dtype=np.int32), WORDS),
    "a part of runs": pa.RunEndEncodedArray.from_arrays(
        np.arange(3, N + 6, dtype=np.int32), [*WORDS, "q", "r", "s"]
    )[2 : N + 2],
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), UUIDS),
    "runs of categories": pa.RunEndEncodedArray.from_arrays(
        np.arange(1, N + 1, dtype=np.int32), pa.array(WORDS).dictionary_encode()
    ),
}
NOT_PLAIN = {
    "list": pa.array([[k] for k in K]),
    "fixed_size_list": pa.array([[k] for k in K], pa.list_(pa.int64(), 1)),
    "large_list": pa.array([[k] for k in K], pa.large_list(pa.int64())),
    "list_view": pa.array([[k] for k in K], pa.list_view(pa.int64())),
    "struct": pa.array([{"Ottoline": k} for k in K]),
    "map": pa.array([[("a", k)] for k in K], pa.map_(pa.string(), pa.int64())),
    "sparse_union": pa.UnionArray.from_sparse(pa.array([0] * N, pa.int8()), [pa.array(K)]),
    "dense_union": pa.UnionArray.from_dense(
        pa.array([0] * N, pa.int8()), pa.array(K, pa.int32()), [pa.array(K)]
    ),
    "date32": pa.array(K, pa.date32()),
    "time64": pa.array(K, pa.time64("ns")),
    "timestamp": pa.array(K, pa.timestamp("us", "Europe/Berlin")),
    "duration": pa.array(K, pa.duration("ns")),
    "month_day_nano_interval": pa.array([(k, 1, 2) for k in K], pa.month_day_nano_interval()),
    "list in categories": pa.DictionaryArray.from_arrays(pa.array(K), pa.array([[k] for k in K])),
}
IN_DUCKDB = ("struct", "list", "map", "duration", "timestamp", "sparse_union")
PUBLIC = {"time": "t", "bounds": {"x": (0, 1)}, "time_range": (0, N), "bins": 3, "person": "id"}


def _table(ids):
    return pa.table({"id": ids, "t": np.arange(N) * 1.0, "x": np.linspace(0, 1, N)})


def _in_duckdb(table):
    connection = ibis.duckdb.connect()
    connection.con.register("arrow", table)
    connection.raw_sql("CREATE TABLE visits AS SELECT * FROM arrow")
    return connection.table("visits")


def _message(source, **options):
    with pytest.raises(InputError) as refused:
        Snapshots.from_table(source, **PUBLIC, **options)
    return str(refused.value)


@pytest.mark.parametrize("kind", PLAIN)
def test_plain_values_say_who(kind):
    once = _table(PLAIN[kind])
    Snapshots.from_table(once, **PUBLIC)
    twice = pa.concat_tables([once, once])
    assert f"{N} of {N} people have more than one record" in _message(twice)
    kept = Snapshots.from_table(twice, **PUBLIC, one_per_person="random", seed=1)
    assert len(kept._rows.times) == N
    Snapshots.from_arrays(
        np.arange(N), np.linspace(0, 1, N), bounds=[(0, 1)], bins=[0, N], person=PLAIN[kind]
    )


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_other_values_are_answered_in_a_sentence(kind):
    said = _message(_table(NOT_PLAIN[kind]))
    assert said == (
        f"the person column 'id' holds no plain values (their type is {kind.split(' ')[0]}): give "
        "one number or text per record"
    )
    assert said == _message(_table(NOT_PLAIN[kind]), one_per_person="random")


@pytest.mark.slow
@pytest.mark.parametrize("kind", IN_DUCKDB)
def test_a_database_gives_the_same_sentence(kind):
    named = "unknown" if kind == "sparse_union" else kind  # Ibis knows none
    assert f"(their type is {named})" in _message(_in_duckdb(_table(NOT_PLAIN[kind])))


@pytest.mark.parametrize("there", [False, True], ids=["memory", "database"])
def test_equal_numbers_are_one_person_and_nan_is_nobody(there):
    def source(*first):
        table = _table(pa.array([*first, *(k + 5.0 for k in K[2:])]))
        return _in_duckdb(table) if there else table

    assert "1 of 11 people have more than one record" in _message(source(0.0, -0.0))
    nobody = f"2 of {N} records do not say whose they are"
    assert nobody in _message(source(float("nan"), float("nan")))
    assert nobody in _message(source(float("nan"), None))


def test_nobody_is_named_in_a_column_of_nulls():
    assert f"{N} of {N} records do not say whose they are" in _message(_table(pa.nulls(N)))


def test_objects_of_python_are_answered_in_a_sentence():
    frame = pd.DataFrame({"t": np.arange(N) * 1.0, "x": np.linspace(0, 1, N)})
    for ids, said in [
        ([(k, k) for k in K], "holds no plain values (their type is list)"),
        ([{"a": k} for k in K], "holds no plain values (their type is struct)"),
        ([*WORDS[1:], 7], "mixes kinds of values"),
        ([object() for _ in K], "mixes kinds of values"),
        ([complex(k) for k in K], "mixes kinds of values"),
    ]:
        assert said in _message(frame.assign(id=ids))


def test_codes_do_not_depend_on_how_a_column_is_cut():
    whole = pa.chunked_array([PLAIN["float64"]])
    parts = pa.chunked_array([PLAIN["float64"][:5], PLAIN["float64"][5:]])
    for column in (whole, parts):
        codes, ids = records.identities(column, "id")
        assert codes.tolist() == K
        assert len(ids) == N


def test_a_database_of_plain_values_stays_there():
    for kind in ("text", "uuid", "float64", "decimal128"):
        there = Snapshots.from_table(_in_duckdb(_table(PLAIN[kind])), **PUBLIC)
        assert isinstance(there._rows, SqlRows)


# One person, written in several ways ----------------------------------------------------------

WAYS = ["p1", " p1", "p1 ", "P1"]
OTHERS = [f"q{k}" for k in range(20)]
COMPARED_AS = {"exact": 24, "trimmed": 22, "folded": 21}


def _written(ids):
    n = len(ids)
    return pa.table({"id": ids, "t": [float(k % 5) for k in range(n)], "x": [0.5] * n})


def _of(source, same, **more):
    return Snapshots.from_table(
        source,
        time="t",
        bounds={"x": (0, 1)},
        time_range=(0, 5),
        person="id",
        one_per_person="random",
        same_person=same,
        **more,
    )


@pytest.mark.parametrize("same", COMPARED_AS)
@pytest.mark.parametrize("kind", ["table", "csv", "arrays", "duckdb"])
def test_what_is_one_person_is_declared_and_on_the_certificate(same, kind, tmp_path):
    table = _written([*WAYS, *OTHERS])
    if kind == "arrays":
        snapshots = Snapshots.from_arrays(
            table["t"].to_numpy(),
            table["x"].to_numpy(),
            bounds=[(0, 1)],
            time_range=(0, 5),
            person=table["id"].to_pylist(),
            one_per_person="random",
            same_person=same,
        )
    else:
        source = table
        if kind == "csv":
            source = tmp_path / "t.csv"
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            lines = [",".join(map(str, row)) for row in rows]
            source.write_text("\n".join(["id,t,x", *lines, ""]))
        if kind == "duckdb":
            connection = ibis.duckdb.connect()
            connection.con.register("written", table)
            source = connection.table("written")
        snapshots = _of(source, same)
    counted = snapshots._rows.cell_counts(snapshots.axis.bins, (1,)).sum()
    assert counted == COMPARED_AS[same]
    assert snapshots.public_inputs()[CHECKED] == [BY_PERSON, COMPARED[same]]
    assert COMPARED[same] in records_in_words(snapshots.public_inputs())


@pytest.mark.parametrize("odd", ["p1\0", "p\t1", "p1\u200b", "\ufeffp1", "p1\x85", "p\u202e1"])
@pytest.mark.parametrize("kind", ["table", "duckdb"])
def test_identifiers_that_nobody_can_tell_apart_are_refused(odd, kind):
    source = _written([odd, *OTHERS])
    if kind == "duckdb":
        connection = ibis.duckdb.connect()
        connection.con.register("written", source)
        source = connection.table("written")
    with pytest.raises(InputError, match="1 of 21 records have control or invisible characters"):
        _of(source, "exact")


def test_a_way_to_compare_that_there_is_not():
    with pytest.raises(InputError, match="same_person must be 'exact', 'trimmed' or 'folded'"):
        _of(_written(OTHERS), "alike")


# As bytes, that are compared with those of other tables ----------------------------------------


@pytest.mark.parametrize("kind", PLAIN)
def test_people_of_every_kind_have_bytes_of_their_own(kind):
    _, ids = records.identities(pa.chunked_array([PLAIN[kind]]), "id")
    assert len(set(records.written(ids))) == N


def test_a_number_has_the_same_bytes_however_it_is_stored():
    ways = [pa.array([7]), pa.array([7.0]), pa.array([Decimal("7.00")]), pa.array(["7"])]
    assert {records.written(one)[0] for one in ways} == {b"7"}
    assert records.written(pa.array([Decimal("0.50"), Decimal("-3.00")])) == [b"0.5", b"-3"]


def _ways(n):
    """How tools write the number of a person."""
    mark = "-" if n < 0 else ""
    yield from (f"{n}", f" {n} ", f"{mark}00{abs(n)}", f"{n}e0", n, Decimal(n), Decimal(f"{n}.00"))
    yield str(n).encode()
    if abs(n) < 2**53:
        yield from (f"{n}.0", f"{n}.", f"{n}.000", f"{n},0", float(n), str(float(n)))
    if n >= 0:
        yield f"+{n}" if n < 2**53 else f"0{n}"
    if n % 1000 == 0 and abs(n) < 2**53:
        yield f"{n // 1000}e+03"


@settings(max_examples=30)
@given(
    st.sets(st.integers(-(10**18), 10**18), min_size=2, max_size=3),
    st.sampled_from([*COMPARED]),
    st.randoms(),
)
def test_one_number_is_one_person_however_it_is_written_and_two_are_two(numbers, same, random):
    """In one table of text, and in tables of any type that are compared by their bytes."""
    texts = [(n, way) for n in numbers for way in _ways(n) if isinstance(way, str)]
    random.shuffle(texts)
    codes, _ = records.identities(pa.chunked_array([[way for _, way in texts]]), "id", same)
    pairs = {(n, code) for (n, _), code in zip(texts, codes.tolist(), strict=True)}
    assert len(pairs) == len({code for _, code in pairs}) == len(numbers)
    for n in numbers:
        each = [records.identities(pa.chunked_array([[way]]), "id", same) for way in _ways(n)]
        assert {records.written(ids)[0] for _, ids in each} == {str(n).encode()}


@given(st.text(st.sampled_from("0017.,eE+- aF"), min_size=1, max_size=12))
def test_a_form_has_no_other_form_and_no_exponent_is_too_large_to_read(text):
    form = identifier(text)
    assert form is None or identifier(form) == form


def test_a_uuid_and_a_digest_are_one_person_as_text_or_as_bytes():
    for one in (uuid.UUID(int=7), uuid.UUID("550e8400-e29b-41d4-a716-446655440000")):
        ways = [[str(one)], [str(one).upper()], [one.hex], [one.hex.upper()], [one.hex.encode()]]
        ways += [[one.bytes]] if one.int > 7 else []  # those of 7 might be text
        columns = [pa.chunked_array([way]) for way in ways]
        stored = pa.array([one.bytes], pa.binary(16))
        columns.append(pa.chunked_array([pa.ExtensionArray.from_storage(pa.uuid(), stored)]))
        found = {records.written(records.identities(way, "id")[1])[0] for way in columns}
        assert found == {one.hex.encode()}


ROUNDED = {
    "fractions": pa.array([7.5]),
    "doubles": pa.array([2.0**53]),
    "reals": pa.array([2.0**24], pa.float32()),
    "infinity": pa.array([np.inf]),
    "of a spreadsheet": pa.array(["1.23457E+11"]),
    "of doubles": pa.array(["9007199254740992.0"]),
    "of large doubles": pa.array(["1e+16"]),
}


@pytest.mark.parametrize("there", [False, True], ids=["memory", "database"])
@pytest.mark.parametrize("kind", ROUNDED)
def test_rounded_numbers_are_nobody(kind, there):
    one = ROUNDED[kind]
    others = pa.array([f"{k}" for k in K[1:]]).cast(one.type)
    table = _table(pa.concat_arrays([one, others]))
    said = f"1 of {N} records have numbers in the person column 'id' that were rounded"
    assert said in _message(_in_duckdb(table) if there else table)


def test_wide_letters_and_small_ones_are_one_person_where_texts_are_folded():
    column = pa.chunked_array([["p1", "\uff301", " P1 ", "p2"]])
    assert records.identities(column, "id", "folded")[0].tolist() == [0, 0, 0, 1]
    assert records.identities(column, "id", "trimmed")[0].tolist() == [0, 1, 2, 3]
