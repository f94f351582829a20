"""For the site: lines of docstrings such as "name: meaning" become a list, facades are public, and
settings of a recipe are explained by what stands beside each."""

from __future__ import annotations

import re
from typing import Any

import griffe

from privtraj.recipe import MEANINGS

_NAMES = r"[a-z_]\w*(?:, [a-z_]\w*)*"
_ITEM = re.compile(rf"^(?P<names>{_NAMES}): (?P<rest>.*)$")
_NEXT = re.compile(rf"\.\s\s(?={_NAMES}: )")


class Arguments(griffe.Extension):
    """Rewrites every docstring as it is collected."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


class Settings(griffe.Extension):
    """Explains the settings of a recipe, which its source does beside each."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        if cls.path == "privtraj.recipe.Recipe" and cls.docstring:
            cls.docstring.value = as_markdown("\n".join([cls.docstring.value, "", *MEANINGS]))


class Facades(griffe.Extension):
    """A package that imports lazily is public in what its stub imports, `from .a import b as b`."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        for module in pkg.modules.values():
            if not module.is_alias and "lazy_loader" in module.imports:
                module.exports = [
                    name for name, source in module.imports.items() if source.startswith(pkg.path)
                ]


def as_markdown(text: str) -> str:
    """The docstring with one list item for every argument it explains.

    An item goes on until a blank line or the next item; lines of it lie below its dash.
    """
    lines: list[str] = []
    inside = False
    for line in _NEXT.sub(".\n", text).splitlines():
        if found := _ITEM.match(line):
            if not inside and lines and lines[-1]:
                lines.append("")  # Markdown begins a list after a blank line
            names = ", ".join(f"`{name}`" for name in found["names"].split(", "))
            lines.append(f"- {names}: {found['rest']}")
            inside = True
        elif inside and line.strip():
            lines.append(f"    {line.strip()}")
        else:
            inside = False
            lines.append(line)
    return "\n".join(lines)
