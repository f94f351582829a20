"""Reports, each made once, and a browser to open them in."""

import os
import shutil
from functools import cache

import pytest
from report_pages import MODELS, Opened
from report_pages import made_model as make_model

from privtraj.report.page import report


@pytest.fixture(scope="session")
def made_model():
    """Function that makes a model; see `report_pages`."""
    return make_model


@pytest.fixture(scope="session")
def reports():
    """Function: name in `MODELS` -> the model and its page, made once."""

    @cache
    def made(name):
        model = MODELS[name]()
        return model, report(model)

    return made


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a reason to skip."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright (pip install playwright)"
    )
    named = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    found = next(filter(None, named), None)
    if found is None:
        pytest.skip("no Chromium on PATH: install one to test the report in a browser")
    quiet = ["--disable-gpu", "--disable-background-networking", "--no-first-run"]
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=[*quiet, *root])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def folder(reports, tmp_path_factory):
    """Function: name in `MODELS`, or a `Page` -> its file, written when it is opened first."""
    place, kept = tmp_path_factory.mktemp("reports"), {}

    def file(page):
        made = reports(page)[1] if isinstance(page, str) else page
        if id(made) not in kept:
            kept[id(made)] = made  # so that no other page gets its number
            (place / f"{id(made)}.html").write_text(made.html(), encoding="utf-8")
        return place / f"{id(made)}.html"

    return file


@pytest.fixture
def opened(browser, folder):
    """Function: name in `MODELS`, or a `Page`, and options -> `Opened`, closed after the test."""
    pages = []

    def open_one(page="plain", **options):
        pages.append(Opened(browser, folder(page), **options))
        return pages[-1]

    yield open_one
    for each in pages:
        each.context.close()
