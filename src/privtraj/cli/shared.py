"""What the commands share: their options, the checks before anything is read or spent, a cache."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base import files
from privtraj.base.errors import InputError, either
from privtraj.cli import config
from privtraj.cli.console import Console
from privtraj.cli.options import FILE, OPTIONS, SOURCE, Option, arguments

if TYPE_CHECKING:
    from privtraj.assess.checking.look import TableCheck
    from privtraj.columns.kinds import Column
    from privtraj.model.model import TrajectoryModel
    from privtraj.synthesizer import TrajectorySynthesizer

PICTURES = (".png", ".pdf", ".svg")


def command(commands: Any, name: str, about: str, run: Callable[..., Any], **more: Any) -> Any:
    """The parser of a command that `run` runs."""
    added = commands.add_parser(name, help=about, **{"description": about, **more})
    added.set_defaults(run=run)
    return added


def add(group: Any, *options: str | Option, configured: bool = False, **changes: Any) -> None:
    """Options, by name if a fit has them.

    configured: those not given are None, as a file may have them.  changes: what this command says
    of them otherwise.
    """
    for option in map(_declared, options):
        option = replace(option, **changes)
        words: dict[str, Any] = {"help": option.help, **option.kind.typed}
        if option.metavar is not None:
            words["metavar"] = option.metavar
        if option.kind is SOURCE:
            group.add_argument(option.name, nargs="?", **words)
            continue
        flags = [option.short, option.flag] if option.short else [option.flag]
        words["default"] = None if configured else option.default
        group.add_argument(*flags, dest=option.name, **words)


def add_budget(group: Any, configured: bool = False) -> None:
    """The two numbers of the guarantee, where they need not be chosen."""
    for name in ("epsilon", "delta"):
        add(group, name, default=OPTIONS[name].example, needed="", configured=configured)


def add_model(group: Any) -> None:
    """The model that a command is about."""
    group.add_argument("model", metavar="MODEL", type=Path, help="model file that fit has written")


def add_csv(group: Any) -> None:
    """How a CSV file is written, for commands that read one beside fit."""
    add(group, "csv", Option("config", FILE, "configuration of the fit, which may say that too"))


def csv_of(args: Any) -> dict[str, Any] | None:
    """The same, from the command line or else the configuration."""
    if args.csv is not None or args.config is None:
        return args.csv
    return config.load(args.config, but=set(OPTIONS) - {"csv"}).get("csv")


def add_common_options(group: Any, force: str) -> None:
    """The options that every command has that writes something."""
    add(group, "force", about=force)
    add(group, "json", "quiet")


def add_directory(group: Any, default: str) -> None:
    """The directory that a command writes to."""
    about, path = "directory to write to, made if missing", Path(default)
    add(group, "out", about=about, default=path, needed="", metavar="DIR")
    add_common_options(group, "write into a directory that is not empty")


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
    for option in map(_declared, options):
        if given[option.name] is None:
            name = option.metavar if option.kind is SOURCE else option.flag
            raise InputError(f"{name} is needed: {option.needed}")


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


def looked(
    chosen: Mapping[str, Any], synthesizer: TrajectorySynthesizer | None, ranges_only: bool = False
) -> TableCheck:
    """The steward's own look at the records; synthesizer: of the fit, if its budget is known."""
    from privtraj.assess.checking.look import check

    return check(
        chosen["data"], **table(chosen, check), synthesizer=synthesizer, ranges_only=ranges_only
    )


def columns(chosen: Mapping[str, Any]) -> tuple[Column, ...]:
    """The same as the fit will see them: checked before a record is read."""
    from privtraj.columns.declared import declared_columns

    return declared_columns(**declared(chosen))


def _declared(option: str | Option) -> Option:
    return OPTIONS[option] if isinstance(option, str) else option


def check_output(path: Path | None, suffixes: tuple[str, ...] | None, force: bool) -> None:
    """Refuse a file that could not be written; `suffixes` None means any that paths can have."""
    if path is None:
        return
    from privtraj.model import paths

    known = paths.SUFFIXES if suffixes is None else suffixes
    if not path.name.lower().endswith(known):
        raise InputError(f"the name '{path.name}' must end in {either(known)}")
    files.check_writable(path, force)


def make_directory(path: Path, force: bool) -> None:
    """Make it if missing; one that holds something is refused unless forced."""
    if path.exists() and not path.is_dir():
        raise InputError(f"'{path}' is a file: give --out the name of a directory")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise InputError(
            f"the directory '{path}' is not empty: choose another with --out, or write into it "
            "with --force"
        )
    path.mkdir(parents=True, exist_ok=True)


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache, so that the next run starts at once.

    Compiled code holds sizes, rounded up, and no data. Whoever told JAX another place is obeyed.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    # by machine: a home may be shared by machines of different kinds
    folder = files.cache_folder("compiled") / platform.node()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # nowhere to keep it: everything works, only slower
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
