"""How the report looks and is reached, in a real browser: large enough to touch, reachable by keys,
with the person followed, long names and the map explained."""

import base64
import json
import re

import numpy as np
import pytest
from test_browser import Opened, browser, pytestmark  # noqa: F401

from mixed_clinic import mixed_model
from privtraj.columns.precision import kilometres

LONG = "concentration of something with a very long name in the blood, yearly panel (mmol/l)"
COAST = np.array([[-11.0, -7.0], [36.0, 42.0]])  # Lisbon, and water west of it

# Everything that can be touched and is smaller than 44 px: a checkbox is as large as its label,
# links in running text are exempt (WCAG 2.5.8).
TOUCHED = """[...document.querySelectorAll(
    'a[href], button, select, input, summary, textarea, [tabindex="0"]')]"""
SMALL = f"""() => {TOUCHED}
  .filter((e) => e.checkVisibility() && !e.closest("p") && !e.matches(".skip"))
  .map((e) => [e, e.matches("[type=checkbox], [type=radio]") ? e.closest("label") : e])
  .map(([e, touched]) => [e, touched.getBoundingClientRect()])
  .filter(([, box]) => box.width < 43.9 || box.height < 43.9)
  .map(([e, box]) => `${{e.tagName}} ${{e.id || e.textContent.trim().slice(0, 20)}} `
    + `${{box.width}} x ${{box.height}}`)"""
PIXEL = """([x, y]) => {
  const stage = document.getElementById("stage"), scale = stage.width / stage.clientWidth;
  const at = [x, y].map((v) => Math.round(v * scale));
  return [...stage.getContext("2d").getImageData(...at, 1, 1).data].slice(0, 3);
}"""
COLOUR = """(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"""


@pytest.fixture(scope="module")
def pages(made_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("looks")
    made_model().report(folder / "plain.html")
    many = [f"{k} {LONG}" for k in range(12)]
    made_model(features=many, measure="gradients").report(folder / "many.html")
    made_model(features=("lon", "lat"), bounds=COAST, dates=True).report(folder / "map.html")
    made_model(features=("x", "y"), bounds=COAST).report(folder / "plane.html")
    mixed_model(people=60).report(folder / "mixed.html")
    return folder


@pytest.fixture
def shown(browser, pages):  # noqa: F811
    """Function: name of a page, options -> `Opened`, closed after the test."""
    opened = []

    def show(name="plain", **options):
        opened.append(Opened(browser, pages / f"{name}.html", **options))
        return opened[-1]

    yield show
    for each in opened:
        each.context.close()


def data_of(file):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read_text())
    return json.loads(found[1])


# Touch ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "many", "map", "mixed"])
def test_everything_that_is_touched_is_44_pixels_large(shown, name):
    page = shown(name, width=390, has_touch=True).page
    page.click("#trace")
    assert page.evaluate(f"{TOUCHED}.length") > 15
    assert page.evaluate(SMALL) == []


def test_a_small_target_would_be_found(shown):
    page = shown(width=390).page
    page.evaluate("document.getElementById('play').style.setProperty('transform', 'scale(0.8)')")
    assert page.evaluate(SMALL) != []


# Keys -------------------------------------------------------------------------------------------


def test_the_picture_of_a_feature_is_a_slider_that_keys_reach(shown):
    opened = shown()
    page, keys = opened.page, opened.page.keyboard
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    reached = []
    for _ in range(40):
        keys.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.feature ?? ''"))
        if reached[-1] == "1":
            break
    assert [feature for feature in reached if feature] == ["0", "1"]
    outline = "getComputedStyle(document.activeElement)"
    assert page.evaluate(f"{outline}.outlineStyle") == "solid"
    assert page.evaluate(f"parseFloat({outline}.outlineWidth)") >= 2
    panel = page.get_by_role("slider", name="weight over age")
    assert panel.get_attribute("aria-valuetext").startswith("age 0.0, median ")
    keys.press("ArrowRight")
    assert opened.time() == pytest.approx(0.4)
    keys.press("End")
    assert opened.time() == 20
    assert float(panel.get_attribute("aria-valuenow")) == 20
    said = panel.get_attribute("aria-valuetext")
    assert re.fullmatch(r"age 20\.0, median \d+(\.\d+)?", said)


def test_enter_shows_the_feature_in_the_large_picture(shown):
    opened = shown()
    page = opened.page
    assert (page.input_value("#across"), page.input_value("#up")) == ("0", "1")
    page.focus("svg.band[data-feature='0']")
    page.keyboard.press("Enter")
    assert (page.input_value("#across"), page.input_value("#up")) == ("1", "0")
    assert page.evaluate("document.activeElement.id") == "stage"
    assert "height against weight" in page.get_attribute("#stage", "aria-label")


def test_without_scripts_a_picture_is_a_picture(shown):
    page = shown(java_script_enabled=False).page
    assert page.get_attribute("svg.band >> nth=0", "role") == "img"
    assert page.get_attribute("svg.band >> nth=0", "tabindex") is None


# The person followed ----------------------------------------------------------------------------


