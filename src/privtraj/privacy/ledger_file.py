"""A ledger on disk: fits on the same people add up, across runs, processes and crashes.

The file is JSON Lines and only ever grows. Its first line is a header (version, salt, adjacency).
Each later line is a reservation, or the note that a reserved fit made its model; each carries the
sha256 of the line before it and of itself, so a change to any line is noticed. That the end was cut
off, or an old copy put back, is noticed by its *code*: the number of lines and the first digits of
the hash of the last, kept where a change to the file does not reach it. A ledger that only grew
since still has that line at that place. Two remember it: a small file beside the ledger, its
*seal*, which every new line replaces; and the steward, who may note the code that each fit prints.
Hashes and seals catch accidents; against somebody who may write all files of the house and knows
this program, only a code that is kept elsewhere helps.

Ledgers of version 1 have lines without a hash of themselves; they are read, and go on with it.

Fits add up by adding epsilons and adding deltas. Which fit comes next, and with how much, is
decided after the earlier results were seen, and stopping at a cap on the two sums is sound however
it is decided: it is a privacy filter (Rogers, Roth, Ullman and Vadhan 2016). The exact composition
of a plan fixed in advance is tighter, but in general no filter: the privacy loss is a random walk
(for Gaussian noise, a Brownian path), and one who decides on the way may stop it at its worst.

The file is for the house that holds the data. It has no row and no plain hash of rows, but with a
guess of all rows and the salt one can test the guess, at the price of one scrypt each.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from filelock import lock_descriptor, unlock_descriptor

from privtraj.base.errors import Arg, BudgetError, InputError, aligned, is_number
from privtraj.base.files import LONGEST_TEXT, flush_folder, strict_json
from privtraj.privacy.accounting import together
from privtraj.privacy.certificate import PROTECTS
from privtraj.privacy.events import Adjacency, check_adjacency, check_budget
from privtraj.privacy.ledger import down, up

RESERVED = "reserved: no model was recorded, counts all the same"
CHARGED = "charged: released elsewhere"
FITTED = "fitted"

_AMOUNTS = ("epsilon", "delta")
_STARTS = tuple(b'{"privtraj ledger": %d, "salt": "' % version for version in (1, 2))
_SELF = b', "self": "%b"}'  # how a line ends: with the sha256 of the line without this
_SCRYPT_N = 2**14
_TOLERANCE = 1e-9  # of the cap, for amounts that a program computed
_POLL = 0.01  # seconds between two attempts to lock
_CODE = re.compile("([1-9][0-9]{0,8})-[0-9a-f]{16}")  # lines of a ledger, and sha256 of the last
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError)  # of a line


class Reservation(NamedTuple):
    """A recorded claim on the budget; only what has one may be released."""

    id: str  # for `LedgerFile.settle`
    recognised: bool  # whether the same records were reserved for before
    left_epsilon: float  # that the cap leaves to the same people after this
    left_delta: float


class LedgerFile:
    """A cap on what all fits recorded in one file may spend together.

    path: created by the first reservation. cap_epsilon, cap_delta: both or neither; given, they
    hold for this object's calls and are recorded with each reservation; not given, those recorded
    last hold. ledger_code: that an earlier fit printed; a ledger that does not go on from there is
    refused. window_days: the cap holds for what the records of a person within any so many days pay
    for, instead of all records; as with caps, the one recorded last holds where none is given.

    All records of one file add up, recognised or not, because the same people may be in both. Only
    the steward can know otherwise: records reserved with `new_people` open a group of their own,
    and a person in one group pays for that group and for what is charged to every group.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cap_epsilon: float | None = None,
        cap_delta: float | None = None,
        ledger_code: str | None = None,
        window_days: float | None = None,
    ) -> None:
        self.path = Path(path)
        self._caps: _Pair | None = None
        if cap_epsilon is not None and cap_delta is not None:
            check_budget(cap_epsilon, cap_delta, "cap_")
            self._caps = float(cap_epsilon), float(cap_delta)
        elif cap_epsilon is not None or cap_delta is not None:
            caps = (Arg("cap_epsilon"), " and ", Arg("cap_delta"))
            raise InputError("the cap of a ledger needs both numbers: give ", *caps)
        if window_days is not None and not (is_number(window_days) and 0 < window_days < math.inf):
            raise InputError(Arg("window_days"), " must be a number of days above 0")
        self._days = None if window_days is None else float(window_days)
        self._noted = None if ledger_code is None else str(ledger_code).strip()
        if self._noted is not None and not _CODE.fullmatch(self._noted):
            raise InputError(
                Arg("ledger_code"),
                " must be a code such as 5-0123456789abcdef, as fit and ledger show print it",
            )

    def reserve(
        self,
        digest: bytes,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        what: str,
        *,
        new_people: bool = False,
        entry: str | None = None,
        span: tuple[float, float] | None = None,
        most: int | None = None,
    ) -> Reservation:
        """Record that a fit is about to spend (epsilon, delta), or raise and record nothing.

        The line is on the disk when this returns, and nothing is released earlier. A fit that
        crashes later leaves its reservation, which keeps counting: nobody can tell how much it had
        let out.

        digest: sha256 of the records; the file keeps a salted, slow hash of it.
        new_people: the steward's word that no person in these records is in any others of this
            ledger. Nothing checks it, and the guarantee rests on it.
        entry: the id of the reservation (`new_entry`), by whoever must not spend twice after a
            crash: the same records and budget under the same id count once.
        span: from when to when the people were recorded, in days; with `window_days` those who are
            not new pay for all that their days touch, and not for the rest.
        most: with new_people, in how many groups a person is at most, by whoever has compared them.
        """
        if not (isinstance(digest, bytes) and len(digest) == hashlib.sha256().digest_size):
            raise InputError("the digest of the records must be the 32 bytes of a sha256")
        cost = epsilon, delta, adjacency, what
        return self._claim(digest, cost, new_people, entry, span, most)

    def new_entry(self) -> str:
        """An id for the next reservation."""
        return secrets.token_hex(8)

    def charge(self, epsilon: float, delta: float, adjacency: Adjacency, what: str) -> Reservation:
        """Record a release made elsewhere, by another tool; it counts for everybody, and is
        recorded beyond the cap too: what has happened is not undone by a refusal."""
        return self._claim(None, (epsilon, delta, adjacency, what))

    def settle(self, entry_id: str, *, spent_epsilon: float, model: str) -> None:
        """Note that a reserved fit made its model; this gives no budget back.

        spent_epsilon: epsilon of the certificate. model: sha256 of the model, in hex.
        """
        with self._opened(os.O_RDWR | os.O_APPEND) as (file, book):
            entry = next((entry for entry in book.entries if entry.id == entry_id), None)
            if entry is None or entry_id in book.fitted:
                raise InputError(
                    f"the ledger '{self.path}' has no open reservation of that id: "
                    "settle each one once, with the id that reserve returned"
                )
            note = _Fitted(entry_id, _now(), spent_epsilon, model)
            if note.spent_epsilon > entry.epsilon * (1 + _TOLERANCE):
                raise BudgetError(
                    f"the fit spent epsilon {up(spent_epsilon)}, which is more than the "
                    f"{entry.epsilon:g} reserved for it: do not release its model"
                )
            self._append(file, book, "fitted", note)

    def note(self, what: str) -> None:
        """Record what costs nothing, such as that consent was withdrawn; it names nobody."""
        with self._opened(os.O_RDWR | os.O_APPEND) as (file, book):
            self._append(file, book, "noted", _Noted(_now(), what))

    @property
    def begun(self) -> bool:
        """Whether it has a line: not before the first reservation, nor if that was killed."""
        return self._read().size > 0

    @property
    def window_days(self) -> float | None:
        """That the cap is about: as given, else as recorded last; None for all of time."""
        return self._read().days if self._days is None else self._days

    def _read(self) -> _Book:
        """What it says; nothing before the first reservation."""
        nothing = _Book(b"", "add-remove", b"")
        if not self.path.exists():
            self._check_whole(())
            return nothing
        with self._opened(os.O_RDONLY, nothing) as (_, book):
            return book

    def summary(self) -> dict[str, Any]:
        """Everything the ledger says, as plain JSON values."""
        with self._opened(os.O_RDONLY) as (_, book):
            caps = self._caps or book.entries[-1].caps
        names, groups = ("group", "epsilon", "delta", "left_epsilon", "left_delta"), []
        for group in book.groups or (None,):
            spent = book.spent(group)
            groups.append(dict(zip(names, (group, *spent, *_left(spent, caps)), strict=True)))
        last = next((e for e in reversed(book.entries) if e.most != 1), None)
        several = {}  # what people who return have at most
        if last is not None:
            worst = book.spent(None, most=last.most, days=last.days)
            several = {"most": last.most, "days": last.days, "epsilon": worst[0], "delta": worst[1]}
        return {
            "returning": several,
            "adjacency": book.adjacency,
            "code": _code(book.hashes),
            "cap_epsilon": caps[0],
            "cap_delta": caps[1],
            "groups": groups,
            "notes": [asdict(one) for one in book.notes],
            "entries": _listed(book),
        }

    def entries(self) -> list[dict[str, Any]]:
        """Its reservations as the summary has them; none before the first."""
        return _listed(self._read())

    def describe(self) -> str:
        """The summary as a table for people."""
        summary = self.summary()
        adjacency: Adjacency = summary["adjacency"]
        several = len(summary["groups"]) > 1
        lines = [
            f"Privacy ledger '{self.path}'",
            f"Protected: {PROTECTS[adjacency]} ({adjacency}).",
            f"Cap: epsilon {summary['cap_epsilon']:g}, delta {summary['cap_delta']:g}.",
        ]
        for row in summary["groups"]:
            lines.append(
                f"{'Group ' + str(row['group']) if several else 'Total'}: "
                f"epsilon {up(row['epsilon'])} and delta {up(row['delta'])} spent, "
                f"epsilon {down(row['left_epsilon'])} and delta {down(row['left_delta'])} left."
            )
        if worst := summary["returning"]:
            often = "all groups" if worst["most"] is None else f"{worst['most']} groups"
            when = f" that any {worst['days']:g} days touch" if worst["days"] else ""
            lines.append(
                f"Whoever is in {often}{when} has at most epsilon {up(worst['epsilon'])} and delta "
                f"{up(worst['delta'])}."
            )
        if several:
            sums = (up(sum(entry[name] for entry in summary["entries"])) for name in _AMOUNTS)
            both = " and ".join(map(" ".join, zip(_AMOUNTS, sums, strict=True)))
            lines.append(
                "That groups are of different people is the steward's word, unless a file of them "
                f"was kept beside it (--people): whoever is in all of them has their sum, {both}."
            )
        table = [["time", "epsilon", "delta", "records", *["group"] * several, "what", "state"]]
        for entry in summary["entries"]:
            state, what = entry["state"], " ".join(entry["what"].split())
            if state == FITTED:
                spent = up(entry["spent_epsilon"])
                state = f"fitted: exact epsilon {spent}, model {entry['model'][:12]}"
            group = "every" if entry["group"] is None else str(entry["group"])
            amounts, records = (up(entry["epsilon"]), up(entry["delta"])), entry["fingerprint"]
            table.append([entry["time"], *amounts, records or "-", *[group] * several, what, state])
        lines += [
            *aligned(table),
            *(f"{one['time']}  {one['what']}" for one in summary["notes"]),
            f"Code: {summary['code']} (note it elsewhere: given as --ledger-code, it tells later "
            "whether lines were cut off).",
        ]
        return "\n  ".join(lines)

    def _claim(
        self,
        digest: bytes | None,
        cost: tuple[float, float, Adjacency, str],
        new_people: bool = False,
        entry: str | None = None,
        span: tuple[float, float] | None = None,
        most: int | None = None,
    ) -> Reservation:
        """A line that costs, as `reserve` has it; without a digest, as `charge` has it."""
        epsilon, delta, adjacency, what = cost
        check_budget(epsilon, delta)
        check_adjacency(adjacency)
        salt = secrets.token_bytes(16)
        header = {"privtraj ledger": 2, "salt": salt.hex(), "adjacency": adjacency}
        new = _Book(salt, adjacency, last=_line(header))
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if self._caps else 0)
        with self._opened(flags, new) as (file, book):
            if book.adjacency != adjacency:
                raise InputError(
                    f"the ledger '{self.path}' counts under {book.adjacency}, which does not add "
                    f"up with {adjacency}: use ",
                    Arg("adjacency", book.adjacency),
                    ", or a second ledger file",
                )
            fingerprint = known = None
            if digest is not None:
                slow = hashlib.scrypt(digest, salt=book.salt, n=_SCRYPT_N, r=8, p=1)
                fingerprint = slow.hex()[:16]
                known = next((e for e in book.entries if e.fingerprint == fingerprint), None)
            mine = next((e for e in book.entries if e.id == entry), None)
            if mine is not None:
                if (mine.fingerprint, mine.epsilon, mine.delta) != (fingerprint, epsilon, delta):
                    raise InputError(
                        f"the ledger '{self.path}' has begun this batch with other records or "
                        "another budget: finish it as it was begun"
                    )
                return Reservation(mine.id, True, *_left(book.spent(mine.group), mine.caps))
            if new_people and most is not None:
                known = None  # people were compared: the same cells may be those of others
            if known and new_people:
                raise InputError(
                    f"these records are in the ledger '{self.path}' already, so their people are "
                    "not new: leave out ",
                    Arg("new_people"),
                )
            if not (self._caps or book.entries):
                raise self._absent()
            # where it counts: its old group, a new one, the only one, or (None) every one
            group, days = known.group if known else None, self._days or book.days
            if new_people:
                most = most or 1
            elif days is None or fingerprint is None:  # whoever returns is in others as well
                often = [e.most for e in book.entries]
                most = None if None in often else max([1, *filter(None, often)])
            if most == 1:
                days = None
            if fingerprint is not None and not known:
                if new_people or days is not None or not book.groups:
                    group = len(book.groups)
                elif len(book.groups) == 1:
                    group = book.groups[0]
            caps = self._caps or book.entries[-1].caps
            costs, number = (float(epsilon), float(delta), *caps), entry or self.new_entry()
            line = _Entry(number, _now(), str(what), *costs, fingerprint, group, most, days, span)
            after = book.spent(group, line, most=most, days=days)
            if digest is not None and any(
                spent > cap * (1 + _TOLERANCE) for spent, cap in zip(after, caps, strict=True)
            ):
                before = [_sum((x, -own)) for x, own in zip(after, (epsilon, delta), strict=True)]
                left = _left((before[0], before[1]), caps)
                advice: list[str | Arg] = ["lower epsilon and delta, or raise the cap if you may"]
                if book.entries and not (known or new_people):
                    advice += [", or say ", Arg("new_people", True)]
                    advice.append(" if nobody in these records is in the others of it")
                raise BudgetError(
                    f"the ledger '{self.path}' has epsilon {down(left[0])} and delta "
                    f"{down(left[1])} left of {caps[0]:g} and {caps[1]:g}, and this fit asks for "
                    f"{up(epsilon)} and {up(delta)}: ",
                    *advice,
                )
            self._append(file, book, "reserved", line)
        return Reservation(line.id, known is not None, *_left(after, caps))

    @contextmanager
    def _opened(self, flags: int, new: _Book | None = None) -> Iterator[tuple[int, _Book]]:
        """The open file, which no other process may use meanwhile, and what it says; the new book
        if it is empty, and nobody knows of lines it had.

        Some file systems lock only what is open for writing: whoever reads there may find a line
        that is just being written, and takes it for one that a crash tore.
        """
        mode = stat.S_IFREG
        try:  # before it is opened: a pipe would wait, a device would forget
            mode = os.stat(self.path).st_mode
        except FileNotFoundError:
            self._check_whole(())
        except OSError:
            pass  # whoever opens it says why not
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
            raise InputError(
                f"the ledger '{self.path}' is {kind}, which keeps no lines: give a plain file, or "
                "the name of one that does not exist yet"
            )
        try:
            file = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with suppress(OSError) if flags == os.O_RDONLY else nullcontext():
                    lock_descriptor(file, poll_interval=_POLL)
                with open(file, "rb", closefd=False) as stream:
                    book = _parse(stream.read(), self.path)
                self._check_whole(() if book is None else book.hashes)
                if book is None and new is None:
                    raise self._absent()
                yield file, book or new  # type: ignore[misc]
            finally:
                with suppress(OSError):  # closing is not enough where a child process holds a copy
                    unlock_descriptor(file)
                os.close(file)
        except FileNotFoundError:
            raise self._absent() from None
        except OSError as error:
            raise InputError(
                f"the ledger '{self.path}' cannot be used "
                f"({(error.strerror or 'input or output error').lower()}): "
                "give a file that you may read and write"
            ) from None

    def _check_whole(self, hashes: Sequence[str]) -> None:
        """Refuse a ledger that does not go on from its seal, or from the code that was noted."""
        seal, sealed = seal_of(self.path), None
        with suppress(OSError, ValueError):
            if stat.S_ISREG(seal.stat().st_mode):
                sealed = seal.read_text(encoding="ascii").strip()
        if sealed and _CODE.fullmatch(sealed) and not _goes_on(sealed, hashes):
            raise InputError(
                f"the ledger '{self.path}' has lost lines that its seal '{seal.name}' knows of: "
                "put back the whole file, or charge what was released since and remove the seal"
            )
        if self._noted is not None and not _goes_on(self._noted, hashes):
            raise InputError(
                f"the ledger '{self.path}' does not go on from the code that was noted (",
                Arg("ledger_code"),
                "), so it was cut, replaced or is another: put back the whole file, or charge what "
                "was released since",
            )

    def _append(self, file: int, book: _Book, kind: str, record: _Record) -> None:
        """One write, on the disk before this returns; a torn line of an earlier crash goes.

        The directory comes first, and every time: the file is of no use without its name, and who
        created it may have been killed before the name was on the disk. The seal comes last: a
        crash before leaves the old one, which the longer ledger still holds. Where none can be
        written the ledger has no seal, and the line counts all the same.
        """
        flush_folder(self.path.resolve().parent)
        chosen = {k: x for k, x in vars(record).items() if getattr(type(record), k, ()) != x}
        line = _with_self(_line({"kind": kind, **chosen, "before": _sha256(book.last)}))
        start = b"" if book.ended else b"\n"
        data = start + line + b"\n" if book.size else book.last + b"\n" + line + b"\n"
        os.ftruncate(file, book.size)
        if os.write(file, data) != len(data):
            os.ftruncate(file, book.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
        seal = seal_of(self.path)
        draft = seal.with_name(f"{seal.name}.new")  # one name: what a crash leaves is written over
        with suppress(OSError):
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
                hashes = book.hashes or (_sha256(book.last),)
                stream.write(f"{_code((*hashes, _sha256(line)))}\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, seal)

    def _absent(self) -> InputError:
        if not self.path.parent.is_dir():
            return InputError(f"there is no directory '{self.path.parent}': create it first")
        return InputError(
            f"there is no ledger '{self.path}' yet: check the path, or start one by a fit with "
            "both ",
            Arg("cap_epsilon"),
            " and ",
            Arg("cap_delta"),
        )


# What the lines say -------------------------------------------------------------------------

_Pair = tuple[float, float]  # epsilon and delta


def _check_texts(*texts: Any) -> None:
    if not all(isinstance(text, str) and len(text) <= LONGEST_TEXT for text in texts):
        raise InputError(f"a text of a ledger has at most {LONGEST_TEXT:,} letters")


@dataclass(frozen=True)
class _Entry:
    """A line that costs. fingerprint None: a charge. group None: counts in every group.

    most, days: in how many groups that so many days touch a person of it may be (None: in all; all
    of time). span: first and last day of its people. What has a default is in a line only where it
    is another: earlier ledgers are as they were, to a bit.
    """

    id: str
    time: str
    what: str
    epsilon: float
    delta: float
    cap_epsilon: float
    cap_delta: float
    fingerprint: str | None
    group: int | None
    most: int | None = 1
    days: float | None = None
    span: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta)
        check_budget(self.cap_epsilon, self.cap_delta)
        _check_texts(self.id, self.time, self.what, self.fingerprint or "")
        if not isinstance(self.group, int | None):
            raise InputError("a group must be a whole number")
        if not isinstance(self.most, int | None) or not isinstance(self.days, int | float | None):
            raise InputError("most must be a whole number, and days a number")
        first, last = self.span or (0, 0)  # who were never there would be in no window
        if not (is_number(first) and is_number(last) and -math.inf < first <= last < math.inf):
            raise InputError("a span must be two numbers, the first of them not above the second")

    @property
    def caps(self) -> _Pair:
        return self.cap_epsilon, self.cap_delta


@dataclass(frozen=True)
class _Fitted:
    """A line that informs: the model that came of an entry."""

    id: str
    time: str
    spent_epsilon: float
    model: str

    def __post_init__(self) -> None:
        if not (isinstance(self.id, str) and isinstance(self.time, str)):
            raise InputError("id and time must be texts")
        if not (is_number(self.spent_epsilon) and 0 <= self.spent_epsilon < math.inf):
            raise InputError("spent_epsilon must be a finite number that is not negative")
        if not (isinstance(self.model, str) and re.fullmatch("[0-9a-f]{64}", self.model)):
            raise InputError("model must be the sha256 of the model, as 64 hexadecimal digits")


@dataclass(frozen=True)
class _Noted:
    """A line that informs: something that costs nothing."""

    time: str
    what: str

    def __post_init__(self) -> None:
        _check_texts(self.time, self.what)


@dataclass(frozen=True)
class _Book:
    """The whole lines of a ledger."""

    salt: bytes
    adjacency: Adjacency
    last: bytes
    size: int = 0  # in bytes; 0: the header is still to be written
    entries: tuple[_Entry, ...] = ()
    fitted: Mapping[str, _Fitted] = field(default_factory=dict)
    hashes: tuple[str, ...] = ()  # sha256 of each line
    notes: tuple[_Noted, ...] = ()
    ended: bool = True  # whether the last line has its newline

    @property
    def days(self) -> float | None:
        """Of the window that was stated last."""
        return next((e.days for e in reversed(self.entries) if e.days is not None), None)

    @cached_property
    def paid(self) -> dict[int | None, _Paid]:
        """By group; None for what is charged to all."""
        return _paid(self.entries, {None: _NOTHING})

    @property
    def groups(self) -> tuple[int, ...]:
        return tuple(sorted({entry.group for entry in self.entries if entry.group is not None}))

    def spent(
        self, group: int | None, *more: _Entry, most: int | None = 1, days: float | None = None
    ) -> _Pair:
        """The largest epsilon and the largest delta of anybody in a group, or (None) in any, who is
        in at most so many groups that so many days touch."""
        paid = _paid(more, self.paid)
        everybody = paid.pop(None)
        if group is not None:
            paid.setdefault(group, _NOTHING)
        groups, worst = list(paid), []
        alone = [[k] for k, one in enumerate(groups) if group in (None, one)]
        spans = [(one.first, one.last) for one in paid.values()]
        sets = alone if most == 1 else together(spans, days or math.inf)
        for k in range(len(_AMOUNTS)):
            sums = [Fraction()]
            for some in sets:
                inside = [groups[j] for j in some]
                own = [paid[group][k]] if group in inside else []
                if own or group is None:
                    others = sorted((paid[g][k] for g in inside if g != group), reverse=True)
                    room = None if most is None else most - len(own)
                    sums.append(Fraction(sum((*own, *others[:room]))))
            worst.append(float(everybody[k] + max(sums)))
        return worst[0], worst[1]


class _Paid(NamedTuple):
    """Sums, exact in the decimals that people type, and first and last day."""

    epsilon: Fraction
    delta: Fraction
    first: float
    last: float


_NOTHING = _Paid(Fraction(), Fraction(), -math.inf, math.inf)


def _paid(entries: Iterable[_Entry], before: Mapping[int | None, _Paid]) -> dict[int | None, _Paid]:
    """What each group has paid, and (None) what is charged to all."""
    found = dict(before)
    for one in entries:
        first, last = one.span or (-math.inf, math.inf)
        had = found.get(one.group, _Paid(Fraction(), Fraction(), first, last))
        epsilon, delta = (Fraction(repr(amount)) for amount in (one.epsilon, one.delta))
        span = min(had.first, first), max(had.last, last)
        found[one.group] = _Paid(had.epsilon + epsilon, had.delta + delta, *span)
    return found


_Record = _Entry | _Fitted | _Noted


def _parse(data: bytes, path: Path) -> _Book | None:
    """The checked lines, or None where a crash left no whole entry of a new ledger.

    What follows the last newline was never confirmed, so nothing was released for it; but if it is
    a whole line, an editor may have taken its newline, and it counts.
    """
    if not any(start.startswith(data[: len(start)]) for start in _STARTS):
        raise InputError(
            f"'{path}' is not a ledger of this version of privtraj: give the path of one, or of a "
            "file that does not exist yet"
        )
    *lines, torn = data.split(b"\n")
    ended = True
    with suppress(*_UNREADABLE):
        _record(torn, lines[-1])
        lines, torn, ended = [*lines, torn], b"", False
    if len(lines) < 2:
        return None
    records: list[_Record] = []
    try:
        header = strict_json(lines[0])
        salt, adjacency = bytes.fromhex(header["salt"]), check_adjacency(header["adjacency"])
        for before, line in pairwise(lines):
            records.append(_record(line, before))
    except _UNREADABLE:
        raise InputError(
            f"the ledger '{path}' was changed by hand (line {len(records) + 2} is not as it was "
            "written): put back an unchanged copy, and charge what was released since"
        ) from None
    entries = tuple(record for record in records if isinstance(record, _Entry))
    fitted = {record.id: record for record in records if isinstance(record, _Fitted)}
    hashes = tuple(map(_sha256, lines))
    notes = tuple(record for record in records if isinstance(record, _Noted))
    size = len(data) - len(torn)
    return _Book(salt, adjacency, lines[-1], size, entries, fitted, hashes, notes, ended)


@lru_cache(maxsize=4096)  # a command reads the same lines a dozen times
def _record(line: bytes, before: bytes) -> _Record:
    values = strict_json(line)
    if values.pop("before") != _sha256(before):
        raise ValueError
    own = values.pop("self", None)
    if own is None and (before.startswith(_STARTS[1]) or b', "self": "' in before):
        raise ValueError  # from the first line that has a hash of itself on, all have
    if own is not None and line != _with_self(line[: -len(_SELF % bytes(64))] + b"}"):
        raise ValueError
    kinds: dict[str, type[_Record]] = {"reserved": _Entry, "fitted": _Fitted, "noted": _Noted}
    return kinds[values.pop("kind")](**values)


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, allow_nan=False, default=float).encode("ascii")  # float: of numpy


