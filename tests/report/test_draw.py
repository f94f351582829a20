"""People drawn in the page, in a real browser, against those of `TrajectoryModel.sample`.

One model is compared by `make test`, all others by `make test-all`. Everything has fixed seeds. All
comparisons of one model together raise a false alarm with a chance of `ALARM` at most: each of its
k tests is at the level ALARM / k.
"""

import base64
import functools
import io
from dataclasses import replace

import numpy as np
import pyarrow.csv as arrow_csv
import pytest
from scipy.stats import chi2_contingency, ks_2samp

import privtraj as pt
from domain.shapes import river
from mixed_clinic import mixed_model
from privtraj.cli.results import even_times
from privtraj.columns.kinds import Category, Number
from privtraj.report.page import report
from privtraj.report.people import CURVES, NUMBERS, STOPS

thorough = pytest.mark.thorough

ALARM = 1e-3
"""Chance that a sampler as good as Python's fails the comparisons of one model."""
PEOPLE = 4000
"""On either side: two laws that are 4.5 % apart in Kolmogorov's distance are told apart at 1e-3."""

DRAW = """async (asked) => {
  const given = JSON.parse(document.getElementById("data").textContent).sampler;
  const drawn = await People.draw(new People.Sampler(given), asked);
  const text = (column) => {
    const bytes = new Uint8Array(Float64Array.from(column, (x) => x ?? NaN).buffer);
    let letters = "";
    for (let k = 0; k < bytes.length; k += 8192)
      letters += String.fromCharCode(...bytes.subarray(k, k + 8192));
    return btoa(letters);
  };
  return { values: drawn.values.map(text), present: drawn.present && text(drawn.present) };
}"""
"""Numbers come as text: Playwright checks a list one number at a time, which takes minutes."""

HELD = """() => {
  const { whole, curves } = JSON.parse(document.getElementById("data").textContent).sampler;
  return { whole, curves };
}"""


@pytest.fixture
def shown(opened):
    """Function: model -> its report, opened, with a list of complaints."""
    pages = functools.cache(report)

    def show(model, **options):
        one = opened(pages(model), accept_downloads=True, **options)
        one.page.complaints = one.complaints
        return one.page

    return show


def drawn(page, people, times, seed=0, conditions=()):
    """Values (n, q, e) and who is there (n, q), or None, drawn by the page's script."""
    asked = {"people": people, "times": list(times), "seed": seed, "conditions": list(conditions)}
    got = page.evaluate(DRAW, asked)
    shape = people, len(times)
    values = np.stack([_numbers(column).reshape(shape) for column in got["values"]], axis=2)
    present = got["present"]
    return values, None if present is None else _numbers(present).reshape(shape) == 1


def _numbers(text):
    return np.frombuffer(base64.b64decode(text))


def downloaded(page):
    with page.expect_download() as waiting:
        page.click("#draw-csv")
    with open(waiting.value.path(), "rb") as file:
        return file.read()


# The same people as in Python -------------------------------------------------------------------


def bent(made_model, **changes):
    """A model of uneven times whose people spread, with a width that changes."""
    model = made_model(times=4, particles=40)
    knots = np.array([0.0, 3.0, 11.0, 20.0])
    width = np.array([0.02, 0.05, 0.03, 0.04])
    return replace(model, knots=knots, numeric_times=knots, bandwidth=width, **changes)


def in_the_river(made_model):
    domain = river().of_features(("x", "y"))
    model = made_model(features=("x", "y"), times=3, bounds=np.array([[0.0, 1.0]] * 2))
    return replace(model, domain=domain)


def rate(places, _):
    return 0.1 * (places[:, 0] / 100 - 0.4)


