"""A running service: every new batch becomes a release, once, whatever happens on the way.

Beside the ledger a file knows every batch that was begun: its number, the name and sha256 of what
came, the id of its reservation and what its fit spent; it is for the house, as the ledger is. What
is released of batch k, model, certificate and report, appears as one folder by one rename. Steps,
each of which changes nothing where it was done before a kill, a full disk or a restart:

    1. note the batch and the id of its reservation     (in the state file, replaced whole)
    2. reserve under that id, and note who is in        (once: `LedgerFile.reserve`, `People`)
    3. fit, or extend the model of batch k - 1          (in memory: nobody sees it)
    4. note what was spent and its hash; then write it  (into a hidden folder, whole)
    5. settle in the ledger, with the hash of the model
    6. write certificate and report; rename the folder  (released)

A single fit with a ledger (`Once`) takes the same steps: its model is a hidden file that is renamed
to what was asked for, and its state goes when that is done.

Killed before 4 is done, no answer of the fit was seen by anybody, and a restart fits again for the
same reservation: only one result of it is ever released, so the batch costs its epsilon once. After
4 the model on the disk is the only one there will be. Whatever is on the disk of a model has an id
in the ledger, and the state file names it by its hash beside that id before its first byte is
written; the ledger names it before it is released. Nothing follows from a clock: batches have
numbers, and pauses are measured by one that nobody sets. A lock that the system gives back when its
process ends keeps a second copy out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from filelock import FileLock, Timeout

from privtraj.base.errors import InputError
from privtraj.base.files import check_writable, flush_folder, strict_json, write_text
from privtraj.model.model import TrajectoryModel, load
from privtraj.privacy.ledger_file import LedgerFile, Reservation

Make = Callable[[TrajectoryModel | None, LedgerFile], TrajectoryModel]
"""The model of a batch: a fit without an earlier model, else that model extended."""
_LOST = "the model of '{}' is paid for and lost: restore it"
MODEL, CERTIFICATE, REPORT = "model.privtraj", "certificate.json", "report.html"


def content_of(file: Path) -> str:
    """SHA-256 of a file."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _Batch(LedgerFile):
    """A ledger for one batch: one reservation, of an id that is on the disk before, and settled by
    whoever has the model on the disk."""

    def __init__(self, ledger: LedgerFile, entry: str, note: Callable[..., None]) -> None:
        vars(self).update(vars(ledger))
        self._entry, self._note = entry, note

    def new_entry(self) -> str:
        self._note(entry=self._entry)
        return self._entry

    def reserve(self, *claim: Any, **how: Any) -> Reservation:
        return super().reserve(*claim, **{**how, "entry": self.new_entry()})

    def settle(self, entry_id: str, *, spent_epsilon: float, model: str) -> None:
        self._note(entry=entry_id, spent=spent_epsilon, model=model)


