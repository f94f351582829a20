"""The report in a real browser: it loads alone, moves, and can be used and read by everybody."""

import os
import re
import shutil
import time

import numpy as np
import pyarrow as pa
import pytest

import privtraj as pt
from mixed_clinic import mixed_model
from privtraj.export import tables as export_tables
from privtraj.metrics import evaluate
from privtraj.metrics.records import read_records
from privtraj.report.comparison import write_comparison

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the browser tests need playwright (pip install playwright)"
)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on PATH: install one to test the report in a browser"
)

NASTY = '</script><b>"x"&\''
QUIET = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
THEMES = ("light", "dark")

# Contrast of every piece of text with the first opaque background behind it (WCAG 2).
CONTRAST = """() => {
  const parts = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.body.querySelectorAll("*")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.getClientRects().length || e.closest("script, noscript, option")) continue;
    const style = getComputedStyle(e);
    const ink = parts(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), e.tagName, e.textContent.slice(0, 30)]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    arguments = [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(made_model, tmp_path_factory):
    """Reports of several kinds of models, one file each."""
    folder = tmp_path_factory.mktemp("reports")
    made_model().report(folder / "plain.html")
    made_model(epsilon=50.0).report(folder / "weak.html")
    made_model(features=(NASTY,), times=2).report(folder / "one.html")
    bounds = np.array([[13.0, 14.0], [52.0, 53.0]])
    made_model(features=("lon", "lat"), bounds=bounds, dates=True, times=14).report(
        folder / "map.html"
    )
    many = [f"feature {k} of a longer name than most" for k in range(12)]
    made_model(features=many, measure="gradients", private=False).report(folder / "many.html")
    _compare(made_model(times=3), folder)
    mixed_model(people=60).report(folder / "mixed.html")
    _letters().report(folder / "letters.html")
    return folder


def _letters():
    """A model without a number: 200 long values."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 200, (80, 5, 1)).astype(float)
    names = [f"{k} {NASTY} of a longer name than most have" for k in range(200)]
    return mixed_model({"code": pt.Category(names)}, values=values)


def _compare(model, folder):
    rng = np.random.default_rng(0)
    columns = {"age": rng.choice(model.numeric_times, 90)}
    columns |= {name: rng.uniform(30, 70, 90) for name in model.features}
    table = pa.table(columns)
    export_tables.write_table(table, folder / "raw.csv")
    found = evaluate(model, table, n=30)
    write_comparison(model, found, read_records(table, model), folder / "compare.html")


class Opened:
    """A page, and what it asked for and complained about."""

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

    def wait(self, condition):
        """Until the time drawn meets the condition; the page's policy forbids evaluating text."""
        end = time.monotonic() + 20
        while not condition(self.time()):
            assert time.monotonic() < end, "nothing moved"
            self.page.wait_for_timeout(20)

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


@pytest.fixture
def opened(browser, folder):
    """Function: name of a report, options -> `Opened`, closed after the test."""
    pages = []

    def open_one(name="plain", **options):
        pages.append(Opened(browser, folder / f"{name}.html", **options))
        return pages[-1]

    yield open_one
    for each in pages:
        each.context.close()


@pytest.mark.parametrize("name", ["plain", "one", "map", "many", "compare", "mixed"])
def test_loads_alone_and_without_complaint(opened, folder, name):
    shown = opened(name)
    shown.slide(0.5)
    shown.page.click("#trace")
    shown.page.click("#paths")
    shown.page.wait_for_timeout(30)
    assert [url for url in shown.asked if url != "data:,"] == [shown.url]
    assert shown.complaints == []
    assert (folder / f"{name}.html").stat().st_size < 3_000_000
    for landmark in ("banner", "main", "contentinfo", "navigation"):
        assert shown.page.get_by_role(landmark).count() == 1
    assert shown.page.get_by_role("heading", level=1).count() == 1
    assert shown.page.title() != ""


def test_a_page_without_numbers_has_shares_and_no_stage(opened):
    shown = opened("letters", width=320, theme="dark")
    assert shown.complaints == []
    assert not shown.page.locator("#explorer").is_visible()
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 320
    pictures = shown.page.locator("svg.shares")
    assert pictures.count() == 2
    assert all(pictures.nth(k).bounding_box()["width"] > 200 for k in range(2))
    assert not shown.page.get_by_text("From", exact=True).is_visible()
    shown.page.get_by_text("As numbers").click()
    assert shown.page.get_by_text("From", exact=True).is_visible()
    shown.page.click("#theme")
    assert shown.page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_values_of_a_date_are_dates(opened):
    shown = opened("mixed")
    shown.page.select_option("#up", label="born")
    assert re.search(r"median born (19|20)\d\d-\d\d-\d\d", shown.text("#readout"))


