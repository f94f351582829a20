"""The table of formats: every entry names what there is, and no two claim one name."""

from pathlib import Path

import pytest

from privtraj import formats
from privtraj.data.tables import Reader
from privtraj.paths import SUFFIXES

WORKERS = ("write_table", "write_paths", "check_paths")


@pytest.mark.parametrize("known", formats.FORMATS, ids=lambda known: known.name)
def test_every_reader_and_writer_exists(known):
    if known.reader:
        assert issubclass(formats.load(known.reader), Reader)
    places = [getattr(known, worker) for worker in WORKERS]
    assert all(callable(formats.load(place)) for place in places if place)
    assert known.reader or any(places)


@pytest.mark.parametrize("suffix", formats.suffixes(formats.FORMATS))
def test_a_suffix_belongs_to_one_format(suffix):
    path = Path(f"a.b{suffix.upper()}")
    claims = [known for known in formats.FORMATS if path.name.lower().endswith(known.suffixes)]
    assert claims == [formats.format_of(path, formats.FORMATS)]


def test_paths_can_be_written_in_these_formats():
    tables = (".csv", ".csv.gz", ".parquet", ".pq", ".arrow", ".feather")
    assert (*tables, ".geojson", ".geoparquet", ".h5ad") == SUFFIXES
