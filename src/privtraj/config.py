"""The configuration of a fit: every public choice in one file, TOML or YAML.

The keys are the long options of `privtraj fit` with underscores. `load` reads a file, `text` writes
one that repeats a fit; `privtraj init` writes one to fill in. Files that it names are found from
the folder that it is in. Nothing here ever sees a record.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import textwrap
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from privtraj.errors import InputError
from privtraj.text import listed

SUFFIXES = (".toml", ".yaml", ".yml")
LARGEST_NUMBER = 10**9

_PLACEHOLDER = re.compile(r"<[a-z ]+>")


# What a value may be --------------------------------------------------------------------------


class _Refused(ValueError):
    """The value is not of its kind; the kind says what it must be."""


@dataclass(frozen=True)
class Kind:
    """What values a key takes, in words, and the function that checks one and makes it plain."""

    must: str
    read: Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Refused
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Refused
    return value


def _number(value: Any) -> float:
    """A number, or text that reads as one: YAML takes 1e-5, without a point, for text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _Refused
    try:
        result = float(value)
    except (ValueError, OverflowError):
        raise _Refused from None
    if not math.isfinite(result):
        raise _Refused
    return result


def _moment(value: Any) -> float | str:
    """A number, or a date as text."""
    if isinstance(value, dt.date):  # a datetime is one
        return value.isoformat()
    try:
        return _number(value)
    except _Refused:
        return _iso(value)


def _iso(value: Any) -> str:
    try:
        dt.datetime.fromisoformat(_text(value))
    except ValueError:
        raise _Refused from None
    return str(value)


def _moments(least: int, most: int | None = None) -> Callable[[Any], list[float | str]]:
    def read(value: Any) -> list[float | str]:
        if not isinstance(value, list) or not least <= len(value) <= (most or len(value)):
            raise _Refused
        return [_moment(time) for time in value]

    return read


def _features(value: Any) -> list[list[Any]]:
    if not isinstance(value, list) or not value:
        raise _Refused
    return [_feature(item) for item in value]


def _feature(item: Any) -> list[Any]:
    if not isinstance(item, list) or len(item) != 3:
        raise _Refused
    name, low, high = item
    return [_text(name), _number(low), _number(high)]


def _whole(least: int) -> Kind:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _Refused
        if not least <= value <= LARGEST_NUMBER:
            raise _Refused
        return value

    return Kind(f"a whole number of at least {least} and at most {LARGEST_NUMBER}", read)


def _one_of(*choices: str) -> Kind:
    def read(value: Any) -> str:
        if value not in choices:
            raise _Refused
        return str(value)

    return Kind(" or ".join(f'"{choice}"' for choice in choices), read)


TEXT = Kind("text, in quotes", _text)
FILE = Kind("the name of a file, in quotes", lambda value: Path(_text(value)))
SOURCE = Kind("the name of a file, or a connection string, in quotes", lambda v: source(_text(v)))
NUMBER = Kind("a number", _number)
BOOLEAN = Kind("true or false", _boolean)
RANGE = Kind("two times, [start, end], numbers or dates such as 2024-01-31", _moments(2, 2))
TIMES = Kind("a list of numbers or of dates such as 2024-01-31", _moments(1))
FEATURES = Kind('a list of columns with their bounds, such as [["height", 40, 210]]', _features)


def source(text: str) -> str | Path:
    """Where the data are: a connection string stays text, all else is a path."""
    return text if "://" in text else Path(text)