MODELS = {
    "inertia": lambda made: bent(made).with_reference("auto"),
    "brownian": bent,
    "pulled back": lambda made: bent(made).with_reference(
        pt.reference.OrnsteinUhlenbeck([60.0, 40.0], 0.1, 0.02)
    ),
    "drift": lambda made: bent(made).with_reference(
        pt.reference.Drift(([[0.0, 0.02], [-0.02, 0.0]], [0.0, 0.0]))
    ),
    "forgetful": lambda made: bent(made).with_reference(pt.reference.Inertia(memory=5.0)),
    "monotone": lambda made: (
        bent(made)
        .with_reference("auto")
        .with_constraints(monotone=["height"], precision={"weight": 0.5})
    ),
    "domain": in_the_river,
    "grows": lambda made: bent(made).with_reference("auto").with_growth(0.15),
    "grows by place": lambda made: (
        bent(made).with_reference("inertia").with_growth(pt.Growth(None, by_place=rate))
    ),
    "mixed": lambda made: mixed_model(people=60),
    "mixed inertia": lambda made: mixed_model(people=300).with_reference("auto"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "mixed inertia" else thorough) for name in MODELS],
)
def test_the_page_draws_the_people_that_python_draws(shown, made_model, name):
    """Marginals at knots and between, changes from the first time to the last, and who is there;
    of categories, shares and who goes where. False alarm: ALARM."""
    model = MODELS[name](made_model)
    knots = model.knots
    times = np.sort([*knots, *(0.35 * knots[:-1] + 0.65 * knots[1:])])
    page = shown(model)
    held = page.evaluate(HELD)
    people = PEOPLE if held["whole"] else min(PEOPLE, held["curves"])  # nobody drawn twice
    values, present = drawn(page, people, times)
    paths = model.sample(PEOPLE, times, seed=1)
    assert page.complaints == []
    there = np.ones(values.shape[:2], bool) if present is None else present
    tests = []
    for k, column in enumerate(paths.columns):
        mine, theirs = (np.where(a, v[..., k], np.nan) for a, v in _both(there, values, paths))
        pairs = [(mine[:, q], theirs[:, q]) for q in range(len(times))]
        if isinstance(column, Category):
            tests += [_shares(*pair, column.levels) for pair in pairs]
            moved = (v[:, 0] * column.levels + v[:, -1] for v in (mine, theirs))
            tests.append(_shares(*moved, column.levels**2))
        else:
            width = column.high - column.low
            tests += [_same(*pair, width) for pair in pairs]
            tests += [_shares(*map(np.isnan, pair), 2) for pair in pairs if column.missing]
            if name != "forgetful" and not column.fixed:  # offsets last there, see `carried`
                tests.append(_same(mine[:, -1] - mine[:, 0], theirs[:, -1] - theirs[:, 0], width))
        if column.fixed:
            assert (mine == mine[:, :1]).all()
    if present is not None:
        tests += [_shares(there[:, q], paths.present[:, q], 2) for q in range(len(times))]
    assert min(tests) > ALARM / len(tests)


def _both(there, values, paths):
    return (there, values), (paths.present, paths.values)


def _same(mine, theirs, width=0.0):
    """Kolmogorov and Smirnov's chance.  width: of the range, of which both are blurred by 0.2 %, as
    tables have steps, which would tell heaps of people at one place apart."""
    rng = np.random.default_rng(0)
    sides = [side[np.isfinite(side)] for side in (mine, theirs)]
    blurred = [side + 0.002 * width * rng.standard_normal(len(side)) for side in sides]
    return ks_2samp(*blurred).pvalue


def _shares(mine, theirs, count):
    """Chance of tables that differ as much; rare values are counted together."""
    sides = [side[np.isfinite(side)].astype(int) for side in (mine, theirs)]
    table = np.array([np.bincount(side, minlength=count) for side in sides])
    rare = table.sum(axis=0) < 20
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0


@thorough
def test_a_page_that_forgot_the_offsets_would_be_noticed(shown, made_model):
    """The comparison has the power that it needs: without observation noise it fails."""
    model = MODELS["inertia"](made_model)
    values, _ = drawn(shown(model), PEOPLE, model.knots)
    bare = model.sample(PEOPLE, seed=1, observation_noise=False)
    assert _same(values[:, 0, 0], bare.values[:, 0, 0]) < 1e-6


@thorough
def test_the_curves_of_least_action_are_all_there_and_go_as_in_python(shown, made_model):
    """Without offsets everybody is on a curve: to the last digit that the page has."""
    model = replace(MODELS["inertia"](made_model), bandwidth=np.full(4, 1e-12))
    times = np.linspace(0.0, 20.0, 41)
    values, _ = drawn(shown(model), 40, times)
    paths = model.sample(40, times, seed=0, observation_noise=False)
    mine, theirs = (np.sort(v[..., 0], axis=0) for v in (values, paths.values))
    assert np.abs(mine - theirs).max() < 0.011  # half a step, and 1/65535 of the range


