"""The house: every import points down, and no two modules need each other.

Floors are listed in CONTRIBUTING.md, lowest first. Imports inside functions, under TYPE_CHECKING
and of whole packages count like any other. Facades are stubs (`__init__.pyi`), read by name.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


def modules():
    """Every module by its dotted name; packages that are empty are none."""
    paths = sorted(path for path in (SOURCE / "privtraj").rglob("*.py") if path.stat().st_size)
    names = (".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths)
    return {name.removesuffix(".__init__"): path for name, path in zip(names, paths, strict=True)}


def imports(name, path, known):
    """The modules that one module imports anywhere, with the packages they are in."""
    found = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level]
            base = ".".join([*above * bool(node.level), *filter(None, [node.module])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    packages = {
        ".".join(each.split(".")[:k]) for each in found for k in range(2, each.count(".") + 1)
    }
    return {each for each in found | packages if each in known} - {name, "privtraj"}


def floors():
    """Number of the floor of each module or package named in CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    listed = re.search(r"```floors\n(.*?)```", text, re.DOTALL)
    lines = [line.split("  ")[0].split() for line in listed[1].splitlines()]
    return {name: number for number, names in enumerate(lines) for name in names}


def floor_of(name, known):
    """That of the longest listed name that it begins with."""
    parts = name.removeprefix("privtraj.").split(".")
    for length in range(len(parts), 0, -1):
        if (place := ".".join(parts[:length])) in known:
            return known[place]
    pytest.fail(f"{name} is on no floor of CONTRIBUTING.md")


KNOWN = modules()
GRAPH = {name: imports(name, path, KNOWN) for name, path in KNOWN.items() if name != "privtraj"}


def test_no_circle():
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(f"these need each other: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("name", GRAPH)
def test_imports_point_down(name):
    known = floors()
    here = floor_of(name, known)
    above = {each for each in GRAPH[name] if floor_of(each, known) > here}
    package = name.split(".")[:2]
    beside = {
        each
        for each in GRAPH[name]
        if floor_of(each, known) == here and each.split(".")[:2] != package and "." in each[9:]
    }
    assert not above, f"{name} imports from a higher floor"
    assert not beside, f"{name} reaches into another room of its floor"


@pytest.mark.parametrize("name", GRAPH)
def test_nothing_reaches_into_underscored_names(name):
    """A name with an underscore belongs to its module, or at most to its own package."""
    taken = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(KNOWN[name].read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privtraj")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert not taken


def test_the_tests_see_a_circle(tmp_path):
    """Of a pair that need each other lazily."""
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("def f():\n    from privtraj.other import g\n")
    other.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import privtraj.one\n"
    )
    known = {"privtraj.one": one, "privtraj.other": other}
    graph = {name: imports(name, path, known) for name, path in known.items()}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()