def test_the_policy_stops_the_network(opened):
    shown = opened()
    blocked = shown.page.evaluate("fetch('http://127.0.0.1:9/').then(() => false, () => true)")
    assert blocked
    assert any("Content Security Policy" in text for text in shown.complaints)


def test_the_slider_moves_time_picture_and_words(opened):
    shown = opened()
    assert shown.time() == 0
    before, words, heap = shown.drawn(), shown.text("#readout"), _heap(shown)
    shown.slide(0.75)
    assert shown.time() == pytest.approx(15)
    assert shown.text("#now") == "age 15.0"
    assert shown.page.get_attribute("#time", "aria-valuetext") == "age 15.0"
    assert shown.drawn() != before
    assert shown.text("#readout") != words
    assert _heap(shown) != heap


def _heap(shown):
    return shown.page.get_attribute("svg.band path.density", "d")


def test_play_advances_and_pause_stops(opened):
    shown = opened()
    shown.page.select_option("#speed", "4")
    shown.page.click("#play")
    assert shown.page.get_attribute("#play", "aria-label") == "Pause"
    shown.wait(lambda at: at > 1)
    shown.page.click("#play")
    assert shown.page.get_attribute("#play", "aria-label") == "Play"
    stopped = shown.time()
    assert 1 < stopped < 20
    shown.page.wait_for_timeout(150)
    assert shown.time() == stopped


def test_play_ends_at_the_end_and_begins_again(opened):
    shown = opened()
    shown.slide(0.99)
    shown.page.select_option("#speed", "4")
    shown.page.click("#play")
    shown.wait(lambda at: at == 20)
    assert shown.page.get_attribute("#play", "aria-label") == "Play"
    shown.page.click("#play")
    shown.wait(lambda at: at < 19)


def test_who_wants_no_motion_sees_fitted_times_only(opened):
    shown = opened(reduced_motion="reduce")
    shown.page.select_option("#speed", "4")
    shown.page.click("#play")
    shown.wait(lambda at: at > 0)
    shown.page.click("#play")
    assert shown.time() % 5 == 0


def test_axes_can_be_switched_and_swap_when_equal(opened):
    shown = opened()
    before = shown.drawn()
    shown.page.select_option("#across", label="weight")
    assert shown.page.input_value("#up") == "0"
    swapped = shown.drawn()
    assert swapped != before
    assert not shown.page.is_checked("#paths")
    shown.page.select_option("#across", label="age (time)")
    assert shown.page.is_checked("#paths")
    assert shown.drawn() != swapped
    assert "height against age" in shown.page.get_attribute("#stage", "aria-label")


def test_maps_keep_their_aspect(opened):
    shown = opened("map")
    assert shown.page.get_attribute("#stage", "data-aspect") == "equal"
    assert (shown.page.input_value("#across"), shown.page.input_value("#up")) == ("0", "1")
    shown.page.select_option("#across", label="age (time)")
    assert shown.page.get_attribute("#stage", "data-aspect") == "fill"
    assert opened().page.get_attribute("#stage", "data-aspect") == "fill"


def test_dates_are_dates(opened):
    shown = opened("map")
    assert shown.text("#now") == "age 2024-03-01"
    shown.slide(1)
    assert shown.text("#now") == "age 2024-03-14"
    assert "2024-03-14" in shown.text("#readout")


def test_paths_on_demand(opened):
    shown = opened()
    without = shown.drawn()
    shown.page.check("#paths")
    some = shown.drawn()
    shown.page.select_option("#many", "10")
    few = shown.drawn()
    assert len({without, some, few}) == 3
    shown.page.uncheck("#paths")
    assert shown.drawn() == without


def test_a_click_follows_the_person_there(opened):
    shown = opened()
    without = shown.drawn()
    shown.page.locator("#stage").scroll_into_view_if_needed()
    box = shown.page.locator("#stage").bounding_box()
    hits = 0
    for across in np.linspace(0.1, 0.6, 9):
        for up in np.linspace(0.4, 0.9, 5):
            shown.page.mouse.click(box["x"] + across * box["width"], box["y"] + up * box["height"])
            if shown.page.get_attribute("#stage", "data-traced"):
                hits += 1
                break
        if hits:
            break
    assert hits
    assert "Synthetic person" in shown.text("#readout")
    shown.page.click("#clear")
    assert shown.drawn() == without


