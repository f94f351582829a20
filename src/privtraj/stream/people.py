"""Who was here before: keyed hashes of identifiers, in a file beside the ledger.

Batches of different people compose in parallel (`privacy.accounting`): everybody pays for one
branch. Here it is checked that they are different. Identifiers are compared as the table's own
check compares them (`data.records.identities`, as written, trimmed or folded; a number is one
person however it is written, `columns.cells.identifier`). Of each the file has 16 bytes of blake2b
under the steward's secret key: without the key nobody can test who is in it, and two of 10^8 people
are taken for one with a chance of 10^-23. File, key and what is counted of returning people stay in
the house: no number of them is in a model, a certificate or a report.

What becomes of people who return is the steward's choice.

    refuse  The domain of the guarantee is streams in which nobody returns.

    skip    All records of a person are left out of every batch but the first fitted one that has
            any. Let D_1, D_2, ... be the batches, and D_t(p) the records of person p in D_t. What
            batch t measures of p is S_t(p) = D_t(p) if D_s(p) is empty for all fitted s < t, else
            nothing: a function of p's own records and of which batches were fitted. Neighbours
            are streams that differ by *all* records of one person, and of which the same batches
            are fitted. Then S_t(q) is the same for every other q and all t, and S_t(p) is empty
            for all t but one: one branch has one person more or less, as Parallel takes it.
            (Streams that differ by p's records of one batch alone are no neighbours: without the
            first ones p would count in a later batch, a move from branch to branch.)
            With replace-one p's records may begin in another batch: the move that Parallel pays.

    pay     A person is in at most `most_batches` = k batches, or in k of those that any
            `window_days` of the ledger touch: public numbers; tables with more are refused.
            S_t(p) is then not empty for at most k branches, whose losses add up: the cap of the
            ledger holds for the sum of the k largest budgets, of any window, and a certificate
            composes the k dearest batches exactly. Neither depends on who returns.

Consent that is withdrawn is noted by its hash (`withdraw`): whatever becomes of others who return,
records of that person are left out of every batch that begins later, as if they had not come.
S_t(p) is then empty from some t on, by p's own word: one more function of p alone. What was
released before stays, and so does what was spent.

Whether a batch is fitted, with ten people left or under a cap, depends on records and is seen by
the steward alone, as every refusal of a table (`data.records`).

Order of writes, so that a kill between any two of them, or a full disk, neither spends twice nor
forgets who was in:

    1. the id of the coming reservation, here          (so the ledger has no fit unknown here)
    2. the reservation of that id, in the ledger       (once: the same id is reserved once)
    3. who is in it, here, in one transaction          (written before 2, and whole after it)
    4. the fit, and only then anything that is seen

Killed before 3, nothing was released; a restart with the same id (`stream.watch`) repeats 2 and 3,
which change nothing where they were done. After 3 the file and the ledger both know.

SQLite, of the standard library, keeps the file: a transaction is whole or not at all after a kill
(rollback journal, flushed: one file at rest, to be backed up with the ledger), one writer at a
time over processes. Hashes lie in it in sorted runs (`stream.runs`, 20 bytes a person, and as much
again that was in use while runs were joined), which are never loaded.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from privtraj.base.errors import Arg, InputError, either, is_whole
from privtraj.base.files import check_writable
from privtraj.data.records import identities, written
from privtraj.data.snapshots import Snapshots
from privtraj.privacy.accounting import together
from privtraj.privacy.certificate import BATCHES, BY_PERSON, COMPARED, Certificate
from privtraj.privacy.events import Adjacency
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.stream import runs

RETURNING = ("refuse", "skip", "pay")
MOST_BATCHES = 20
"""Of a person who returns: far more would take long to compute; windows alone need no number."""
BY_HASHES = "by keyed hashes of identifiers"
_FORMAT = "3"  # 2 had a row for each person, 1 told the number 7 from 007
_ROWS = "SELECT 1 FROM about WHERE name = 'format' AND value = '2'"
_WAIT = 600.0  # seconds for another process that writes
_TABLES = f"""
PRAGMA synchronous = EXTRA;
PRAGMA cache_size = -65536;
PRAGMA secure_delete = 0;
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch (number INTEGER PRIMARY KEY, entry TEXT UNIQUE, people INTEGER,
    first REAL, last REAL);