@thorough
def test_a_monotone_feature_never_falls_and_precision_holds(shown, made_model):
    model = MODELS["monotone"](made_model)
    values, _ = drawn(shown(model), 500, np.linspace(0.0, 20.0, 30))
    assert (np.diff(values[..., 0], axis=1) >= 0).all()
    assert (values[..., 1] * 2 == np.rint(values[..., 1] * 2)).all()


@thorough
def test_nobody_leaves_the_domain_at_the_stops(shown, made_model):
    model = MODELS["domain"](made_model)
    stops = model.carried(NUMBERS, CURVES, STOPS).stops
    times = model.knots[0] + stops * (model.knots[-1] - model.knots[0])
    values, _ = drawn(shown(model), 400, times)
    near = np.abs(values.reshape(-1, 2) - model.plot.snapped(values.reshape(-1, 2)))
    assert near.max() < 2e-4  # a step of the table


# Seeds, times and conditions ---------------------------------------------------------------------


@thorough
def test_the_same_seed_gives_the_same_file_and_another_another(shown, made_model):
    page = shown(made_model())
    first, again = downloaded(page), downloaded(page)
    page.fill("#draw-seed", "1")
    other = downloaded(page)
    assert first == again
    assert first != other
    assert page.complaints == []


@thorough
def test_times_can_be_fitted_even_or_listed(shown, made_model):
    page = shown(made_model(time_name="age"))
    page.fill("#draw-people", "3")
    assert _csv(downloaded(page))["age"].to_pylist() == [0, 5, 10, 15, 20] * 3
    page.fill("#draw-count", "3")
    assert page.is_checked("input[value=even]")
    assert _csv(downloaded(page))["age"].to_pylist() == [0, 10, 20] * 3
    page.fill("#draw-list", "7.5, 2")
    assert page.is_checked("input[value=list]")
    assert _csv(downloaded(page))["age"].to_pylist() == [7.5, 2] * 3


@thorough
def test_the_ends_of_the_range_are_times_as_they_are_written(shown, made_model):
    model = made_model(times=3)
    knots = np.array([1 / 3, 7.0, 200 / 3])
    page = shown(replace(model, knots=knots, numeric_times=knots).with_reference("auto"))
    page.fill("#draw-people", "1")
    page.fill("#draw-list", f"{page.inner_text('#draw-first')} {page.inner_text('#draw-last')}")
    assert page.inner_text("#draw-first") == "0.33"
    assert _csv(downloaded(page))["age"].to_pylist() == knots[[0, 2]].tolist()


@functools.cache
def mixed():
    return mixed_model(people=300).with_reference("auto")


def _condition(page, column, when="always", **parts):
    page.click("#draw-add")
    row = page.locator("#draw-conditions > li").last
    row.locator("[data-part=column]").select_option(label=column)
    row.locator("[data-part=when]").select_option(when)
    for value in parts.pop("values", ()):
        row.get_by_label(value, exact=True).check()
    for part, text in parts.items():
        field = row.locator(f"[data-part={part}]")
        field.check() if part == "missing" else field.fill(text)


@thorough
def test_conditions_on_values_and_ranges_hold_at_their_times(shown):
    page = shown(mixed())
    _condition(page, "sex", values=["F"])
    _condition(page, "stage", "first", values=["I", "II"])
    _condition(page, "weight", "time", low="60", time="1.2")
    page.fill("#draw-list", "0.4, 1.2, 2")
    table = _csv(downloaded(page))
    assert table.num_rows == 3000
    assert set(table["sex"].to_pylist()) == {"F"}
    assert set(table["stage"].to_pylist()[::3]) <= {"I", "II"}
    assert set(table["stage"].to_pylist()) > {"I", "II"}
    assert min(table["weight"].to_pylist()[1::3]) >= 60
    assert page.complaints == []