class Stream:
    """Batches of one ledger, and the folder of what is released of them."""

    def __init__(
        self,
        out: Path,
        ledger: LedgerFile,
        write_report: Callable[[TrajectoryModel, Path], None] | None = None,
    ) -> None:
        self.out, self.ledger, self._write_report = out, ledger, write_report
        self.state = ledger.path.with_name(f"{ledger.path.name}.watch")

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether no other copy is at work; while this one is, none will be."""
        try:
            with FileLock(f"{self.state}.lock", timeout=0):
                for draft in self.state.parent.glob(f".*.{self.state.name}"):
                    draft.unlink()  # of a copy that was killed
                yield True
        except Timeout:
            yield False

    def folder(self, number: int) -> Path:
        """Where batch `number`, from 1, is released."""
        return self.out / f"{number:04d}"

    def batches(self) -> list[dict[str, Any]]:
        """All that were begun, in order; only the last may be unfinished."""
        if not self.state.exists():
            return []
        try:
            begun: list[dict[str, Any]] = strict_json(self.state.read_bytes())["batches"]
            return begun
        except (ValueError, LookupError, TypeError):
            raise InputError(f"'{self.state}' was changed by hand: put back an old copy") from None

    def unfinished(self) -> dict[str, Any] | None:
        """The batch that a kill has left."""
        begun = self.batches()
        if not begun or self.folder(len(begun)).exists():
            return None
        if begun[-1]["entry"] not in self._known():  # as if it were never begun
            self._write(begun[:-1])
            return None
        return begun[-1]

    def take(self, name: str, content: str, make: Make) -> Path | None:
        """Release a batch, or finish what a kill has left of it; None where that was done before.

        A refusal, before anything is reserved, leaves no trace.
        """
        left, begun = self.unfinished(), self.batches()
        number = len(begun) if left else 1 + len(begun)
        if any(one["content"] == content for one in begun[: number - 1]):
            return None
        if left is not None and left["content"] != content:
            raise InputError(f"'{left['name']}' is begun and not finished: put it back as it was")
        pending = self.out / f".{number:04d}"
        file = pending / MODEL
        if left is not None and not file.exists() and self._known()[left["entry"]] is not None:
            raise InputError(_LOST.format(left["name"]))
        earlier = None if number == 1 else load(self.folder(number - 1) / MODEL)
        batch = {"number": number, "name": name, "content": content}
        model = self._made(file, batch, partial(make, earlier))
        text = model.certificate.to_json() + "\n"
        write_text(text, pending / CERTIFICATE, force=True)
        if self._write_report is not None:
            self._write_report(model, pending / REPORT)
        for draft in pending.glob(".*"):
            draft.unlink()
        flush_folder(pending)
        os.rename(pending, self.folder(number))
        flush_folder(self.out)
        return self.folder(number)

    def _made(
        self, file: Path, batch: dict[str, Any], make: Callable[[LedgerFile], TrajectoryModel]
    ) -> TrajectoryModel:
        """The model of the last batch that was begun, or is now: in a file, and settled."""
        begun = self.batches()
        mine = begun[batch["number"] - 1 :]
        if not file.exists():
            entry = mine[0]["entry"] if mine else self.ledger.new_entry()

            def note(**facts: Any) -> None:
                self._write([*begun[: batch["number"] - 1], {**batch, **facts}])

            if file.parent != self.out.parent:
                rmtree(file.parent, ignore_errors=True)
            model = make(_Batch(self.ledger, entry, note))
            file.parent.mkdir(exist_ok=True)
            model.save(file)
            flush_folder(file.parent)
        model, (done,) = load(file), self.batches()[batch["number"] - 1 :]
        if done.get("model") != model.sha256:
            raise InputError(_LOST.format(batch["name"]))
        if self._known()[done["entry"]] is None:
            spent = {"spent_epsilon": done["spent"], "model": model.sha256}
            self.ledger.settle(done["entry"], **spent)
        return model

    def _known(self) -> dict[str, str | None]:
        """Model, if there is one, of each reservation of the ledger."""
        return {one["id"]: one["model"] for one in self.ledger.entries()}

    def _write(self, begun: list[dict[str, Any]]) -> None:
        write_text(json.dumps({"batches": begun}, indent=1), self.state, force=True)
        flush_folder(self.state.parent)


class Once(Stream):
    """One fit of a ledger: the file `out`, which a kill on the way leaves to whoever repeats the
    command; of other records, or after the end, it is another fit."""

    def __init__(self, out: Path, ledger: LedgerFile) -> None:
        super().__init__(out, ledger)
        self.state = ledger.path.with_name(f"{ledger.path.name}.{out.name}.begun")

    def write(
        self, content: str, force: bool, make: Callable[[LedgerFile], TrajectoryModel]
    ) -> TrajectoryModel:
        """The model, of records of this content; see `Stream.take`."""
        hidden = self.out.with_name(f".begun.{self.out.name}")
        if not self.ledger.begun:  # which refuses what is none
            check_writable(self.state, force=True)
        with self.alone() as alone:
            if not alone:
                raise InputError(f"another copy is about to write '{self.out}': let it end")
            try:
                check_writable(self.out, force)
                begun, known = self.batches(), self._known()
                if begun and known.get(begun[0]["entry"]) and not hidden.exists():
                    if not self.out.exists():
                        raise InputError(_LOST.format(self.out))
                    begun = []  # it was renamed
                if not begun or begun[0]["content"] != content or begun[0]["entry"] not in known:
                    hidden.unlink(missing_ok=True)
                    self.state.unlink(missing_ok=True)
                for draft in hidden.parent.glob(f".*.{hidden.name}"):
                    draft.unlink()
                batch = {"number": 1, "name": self.out.name, "content": content}
                model = self._made(hidden, batch, make)
                os.replace(hidden, self.out)
                flush_folder(self.out.parent)
                self.state.unlink()
                return model
            finally:  # a refusal leaves no trace
                if all(one["entry"] not in self._known() for one in self.batches()):
                    self.state.unlink(missing_ok=True)
                Path(f"{self.state}.lock").unlink(missing_ok=True)
