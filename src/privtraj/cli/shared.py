"""What the commands share: how options are added, what is checked before anything is read."""

from __future__ import annotations

import argparse
import inspect
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base import files, formats
from privtraj.base.errors import InputError, either
from privtraj.cli import config
from privtraj.cli.console import Console
from privtraj.cli.options import OPTIONS, Group, arguments
from privtraj.recipe import Option

if TYPE_CHECKING:
    from privtraj.assess.look import TableCheck
    from privtraj.columns.kinds import Column
    from privtraj.data.records import RangeCounts
    from privtraj.model.model import TrajectoryModel

TABLES = formats.suffixes(formats.PATHS)
"""What paths are written as."""


Run = Callable[[argparse.Namespace, Console], int | None]


@dataclass(frozen=True)
class Command:
    """A command: the function that runs it, which may return an exit code, and its options.

    Name and help are those of the function: the first paragraph of its docstring says what it is
    about, and the rest stands below its options.
    words: what else argparse is to know.  configured: whether options that are not given are None,
    as a file may have them.  actions: commands below it, one of which must be named.
    """

    run: Run
    has: tuple[Option | Group, ...] = ()
    configured: bool = False
    words: Mapping[str, Any] = field(default_factory=dict)
    actions: tuple[Command, ...] = ()

    def add(self, commands: Any) -> None:
        """Let the parser of `privtraj` know it."""
        head, _, rest = (inspect.getdoc(self.run) or "").partition("\n\n")
        about = " ".join(head.split()).removesuffix(".")
        about = about[:1].lower() + about[1:]
        words = {"description": about, "epilog": rest or None, **self.words}
        added = commands.add_parser(self.run.__name__, help=about.replace("%", "%%"), **words)
        added.set_defaults(run=self.run)
        typed = [added.prog]  # what a command line needs, without all that it may have
        if self.actions:
            below = added.add_subparsers(dest="action", metavar="ACTION", required=True)
            for action in self.actions:
                action.add(below)
        for each in self.has:
            group, options = added, (each,) if isinstance(each, Option) else each.options
            if isinstance(each, Group):
                group = added.add_argument_group(each.title, each.about or None)
            for option in options:
                shown: dict[str, Any] = {"help": option.help, **option.kind.typed}
                if option.metavar is not None:
                    shown["metavar"] = option.metavar
                if option.placed:
                    nargs = "?" if self.configured or not option.needed else None
                    group.add_argument(option.name, nargs=nargs, **shown)
                    typed.append(str(option.metavar))
                    continue
                flags = [option.short, option.flag] if option.short else [option.flag]
                shown["default"] = None if self.configured else option.default
                group.add_argument(*flags, dest=option.name, **shown)
                if option.needed and not self.configured:
                    typed.append(f"{flags[0]} {shown['metavar']}")
        if self.has and added.usage is None:
            added.usage = " ".join([*typed, "[options]"])


def command(
    *has: Option | Group, configured: bool = False, actions: tuple[Command, ...] = (), **words: Any
) -> Callable[[Run], Command]:
    """Make a command of the function below, with options or groups of them: see `Command`."""
    return lambda run: Command(run, has, configured, words, actions)


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


def require(given: Mapping[str, Any], *options: str | Option) -> None:
    """Refuse a command that lacks one of these options."""
    for option in (OPTIONS[o] if isinstance(o, str) else o for o in options):
        if given[option.name] is None:
            name = option.metavar if option.placed else option.flag
            raise InputError(f"{name} is needed: {option.needed}")


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


def declared(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and columns of other kinds, as they were chosen, the way the library takes them."""
    numbers, others = chosen.get("feature") or [], chosen.get("columns")
    return {
        "features": [*(name for name, _, _ in numbers), *(others or ())],
        "bounds": {name: (low, high) for name, low, high in numbers},
        "columns": others,
    }


def table(chosen: Mapping[str, Any], reads: Callable[..., Any]) -> dict[str, Any]:
    """What a function of the library that reads a table is told of it."""
    bins = chosen["bins"] if chosen["bin_times"] is None else chosen["bin_times"]
    return {**arguments(reads, chosen), **declared(chosen), "bins": bins}


def looked(chosen: Mapping[str, Any], counted: RangeCounts | None = None) -> TableCheck:
    """The steward's own look at the records, or at what a fit has counted."""
    from privtraj.assess.look import check

    return check(chosen["data"], **table(chosen, check), counted=counted)


def columns(chosen: Mapping[str, Any]) -> tuple[Column, ...]:
    """The same as the fit will see them: checked before a record is read."""
    from privtraj.columns.declared import declared_columns

    return declared_columns(**declared(chosen))


def check_files(args: argparse.Namespace, *reads: str, **writes: tuple[str, ...]) -> None:
    """Refuse files that are named twice, or could not be written.

    reads: options that name files.  writes: the same, and suffixes of each.
    """
    named = {name: getattr(args, name) for name in (*reads, *writes)}
    given = [path.resolve() for path in named.values() if isinstance(path, Path)]
    for path in given:
        if given.count(path) > 1:
            raise InputError(f"'{path.name}' is named twice: give every file a name of its own")
    for path, suffixes in ((named[name], writes[name]) for name in writes):
        if path is None:
            continue
        if not path.name.lower().endswith(suffixes):
            raise InputError(f"the name '{path.name}' must end in {either(suffixes)}")
        files.check_writable(path, args.force)


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
