"""What the site has beyond its pages, made at build time so that it cannot go out of date.

Commands' help from their parsers, the planted breaks from their list, the changelog from its file,
notebooks as pages, and a page for every source file that a page links to. In the repository the
same links lead to the files.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".csv": "text"}

_LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, and for each file outside docs/ that a page links to."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            _add(files, config, _page_of(file.src_uri), _notebook(Path(file.abs_src_path or "")))
        elif file.is_documentation_page():
            text = Path(file.abs_src_path or "").read_text("utf-8")
            for match in _LINK.finditer(text):
                path = _outside(file.src_uri, match["target"])
                if path and not files.get_file_from_path(_page_of(path)):
                    _add(files, config, _page_of(path), _listing(path))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated, and lead links to the pages that stand for files."""
    if page.file.src_uri == "reference/cli.md":
        markdown += "\n" + "\n".join(_commands())
    if page.file.src_uri == "mutants.md":
        markdown += "\n" + _planted_breaks()
    if page.file.src_uri == "changelog.md":
        return (ROOT / "CHANGELOG.md").read_text("utf-8")

    here = posixpath.dirname(page.file.src_uri)

    def relinked(match: re.Match[str]) -> str:
        inside = posixpath.normpath(posixpath.join(here, match["target"]))
        file = _outside(page.file.src_uri, match["target"])
        stands_for = file or (inside if inside.endswith(".ipynb") else None)
        if stands_for is None or _page_of(stands_for) == page.file.src_uri:
            return match[0]
        return posixpath.relpath(_page_of(stands_for), here or ".") + (match["anchor"] or "")

    return _LINK.sub(relinked, markdown)


def _outside(page: str, target: str) -> str | None:
    """The path, from the repository's root, of an existing file outside docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    is_file = not path.startswith((".", "docs/")) and (ROOT / path).is_file()
    return path if is_file else None


def _page_of(path: str) -> str:
    """The page that stands for a notebook below docs/, or for a file outside."""
    if path == "CHANGELOG.md":
        return "changelog.md"
    if path.endswith(".ipynb"):
        return path.removesuffix("ipynb") + "md"
    return f"source/{path}.md"


def _add(files: Files, config: MkDocsConfig, uri: str, text: str) -> None:
    page = File.generated(config, uri, content=text)
    if uri.startswith("source/"):
        page.inclusion = type(page.inclusion).NOT_IN_NAV
    files.append(page)


def _listing(path: str) -> str:
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(os.path.splitext(path)[1], "text")
    return f"# {path}\n\n````{language}\n{text}\n````\n"


def _notebook(path: Path) -> str:
    """The notebook as Markdown, with the outputs that are stored in it."""
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            parts.extend(filter(None, map(_output, cell.outputs)))
    first, *rest = parts
    return "\n\n".join([first, f"[Download the notebook]({path.name})", *rest]) + "\n"


def _output(output: Any) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"].split())
        return f"![what the cell above draws](data:image/png;base64,{picture})"
    text = output.get("text") or data.get("text/plain") or ""
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def _planted_breaks() -> str:
    """The table of the breaks that `make mutants` plants."""
    rows = ["| break | what is broken | in | caught by |", "|---|---|---|---|"]
    for path in sorted((ROOT / "tests" / "mutants").glob("[0-9]_*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]:
            files = dict.fromkeys(test.split("::")[0] for test in entry["caught_by"])
            tests = ", ".join(f"`{file.removeprefix('tests/')}`" for file in files)
            rows.append(f"| {entry['name']} | {entry['breaks']} | `{entry['file']}` | {tests} |")
    return "\n".join(rows)


def _commands() -> Iterator[str]:
    from privtraj.cli.entry import full_parser

    os.environ["COLUMNS"] = "76"  # the width at which argparse wraps
    top = full_parser()
    yield f"## privtraj\n\n```text\n{top.format_help()}```\n"
    for prog, parser in _subparsers(top):
        yield f"## {prog}\n\n```text\n{parser.format_help()}```\n"


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield child.prog, child
                yield from _subparsers(child)