def test_the_lines_of_the_person_followed_are_explained_and_drawn_in_every_picture(shown):
    page = shown().page
    legend = page.locator("#followed")
    assert not legend.is_visible()
    assert page.get_attribute("svg.band path.traced", "d") in (None, "")
    page.click("#trace")
    assert legend.is_visible()
    words = legend.inner_text()
    assert "the person followed, now" in words
    assert "their path so far" in words
    assert "the rest of it" in words
    lines = page.locator("svg.band path.traced")
    assert lines.count() == 2
    data = data_of_page(page)
    people, frames = data["people"], len(data["times"])
    paths = np.frombuffer(base64.b64decode(data["paths"]), "<u2").reshape(-1, frames, people)
    for k in range(2):
        drawn = lines.nth(k).get_attribute("d")
        y = np.array([float(pair.split()[1]) for pair in drawn[1:].split("L")])
        low, high = data["ranges"][k]
        share = np.clip((paths[k, :, 0] / 65535 - low) / (high - low), -0.02, 1.02)
        box = data["panel"]
        expected = box["bottom"] - share * (box["bottom"] - box["top"])
        np.testing.assert_allclose(y, expected, atol=0.06)
    page.click("#clear")
    assert not legend.is_visible()
    assert lines.nth(0).get_attribute("d") == ""


def data_of_page(page):
    return json.loads(page.text_content("#data"))


# Long names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [390, 1100])
def test_long_names_are_cut_in_selects_and_whole_in_their_titles(shown, width):
    page = shown("many", width=width).page
    for select in ("#across", "#up", "#colour"):
        box = page.locator(select).bounding_box()
        around = page.locator("form.controls").bounding_box()
        assert box["x"] + box["width"] <= around["x"] + around["width"] + 1
        style = page.locator(select).evaluate("(e) => getComputedStyle(e).textOverflow")
        assert style == "ellipsis"
        chosen = page.locator(select).evaluate("(e) => e.selectedOptions[0].textContent")
        assert page.get_attribute(select, "title") == chosen
    page.select_option("#across", "7")
    assert page.get_attribute("#across", "title") == f"7 {LONG}"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# The map ----------------------------------------------------------------------------------------


def test_land_and_sea_are_where_they_are(shown):
    opened = shown("map")
    page = opened.page
    assert page.get_attribute("#stage", "data-map") == "drawn"
    page.uncheck("#paths")
    page.evaluate("document.getElementById('synthetic').click()")  # nobody hides the ground
    land, sea = (page.evaluate(COLOUR, name) for name in ("--land", "--sea"))
    for place, colour in {(-7.9, 39.5): land, (-10.2, 38.2): sea, (-7.5, 37.9): land}.items():
        x, y = where(page, *place)
        seen = "#{:02x}{:02x}{:02x}".format(*page.evaluate(PIXEL, [x, y]))
        assert seen == colour, place
    page.select_option("#across", label="age (time)")
    assert page.get_attribute("#stage", "data-map") == "none"


def where(page, lon, lat):
    """Pixels of a place in the large picture: all who are drawn fit, in a map's proportions."""
    data, stage = data_of_page(page), page.locator("#stage").bounding_box()
    bounds, people = np.array(data["bounds"]), data["people"]
    shares = np.frombuffer(base64.b64decode(data["paths"]), "<u2").reshape(2, -1) / 65535
    low, high = shares.min(axis=1), shares.max(axis=1)
    room = 1.06 * (high - low) * np.ptp(bounds, axis=1)  # degrees, with 3 % on both sides
    shrink = np.array([np.cos(np.radians(bounds[1].mean())), 1.0])
    size = np.array([stage["width"] - 84, stage["height"] - 92])
    pixels = (size / (room * shrink)).min() * shrink  # in a degree
    middle = bounds[:, 0] + (low + high) / 2 * np.ptp(bounds, axis=1)
    centre = np.array([62 + size[0] / 2, 40 + size[1] / 2])
    assert people > 10
    return (centre + (np.array([lon, lat]) - middle) * pixels * [1, -1]).tolist()


def test_only_longitude_and_latitude_have_a_map(shown, pages):
    assert shown("plane").page.get_attribute("#stage", "data-map") == "none"
    assert shown("plain").page.get_attribute("#stage", "data-map") == "none"
    assert data_of(pages / "plane.html")["backdrop"] is None
    assert (pages / "map.html").stat().st_size - (pages / "plane.html").stat().st_size < 150_000


def test_the_way_of_the_person_followed_is_in_kilometres(shown, pages):
    opened = shown("map")
    opened.page.click("#trace")
    opened.slide(1)
    said = re.search(r"([\d.e+]+) km so far, now ([\d.e+]+) km/h", opened.text("#readout"))
    data = data_of(pages / "map.html")
    people, frames = data["people"], len(data["times"])
    shares = np.frombuffer(base64.b64decode(data["paths"]), "<u2").reshape(2, frames, people)
    low, high = np.array(data["bounds"]).T
    places = low + shares[:, :, 0].T / 65535 * (high - low)
    steps = kilometres(places[:-1], places[1:])
    assert float(said[1]) == pytest.approx(steps.sum(), rel=0.05)
    hours = (data["times"][-1] - data["times"][-2]) / 3600
    assert float(said[2]) == pytest.approx(steps[-1] / hours, rel=0.05)
