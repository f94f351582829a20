"""Models to write reports about, made by hand so that they are the same in every run; their pages,
made once; and a browser to open these in."""

import os
import shutil
from functools import cache

import numpy as np
import pytest

import privtraj as pt
from mixed_clinic import mixed_model
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger
from privtraj.report.page import report

NASTY = '</script><b>"x"&\''
LONG = "concentration of something with a very long name in the blood, yearly panel (mmol/l)"
COAST = np.array([[-11.0, -7.0], [36.0, 42.0]])  # Lisbon, and water west of it


def _made(
    features=("height", "weight"),
    times=5,
    *,
    private=True,
    measure="counts",
    adjacency="add-remove",
    dates=False,
    particles=24,
    time_name="age",
    epsilon=1.0,
    **more,
):
    """A model whose people drift from the lower left to the upper right of the box."""
    d, rng = len(features), np.random.default_rng(0)
    ledger = Ledger(epsilon, 1e-5, adjacency)
    ledger.spend(LaplaceCounts(0.02, "people per time"))
    if measure == "counts":
        ledger.spend(LaplaceCounts(0.4 * epsilon, "people per cell"))
    else:
        ledger.spend(GaussianSum(16.0, "clipped sums of a step"), times=8)
    knots = np.linspace(0.0, 20.0, times)
    if dates:
        knots = np.datetime64("2024-03-01", "s").astype(np.int64) + 86400.0 * np.arange(times)
    drift = np.linspace(0.35, 0.65, times)[:, None, None]
    unit = np.clip(drift + 0.08 * rng.standard_normal((times, particles, d)), 0.02, 0.98)
    diagnostics = {
        "people_per_time": [500.0 + 10 * k for k in range(times)],
    }
    if measure == "counts":
        diagnostics["significant_share"] = [0.9] * times
    else:
        diagnostics |= {
            "marginal_error": 0.03,
            "noise_over_bandwidth": 0.1,
            "effective_temperature": 1.5,
        }
    public = {"most records of one person": 1, "bounds": {name: [0, 100] for name in features}}
    return TrajectoryModel(
        particles=unit.astype(np.float32).astype(float),
        weights=np.full((times, particles), 1 / particles),
        bandwidth=np.full(times, 0.03),
        diffusivity=0.01,
        numeric_times=knots,
        bounds=more.pop("bounds", np.tile([0.0, 100.0], (d, 1))),
        features=tuple(features),
        time_name=time_name,
        datetime=dates,
        certificate=certify(ledger, public_inputs=public, private_noise=private),
        settings={"measure": measure, "particles": particles},
        diagnostics=diagnostics | more,
    ).sealed()


def _letters():
    """A model without a number: 200 long and hostile values."""
    rng = np.random.default_rng(0)
    names = [f"{k:03}{NASTY}{'x' * 300}" for k in range(200)]
    columns = {
        f"code {NASTY}": pt.Category(names, other="any", missing=True),
        "sex": pt.Category(["F", NASTY], fixed=True),
    }
    code, sex = rng.integers(0, 202, (150, 5)), rng.integers(0, 2, (150, 1))
    values = np.stack([code, np.broadcast_to(sex, (150, 5))], axis=2).astype(float)
    return mixed_model(columns, values=values)


MODELS = {
    "plain": _made,
    "seeded": lambda: _made([f"{k} {LONG}" for k in range(12)], measure="gradients", private=False),
    "one": lambda: _made((NASTY,), times=2, time_name='<i onload="x">'),
    "map": lambda: _made(("lon", "lat"), bounds=COAST, dates=True),
    "plane": lambda: _made(("x", "y"), bounds=COAST),
    "mixed": lambda: mixed_model(people=120),
    "letters": _letters,
}


@pytest.fixture(scope="session")
def made_model():
    """Function that makes a model; see `_made`."""
    return _made


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


class Opened:
    """A page in the browser, and what it asked for and complained about."""

    def __init__(self, browser, file, width=1100, theme="light", **options):
        size = {"width": width, "height": 800}
        self.context = browser.new_context(viewport=size, color_scheme=theme, **options)
        self.page = self.context.new_page()
        self.asked, self.complaints = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.url = file.as_uri()
        self.page.goto(self.url)

    def time(self):
        return float(self.page.get_attribute("#stage", "data-time"))

    def drawn(self):
        return self.page.evaluate("document.getElementById('stage').toDataURL()")

    def slide(self, share):
        self.page.evaluate(
            "(v) => { const s = document.getElementById('time'); s.value = v;"
            "s.dispatchEvent(new Event('input')); }",
            round(1000 * share),
        )

    def text(self, place):
        return self.page.inner_text(place)


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