def _with_self(line: bytes) -> bytes:
    return line[:-1] + _SELF % _sha256(line).encode()


def _sha256(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _code(hashes: Sequence[str]) -> str:
    """The code of a ledger whose lines have these sha256."""
    return f"{len(hashes)}-{hashes[-1][:16]}"


def _goes_on(code: str, hashes: Sequence[str]) -> bool:
    """Whether a ledger whose lines have these sha256 goes on from a code."""
    lines = int(code.split("-")[0])
    return lines <= len(hashes) and _code(hashes[:lines]) == code


def seal_of(ledger: Path) -> Path:
    """The file beside a ledger that remembers its end; one for all links to it."""
    real = ledger.resolve()
    return real.with_name(f"{real.name}.seal")


def _listed(book: _Book) -> list[dict[str, Any]]:
    """Reservations as plain JSON values."""
    entries = []
    for entry in book.entries:
        own, note = dict(vars(entry)), book.fitted.get(entry.id)  # its fields are plain values
        del own["cap_epsilon"], own["cap_delta"], own["most"], own["days"], own["span"]
        own["state"] = FITTED if note else CHARGED if entry.fingerprint is None else RESERVED
        own["spent_epsilon"] = note.spent_epsilon if note else None
        own["model"] = note.model if note else None
        entries.append(own)
    return entries


def _left(spent: _Pair, caps: _Pair) -> _Pair:
    """Nothing, rather than less than nothing, where the cap was lowered."""
    epsilon, delta = (max(0.0, _sum((cap, -s))) for cap, s in zip(caps, spent, strict=True))
    return epsilon, delta


def _sum(amounts: Iterable[float]) -> float:
    """Exact in the decimals that people type: 0.1 and 0.2 make 0.3, and 0.9 of 1 leaves 0.1."""
    return float(sum(Fraction(repr(amount)) for amount in amounts))