def test_the_keyboard_does_it_all(opened):
    shown = opened()
    keys = shown.page.keyboard
    shown.page.focus("#stage")
    keys.press("ArrowRight")
    assert shown.time() == pytest.approx(0.4)
    keys.press("End")
    assert shown.time() == 20
    keys.press("Home")
    keys.press("n")
    assert shown.page.get_attribute("#stage", "data-traced") == "0"
    keys.press("Escape")
    assert shown.page.get_attribute("#stage", "data-traced") == ""
    keys.press("p")
    assert shown.page.is_checked("#paths")
    keys.press("Space")
    assert shown.page.get_attribute("#play", "aria-label") == "Pause"
    keys.press("Space")
    shown.page.focus("#time")
    before = shown.time()
    keys.press("ArrowRight")
    assert shown.time() > before
    reached = []
    shown.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    for _ in range(40):
        keys.press("Tab")
        reached.append(shown.page.evaluate("document.activeElement.id"))
    assert {"theme", "stage", "play", "time", "across", "up", "paths", "trace"} <= set(reached)
    focus = shown.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert focus != "none"


def test_a_click_in_a_panel_moves_time(opened):
    shown = opened()
    panel = shown.page.locator("svg.band").first
    panel.scroll_into_view_if_needed()
    box = panel.bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] * 170 / 380, box["y"] + box["height"] / 2)
    assert shown.time() == pytest.approx(10, abs=0.3)


def test_the_theme_can_be_changed(opened):
    shown = opened(theme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light, before = shown.page.evaluate(paper), shown.drawn()
    shown.page.click("#theme")
    dark = shown.page.evaluate(paper)
    assert dark != light
    assert shown.drawn() != before
    assert opened(theme="dark").page.evaluate(paper) == dark
    shown.page.click("#theme")
    assert shown.page.evaluate(paper) == light


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["plain", "many", "compare", "mixed"])
def test_text_stands_out(opened, name, theme):
    shown = opened(name, theme=theme)
    found = shown.page.evaluate(CONTRAST)
    assert shown.complaints == []
    assert len(found) > 60
    faint = [line for line in found if line[0] < 4.5]
    assert faint == []


@pytest.mark.parametrize(
    ("name", "width"),
    [("plain", 320), ("plain", 360), ("one", 320), ("many", 320), ("compare", 360), ("mixed", 320)],
)
def test_a_phone_never_scrolls_sideways(opened, name, width):
    shown = opened(name, width=width)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.page.locator("#stage").bounding_box()["width"] > 0.8 * width


def test_one_feature_is_drawn_over_time_and_its_name_stays_text(opened):
    shown = opened("one")
    assert shown.page.input_value("#across") == "1"
    assert shown.page.input_value("#up") == "0"
    assert shown.page.is_checked("#paths")
    assert NASTY in shown.text("h1")
    assert NASTY in shown.text("#features figcaption")
    assert shown.page.locator("h1 b, figcaption b, option b").count() == 0
    assert NASTY in shown.page.locator("#up option").all_text_contents()


def test_a_model_that_is_not_private_says_so_first(opened):
    shown = opened("many")
    alarm = shown.page.get_by_role("alert")
    assert "NOT PRIVATE" in alarm.inner_text()
    assert alarm.bounding_box()["y"] == 0
    assert shown.page.locator("svg.band").count() == 12


@pytest.mark.parametrize("width", [360, 1100])
def test_a_weak_guarantee_is_warned_of_first_and_its_dial_is_at_the_end(opened, width):
    weak, plain = opened("weak", width=width), opened("plain", width=width)
    alarm = weak.page.get_by_role("alert")
    assert "is above 8" in alarm.inner_text()
    assert alarm.bounding_box()["y"] == 0
    assert plain.page.get_by_role("alert").count() == 0
    tips = [
        float(shown.page.get_attribute("polygon.needle", "points").split()[1].split(",")[0])
        for shown in (plain, weak)
    ]  # from 72 on the left to 248 on the right
    assert tips[0] < 120
    assert tips[1] > 247
    assert "may be plain to see" in weak.text(".big")
    assert "plain to see" not in plain.text(".big")
    assert weak.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_comparison_shows_and_hides_real_records(opened):
    shown = opened("compare")
    assert "must not leave the room" in shown.page.get_by_role("alert").inner_text()
    both = shown.drawn()
    shown.page.uncheck("#real")
    without = shown.drawn()
    assert without != both
    assert shown.page.is_visible("#real-label")
    assert not opened("plain").page.is_visible("#real-label")
    shown.page.uncheck("#synthetic")
    assert shown.drawn() not in (both, without)
    assert "Real records shown" in shown.text("#readout")


def test_the_essentials_are_there_without_scripts(opened):
    shown = opened(java_script_enabled=False)
    assert not shown.page.is_visible("#explorer")
    assert shown.page.is_visible("#guarantee .dial svg")
    assert shown.page.is_visible("svg.band path.density")
    assert "needs scripts" in shown.text("#people")


def test_on_paper_the_controls_are_gone(opened):
    shown = opened()
    shown.page.emulate_media(media="print")
    assert not shown.page.is_visible(".controls")
    assert shown.page.is_visible(".dial")