# The keys -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """One choice: its name, what it may be, what it means, and what a template shows.

    default: what holds where it is not given.  example: shown, commented out, where there is no
    default.
    """

    name: str
    kind: Kind
    about: str
    default: Any = None
    example: Any = None


_SECTIONS: dict[str, tuple[Key, ...]] = {
    "The data": (
        Key(
            "data",
            SOURCE,
            "CSV, Parquet, Arrow or .h5ad file; folder or pattern of files; connection string of a "
            "database, best without a password.",
            example="clinic.csv",
        ),
        Key(
            "query",
            TEXT,
            "What to read from a database: a SELECT, or the name of a table.",
            example="SELECT * FROM visits",
        ),
        Key("time", TEXT, "Column that says when: numbers or dates.", example="age"),
        Key(
            "person",
            TEXT,
            "Column that says whose record it is, not which record. Without it every row is taken "
            "to be a different person, and the guarantee holds only if that is true.",
            example="id",
        ),
        Key(
            "feature",
            FEATURES,
            "Columns of numbers to use, each with a public lower and upper bound; values outside "
            "are clamped to them. Take the bounds from general knowledge (a chart, a map, a "
            "device's range), never from these data: the smallest and the largest value are those "
            "of two persons, and bounds are published with the model. Wide is safe, but blurs.",
            example=[["height", 40.0, 210.0]],
        ),
        Key(
            "time_range",
            RANGE,
            "Public first and last time, for the same reason not taken from the data; records "
            "outside count at its ends. Dates in quotes, such as 2024-01-31.",
            example=[0.0, 20.0],
        ),
        Key(
            "bins",
            _whole(2),
            "How many times to fit, spread evenly over the range; more bins, fewer people in each.",
            example=12,
        ),
        Key(
            "bin_times",
            TIMES,
            "Instead of bins: the times themselves; each record goes to the nearest.",
            example=[0.0, 1.0, 5.0, 20.0],
        ),
        Key(
            "one_per_person",
            _one_of("error", "random"),
            "Several records of a person: refuse them (error), or keep one at random.",
            default="error",
        ),
        Key(
            "records_per_person",
            _whole(1),
            "Or keep up to so many records of a person, one per bin, and pay for all of them.",
            default=1,
        ),
        Key(
            "missing",
            _one_of("refuse", "drop"),
            "Records with missing values: refuse them, or leave them out (drop).",
            default="refuse",
        ),
    ),
    "Privacy": (
        Key(
            "epsilon",
            NUMBER,
            "Privacy loss allowed: smaller is more private and blurs the result; 1 is a common "
            "choice.",
            example=1.0,
        ),
        Key(
            "delta",
            NUMBER,
            "Chance of a larger loss: far below one over the number of people, such as 1e-5.",
            example=1e-5,
        ),
        Key(
            "adjacency",
            _one_of("add-remove", "replace-one"),
            "What is hidden: whether a person is in the data (add-remove), or what the record says "
            "(replace-one).",
            default="add-remove",
        ),
        Key(
            "measure",
            _one_of("auto", "gradients", "counts"),
            "What the budget buys: counts suit few features, gradients many; auto chooses.",
            default="auto",
        ),
        Key(
            "public_counts",
            BOOLEAN,
            "Whether the number of people in each bin is public knowledge, so that nothing is "
            "spent on it.",
            default=False,
        ),
        Key(
            "seed",
            _whole(0),
            "Repeatable noise, for research: the result is NOT PRIVATE.",
            example=3,
        ),
        Key(
            "not_private",
            BOOLEAN,
            "Write a result that is not private all the same (needed with seed).",
            default=False,
        ),
    ),
    "Repeated fits on the same people": (
        Key(
            "ledger",
            FILE,
            "File that records the budget before anything is released; fits on it add up.",
            example="clinic.ledger",
        ),
        Key(
            "cap_epsilon",
            NUMBER,
            "Most that all fits in the ledger may spend together; as recorded last where left out.",
            example=3.0,
        ),
        Key("cap_delta", NUMBER, "The same for delta.", example=1e-4),
        Key(
            "new_people",
            BOOLEAN,
            "Nobody in these records is among the people of the ledger, so they need not add up.",
            default=False,
        ),
    ),
    "What to write": (
        Key("out", FILE, "The model, named .privtraj.", example="model.privtraj"),
        Key("certificate", FILE, "The certificate, as .json.", example="certificate.json"),
        Key("paths", FILE, "Synthetic paths too, as a table or a map.", example="paths.csv"),
        Key("n", _whole(1), "Number of synthetic people in paths; 1000 if left out.", example=1000),
        Key("at", _whole(1), "Number of times in paths; the fitted times if left out.", example=81),
        Key("force", BOOLEAN, "Replace existing files.", default=False),
        Key("json", BOOLEAN, "Print the result as one JSON object.", default=False),
        Key("quiet", BOOLEAN, "Show no progress.", default=False),
    ),
    "Several processes, each with records of other people": (
        Key(
            "distributed",
            BOOLEAN,
            "Join the processes that Slurm, Open MPI or Kubernetes started.",
            default=False,
        ),
        Key(
            "coordinator",
            TEXT,
            "Instead: address of the first process, the same in all of them.",
            example="host:1234",
        ),
        Key("processes", _whole(1), "With it: how many there are.", example=2),
        Key("process", _whole(0), "And the number of this one, from 0.", example=0),
    ),
    "Advanced: chosen from public and released numbers where left out": (
        Key(
            "particles", _whole(2), "Points that carry each time: more is finer, noisier.", None, 64
        ),
        Key(
            "steps",
            _whole(2),
            "Moves of the particles; gradients share the budget among them.",
            None,
            30,
        ),
        Key(
            "cells",
            _whole(2),
            "Cells per feature of the private counts: more is finer, noisier.",
            None,
            12,
        ),
        Key(
            "bandwidth",
            NUMBER,
            "Width of a person around a particle, as a share of the box.",
            None,
            0.05,
        ),
        Key(
            "time_coupling",
            NUMBER,
            "How strongly neighbouring times share what they know, 0 for not at all.",
            None,
            0.03,
        ),
        Key(
            "diffusivity",
            NUMBER,
            "How much single paths wander: variance, in boxes, per range.",
            None,
            0.01,
        ),
    ),
}

KEYS: dict[str, Key] = {key.name: key for keys in _SECTIONS.values() for key in keys}
_SPOKEN = ("force", "json", "quiet")  # how one command goes, no choice about the fit


# Reading --------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], but: Container[str] = ()) -> dict[str, Any]:
    """The options of `privtraj fit` that a file gives, by name; what it leaves out is absent.

    "feature" is [[name, low, high], ...]; "time_range" and "bin_times" hold floats, or dates as
    text; files are paths from the folder of the configuration.
    but: keys that the command line decides: they are left out, filled in or not.
    """
    path = Path(path)
    values = _parsed(path)
    if "pull" in values:  # its name before version 0.2
        values["time_coupling"] = values.pop("pull")
    for name in values:
        _check_known(name, path)
    values = {name: value for name, value in values.items() if name not in but}
    if "bins" in values and "bin_times" in values:
        raise InputError(f"'bins' and 'bin_times' exclude each other: keep one of them in '{path}'")
    return {name: _located(_checked(name, value, path), path) for name, value in values.items()}


def _parsed(path: Path) -> dict[str, Any]:
    check_name(path)
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path, or write one: privtraj init")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeError:
        raise InputError(f"the file '{path}' is not text in UTF-8: save it as UTF-8") from None
    values = _toml(text, path) if path.suffix.lower() == ".toml" else _yaml(text, path)
    if not isinstance(values, dict):
        raise InputError(f"'{path}' has no choices: it must have lines such as epsilon: 1.0")
    return values


def check_name(path: Path) -> None:
    """Refuse a name that says neither TOML nor YAML, or YAML where it cannot be read."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"the configuration '{path.name}' is neither TOML nor YAML: its name must end in "
            + " or ".join(SUFFIXES)
        )