@thorough
def test_who_meets_conditions_is_who_does_in_python(shown):
    """False alarm: ALARM."""
    model, times = mixed(), [0.3, 1.7]
    conditions = [
        {"column": 3, "levels": [1, 2], "when": "first"},
        {"column": 1, "low": 60, "high": 80, "when": "always"},
    ]
    values, _ = drawn(shown(model), 2000, times, conditions=conditions)
    asked = {"where": {"weight": (60, 80)}, "at_start": {"stage": ["II", "III"]}}
    paths = model.sample(2000, times, seed=1, **asked)
    tests = []
    for k, column in enumerate(paths.columns):
        for q in range(2):
            pair = values[:, q, k], paths.values[:, q, k]
            number = isinstance(column, Number)
            tests.append(_same(*pair) if number else _shares(*pair, column.levels))
    assert min(tests) > ALARM / len(tests)


@thorough
def test_missing_values_can_be_asked_for(shown):
    page = shown(mixed())
    _condition(page, "hb", "first", missing="")
    page.fill("#draw-people", "50")
    table = _csv(downloaded(page))
    assert table["hb"].to_pylist()[::5] == [None] * 50


@thorough
def test_conditions_that_hardly_anybody_meets_are_refused(shown):
    page = shown(mixed())
    _condition(page, "weight", low="149")
    page.click("#draw-show")
    page.wait_for_selector("#draw-status.wrong")
    assert "Too few people of the model are so" in page.inner_text("#draw-status")
    page.get_by_role("button", name="Remove").click()
    page.click("#draw-show")
    page.wait_for_selector("#draw-preview table")
    assert page.locator("#draw-preview tbody tr").count() == 6
    assert page.complaints == []


@thorough
@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("#draw-people", "0", "must be a whole number from 1 to"),
        ("#draw-people", "1e12", "must be a whole number from 1 to"),
        ("#draw-seed", "-1", "The seed must be a whole number from 0"),
        ("#draw-count", "1", "The number of times must be a whole number from 2"),
        ("#draw-list", "30", "Times must be numbers, from 0 to 20."),
        ("#draw-list", "soon", "Times must be numbers, from 0 to 20."),
        ("#draw-list", "", "Give at least one time."),
    ],
)
def test_a_mistake_is_said_in_words_and_marked(shown, made_model, field, text, words):
    page = shown(made_model())
    if field == "#draw-list":
        page.check("input[value=list]")
    page.fill(field, text)
    page.click("#draw-csv")
    page.wait_for_selector("#draw-status.wrong")
    assert words in page.inner_text("#draw-status")
    assert page.get_attribute(field, "aria-invalid") == "true"
    assert page.evaluate("'#' + document.activeElement.id") == field
    assert page.complaints == []


# Files ---------------------------------------------------------------------------------------


def _csv(data):
    return arrow_csv.read_csv(io.BytesIO(data))


@thorough
def test_csv_is_the_table_that_python_writes(shown, tmp_path):
    model = mixed()
    page = shown(model)
    page.fill("#draw-people", "200")
    text = downloaded(page)
    model.sample(200, seed=0).save(tmp_path / "paths.csv")
    ours, theirs = text.decode().splitlines(), (tmp_path / "paths.csv").read_text().splitlines()
    assert ours[0] == theirs[0]
    assert len(ours) == len(theirs)
    read, other = _csv(text), _csv((tmp_path / "paths.csv").read_bytes())
    assert read.schema == other.schema
    assert read["hb"].null_count > 0
    assert set(read["smoker"].to_pylist()) == {True, False}
    assert set(read["kids"].to_pylist()) <= set(range(11))
    for name in ("hb", "weight"):
        digits = [
            max(len(repr(value).partition(".")[2]) for value in side[name].to_pylist() if value)
            for side in (read, other)
        ]
        assert digits[0] == digits[1], name


@thorough
@pytest.mark.parametrize("dates", [False, True])
def test_even_times_are_those_of_the_command(shown, made_model, dates, tmp_path):
    model = made_model(dates=dates, times=4)
    page = shown(model)
    for count in (2, 3, 8, 31):
        page.fill("#draw-people", "1")
        page.fill("#draw-count", str(count))
        model.sample(1, even_times(model, count), seed=0).save(tmp_path / "paths.csv", force=True)
        read, other = _csv(downloaded(page)), _csv((tmp_path / "paths.csv").read_bytes())
        assert read["age"].type == other["age"].type
        assert read["age"].to_pylist() == other["age"].to_pylist()


