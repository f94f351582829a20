"""What the documentation shows, runs; what it links to, exists; and the site builds."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
import nbformat
import pytest
from nbclient import NotebookClient

import doc_blocks
from doc_blocks import BLOCK, blocks
from privtraj import datasets
from privtraj.export import tables as export_tables

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
FIRST = ("README.md",)  # run by `make test`; the other pages by `make test-all`
JOURNEYS = {f"docs/howto/{name}.md" for name in ("clinic", "mobility", "single-cell")}
SHOWN_ONLY = {"bibtex", "console", "text", "toml", "yaml"}  # and everything else is run

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def to_run(page):
    return [pair for pair in blocks(page.read_text("utf-8")) if pair[0] not in SHOWN_ONLY]


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.fixture
def room(tmp_path, monkeypatch):
    """An empty directory with the clinic's table, as a reader of README would have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "agg")
    matplotlib.use("agg")
    export_tables.write_table(datasets.growth_clinic(2000), tmp_path / "clinic.csv")
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.thorough] * (name_of(page) not in FIRST))
        for page in PAGES
        if to_run(page) and name_of(page) not in JOURNEYS
    ],
    ids=name_of,
)
def test_the_blocks_of_a_page_run_top_to_bottom(page, room):
    with contextlib.chdir(room):
        doc_blocks.run(to_run(page), name_of(page))


def test_every_block_is_run_or_says_that_it_is_not():
    known = SHOWN_ONLY | {"python", "sh"}
    for page in PAGES:
        text = page.read_text("utf-8")
        assert {language for language, _ in blocks(text)} <= known, name_of(page)
        assert len(re.findall(r"^ *```+", text, re.MULTILINE)) == 2 * len(blocks(text))


def test_relative_links_lead_to_files_of_the_repository():
    for page in PAGES:
        for target in _LINK.findall(BLOCK.sub("", page.read_text("utf-8"))):
            path, _, _ = target.partition("#")
            if path and not re.match(r"[a-z]+:", path):
                assert (page.parent / path).exists(), f"{name_of(page)} links to {target}"


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_runs_top_to_bottom(path, room):
    notebook = nbformat.read(path, as_version=4)
    if any("import umap" in cell.source for cell in notebook.cells):  # 300 MB with its compiler
        pytest.importorskip("umap", reason="the extra 'umap' is not installed")
    for cell in notebook.cells:
        cell.update({"outputs": []} if cell.cell_type == "code" else {})
    client = NotebookClient(notebook, timeout=3600, resources={"metadata": {"path": str(room)}})
    client.execute()
    assert any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.thorough
def test_the_site_asks_nobody_else_for_anything(site):
    fetched = re.compile(
        r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//[^\s\"'>]+"
        r"|<link[^>]+rel=[\"']?(?:stylesheet|preconnect|preload|icon)[^>]+href=[\"']?(?:https?:)?//"
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert not fetched.search(page.read_text("utf-8")), page


CODE = """() => [...document.querySelectorAll(".md-content pre > code")]
  .map((code) => [code.scrollWidth > code.clientWidth + 1, getComputedStyle(code).overflowX])"""


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "fits"), [(1280, True), (390, False)])
def test_code_fits_a_screen_and_scrolls_by_itself_on_a_phone(site, browser, width, fits):
    page = browser.new_page(viewport={"width": width, "height": 800})
    for name in ("howto/mobility.html", "formats.html"):
        page.goto((site / name).as_uri())
        found = page.evaluate(CODE)
        assert len(found) > 4
        assert {overflow for _, overflow in found} == {"auto"}
        assert any(wider for wider, _ in found) != fits
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.thorough
def test_the_site_has_every_command_and_the_changelog(site):
    from privtraj.cli.entry import full_parser

    commands = (site / "reference" / "cli.html").read_text("utf-8")
    (known,) = [action.choices for action in full_parser()._actions if action.choices]
    assert {"fit", "report", "plan"} <= set(known)
    for name in (*known, "ledger charge"):
        assert f"usage: privtraj {name}" in commands
    assert "0.1.0" in (site / "changelog.html").read_text("utf-8")


@pytest.mark.thorough
def test_links_to_source_files_lead_to_pages_of_the_site(site):
    assert 'href="source/src/privtraj/privacy/guard.py.html"' in (site / "faq.html").read_text()
    listing = (site / "source" / "src" / "privtraj" / "privacy" / "guard.py.html").read_text()
    assert "class" in listing
    assert "Guard" in listing


@pytest.mark.thorough
def test_notebooks_are_pages_with_their_pictures(site):
    for path in NOTEBOOKS:
        page = (site / "notebooks" / f"{path.stem}.html").read_text("utf-8")
        assert "data:image/png;base64," in page
        assert f'href="{path.name}"' in page


@pytest.mark.thorough
def test_arguments_in_docstrings_are_listed_in_the_reference(site):
    page = (site / "reference" / "core.html").read_text("utf-8")
    for name in ("records_per_person", "one_per_person", "epsilon"):
        assert re.search(rf"<li>\s*(<p>)?<code>{name}</code>", page)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["datasets", "metrics"])
def test_functions_of_a_facade_are_listed_in_the_reference(site, name):
    page = (site / "reference" / f"{name}.html").read_text("utf-8")
    stub = (ROOT / "src" / "privtraj" / name / "__init__.pyi").read_text("utf-8")
    functions = re.findall(r" as ([a-z]\w*)$", stub, re.MULTILINE)
    assert len(functions) > 5
    assert [each for each in functions if f'id="privtraj.{name}.{each}"' not in page] == []


@pytest.mark.thorough
def test_the_site_can_be_searched_from_a_folder(site, browser):
    page = browser.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "howto" / "clinic.html").as_uri())
    box, found = (
        page.get_by_role("textbox", name="Search"),
        page.locator(".md-search-result__item"),
    )
    for _ in range(60):  # a person types when the page is ready; a test cannot see that it is
        box.fill("")
        box.press_sequentially("ledger")
        page.wait_for_timeout(500)
        if found.count():
            break
    assert found.first.is_visible()
    page.close()
    first_letter = ("Invalid query: l", "_index")  # which the search engine takes for no word
    assert not [text for text in said if not any(part in text for part in first_letter)]
    assert all(url.startswith(("file:", "data:", "about:")) for url in asked)
