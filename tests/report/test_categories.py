"""Mixed columns on pages, cards and figures: shares, flows, gaps, and what was declared public."""

import re
from html import unescape

import numpy as np
import pytest

import privtraj as pt
from mixed_clinic import COLUMNS, mixed_model, mixed_records, mixed_table
from privtraj import metrics
from privtraj.metrics.records import read_records
from privtraj.report.comparison import comparison
from privtraj.report.figures import overview
from privtraj.report.levels import COLOURS, LONGEST_LABEL, Drawn, ribbons, shares_of, three_times
from privtraj.report.page import report
from privtraj.report.page_data import bands, sampled
from privtraj.report.sections import declared
from privtraj.report.verdicts import verdicts

NASTY = '</script><b>"x"&\''
LARGEST = 3_000_000


@pytest.fixture(scope="module")
def model():
    return mixed_model(people=120)


@pytest.fixture(scope="module")
def page(model):
    return report(model)


@pytest.fixture(scope="module")
def html(page):
    return page.html()


def panel_of(page, name):
    return next(one for one in page.values["shares"]["changing"] if one["name"] == name)


def text_of(html):
    shown = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", shown)).split())


# Levels that are drawn -------------------------------------------------------------------------


def test_few_values_are_drawn_in_their_order():
    drawn = Drawn.of(pt.Ordered(["low", "mid", "high"]), np.array([0.1, 0.2, 0.7]))
    assert drawn.labels == ("low", "mid", "high")
    assert drawn.shades == ("1", "2", "3")
    assert drawn.colours == list(COLOURS[:3])
    assert drawn.group.tolist() == [0, 1, 2]


def test_rare_values_are_drawn_as_one_and_missing_is_never_among_them():
    column = pt.Category([f"c{k}" for k in range(200)], other="rest", missing=True)
    shares = np.full(202, 0.001)
    shares[[150, 3, 90, 7, 8, 9, 200]] = [0.3, 0.2, 0.1, 0.05, 0.05, 0.05, 0.08]
    drawn = Drawn.of(column, shares / shares.sum())
    assert drawn.labels == (
        "c3",
        "c7",
        "c8",
        "c9",
        "c90",
        "c150",
        "rest",
        "194 others",
        "(missing)",
    )
    assert drawn.shades[-2:] == ("others", "missing")
    assert drawn.group[201] == 8
    assert np.count_nonzero(drawn.group == 7) == 194
    levels = np.array([[3, 201], [0, 150], [150, 150], [1, 2]])
    np.testing.assert_allclose(
        drawn.shares(levels),
        [[0.25, 0, 0, 0, 0, 0.25, 0, 0.5, 0], [0, 0, 0, 0, 0, 0.5, 0, 0.25, 0.25]],
    )


def test_long_names_are_cut():
    drawn = Drawn.of(pt.Category(["x" * 900, "short"]), np.array([0.5, 0.5]))
    assert drawn.labels == ("x" * (LONGEST_LABEL - 1) + "…", "short")


def test_flows_add_up_to_the_shares_on_both_sides():
    rng = np.random.default_rng(0)
    column = pt.Category(list("abc"))
    levels = rng.integers(0, 3, (500, 3))
    drawn = Drawn.of(column, np.ones(3) / 3)
    flows, shares = drawn.flows(levels), drawn.shares(levels)
    np.testing.assert_allclose(flows.sum(axis=2), shares[:-1])
    np.testing.assert_allclose(flows.sum(axis=1), shares[1:])
    assert flows[0, 0, 2] == np.mean((levels[:, 0] == 0) & (levels[:, 1] == 2))


