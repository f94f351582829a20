"""The table of formats: no two claim one name; no text of a CSV file runs in a spreadsheet."""

import csv
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtraj.base import formats
from privtraj.export.tables import write_table
from privtraj.model.paths import SUFFIXES, Paths


@pytest.mark.parametrize("suffix", formats.suffixes(formats.FORMATS))
def test_a_suffix_belongs_to_one_format(suffix):
    path = Path(f"a.b{suffix.upper()}")
    claims = [known for known in formats.FORMATS if suffix in known.suffixes]
    assert claims == [formats.format_of(path, formats.FORMATS)]
    assert claims == [formats.format_of(path, formats.FORMATS[::-1])]


def test_paths_can_be_written_in_these_formats():
    tables = (".csv", ".csv.gz", ".parquet", ".pq", ".arrow", ".feather")
    lines = (".trips.geojson", ".points.geojson", ".geojson")
    assert (*tables, *lines, ".geoparquet", ".h5ad") == SUFFIXES


# Spreadsheets ---------------------------------------------------------------------------------

BEGINNINGS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


def _read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_names_of_columns_are_no_formulas(tmp_path):
    names = ('=HYPERLINK("http://evil")', "-2+3", "height")
    paths = Paths(np.full((2, 3, 3), -1.5), np.arange(3.0), names, "@SUM(A1)", False)
    paths.save(tmp_path / "p.csv")
    first, second, *_ = _read(tmp_path / "p.csv")
    assert first == ["path", "'@SUM(A1)", '\'=HYPERLINK("http://evil")', "'-2+3", "height"]
    assert second == ["0", "0", "-1.5", "-1.5", "-1.5"]  # numbers are numbers
    assert paths.to_arrow().column_names[1:] == ["@SUM(A1)", *names]  # elsewhere nothing runs


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), "string")]
)
def test_texts_and_categories_are_no_formulas(kind, tmp_path):
    texts = pa.array(["=1+1", "'=1+1", "it's", "a=b", None, "-", ""]).cast(kind)
    write_table(pa.table({"who": texts, "what": np.arange(-3, 4)}), tmp_path / "t.csv")
    shown = [who for who, _ in _read(tmp_path / "t.csv")[1:]]
    assert shown == ["'=1+1", "''=1+1", "it's", "a=b", "", "'-", ""]
    assert [what for _, what in _read(tmp_path / "t.csv")[1:]] == [str(k) for k in range(-3, 4)]


@given(st.lists(st.text("='-@+a\t\uff1d", max_size=4), min_size=1, max_size=5, unique=True))
def test_every_name_can_be_read_back(tmp_path_factory, names):
    """By taking one apostrophe away where some stand before such a beginning."""
    path = tmp_path_factory.mktemp("names") / "t.csv"
    write_table(pa.table({name: [1] for name in names}), path)
    (written, _) = _read(path)
    assert not any(name.startswith(tuple(BEGINNINGS)) for name in written)
    assert [re.sub(f"^'('*[{re.escape(BEGINNINGS)}])", r"\1", name) for name in written] == names
