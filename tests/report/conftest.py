"""Reports, each made once, and a browser to open them in."""

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