def test_ribbons_fill_both_sides_without_overlap():
    table = np.array([[0.3, 0.1], [0.2, 0.4]])
    found = list(ribbons(table))
    assert [(i, j) for i, j, *_ in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for side in (3, 4):
        ends = sorted((one[side], one[side] + one[2]) for one in found)
        starts, stops = zip(*ends, strict=True)
        np.testing.assert_allclose(starts, [0, *stops[:-1]])
        assert stops[-1] == pytest.approx(1)
    into = sorted((one[4], one[1]) for one in found)
    assert [j for _, j in into] == [0, 0, 1, 1]


def test_who_is_absent_has_no_share():
    levels = np.array([[0, -1], [1, 1], [1, 0]])
    np.testing.assert_allclose(shares_of(levels, 2), [[1 / 3, 2 / 3], [0.5, 0.5]])
    drawn = Drawn.of(pt.Category(["a", "b"]), np.ones(2) / 2)
    np.testing.assert_allclose(drawn.flows(levels)[0], [[0, 0], [0.5, 0.5]])
    assert three_times(1) == [0]
    assert three_times(2) == [0, 1]
    assert three_times(61) == [0, 30, 60]


# The page --------------------------------------------------------------------------------------


def test_shares_on_the_page_are_those_of_the_model(page, model):
    stage = panel_of(page, "stage")
    assert [band["label"] for band in stage["bands"]] == ["I", "II", "III", "IV"]
    particles = metrics.columns.Axes.of(model.columns).level_of(model.particles)[..., 3]
    first, last = (np.bincount(particles[k], minlength=4) / 120 for k in (0, -1))
    shown = np.array([row for _, row in stage["rows"]])
    np.testing.assert_allclose(shown[:, 0], first, atol=0.03)
    np.testing.assert_allclose(shown[:, -1], last, atol=0.03)
    np.testing.assert_allclose(shown.sum(axis=0), 1)


def test_the_stacked_bands_fill_the_box(page):
    box = page.values["shares"]["box"]
    for panel in page.values["shares"]["changing"]:
        outer = [panel["bands"][0]["path"], panel["bands"][-1]["path"]]
        heights = [[float(y) for y in re.findall(r" ([\d.]+)", path)] for path in outer]
        assert max(heights[0]) == pytest.approx(box["bottom"], abs=0.1)
        assert min(heights[1]) == pytest.approx(box["top"], abs=0.1)


def test_flows_on_the_page_say_who_stays(page, model):
    stage = panel_of(page, "stage")
    moves = np.array([row for _, row in stage["moves"]["rows"]])
    np.testing.assert_allclose(np.nansum(moves, axis=1)[:3], 1)
    assert 0.3 < stage["moves"]["stay"] < 0.9
    paths = model.sample(4000, model.times, seed=2)
    level = paths.values[:, :, paths.features.index("stage")]
    changes = np.count_nonzero(np.diff(level, axis=1), axis=1).mean()
    assert stage["changes"] == pytest.approx(changes, abs=0.05)
    widths = [bar[3] for bar in stage["flow"]["bars"]]
    box = page.values["shares"]["box"]
    assert sum(widths) == pytest.approx(3 * (box["bottom"] - box["top"]))


def test_fixed_columns_are_bars_and_gaps_are_shares(page):
    shares = page.values["shares"]
    (sex,) = shares["fixed"]
    assert [label for label, _, _ in sex["bars"]] == ["F", "M"]
    assert sum(share for *_, share in sex["bars"]) == pytest.approx(1)
    (gap,) = shares["missing"]
    assert gap["name"] == "hb"
    absent = dict(gap["rows"])["(missing)"]
    assert (np.abs(absent - 0.125) < 0.08).all()


def test_numbers_alone_are_on_the_stage_and_whole(page, model):
    assert page.data["features"] == ["hb", "weight", "kids", "born"]
    assert list(page.data["dates"]) == [3]
    assert [panel["name"] for panel in page.values["panels"]] == page.data["features"]
    shown = sampled(model)
    assert np.isfinite(shown.people).all()
    assert shown.people.shape[2] == 4
    assert 0.05 < shown.missing["hb"].mean() < 0.2
    years = [label for _, label in page.values["panels"][3]["levels"]]
    assert all(1950 <= int(label) <= 2010 for label in years)


def test_bands_are_of_those_who_have_the_number(model):
    many = model.sample(500, seed=0).values
    found = bands(many[..., [0]])
    np.testing.assert_allclose(found[0, 2], np.nanmedian(many[..., 0], axis=0))
    assert np.isnan(bands(np.full((3, 2, 1), np.nan))).all()


def test_what_was_declared_is_listed(html, model):
    text = text_of(html)
    assert "What was declared of the columns" in text
    assert "1950-01-01 to 2010-01-01" in text
    assert "may be missing, any other value counts as 'other'" in text
    rows = {row.name: row for row in declared(model.columns)}
    assert list(rows) == list(COLUMNS)
    assert rows["sex"].values == ["F", "M"]
    assert rows["sex"].more == "never changes"
    assert len(rows["code"].values) == 20
    assert rows["hb"].more == "may be missing"
    assert (rows["kids"].domain, rows["smoker"].values) == ("0 to 10", ["no", "yes"])


def test_every_picture_has_words_and_a_table(html):
    pictures = re.findall(r'<svg class="shares"[^>]*>', html)
    assert len(pictures) == 2 * 3 + 1
    assert all("aria-label=" in picture and 'role="img"' in picture for picture in pictures)
    assert html.count("As numbers") == 4
    assert "hb missing" not in html


def test_the_page_is_the_same_every_time(html, model):
    assert report(model).html() == html


def test_200_long_and_hostile_names_do_not_break_a_page_without_numbers():
    rng = np.random.default_rng(0)
    names = [f"{k:03}{NASTY}{'x' * 300}" for k in range(200)]
    columns = {
        f"code {NASTY}": pt.Category(names, other="any", missing=True),
        "sex": pt.Category(["F", NASTY], fixed=True),
    }
    code, sex = rng.integers(0, 202, (150, 5)), rng.integers(0, 2, (150, 1))
    values = np.stack([code, np.broadcast_to(sex, (150, 5))], axis=2).astype(float)
    made = report(mixed_model(columns, values=values))
    html = made.html()
    assert len(html) < LARGEST
    assert '<b>"x' not in html
    assert "</script><b>" not in html
    assert made.data["features"] == []
    assert 'id="people"' not in html
    assert len(made.values["shares"]["changing"][0]["bands"]) == 9
    shown = re.sub(r'<script type="application/json".*?</script>', "", html)
    assert "x" * 100 not in shown  # whole in files that are drawn, and nowhere else
    assert [v.name for v in verdicts(mixed_model(columns, values=values), np.empty((3, 2, 0)))]


def test_numbers_alone_have_no_section_of_categories(made_model):
    html = report(made_model()).html()
    assert 'id="categories"' not in html
    assert "What was declared of the columns" not in html


# Beside raw data, cards, figures ---------------------------------------------------------------


def test_the_comparison_shows_real_shares_and_scores_of_columns():
    few = {name: COLUMNS[name] for name in ("hb", "sex", "stage")}
    model = mixed_model(few, people=80)
    table = mixed_table(mixed_records(120, 3, few), few)
    found = metrics.evaluate(model, table, n=60)
    made = comparison(model, found, read_records(table, model))
    (stage,) = made.values["shares"]["changing"]
    assert len(stage["real"]) == 3  # limits between four values
    html = made.html()
    assert "Columns and pairs of columns" in html
    assert f"{found.columns.summary['pair_similarity']:.3f}" in html
    assert "real-edge" in html
    total = sum(made.data["real"]["counts"])
    assert 0 < total < 120 * 5  # whose hb is missing has no place


def test_cards_have_kinds_shares_and_labels(model):
    card = model._repr_html_()
    assert "8: hb, weight, sex, stage, smoker, kids, born, code" in card
    assert "shares of 4 values of stage over time" in card
    rows = model.sample(3, seed=0)._repr_html_()
    assert "hb missing" not in rows
    assert any(f">{label}<" in rows for label in ("F", "M"))
    snapshots = pt.Snapshots.from_table(
        mixed_table(mixed_records(30)),
        time="year",
        time_range=(0, 2),
        columns=COLUMNS,
        person="who",
        records_per_person=5,
    )
    said = snapshots._repr_html_()
    assert "category: F, M" in said
    assert "E05 and 16 more" in said
    assert "in [4, 16], may be missing" in said
    assert "hb missing" not in said


def test_an_overview_has_a_panel_for_each_column(model):
    paths = model.sample(60, np.linspace(0, 2, 9), seed=0)
    figure = overview(model, paths)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert "share of people by stage" in labels
    assert labels[:2] == ["hb", "weight"]
    (together,) = [axes for axes in figure.axes if axes.get_xlabel() == "hb"]
    assert together.get_ylabel() == "weight"


def test_many_curves_are_not_coupled_for_a_check(monkeypatch):
    few = {name: COLUMNS[name] for name in ("weight", "stage")}
    model = mixed_model(few, people=80)
    names = {verdict.name for verdict in verdicts(model, sampled(model).people)}
    monkeypatch.setattr("privtraj.report.verdicts.MOST_COUPLED", 79)
    less = {verdict.name for verdict in verdicts(model, sampled(model).people)}
    assert names - less == {"Sinkhorn error"}


def test_who_never_has_a_number_is_drawn_last():
    columns = {"hb": pt.Number(4, 16, missing=True), "weight": pt.Number(30, 150)}
    values = mixed_records(200, 2, columns)
    values[::3, :, 0] = np.nan
    values[np.arange(200) % 3 > 0, :, 0] = 10.0
    model = mixed_model(columns, values=values)
    people = sampled(model).people[..., 0]
    assert np.isfinite(people).all()
    assert len(np.unique(people, axis=0)) == len(people)  # whose hb was filled in were all alike
    assert 0.25 < sampled(model).missing["hb"].mean() < 0.42
