"""Breaks that nobody had to think of: operators, planted wherever the source has a site for one.

    drop-noise    a noisy sum without its noise
    exact-answer  an answer of the guard without noise, though it is paid for
    halve-scale   half of an epsilon, a noise multiplier, a clip, a sensitivity
    drop-factor   a product or a quotient without its second part
    swap-relation adding for replacing, together for apart, the other branch of such a choice
    skip-clamp    a bound that is not kept: clip, minimum, maximum
    drop-payment  a payment, a check or a flush that is left out

Sites are found in the trees of `ROOMS`; of factors, scales and clamps in the measures only those in
what is planned, asked or paid (`PAYS`) and in what that is computed from, as the rest decides about
quality alone. What a check is told is not halved: numbers in range stay there, what is finite
stays finite, and shapes stay (`ALIKE`). A name, such as
"halve-scale privacy/noise.py laplace 2", is that of the operator, the file, the function and the
number of the site in it, so that it outlives changes elsewhere. `shards` plants them: tests that
fail for any reason have noticed. Survivors are explained in survivors.toml, by name; one without an
explanation fails the run.
"""

from __future__ import annotations

import ast
import random
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from mutants import suite
from mutants.suite import HERE, SOURCE

ROOMS = ("privacy", "measures")
EXPLAINED = HERE / "survivors.toml"
NOISE = {"draw", "laplace_integers", "gaussian_integers"}
SCALES = {"epsilon", "multiplier", "noise_multiplier", "scale", "clip", "sensitivity", "slack"}
RELATION = {"together", "adjacency", "records", "mirrored"}
CLAMPS = {"clip", "minimum", "maximum", "min", "max"}
DUTIES = {"spend", "check", "reserve", "flush", "fsync", "verify", "limit"}
ALIKE = {"isfinite", "shape"}
PAYS = {"ask", "Release", "Gaussian", "Laplace", "LaplaceCounts", "GaussianSum", "spend"}
PAYS |= {"calibrate_noise", "calibrate_gaussian", "calibrate_laplace", "counts_event", "left"}


@dataclass(frozen=True)
class Planted:
    """One break by an operator, planted like one of the list.

    lines: those of its statement; a test that passes none of them cannot notice.
    caught_by: tests that the list names for breaks of the same file.
    """

    name: str
    breaks: str
    file: str
    text: str
    lines: frozenset[int]
    caught_by: list[str]

    def plant(self, package: Path) -> None:
        """Break a copy of the package."""
        (package / self.file).write_text(self.text, encoding="utf-8")


def planted(rooms: Sequence[str] = ROOMS) -> list[Planted]:
    """Every break that the operators find."""
    named: dict[str, list[str]] = {}
    for mutant in suite.load().values():
        named.setdefault(mutant.file, []).extend(mutant.caught_by)
    found = []
    for room in rooms:
        for path in sorted((SOURCE / room).glob("*.py")):
            file, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
            tests = list(dict.fromkeys(named.get(file, [])))
            statements = _statements(ast.parse(text))
            for (operator, place), old, new in _sites(text, room):
                found.append(
                    Planted(
                        f"{operator} {file} {place}",
                        f"{_segment(text, old)} becomes {new}",
                        file,
                        _spliced(text, old, new),
                        statements[old.lineno],  # type: ignore[attr-defined]
                        tests,
                    )
                )
    return found


def sampled(mutants: Sequence[Planted], many: int, seed: int) -> list[Planted]:
    """So many of them, the same for a seed."""
    chosen = random.Random(seed).sample(range(len(mutants)), min(many, len(mutants)))
    return [mutants[k] for k in sorted(chosen)]


def explanations(mutants: Sequence[Planted]) -> dict[str, str]:
    """Why survivors survive, by name; a * in a name of the file stands for any text."""
    known = tomllib.loads(EXPLAINED.read_text("utf-8"))["survivors"]
    return {
        mutant.name: why
        for mutant in mutants
        for name, why in known.items()
        if fnmatchcase(mutant.name, name)
    }


# Sites ----------------------------------------------------------------------------------------


def _sites(text: str, room: str) -> Iterator[tuple[tuple[str, str], ast.AST, str]]:
    """(operator, place), node, new text for each site of a file."""
    seen: Counter[tuple[str, str]] = Counter()
    for function, node in _functions(ast.parse(text)):
        paid = None if room == "privacy" else _paid(node)
        for part in _own(node):
            for operator, site, new in _operators(part, paid is None or part in paid):
                seen[operator, function] += 1
                yield (operator, f"{function} {seen[operator, function]}"), site, new


