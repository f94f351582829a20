"""The report in a real browser: it loads alone, moves, and can be used and read by everybody.

One test opens pages of several kinds; all others are for `make test-all`.
"""

import base64
import re
import time

import numpy as np
import pytest
from report_pages import LONG, NASTY

thorough = pytest.mark.thorough

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
ON_LAND = """([x, y]) => document.querySelector("#scene .land").isPointInFill(new DOMPoint(x, y))"""


def wait(shown, condition):
    """Until the time drawn meets the condition; the page's policy forbids evaluating text."""
    end = time.monotonic() + 300
    while not condition(shown.time()):
        assert time.monotonic() < end, "nothing moved"
        shown.page.wait_for_timeout(20)


@pytest.mark.parametrize("name", ["plain", "mixed", "map"])
def test_a_page_opens_alone_moves_and_draws_people(opened, reports, name):
    shown = opened(name)
    page, before = shown.page, shown.drawn()
    shown.slide(0.75)
    assert shown.drawn() != before
    page.click("#trace")
    assert "Synthetic person 1" in shown.text("#readout")
    assert page.locator("svg.band path.mid").count() > 1
    assert page.locator("svg.shares").count() == (7 if name == "mixed" else 1)
    if name == "mixed":
        everybody, asked = shown.drawn(), shown.text("#answer")
        told = [page.locator(f"{of} option:checked").inner_text() for of in ("#colour", "#ask-by")]
        assert told[0] == told[1]
        page.uncheck("#ticks input >> nth=0")  # colours and filters by a category from the start
        assert shown.drawn() != everybody
        page.select_option("#ask-by", label="sex")
        assert 'privtraj ask MODEL "mean hb by sex, ' in shown.text("#answer") != asked
        value = f"{reports('mixed')[1].data['answers']['by'][1]['rows'][0][0][0][0]:.1f}"
        assert value in shown.page.locator("#answer td").first.inner_text()
    page.click("#draw-show")
    page.wait_for_selector("#draw-preview tbody tr")
    assert page.locator("#draw-preview tbody tr").count() == 6
    assert [url for url in shown.asked if url != "data:,"] == [shown.url]
    assert shown.complaints == []


@thorough
@pytest.mark.parametrize("name", ["one", "seeded", "letters"])
def test_other_pages_open_without_complaint(opened, name):
    shown = opened(name, width=360)
    shown.slide(0.5)
    assert shown.complaints == []
    for landmark in ("banner", "main", "contentinfo", "navigation"):
        assert shown.page.get_by_role(landmark).count() == 1
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


@thorough
def test_a_page_without_numbers_has_shares_and_no_stage(opened):
    shown = opened("letters", width=320, theme="dark")
    assert not shown.page.locator("#explorer").is_visible()
    assert shown.page.locator("svg.shares").count() == 2
    assert not shown.page.get_by_text("From", exact=True).is_visible()
    shown.page.get_by_text("As numbers").click()
    assert shown.page.get_by_text("From", exact=True).first.is_visible()


@thorough
def test_the_values_of_a_date_are_dates(opened):
    shown = opened("mixed")
    shown.page.select_option("#up", label="born")
    assert re.search(r"median born (19|20)\d\d-\d\d-\d\d", shown.text("#readout"))


@thorough
def test_the_policy_stops_the_network(opened):
    shown = opened()
    blocked = shown.page.evaluate("fetch('http://127.0.0.1:9/').then(() => false, () => true)")
    assert blocked
    assert any("Content Security Policy" in text for text in shown.complaints)


@thorough
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


@thorough
def test_play_advances_and_pause_stops(opened):
    shown = opened()
    shown.page.click("#play")
    assert shown.page.get_attribute("#play", "aria-label") == "Pause"
    wait(shown, lambda at: at > 1)
    shown.page.click("#play")
    assert shown.page.get_attribute("#play", "aria-label") == "Play"
    stopped = shown.time()
    assert 1 < stopped < 20
    shown.page.wait_for_timeout(150)
    assert shown.time() == stopped


@thorough
def test_play_ends_at_the_end_and_begins_again(opened):
    shown = opened()
    shown.slide(0.99)
    shown.page.click("#play")
    wait(shown, lambda at: at == 20)
    assert shown.page.get_attribute("#play", "aria-label") == "Play"
    shown.page.click("#play")
    wait(shown, lambda at: at < 19)


