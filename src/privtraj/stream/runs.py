"""Hashes of people on disk, and which batches they were in: sorted runs in a SQLite file.

Keyed hashes are random: in one sorted list, such as a B-tree, the people of a batch touch nearly
all pages. So each batch is written as a run of its own, and four runs of about one size, between
two powers of four, become one (a log-structured merge-tree, O'Neil et al. 1996). Everybody is
written log4(batches) times, and a batch is compared with at most three runs of each size.

A run is cut into `PARTS` by the last byte of the hash, and one part at a time is in memory: of 10^8
people 1.6 10^6, in 31 MB. A part is, in order of heads,

    heads    (n,) the first four bytes of each, which are all that is read of people who are others
    tails    (n,) the twelve bytes behind them
    batches  (n,) in which batch each was

Whoever calls has begun a transaction (`stream.people`), so a run and those that it replaces change
on the disk together or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Ints

PARTS = 64
BYTES = 16  # of a hash
AT_ONCE = 2**18  # people of a run that was rows
TABLES = """
CREATE TABLE IF NOT EXISTS run (number INTEGER PRIMARY KEY, people INTEGER);
CREATE TABLE IF NOT EXISTS part (place INTEGER PRIMARY KEY, heads BLOB, tails BLOB, batches BLOB);
CREATE TEMP TABLE IF NOT EXISTS coming (place INTEGER PRIMARY KEY, hashes BLOB);
"""
_KINDS = np.dtype("<u4"), np.dtype("S12"), np.dtype("<u4")
_ROOM = 2**32  # for runs of a part: a key of two columns would be compared by reading whole rows
Hashes = NDArray[np.bytes_]
"""(n,) of 16 bytes each. An element lacks its last zeros; `whole` does not."""


def hashes_of(some: Iterable[bytes]) -> Hashes:
    """An array of hashes."""
    return np.frombuffer(b"".join(some), f"S{BYTES}")


def whole(people: Hashes) -> list[bytes]:
    """All bytes of each."""
    found: list[bytes] = people.view(f"V{BYTES}").tolist()
    return found


def bring(db: sqlite3.Connection, some: Iterable[bytes]) -> None:
    """Set people aside, by part, for `coming`."""
    (count,) = db.execute("SELECT COUNT(*) FROM coming").fetchone()
    people = hashes_of(some)
    rows = [(k * _ROOM + count, people[own].tobytes()) for k, own in _by_part(people)]
    db.executemany("INSERT INTO coming VALUES (?, ?)", rows)


def coming(db: sqlite3.Connection) -> Iterator[tuple[int, Hashes]]:
    """The people who were brought, each once, part by part, in order of heads."""
    for part in range(PARTS):
        rows = db.execute("SELECT hashes FROM coming WHERE place BETWEEN ? AND ?", _span(part))
        people = hashes_of(chain.from_iterable(rows))
        heads = _cut(people)[0]
        order = np.argsort(heads)
        if (np.diff(heads[order]) == 0).any():  # else nobody is there twice
            people = np.unique(people)
            order = np.argsort(_cut(people)[0])
        yield part, people[order]


def known(db: sqlite3.Connection, part: int, people: Hashes) -> tuple[Ints, Ints]:
    """Who of these people of a part is in which batch: an index and a batch for each time."""
    heads, tails = _cut(people)
    which, when = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    rows = db.execute("SELECT place, heads FROM part WHERE place BETWEEN ? AND ?", _span(part))
    for place, data in rows:
        stored = np.frombuffer(data, _KINDS[0])
        first = np.searchsorted(stored, heads)
        there = np.flatnonzero(stored.take(first, mode="clip") == heads)
        if not len(there):
            continue
        first, many = first[there], np.searchsorted(stored, heads[there], "right") - first[there]
        index = np.repeat(there, many)
        at = np.arange(len(index)) + np.repeat(first - np.cumsum(many) + many, many)
        _, others, batches = _read(db, [place])
        same = others[at] == tails[index]
        which.append(index[same])
        when.append(batches[at[same]].astype(np.int64))
    return np.concatenate(which), np.concatenate(when)


def begin(db: sqlite3.Connection) -> int:
    """The number of a new run."""
    return int(db.execute("INSERT INTO run (people) VALUES (0)").lastrowid or 0)


def put(db: sqlite3.Connection, run: int, part: int, people: Hashes, batches: Any) -> None:
    """People of a part, in a batch each or all in one, as part of a run."""
    each = np.broadcast_to(np.asarray(batches, _KINDS[2]), len(people))
    _write(db, run, part, (*_cut(people), each))


def merge(db: sqlite3.Connection) -> None:
    """Make one run of those of about one size, wherever there are four."""
    db.execute("DELETE FROM run WHERE people = 0")
    groups = [(count, [run]) for run, count in db.execute("SELECT number, people FROM run")]
    while True:
        alike: dict[int, list[tuple[int, list[int]]]] = {}
        for one in groups:
            alike.setdefault((one[0].bit_length() - 1) // 2, []).append(one)
        many = next((some for some in alike.values() if len(some) >= 4), None)
        if many is None:
            break
        joined = sum(count for count, _ in many), [run for _, runs in many for run in runs]
        groups = [*(one for one in groups if one not in many), joined]
    for runs in (runs for _, runs in groups if len(runs) > 1):
        new, gone = begin(db), [(part * _ROOM + run,) for part in range(PARTS) for run in runs]
        for part in range(PARTS):
            _write(db, new, part, _read(db, [part * _ROOM + run for run in runs]))
        db.executemany("DELETE FROM part WHERE place = ?", gone)
        db.executemany("DELETE FROM run WHERE number = ?", [(run,) for run in runs])


def counted(db: sqlite3.Connection) -> tuple[int, int]:
    """How many people there are, and how many of them are in several batches."""
    people = several = 0
    for part in range(PARTS):
        rows = db.execute("SELECT place FROM part WHERE place BETWEEN ? AND ?", _span(part))
        heads, tails, _ = _read(db, list(chain.from_iterable(rows)))
        order = np.lexsort((tails, heads))
        same = (heads[order][1:] == heads[order][:-1]) & (tails[order][1:] == tails[order][:-1])
        people += len(order) - int(same.sum())
        several += int((same & ~np.append(False, same[:-1])).sum())
    return people, several


def from_rows(db: sqlite3.Connection) -> None:
    """Make runs of the table `person` of a file that an earlier version made."""
    rows = db.execute("SELECT hash, batch FROM person")
    while some := rows.fetchmany(AT_ONCE):
        run, people = begin(db), hashes_of(one for one, _ in some)
        batches = np.array([batch for _, batch in some])
        for part, own in _by_part(people):
            put(db, run, part, people[own], batches[own])
        merge(db)
    db.execute("DROP TABLE person")


def _span(part: int) -> tuple[int, int]:
    return part * _ROOM, (part + 1) * _ROOM - 1


def _by_part(people: Hashes) -> list[tuple[int, Ints]]:
    """The parts that have anybody, and whom."""
    part = people.view(np.uint8).reshape(-1, BYTES)[:, -1] % PARTS
    order = np.argsort(part, kind="stable")
    own = np.split(order, np.searchsorted(part[order], np.arange(1, PARTS)))
    return [(k, some) for k, some in enumerate(own) if len(some)]


def _cut(people: Hashes) -> tuple[Any, Any]:
    """Heads and tails."""
    columns = people.view(np.uint8).reshape(-1, BYTES)
    heads, tails = np.ascontiguousarray(columns[:, :4]), np.ascontiguousarray(columns[:, 4:])
    return heads.view(_KINDS[0])[:, 0], tails.view(_KINDS[1])[:, 0]


def _read(db: sqlite3.Connection, places: list[int]) -> tuple[Any, ...]:
    """Heads, tails and batches of parts, one behind the other."""
    marks = ", ".join("?" * len(places))
    query = f"SELECT heads, tails, batches FROM part WHERE place IN ({marks})"
    rows = db.execute(query, places).fetchall() or [(b"", b"", b"")]
    columns = zip(zip(*rows, strict=True), _KINDS, strict=True)
    return tuple(np.frombuffer(b"".join(data), kind) for data, kind in columns)


def _write(db: sqlite3.Connection, run: int, part: int, columns: tuple[Any, ...]) -> None:
    order = np.argsort(columns[0], kind="stable")
    if len(order):
        data = [column[order].tobytes() for column in columns]
        db.execute("INSERT INTO part VALUES (?, ?, ?, ?)", [part * _ROOM + run, *data])
        db.execute("UPDATE run SET people = people + ? WHERE number = ?", [len(order), run])