def _functions(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _paid(function: ast.AST) -> set[ast.AST]:
    """What stands in a call of `PAYS`, and in assignments that such a call depends on."""
    parts = list(ast.walk(function))
    kept = [node for node in parts if isinstance(node, ast.Call) and _called(node.func) in PAYS]
    names: set[str] = set()
    while True:
        found = {name for node in kept for name in _names(node)}
        if found == names:
            return {part for node in kept for part in ast.walk(node)}
        names = found
        for node in parts:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                set_here = {x.id for t in targets for x in ast.walk(t) if isinstance(x, ast.Name)}
                if set_here & names:
                    kept.append(node.value)


def _statements(tree: ast.AST) -> dict[int, frozenset[int]]:
    """The lines of the innermost statement (of a compound one, its head) that each line is in."""
    found = {}
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(body[0].lineno - 1, node.lineno) if body else node.end_lineno or node.lineno
            lines = range(node.lineno, last + 1)
            found |= dict.fromkeys(lines, frozenset(lines))
    return found


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The nodes of a body, without annotations, defaults and texts of errors."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        yield node
        skipped = {"annotation", "returns", "decorator_list", "defaults"}
        for name, value in ast.iter_fields(node):
            if name not in skipped:
                children = value if isinstance(value, list) else [value]
                todo += [child for child in children if isinstance(child, ast.AST)]


def _operators(node: ast.AST, pays: bool) -> Iterator[tuple[str, ast.AST, str]]:
    """The operator, the node that is replaced, and by what."""
    match node:
        case ast.BinOp(left, ast.Add(), right) if NOISE & _names(right):
            yield "drop-noise", node, ast.unparse(left)
        case ast.BinOp(left, ast.Mult() | ast.Div(), _) if pays:
            yield "drop-factor", node, ast.unparse(left)
        case ast.IfExp(test, body, other) if RELATION & _names(test):
            yield "swap-relation", node, ast.unparse(ast.IfExp(test, other, body))
        case ast.Constant("add-remove"):
            yield "swap-relation", node, repr("replace-one")
        case ast.Constant("replace-one"):
            yield "swap-relation", node, repr("add-remove")
        case ast.Call(ast.Attribute(guard, "ask"), [release]):
            scale = "r.question.scale(r.noise, g.shape)"
            exact = f"r.question.answer(r.question.total(g._view, {scale}), {scale})"
            paid = f"(lambda g, r: (g._payer.spend(r.event(g.shape)), {exact})[1])"
            yield "exact-answer", node, f"{paid}({ast.unparse(guard)}, {ast.unparse(release)})"
        case ast.Call(function, [first, *_]) if pays and _called(function) in CLAMPS:
            starred = isinstance(first, ast.Starred | ast.GeneratorExp)
            if not starred and (len(node.args) > 1 or _called(function) == "clip"):
                inner = function.value if _is_method(function) else first
                yield "skip-clamp", node, ast.unparse(inner)
        case ast.Expr(ast.Call(function)) if _called(function) in DUTIES:
            yield "drop-payment", node, "None"
    if isinstance(node, ast.Call) and pays and not _is_check(_called(node.func)):
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if _called(argument) in SCALES:
                yield "halve-scale", argument, f"{ast.unparse(argument)} / 2"


def _called(node: ast.AST) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_check(called: str) -> bool:
    return "check" in called or called in ALIKE


def _is_method(function: ast.AST) -> bool:
    """Of an array, and not of a module."""
    return isinstance(function, ast.Attribute) and _called(function.value) not in ("np", "jnp", "")


def _names(node: ast.AST) -> set[str]:
    return {_called(part) for part in ast.walk(node)} - {""}


# Text -----------------------------------------------------------------------------------------


def _segment(text: str, node: ast.AST) -> str:
    return " ".join((ast.get_source_segment(text, node) or "").split())


def _spliced(text: str, node: ast.AST, new: str) -> str:
    """The text with a node replaced; columns are counted in bytes."""
    lines = text.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return sum(len(each.encode()) for each in lines[: line - 1]) + column

    raw = text.encode()
    begin = offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
    end = offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    return (raw[:begin] + f"({new})".encode() + raw[end:]).decode()