@thorough
def test_who_wants_no_motion_sees_fitted_times_only(opened):
    shown = opened(reduced_motion="reduce")
    shown.page.click("#play")
    wait(shown, lambda at: at > 0)
    shown.page.click("#play")
    assert shown.time() % 5 == 0


@thorough
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


@thorough
def test_maps_keep_their_aspect(opened):
    shown = opened("map")
    assert shown.page.get_attribute("#stage", "data-aspect") == "equal"
    assert (shown.page.input_value("#across"), shown.page.input_value("#up")) == ("0", "1")
    shown.page.select_option("#across", label="age (time)")
    assert shown.page.get_attribute("#stage", "data-aspect") == "fill"
    assert opened().page.get_attribute("#stage", "data-aspect") == "fill"


@thorough
def test_dates_are_dates(opened):
    shown = opened("map")
    assert shown.text("#now") == "age 2024-03-01"
    shown.slide(1)
    assert shown.text("#now") == "age 2024-03-05"
    assert "2024-03-05" in shown.text("#readout")


@thorough
def test_paths_on_demand(opened):
    shown = opened()
    without = shown.drawn()
    shown.page.check("#paths")
    assert shown.drawn() != without
    shown.page.uncheck("#paths")
    assert shown.drawn() == without


@thorough
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


@thorough
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


@thorough
def test_a_click_in_a_panel_moves_time(opened):
    shown = opened()
    panel = shown.page.locator("svg.band").first
    panel.scroll_into_view_if_needed()
    box = panel.bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] * 170 / 380, box["y"] + box["height"] / 2)
    assert shown.time() == pytest.approx(10, abs=0.3)


@thorough
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


@thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["plain", "seeded", "mixed"])
def test_text_stands_out(opened, name, theme):
    shown = opened(name, theme=theme)
    found = shown.page.evaluate(CONTRAST)
    assert shown.complaints == []
    assert len(found) > 60
    faint = [line for line in found if line[0] < 4.5]
    assert faint == []


@thorough
@pytest.mark.parametrize(
    ("name", "width"),
    [("plain", 320), ("one", 320), ("seeded", 320), ("mixed", 320)],
)
def test_a_phone_never_scrolls_sideways(opened, name, width):
    shown = opened(name, width=width)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.page.locator("#stage").bounding_box()["width"] > 0.8 * width


@thorough
def test_one_feature_is_drawn_over_time_and_its_name_stays_text(opened):
    shown = opened("one")
    assert shown.page.input_value("#across") == "1"
    assert shown.page.input_value("#up") == "0"
    assert shown.page.is_checked("#paths")
    assert NASTY in shown.text("h1")
    assert NASTY in shown.text("#features figcaption")
    assert shown.page.locator("h1 b, figcaption b, option b").count() == 0
    assert NASTY in shown.page.locator("#up option").all_text_contents()


@thorough
def test_the_essentials_are_there_without_scripts(opened):
    shown = opened(java_script_enabled=False)
    assert not shown.page.is_visible("#explorer")
    assert shown.page.is_visible("#guarantee .dial svg")
    assert shown.page.is_visible("#budget table")
    assert "need scripts" in shown.text("#people")
    assert "privtraj sample" in shown.text("#draw")
    assert not shown.page.is_visible("#draw-form")
    assert not shown.page.is_visible("#print")


@thorough
@pytest.mark.parametrize("name", ["plain", "seeded", "map", "mixed"])
def test_everything_that_is_touched_is_44_pixels_large(opened, name):
    page = opened(name, width=390, has_touch=True).page
    page.click("#trace")
    assert page.evaluate(f"{TOUCHED}.length") > 15
    assert page.evaluate(SMALL) == []


@thorough
def test_a_small_target_would_be_found(opened):
    page = opened(width=390).page
    page.evaluate("document.getElementById('play').style.setProperty('transform', 'scale(0.8)')")
    assert page.evaluate(SMALL) != []


# Keys -------------------------------------------------------------------------------------------


@thorough
def test_the_picture_of_a_feature_is_a_slider_that_keys_reach(opened):
    shown = opened()
    page, keys = shown.page, shown.page.keyboard
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
    assert shown.time() == pytest.approx(0.4)
    keys.press("End")
    assert shown.time() == 20
    assert float(panel.get_attribute("aria-valuenow")) == 20
    said = panel.get_attribute("aria-valuetext")
    assert re.fullmatch(r"age 20\.0, median \d+(\.\d+)?", said)