def _toml(text: str, path: Path) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        where = re.search(r"at line (\d+)", str(error))
        raise _malformed(path, "TOML", where and where[1]) from None


def _yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise InputError(
            f"PyYAML is needed to read '{path}': run pip install 'privtraj[yaml]', or use TOML"
        ) from None
    try:
        tree = yaml.compose(text, yaml.SafeLoader)
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise _malformed(path, "YAML", mark and mark.line + 1) from None
    if isinstance(values, dict):  # YAML itself lets the last one win
        names = [key.value for key, _ in tree.value]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"'{name}' is given more than once in '{path}': keep one of them")
    return values


def _malformed(path: Path, kind: str, line: object) -> InputError:
    where = f" near line {line}" if line else ""
    return InputError(
        f"'{path}' is not valid {kind}{where}: every line gives one choice, once, and text is in "
        "quotes"
    )


def _check_known(name: object, path: Path) -> None:
    if name in KEYS:
        return
    near = get_close_matches(str(name).lower().replace("-", "_"), KEYS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "see 'privtraj fit --help' for all of them"
    raise InputError(f"'{path}' has '{name}', which is not a choice of fit: {hint}")


def _checked(name: str, value: Any, path: Path) -> Any:
    kind = KEYS[name].kind
    if _is_open(name, value):
        raise InputError(
            f"{name} in '{path}' is still to be filled in{_where(name, value)}: it must be "
            f"{kind.must}"
        )
    try:
        return kind.read(value)
    except _Refused:
        raise InputError(f"{name} in '{path}' must be {kind.must}") from None


def _is_open(name: str, value: Any) -> bool:
    """Whether a placeholder of the template is left; a feature may have such a name."""
    if name == "feature" and isinstance(value, list):
        return any(_open_bounds(item) for item in value)
    parts = value if isinstance(value, list) else [value]
    return any(isinstance(part, str) and _PLACEHOLDER.fullmatch(part) for part in parts)


def _open_bounds(item: Any) -> bool:
    return isinstance(item, list) and _is_open("", item[1:])


def _where(name: str, value: Any) -> str:
    if name != "feature" or not isinstance(value, list):
        return ""
    return " for " + listed([str(item[0]) for item in value if _open_bounds(item)])


def _located(value: Any, path: Path) -> Any:
    return path.parent / value if isinstance(value, Path) else value


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as `load` gives them, where they can be: the command line has words for numbers."""
    result = dict(options)
    for name in ("feature", "time_range", "bin_times"):
        try:
            result[name] = KEYS[name].kind.read([_as_list(item) for item in options[name]])
        except (_Refused, KeyError, TypeError):
            continue  # absent, or wrong: whoever uses it explains
    return result


def _as_list(item: Any) -> Any:
    return list(item) if isinstance(item, tuple) else item


# Writing --------------------------------------------------------------------------------------


def text(options: Mapping[str, Any], path: str | os.PathLike[str]) -> str:
    """The configuration, to be written to `path`, that repeats a fit with these options.

    Every choice is explicit, defaults too; what has none and was not made is there as a comment.
    A connection string that may hold a password is left out.
    """
    head = f"Every public choice of a fit. To repeat it: privtraj fit --config {Path(path).name}"
    return page(comment(head), plain(options), path)


def is_public_source(data: Any) -> bool:
    """Whether it can be written down: a connection string with a user or options may be secret."""
    return not (isinstance(data, str) and re.search("://.*[@?]", data))


def page(head: Sequence[str], options: Mapping[str, Any], path: str | os.PathLike[str]) -> str:
    """Lines of a head, then every key with its meaning and its value, if only in a comment."""
    path = Path(path)
    sign = " = " if path.suffix.lower() == ".toml" else ": "
    lines = list(head)
    for title, keys in _SECTIONS.items():
        lines += ["", f"# {title} ".ljust(80, "-")]
        for key in keys:
            value = _relative(options.get(key.name, key.default), path)
            left_out = value is None or key.name in _SPOKEN
            left_out |= key.name == "data" and not is_public_source(value)
            shown = (key.default if key.example is None else key.example) if left_out else value
            mark = "# " if left_out else ""
            lines += ["", *comment(key.about)]
            lines.append(f"{mark}{key.name}{sign}{_written(shown, flat=left_out)}")
    return "\n".join(lines) + "\n"


def _relative(value: Any, path: Path) -> Any:
    if not isinstance(value, Path) or value.is_absolute():
        return value
    return Path(os.path.relpath(value, path.parent))


def comment(paragraph: str) -> list[str]:
    """Lines of a comment."""
    return textwrap.wrap(paragraph, 88, initial_indent="# ", subsequent_indent="# ")


def _written(value: Any, flat: bool = False) -> str:
    """A value in the words that TOML and YAML share, which are close to those of JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))  # YAML wants the point
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        parts = [_written(part, flat=True) for part in value]
        if flat or not isinstance(value[0], list | tuple):
            return f"[{', '.join(parts)}]"
        return "[\n" + "".join(f"    {part},\n" for part in parts) + "  ]"
    return quoted(value.as_posix() if isinstance(value, Path) else str(value))


def quoted(text: str) -> str:
    """The text as a string of TOML and of YAML."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain) + '"'
