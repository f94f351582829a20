"""What the commands share: how options are added, what is checked before anything is read."""

from __future__ import annotations

import argparse
import inspect
import os
import platform
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base import files
from privtraj.base.errors import InputError, either
from privtraj.cli import config
from privtraj.cli.console import Console
from privtraj.cli.options import OPTIONS, Group, arguments
from privtraj.recipe import BOOLEAN, Option

if TYPE_CHECKING:
    from privtraj.assess.look import TableCheck
    from privtraj.columns.kinds import Column
    from privtraj.data.records import RangeCounts
    from privtraj.model.model import TrajectoryModel

Run = Callable[[argparse.Namespace, Console], int | None]
_EITHER = {"bins", "bin_times"}


@dataclass(frozen=True)
class Command:
    """A command: the function that runs it, which may return an exit code, and its options.

    Name and help are those of the function: the first paragraph of its docstring says what it is
    about, and the rest stands below its options.
    usage: where it is not what its options say.  actions: commands below it, one of which must be
    named.  configured: the choices of a fit that it takes from the file of its option --config, if
    it has that.  instead: options of which one that is typed decides all.
    """

    run: Run
    has: tuple[Option | Group, ...] = ()
    usage: str | None = None
    actions: tuple[Command, ...] = ()
    configured: Collection[str] = tuple(OPTIONS)
    instead: Collection[str] = ()

    @property
    def options(self) -> dict[str, Option]:
        """All of them, by name."""
        groups = (each if isinstance(each, Group) else Group("", (each,)) for each in self.has)
        return {option.name: option for group in groups for option in group.options}

    def add(self, commands: Any) -> None:
        """Let the parser of `privtraj` know it."""
        head, _, rest = (inspect.getdoc(self.run) or "").partition("\n\n")
        about = " ".join(head.split()).removesuffix(".")
        about = about[:1].lower() + about[1:]
        name, short = self.run.__name__, about.replace("%", "%%")
        added = commands.add_parser(name, help=short, description=about, epilog=rest or None)
        added.set_defaults(run=self)
        typed = [added.prog]  # what a command line needs, without all that it may have
        if self.actions:
            below = added.add_subparsers(dest="action", metavar="ACTION", required=True)
            for action in self.actions:
                action.add(below)
        from_file = self.configured if "config" in self.options else ()
        for each in self.has:
            group, options = added, (each,) if isinstance(each, Option) else each.options
            if isinstance(each, Group):
                group = added.add_argument_group(each.title, each.about or None)
            for option in options:
                shown: dict[str, Any] = {"help": option.help, **option.kind.shape}
                if option.metavar is not None:
                    shown["metavar"] = option.metavar
                needed = option.needed and option.name not in from_file
                if option.placed:
                    group.add_argument(option.name, nargs=None if needed else "?", **shown)
                    typed.append(str(option.metavar))
                    continue
                flags = [option.short, option.flag] if option.short else [option.flag]
                group.add_argument(*flags, dest=option.name, default=None, **shown)
                if needed:
                    words = shown["metavar"]
                    typed += [flags[0], *([words] if isinstance(words, str) else words)]
        if self.has:
            added.usage = self.usage or " ".join([*typed, "[options]"])

    def __call__(self, args: argparse.Namespace, console: Console) -> int:
        """Run it, as it was typed, once all is there that it needs and files can be written."""
        args = self.settled(args)
        console.quiet = bool(getattr(args, "quiet", None))
        console.json = bool(getattr(args, "json", None))
        for name, option in self.options.items():
            value = getattr(args, name)
            instead = (getattr(args, other, None) for other in option.unless)
            if option.needed and value is None and all(each is None for each in instead):
                shown = option.metavar if option.placed else option.flag
                raise InputError(f"{shown} is needed: {option.needed}")
            for other in option.beside:
                if value not in (None, option.default) and getattr(args, other) is None:
                    beside = self.options[other]
                    raise InputError(f"{option.flag} goes with {beside.flag}: {beside.about}")
        self._check_files(args)
        return self.run(args, console) or 0

    def _check_files(self, args: argparse.Namespace) -> None:
        """Refuse files that are named twice, or could not be written."""
        named = [(option.writes, getattr(args, option.name)) for option in self.options.values()]
        given = [path.resolve() for _, path in named if isinstance(path, Path)]
        for path in given:
            if given.count(path) > 1:
                raise InputError(f"'{path.name}' is named twice: give every file a name of its own")
        for endings, path in named:
            if endings and path is not None:
                if not path.name.lower().endswith(endings):
                    raise InputError(f"the name '{path.name}' must end in {either(endings)}")
                files.check_writable(path, args.force)

    def settled(self, args: argparse.Namespace) -> argparse.Namespace:
        """What is typed, else what its configuration says, else what holds by default."""
        options = self.options
        given = {name: value for name, value in vars(args).items() if value is not None}
        typed = {name: _read(options[name], given[name]) for name in options if name in given}
        if typed.keys() >= _EITHER:
            raise InputError("--bins and --bin-times exclude each other: give one of them")
        decided, chosen = set(typed), {name: each.default for name, each in options.items()}
        for alike in (_EITHER, set(self.instead)):  # one stands for the others
            decided |= alike if decided & alike else set()
        if "config" in typed:
            chosen |= config.load(typed["config"], set(self.configured) - decided)
        return argparse.Namespace(**{**vars(args), **spread(chosen | typed)})