@thorough
def test_enter_shows_the_feature_in_the_large_picture(opened):
    shown = opened()
    page = shown.page
    assert (page.input_value("#across"), page.input_value("#up")) == ("0", "1")
    page.focus("svg.band[data-feature='0']")
    page.keyboard.press("Enter")
    assert (page.input_value("#across"), page.input_value("#up")) == ("1", "0")
    assert page.evaluate("document.activeElement.id") == "stage"
    assert "height against weight" in page.get_attribute("#stage", "aria-label")


@thorough
def test_the_person_followed_is_drawn_in_every_picture(opened, reports):
    page, data = opened().page, reports("plain")[1].data
    lines = page.locator("svg.band path.traced")
    assert lines.nth(0).get_attribute("d") == ""
    page.click("#trace")
    paths = np.frombuffer(base64.b64decode(data["paths"]), "<u2")
    paths = paths.reshape(-1, len(data["times"]), data["people"])
    for k in range(2):
        drawn = lines.nth(k).get_attribute("d")
        y = np.array([float(pair.split()[1]) for pair in drawn[1:].split("L")])
        low, high = data["ranges"][k]
        share = np.clip((paths[k, :, 0] / 65535 - low) / (high - low), -0.02, 1.02)
        np.testing.assert_allclose(y, 200 - share * 190, atol=0.06)
    page.click("#clear")
    assert lines.nth(0).get_attribute("d") == ""


@thorough
def test_the_path_of_an_angle_is_broken_where_it_begins_again(opened):
    shown = opened("clock")
    shown.page.click("#trace")
    pieces = shown.page.get_attribute("[data-feature='0'] .traced", "d").split("M")[1:]
    assert len(pieces) == 2
    for piece in pieces:
        heights = [float(at.split()[1]) for at in piece.split("L")]
        assert max(heights) - min(heights) < 100  # of 190: half a day
    places = shown.page.evaluate(
        "Array.from({ length: frames - 1 }, (_, k) => place(0, 0, [k, 0.5]))"
    )
    assert all(not 0.2 < at < 0.8 for at in places)  # the short way, through midnight
    assert not shown.complaints


@thorough
@pytest.mark.parametrize("width", [390, 1100])
def test_long_names_are_cut_in_selects_and_whole_in_their_titles(opened, width):
    page = opened("seeded", width=width).page
    for select in ("#across", "#up", "#colour"):
        box = page.locator(select).bounding_box()
        around = page.locator("form.controls:not(.ask)").bounding_box()
        assert box["x"] + box["width"] <= around["x"] + around["width"] + 1
        style = page.locator(select).evaluate("(e) => getComputedStyle(e).textOverflow")
        assert style == "ellipsis"
        chosen = page.locator(select).evaluate("(e) => e.selectedOptions[0].textContent")
        assert page.get_attribute(select, "title") == chosen
    page.select_option("#across", "7")
    assert page.get_attribute("#across", "title") == f"7 {LONG}"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@thorough
def test_land_and_sea_are_where_they_are(opened, reports):
    page = opened("map").page
    assert page.get_attribute("#stage", "data-map") == "drawn"
    for place, land in {(-7.9, 39.5): True, (-10.2, 38.2): False, (-7.5, 37.9): True}.items():
        assert page.evaluate(ON_LAND, where(page, reports("map")[1].data, *place)) == land, place
    page.select_option("#across", label="age (time)")
    assert page.get_attribute("#stage", "data-map") == "none"


def where(page, data, lon, lat):
    """Pixels of a place in the large picture: all who are drawn fit, in a map's proportions."""
    stage = page.locator("#stage").bounding_box()
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


@thorough
def test_ticks_of_dates_are_few_inside_and_different(opened):
    """From two seconds to a century."""
    page = opened("map").page
    rng = np.random.default_rng(0)
    spans = [
        [float(start), float(start + 2 * 10 ** (9.1 * share))]
        for start, share in zip(
            rng.integers(-(10**9), 3 * 10**9, 200), rng.random(200), strict=True
        )
    ]
    for (low, high), ticks in zip(
        spans,
        page.evaluate("(spans) => spans.map(([low, high]) => dateTicks(low, high, 5))", spans),
        strict=True,
    ):
        assert 1 <= len(ticks) <= 7, (low, high)
        assert all(low - 1 <= at <= high + 1 for at, _ in ticks)
        assert len({at for at, _ in ticks}) == len(ticks)