@thorough
def test_names_and_values_that_spreadsheets_would_run_are_quoted(shown, tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (40, 5, 1)).astype(float)
    labels = ["=1+1", 'a, "b"\nc', "ä ✓ </script>"]
    model = mixed_model({"-code": pt.Category(labels)}, values=values)
    page = shown(model)
    model.sample(50, seed=0).save(tmp_path / "paths.csv")
    text = downloaded(page)
    assert b'"\'-code"' in text
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    read, other = (
        arrow_csv.read_csv(source, parse_options=parse)
        for source in (io.BytesIO(text), tmp_path / "paths.csv")
    )
    assert read.column_names == other.column_names
    assert set(read["'-code"].to_pylist()) == set(other["'-code"].to_pylist())
    assert page.complaints == []


@thorough
def test_dates_are_dates_and_moments_moments(shown, made_model):
    page = shown(made_model(dates=True))
    assert b"\n0,2024-03-01," in downloaded(page)
    page.fill("#draw-list", "2024-03-01 12:30, 2024-03-02T06:00:01")
    text = downloaded(page)
    assert b"\n0,2024-03-01 12:30:00," in text
    assert b"\n0,2024-03-02 06:00:01," in text


@thorough
def test_people_who_are_not_there_have_no_row(shown, made_model):
    model = made_model().with_reference("auto").with_growth(0.15)
    table = _csv(downloaded(shown(model)))
    rows = table.group_by("age").aggregate([("path", "count")]).sort_by("age")
    counts = rows["path_count"].to_numpy()
    expected = np.exp(0.15 * np.array(rows["age"]))
    assert counts == pytest.approx(1000 * expected / expected[-1], abs=3)


# The section and the rest of the page --------------------------------------------------------


@thorough
def test_the_section_is_used_by_keyboard_on_a_phone_and_has_large_targets(shown):
    page = shown(mixed(), width=320, theme="dark")
    _condition(page, "stage", values=["II"])
    small = page.evaluate(
        "() => [...document.querySelectorAll('#draw button, #draw select, #draw label.choice,'"
        " + '#draw input:not([type=radio], .choice input), #cite button')]"
        ".filter((e) => e.getClientRects().length)"
        ".filter((e) => e.getBoundingClientRect().height < 44).map((e) => e.outerHTML)"
    )
    assert small == []
    page.focus("#draw-show")
    page.keyboard.press("Enter")
    page.wait_for_selector("#draw-preview table")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    unnamed = page.evaluate(
        "() => [...document.querySelectorAll('#draw input, #draw select')].filter((e) =>"
        " !e.labels.length && !e.ariaLabel).length"
    )
    assert unnamed == 0


@thorough
def test_the_page_says_how_near_it_is(shown, made_model):
    said = {
        "inertia": "all 40 curves",
        "brownian": "4\N{NARROW NO-BREAK SPACE}096 curves of people drawn from the model",
        "domain": "people drawn from the model, who stay in its domain",
        "grows": "who is not there at a time has no row",
    }
    for name, words in said.items():
        assert words in shown(MODELS[name](made_model)).inner_text("#draw")


@thorough
def test_a_citation_is_copied(shown, made_model):
    model = made_model()
    page = shown(model, permissions=["clipboard-read", "clipboard-write"])
    for name, words in {"Copy this sentence": model.sha256, "Copy BibTeX": "@software{"}.items():
        page.get_by_role("button", name=name).click()
        page.get_by_text("Copied.").wait_for()
        assert words in page.evaluate("navigator.clipboard.readText()")


@thorough
def test_on_paper_there_is_a_report_and_no_form(shown):
    page = shown(mixed(), width=680, theme="dark")
    printed = page.evaluate(
        "() => { let seen = 0; window.print = () => { seen++; };"
        " document.getElementById('print').click(); return seen; }"
    )
    assert printed == 1
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.is_visible("#draw-form")
    assert not page.is_visible("#print")
    for place in ("#guarantee .dial", "#stage", "#budget table", "#checks", "#cite pre"):
        assert page.is_visible(place), place
    assert page.evaluate("[...document.querySelectorAll('details')].every((part) => part.open)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.evaluate("[...document.querySelectorAll('details')].some((part) => part.open)")
    assert page.pdf().startswith(b"%PDF")