def _read(option: Option, typed: Any) -> Any:
    """The value of an option that is typed."""
    if option.kind is BOOLEAN:
        return typed
    try:
        return option.kind.read(option.kind.typed(typed))
    except InputError:
        raise
    except ValueError:
        if isinstance(typed, list):  # of which whoever uses it explains what is wrong
            return typed
        raise InputError(f"{option.flag} must be {option.kind.must}") from None


def command(*has: Option | Group, **how: Any) -> Callable[[Run], Command]:
    """Make a command of the function below, with options or groups of them: see `Command`."""
    return lambda run: Command(run, has, **how)


def load_model(path: Path, what: str, console: Console) -> TrajectoryModel:
    """The model; a note if what is made of it may not be released."""
    keep_compiled()
    from privtraj.model.model import load

    model = load(path)
    if not model.certificate.private:
        console.note(f"NOT PRIVATE: {model.certificate.caveat}; do not release the {what}")
    return model


def note_left_out(data: str | Path, file: Path, where: str, console: Console) -> None:
    """Say that a connection string is not written to a configuration, if it is not."""
    if not config.is_public_source(data):
        console.note(
            f"the connection string may hold a password and is not in '{file}': give it {where}"
        )


def spread(chosen: dict[str, Any]) -> dict[str, Any]:
    """Choices in which a name such as X_pca-* is replaced by all columns of the data like it."""
    numbers, others = chosen.get("feature") or [], chosen.get("columns") or {}
    named = [*(name for name, *_ in numbers), *others]
    if chosen.get("data") is None or not any("*" in name for name in named):
        return chosen
    from privtraj.data.sql import columns_of

    used = {*named, chosen.get("time"), chosen.get("person")}
    known = [name for name, _ in columns_of(chosen["data"], chosen.get("query"))]

    def alike(pattern: str) -> list[str]:
        if "*" not in pattern or pattern in known:
            return [pattern]
        like = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        found = [name for name in known if like.fullmatch(name) and name not in used]
        if not found:
            raise InputError(f"no column of the data is like '{pattern}': check its name")
        return found

    made: dict[str, Any] = {"feature": [[n, *ends] for name, *ends in numbers for n in alike(name)]}
    if others:
        made["columns"] = {n: form for name, form in others.items() for n in alike(name)}
    return chosen | made


def looked(chosen: Mapping[str, Any], counted: RangeCounts | None = None) -> TableCheck:
    """The steward's own look at the records, or at what a fit has counted."""
    from privtraj.assess.look import check

    return check(chosen["data"], **arguments(check, chosen), counted=counted)


def columns(chosen: Mapping[str, Any]) -> tuple[Column, ...]:
    """Numbers and columns of other kinds as the fit will see them, before a record is read."""
    from privtraj.columns.declared import declared_columns

    return declared_columns(**arguments(declared_columns, chosen))


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache, so that the next run starts at once.

    Compiled code holds sizes, rounded up, and no data. Processes may share the folder: JAX checks
    what it reads, and compiles once more what another one is still writing. Whoever told JAX
    another place is obeyed, and nothing is kept where PRIVTRAJ_CACHE is "off". JAX reads its
    settings when it is loaded, which a fit by counts never does.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or os.environ.get("PRIVTRAJ_CACHE") == "off":
        return
    # by machine: a home may be shared by machines of different kinds
    folder = files.cache_folder("compiled") / platform.node()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # nowhere to keep it: everything works, only slower
        return
    wanted = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in wanted.items():
        if "jax" in sys.modules:
            sys.modules["jax"].config.update(name, value)
        else:
            os.environ[name.upper()] = str(value)