CREATE TABLE IF NOT EXISTS withdrawn (hash BLOB PRIMARY KEY, since INTEGER) WITHOUT ROWID;
{runs.TABLES}"""


def new_key(path: str | os.PathLike[str]) -> None:
    """Make the steward's secret key, in a file that only the owner may read."""
    check_writable(Path(path), force=False)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{secrets.token_hex(32)}\n")


class People:
    """The people of all batches of one ledger.

    returning: what becomes of those who are in an earlier batch: "refuse" the table, "skip" their
        records, or "pay" for them as further records.
    most_batches: public, with "pay": in how many batches a person may be at most.

    seen: after a batch, what the steward should know about who returned; for no other eyes.
    """

    def __init__(
        self, path: Path, key: bytes, returning: str = "refuse", most_batches: int = 1
    ) -> None:
        if returning not in RETURNING:
            words = either([f"'{each}'" for each in RETURNING])
            raise InputError(Arg("returning"), f" must be {words}, not '{returning}'")
        whole = is_whole(most_batches) and most_batches <= MOST_BATCHES
        if not whole or (most_batches > 1) != (returning == "pay"):
            raise InputError(
                Arg("most_batches"),
                f" is a whole number from 2 to {MOST_BATCHES} with ",
                Arg("returning", "pay"),
                ", which says in how many batches a person may be, and goes with nothing else",
            )
        self.path, self._key = path, key
        self.returning, self.most_batches = returning, int(most_batches)
        self.seen = ""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        key: str | os.PathLike[str],
        *,
        returning: str = "refuse",
        most_batches: int = 1,
    ) -> Self:
        """The file of people, which the first batch makes, and the file of the key (`new_key`)."""
        text = ""
        with suppress(OSError, ValueError), open(key, encoding="ascii") as file:
            text = file.read(100).strip()
        if not re.fullmatch("[0-9a-f]{64}", text):
            raise InputError(
                f"'{key}' is not a key for hashes of people: check the path, or make one with "
                "privtraj people --new-key FILE"
            )
        return cls(Path(path), bytes.fromhex(text), returning, most_batches)

    def in_words(self, days: float | None = None) -> str:
        """What a certificate says was checked; it tells nothing about who returned.  days: of a
        window of the ledger."""
        when = "" if days is None else f" of any {days:g} days"
        return {
            "refuse": f"nobody in these records is among people of earlier batches, {BY_HASHES}",
            "skip": f"records of people of earlier batches are left out, {BY_HASHES}",
            "pay": f"nobody is in more than {self.most_batches} batches{when}, {BY_HASHES}",
        }[self.returning]

    def hashed(self, identifier: bytes) -> bytes:
        """What stands for a person in the file."""
        return blake2b(identifier, digest_size=16, key=self._key).digest()

    def admit(
        self,
        snapshots: Snapshots,
        ledger: LedgerFile,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        what: str,
        *,
        new_people: bool = False,
    ) -> tuple[Snapshots, str]:
        """Reserve in the ledger for those who may be in, and note who they are; their snapshots,
        and the id of the reservation. A refusal reserves nothing.

        new_people: the steward's word about fits of the ledger that this file does not know.
        """
        if BY_PERSON not in snapshots.checked:
            raise InputError(
                Arg("people"),
                " compares identifiers: say which column has them with ",
                Arg("person="),
            )
        compared = next(one for one in snapshots.checked if one in COMPARED.values())
        entry, days = ledger.new_entry(), ledger.window_days
        with self._opened(create=True) as db:
            for some in snapshots.hashed_people(self.hashed):
                runs.bring(db, some)
            with _writing(db):
                self._check_same(db, compared)
                known = (entry, *snapshots.span)
                db.execute(
                    "INSERT OR IGNORE INTO batch (entry, first, last) VALUES (?, ?, ?)", known
                )
            with _writing(db):
                numbers = dict(db.execute("SELECT entry, number FROM batch"))
                own = numbers[entry]
                fits = [one for one in self._spent(db, ledger) if one["fingerprint"] is not None]
                apart = new_people or all(one["id"] in numbers for one in fits)
                count, gone = self._noted(db, own, days)
                snapshots = snapshots.without_people(self.hashed, gone) if gone else snapshots
                db.execute("UPDATE batch SET people = ? WHERE number = ?", [count, own])
                claim = (snapshots._digest, epsilon, delta, adjacency, what)
                how: dict[str, Any] = {"new_people": apart, "span": snapshots.span}
                ledger.reserve(*claim, **how, most=self.most_batches, entry=entry)
        return replace(snapshots, checked=(*snapshots.checked, self.in_words(days))), entry

    def tells_apart(self, model: Certificate, ledger: LedgerFile) -> bool:
        """Whether all people of a model are in the file: so people of its next batch are others,
        or in no more batches than they may, once it is admitted."""
        if not self.path.is_file():
            return False
        entries = {one["model"]: one["id"] for one in ledger.entries()}
        with self._opened() as db:
            noted = {one for (one,) in db.execute("SELECT entry FROM batch WHERE people > 0")}
        later = model.public_inputs.get(BATCHES, [])[1:]
        known = model.model_sha256 is not None and entries.get(model.model_sha256) in noted
        return known and all(BY_HASHES in one["people"] for one in later)

    def withdraw(self, identifiers: Sequence[str], ledger: LedgerFile) -> dict[str, int]:
        """Leave these people out of every batch that begins from now on. How many they are, and
        how many of them are in what was released; for the steward alone.

        The ledger notes that it was done, and names nobody.
        """
        with self._opened() as db, _writing(db):
            compared = dict(db.execute("SELECT * FROM about")).get("compared", COMPARED["exact"])
            self._check_same(db, compared)
            same = next(word for word, words in COMPARED.items() if words == compared)
            column = pa.chunked_array([pa.array(identifiers, pa.string())])
            hashes = [(self.hashed(one),) for one in written(identities(column, "id", same)[1])]
            (last,) = db.execute("SELECT COALESCE(MAX(number), 0) FROM batch").fetchone()
            db.executemany(f"INSERT OR IGNORE INTO withdrawn VALUES (?, {last})", hashes)
            runs.bring(db, (one for (one,) in hashes))
            there = [runs.known(db, part, people)[0] for part, people in runs.coming(db)]
            released = sum(len(np.unique(which)) for which in there)
            ledger.note("consent was withdrawn: later batches leave out the records of whoever did")
        return {"withdrawn": len(hashes), "in_what_was_released": released}

    def summary(self) -> dict[str, int]:
        """How many people and batches the file knows, and how many are in several; for the
        steward alone."""
        with self._opened() as db:
            batches = db.execute("SELECT COUNT(people) FROM batch").fetchone()[0]
            people, several = runs.counted(db)
        return {"people": people, "batches": batches, "in_several": several}

    def _noted(
        self, db: sqlite3.Connection, own: int, days: float | None
    ) -> tuple[int, set[bytes]]:
        """Note who may be in, once it is decided what becomes of those who return: how many they
        are, and whose records are left out."""
        near: list[list[int]] = []  # other batches of windows that have this one
        if self.returning == "pay":
            rows = db.execute("SELECT number, first, last FROM batch ORDER BY number").fetchall()
            windows = together([span for _, *span in rows], days or math.inf)
            sets = [{rows[k][0] for k in window} for window in windows]
            near = [[*numbers - {own}] for numbers in sets if own in numbers]
        later = db.execute("SELECT hash FROM withdrawn WHERE since < ?", [own])
        withdrawn, new = runs.hashes_of(found for (found,) in later), runs.begin(db)
        total = returned = stay = most = 0
        gone: set[bytes] = set()
        for part, people in runs.coming(db):
            out = np.isin(people, withdrawn)
            which, when = runs.known(db, part, people)
            before, here = np.zeros((2, len(people)), np.bool_)
            before[which[when != own]], here[which[when == own]] = True, True
            total, returned = total + len(people), returned + int(np.sum(before & ~out))
            for numbers in near:
                often = np.bincount(which[np.isin(when, numbers)], minlength=len(people))
                most = max(most, int(often[~out].max(initial=0)))
            if self.returning == "skip":
                out |= before
            gone.update(runs.whole(people[out]))
            stay += int(np.sum(~out))
            runs.put(db, new, part, people[~(out | here)], own)
        some = f"{returned} of {total} people are in an earlier batch"
        stays = "what was released of them stays as it is, corrected or not"
        self.seen = f"{some} (for your eyes only): {stays}" if returned else ""
        if returned and self.returning == "refuse":
            raise InputError(
                f"{some} of '{self.path}', and {stays}: remove their records, or leave them out "
                "with ",
                Arg("returning", "skip"),
                ", or pay for each with ",
                Arg("returning", "pay"),
            )
        if self.returning == "pay" and most >= self.most_batches:
            touched = "" if days is None else f" that {days:g} days touch"
            raise InputError(
                f"some of these people are in {most} batches of '{self.path}'{touched} already: "
                "remove their records, or raise ",
                Arg("most_batches"),
            )
        runs.merge(db)
        return stay, gone

    def _spent(self, db: sqlite3.Connection, ledger: LedgerFile) -> list[dict[str, Any]]:
        """The reservations of the ledger, which must know all batches that have people."""
        spent = ledger.entries()
        known = {one["id"] for one in spent}
        noted = db.execute("SELECT entry FROM batch WHERE people IS NOT NULL")
        if any(entry not in known for (entry,) in noted):
            raise InputError(
                f"the ledger '{ledger.path}' lacks batches that '{self.path}' knows: give the "
                "ledger that it was kept beside, whole"
            )
        return spent

    def _check_same(self, db: sqlite3.Connection, compared: str) -> None:
        """Refuse another key, or another way to compare, than the file was begun with."""
        check = blake2b(b"key", digest_size=16, key=self._key, person=b"check").hexdigest()
        for name, value in {"format": _FORMAT, "key": check, "compared": compared}.items():
            db.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", [name, value])
        had = dict(db.execute("SELECT * FROM about"))
        if had["format"] != _FORMAT:
            raise InputError(f"'{self.path}' was made by another version of privtraj: use that")
        if had["key"] != check:
            raise InputError(f"'{self.path}' was made with another key: give that one")
        if had["compared"] != compared:
            raise InputError(
                f"'{self.path}' compares {had['compared']}: declare ",
                Arg("same_person"),
                " as it was in the first batch",
            )

    @contextmanager
    def _opened(self, create: bool = False) -> Iterator[sqlite3.Connection]:
        if not (create or self.path.is_file()):
            raise InputError(f"there is no file of people '{self.path}': check the path")
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            with closing(sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)) as db:
                db.executescript(_TABLES)
                if db.execute(_ROWS).fetchone():
                    with _writing(db):
                        if db.execute(_ROWS).fetchone():  # no other process was first
                            runs.from_rows(db)
                            db.execute(
                                "UPDATE about SET value = ? WHERE name = 'format'", [_FORMAT]
                            )
                yield db
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"the file of people '{self.path}' cannot be used ({reason.lower()}): give one "
                "that you may read and write, or the name of a new one"
            ) from None


@contextmanager
def _writing(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction: whole on the disk when it ends, and not at all after an error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
