"""The configuration of a fit: every public choice in one file of TOML.

The keys are the long options of `privtraj fit` with underscores. `load` reads a file, `text` writes
one that repeats a fit; `privtraj init` writes one to fill in. Files that it names are found from
the folder that it is in. Nothing here ever sees a record.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from privtraj.base.errors import InputError, listed
from privtraj.base.files import DEEPEST, bounded
from privtraj.cli.options import GROUPS, OPTIONS

SUFFIXES = (".toml",)
MOST_BYTES = 2**18  # of a configuration

_QUOTED = re.compile(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*\"""")
_DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{DEEPEST}}}")
_PLACEHOLDER = re.compile(r"<[a-z ]+>")
_SPOKEN = ("force", "json", "quiet")  # how one command goes, no choice about the fit


# Reading --------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], only: Container[str] = OPTIONS) -> dict[str, Any]:
    """The options of `privtraj fit` that a file gives, by name; what it leaves out is absent.

    "feature" is [[name, low, high], ...]; "columns" is {name: form}, as in `columns.declared`;
    "time_range" and "bin_times" hold floats, or dates as text; files are paths from the folder of
    the configuration.
    only: those that are wanted; others are left out, filled in or not.
    """
    path = Path(path)
    values = _parsed(path)
    for name in values:
        if name not in OPTIONS:
            near = get_close_matches(str(name).lower().replace("-", "_"), OPTIONS, n=1, cutoff=0.5)
            see = "see 'privtraj fit --help' for all of them"
            hint = f"did you mean {near[0]}?" if near else see
            raise InputError(f"'{path}' has '{name}', which is not a choice of fit: {hint}")
    values = {name: value for name, value in values.items() if name in only}
    if "bins" in values and "bin_times" in values:
        raise InputError(f"'bins' and 'bin_times' exclude each other: keep one of them in '{path}'")
    return {name: _checked(name, value, path) for name, value in values.items()}


def _parsed(path: Path) -> dict[str, Any]:
    import tomllib

    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"the configuration '{path.name}' is no TOML: its name must end in .toml")
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path, or write one: privtraj init")
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"'{path}' is far larger than any configuration: give the path of one")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeError:
        raise InputError(f"the file '{path}' is not text in UTF-8: save it as UTF-8") from None
    try:
        if _DOTTED.search(_QUOTED.sub("k", text)):  # which take tomllib quadratic time
            raise ValueError("too deep")
        return dict(bounded(tomllib.loads(text)))
    except (ValueError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        where = f" near line {line[1]}" if line else ""
        raise InputError(
            f"'{path}' is not valid TOML{where}: every line gives one choice, once, and text is "
            "in quotes"
        ) from None


def _checked(name: str, value: Any, path: Path) -> Any:
    kind = OPTIONS[name].kind
    left = [part for part, inside in _parts(value) if any(map(_is_open, inside))]
    if left:
        where = f" for {listed(left)}" if left != [""] else ""
        raise InputError(
            f"{name} in '{path}' is still to be filled in{where}: it must be {kind.must}"
        )
    try:
        plain = kind.read(value)
    except ValueError:
        raise InputError(f"{name} in '{path}' must be {kind.must}") from None
    return path.parent / plain if isinstance(plain, Path) else plain


def _parts(value: Any) -> Iterator[tuple[str, Iterable[Any]]]:
    """Names of the lines of a table, or of rows, which their first word names, and what is in them.

    Names are none of it: a column may be called like what is still to be filled in.
    """
    if isinstance(value, dict):
        for key, form in value.items():
            yield key, form.values() if isinstance(form, dict) else [form]
    elif isinstance(value, list) and any(isinstance(row, list) for row in value):
        for row in value:
            yield (str(row[0]), row[1:]) if isinstance(row, list) and row else ("", [row])
    else:
        yield "", value if isinstance(value, list) else [value]


def _is_open(word: Any) -> bool:
    return isinstance(word, str) and _PLACEHOLDER.fullmatch(word) is not None


# Writing --------------------------------------------------------------------------------------


def text(options: Mapping[str, Any], path: str | os.PathLike[str]) -> str:
    """The configuration, to be written to `path`, that repeats a fit with these options.

    Every choice is explicit, defaults too; what has none and was not made is there as a comment.
    A connection string that may hold a password is left out.
    """
    head = f"Every public choice of a fit. To repeat it: privtraj fit --config {Path(path).name}"
    return page(comment(head), options, path)


def is_public_source(data: Any) -> bool:
    """Whether it can be written down: a connection string with a user or options may be secret."""
    return not (isinstance(data, str) and re.search("://.*[@?]", data))


def page(head: Sequence[str], options: Mapping[str, Any], path: str | os.PathLike[str]) -> str:
    """Lines of a head, then every key with its meaning and its value, if only in a comment."""
    path, lines = Path(path), list(head)
    for group in GROUPS:
        lines += ["", f"# {group.title.capitalize()}: {group.about} ".ljust(80, "-")]
        for key in group.options:
            value = options.get(key.name, key.default)
            if isinstance(value, Path) and not value.is_absolute():
                value = Path(os.path.relpath(value, path.parent))
            left_out = value is None or key.name in _SPOKEN
            left_out |= key.name == "data" and not is_public_source(value)
            shown = (key.default if key.example is None else key.example) if left_out else value
            mark = "# " if left_out else ""
            lines += ["", *comment(key.comment)]
            if isinstance(shown, dict):
                lines += [mark + line for line in _tables(key.name, shown)]
            else:
                lines.append(f"{mark}{key.name} = {_written(shown, flat=left_out)}")
    return "\n".join(lines) + "\n"


def _tables(name: str, forms: Mapping[str, Any]) -> list[str]:
    """A line for each column."""
    lines = []
    for key, form in forms.items():
        said = _written(form, flat=True)
        if isinstance(form, Mapping):
            inside = (f"{word} = {_written(part, flat=True)}" for word, part in form.items())
            said = f"{{ {', '.join(inside)} }}"
        bare = re.fullmatch(r"[\w-]+", key, re.ASCII)
        lines.append(f"{name}.{key if bare else quoted(key)} = {said}")
    return lines


def comment(paragraph: str) -> list[str]:
    """Lines of a comment."""
    return textwrap.wrap(paragraph, 88, initial_indent="# ", subsequent_indent="# ")


def _written(value: Any, flat: bool = False) -> str:
    """A value in the words of TOML, which are close to those of JSON."""
    if isinstance(value, int | float):
        return str(value).lower()  # of True and False too
    if isinstance(value, list | tuple):
        parts = [_written(part, flat=True) for part in value]
        if flat or not isinstance(value[0], list | tuple):
            return f"[{', '.join(parts)}]"
        return "[\n" + "".join(f"    {part},\n" for part in parts) + "  ]"
    return quoted(value.as_posix() if isinstance(value, Path) else str(value))


def quoted(text: str) -> str:
    """The text as a string of TOML."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain) + '"'
