"""The report as a file: what it says, what it never says, how large it is."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.export import tables as export_tables
from privtraj.report import sections
from privtraj.report.page import as_script_data, report, write_report
from privtraj.report.page_data import (
    DENSITY_BINS,
    axis_ranges,
    bands,
    densities,
    frame_times,
    maps,
    packed,
    sampled,
)
from privtraj.report.templates import asset, percent, render, round_number, whole_number
from privtraj.report.ticks import number_ticks, time_label, time_labels, time_ticks
from privtraj.report.verdicts import graded, summary, verdicts

LARGEST = 3_000_000
NASTY = '</script><b>"x"&\''


class _Reader(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.inside = [], [], [], []
        self.feed(html)
        self.text = " ".join(" ".join(self.text).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside:
            self.text.append(data)


def page_of(model):
    html = report(model).html()
    return html, _Reader(html)


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1))


def unpacked(text, shape):
    return np.frombuffer(base64.b64decode(text), "<u2").reshape(shape) / 65535


@pytest.fixture(scope="module")
def model(made_model):
    return made_model()


@pytest.fixture(scope="module")
def page(model):
    return page_of(model)


def test_the_page_is_the_same_every_time(model, page):
    assert report(model).html() == page[0]


def test_the_guarantee_is_said_in_words_and_on_a_dial(model, page):
    text = page[1].text
    promise = model.certificate
    assert promise.in_words[1:] in text
    assert f"epsilon = {promise.epsilon:.4g}"[:12] in text
    assert "whether one person is in the data at all (add-remove)" in text
    assert "at most one record" in text
    right = np.ceil(1000 * (1 + promise.attacker["advantage"]) / 2) / 10
    assert f"in at most {right:g} % of cases" in text
    for rate in promise.attacker["true_positive_rate"].values():
        assert f"{np.ceil(1000 * rate) / 10:g} %" in text
    assert "NOT PRIVATE" not in text


def test_the_first_figures_are_those_of_the_model(model, made_model):
    numbers = {what: number for number, what in report(model).values["figures"]}
    assert float(numbers["Epsilon, less is safer"]) == pytest.approx(
        model.certificate.epsilon, 1e-3
    )
    assert numbers["Checks that are good"] == "7 of 7"
    assert ("none", "Guarantee") in report(made_model(private=False)).values["figures"]


def test_replace_one_is_said_in_its_own_words(made_model):
    text = page_of(made_model(adjacency="replace-one"))[1].text
    assert "What any one person's records say " in text
    assert "Whether any one person is in the data" not in text


def test_a_seeded_model_is_loudly_not_private(made_model):
    html, reader = page_of(made_model(private=False))
    assert "NOT PRIVATE: do not release" in reader.text
    assert html.index("NOT PRIVATE") < html.index("<h1>")
    assert "in what was released" not in reader.text.split("What is promised")[1].split("How")[0]
    assert "Nothing limits what an attacker may find out" in reader.text
    assert made_model(private=False).certificate.chance_right == 1.0


def test_nothing_is_fetched_from_anywhere(page):
    html, reader = page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    for tag, attributes in reader.attributes:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name, "#")
            assert value.startswith(("#", "data:,")), (tag, name, value)
    assert not any("style" in attributes for _, attributes in reader.attributes)


def test_the_policy_names_the_very_script_and_style_of_the_page(page):
    html, reader = page
    policy = next(a["content"] for t, a in reader.attributes if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for kind, pattern in (
        ("style", r"<style>(.*?)</style>"),
        ("script", r"<script>(.*?)</script>"),
    ):
        text = re.search(pattern, html, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_names_of_features_stay_text(made_model):
    model = made_model(features=(NASTY, "b" * 300), time_name='<i onload="x">')
    html, reader = page_of(model)
    assert NASTY in reader.text
    assert reader.tags.count("script") == 2
    assert "i" not in [t for t, a in reader.attributes if "onload" in a]
    assert data_of(html)["features"] == [NASTY, "b" * 300]


@pytest.mark.slow
@given(st.text(max_size=40))
def test_data_never_end_their_script(text):
    written = as_script_data({"name": text})
    assert "<" not in written
    assert json.loads(written) == {"name": text}


def test_text_from_a_model_file_is_escaped(model):
    strange = replace(model, settings={"measure": NASTY, NASTY: [NASTY]})
    public = {NASTY: NASTY, "most records of one person": NASTY}
    ledger = ({**model.certificate.ledger[0], "what": NASTY},)
    certificate = replace(strange.certificate, public_inputs=public, version=NASTY, ledger=ledger)
    _, reader = page_of(replace(strange, certificate=certificate))
    assert reader.tags.count("script") == 2
    assert reader.text.count(NASTY) >= 6


def test_landmarks_headings_and_labels(page):
    _, reader = page
    for tag in ("header", "nav", "main", "footer"):
        assert reader.tags.count(tag) == 1, tag
    assert reader.tags.count("h1") == 1
    ids = {a["id"] for _, a in reader.attributes if "id" in a}
    for _, attributes in reader.attributes:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set(attributes.get(name, "").split()) <= ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids
    pictures = [a for t, a in reader.attributes if a.get("role") == "img"]
    assert len(pictures) >= 4
    assert all(a["aria-label"] for a in pictures)
    hidden = [a for t, a in reader.attributes if t == "svg" and a.get("role") != "img"]
    assert all(a.get("aria-hidden") == "true" for a in hidden)
    assert ("html", {"lang": "en"}) in reader.attributes


def test_everything_but_the_motion_is_there_without_scripts(page):
    _, reader = page
    for word in ("Where the budget went", "people per cell", "How well it went", "sha256"):
        assert word in reader.text
    assert reader.tags.count("noscript") == 2


def test_budget_parts_add_up_and_leave_the_rest(model):
    *parts, left = sections.budget(model.certificate)
    assert [part.what for part in parts] == ["people per time", "people per cell"]
    assert sum(part.epsilon for part in parts) == pytest.approx(model.certificate.epsilon)
    rest = 1 - model.certificate.epsilon
    assert left.epsilon == rest
    assert sum(part.share for part in (*parts, left)) == pytest.approx(1)
    shown = render("budget.html", budget=[*parts, left])
    assert "not spent" in shown
    assert f"{rest:.3g}" in shown
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="50"', shown)]
    assert sum(widths) == pytest.approx(1000, abs=2 * len(widths) + 1)


def test_a_certificate_without_releases_has_no_budget(model):
    bare = replace(model, certificate=replace(model.certificate, ledger=()))
    assert "Nothing was paid for" in report(bare).html()


@pytest.mark.slow
@pytest.mark.parametrize(("features", "times"), [(1, 2), (2, 300), (50, 40)])
def test_size_stays_below_three_megabytes(made_model, features, times):
    names = tuple(f"a feature of a longer name {k}" for k in range(features))
    html, _ = page_of(made_model(features=names, times=times, particles=4))
    assert len(html.encode()) < LARGEST
    assert features > 2 or len(html.encode()) < 1_000_000


def test_sampled_people_survive_packing(model):
    shown = sampled(model)
    n, q, d = shown.people.shape
    data = data_of(report(model).html())
    back = unpacked(data["paths"], (d, q, n))
    assert np.abs(back.transpose(2, 1, 0) - shown.people).max() < 1 / 65535
    assert data["people"] == n
    assert len(data["times"]) == q


def test_frames_hold_the_fitted_times():
    knots = np.array([0.0, 1.0, 5.0, 6.0])
    frames = frame_times(knots, 2)
    assert set(knots) <= set(frames)
    assert (np.diff(frames) > 0).all()
    assert len(frames) <= 61
    assert len(frame_times(np.arange(500.0), 2)) <= 61
    assert list(frame_times(np.array([0.0, 1.0]), 100_000))[-1] == 1.0


def test_bands_are_quantiles():
    values = np.random.default_rng(0).random((1001, 3, 2))
    assert bands(values)[1, 2, 0] == np.median(values[:, 0, 1])
    assert bands(values).shape == (2, 5, 3)


def test_densities_lie_where_people_are():
    values = np.full((100, 1, 1), 0.25)
    heap = densities(values, np.array([[0.0, 1.0]]))
    assert heap.argmax() == DENSITY_BINS // 4
    assert heap.max() == 1
    values[:30] = 3.0  # beyond the axis: left out, not heaped at its end
    np.testing.assert_allclose(densities(values, np.array([[0.0, 1.0]])), heap)


def test_densities_have_no_corners():
    people = np.random.default_rng(0).normal(0.5, 0.15, (4000, 1, 1))
    heap = densities(people, np.array([[0.0, 1.0]]))[0, 0]
    bends = np.abs(np.diff(heap, 2))
    # the bell has bends of (h / s)^2 = .007; a corner of a tenth of the height would be one of .1
    assert bends.max() < 0.03


def test_axes_reach_almost_everybody_at_each_time():
    values = np.full((1000, 50, 1), 0.4)
    values[:300, 7] = 0.9  # at one time in fifty, which all times together would cut off
    ((low, high),) = axis_ranges(values)
    assert low < 0.4
    assert high > 0.9
    gone = np.full((5, 2, 1), np.nan)
    np.testing.assert_allclose(axis_ranges(gone), [[0, 1]])


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=30))
def test_packing_keeps_shares(values):
    back = unpacked(packed(np.array(values)), len(values))
    assert np.abs(back - np.clip(values, 0, 1)).max() <= 0.5 / 65535 + 1e-12


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("lon", "lat"), [(0, 1)]),
        (("age", "Latitude", "Longitude"), [(2, 1)]),
        (("x", "y", "z"), [(0, 1)]),
        (("x_m", "y_m"), [(0, 1)]),
        (("easting (km)", "northing (km)"), [(0, 1)]),
        (("height", "weight"), []),
        (("x",), []),
        (("max", "city"), []),
    ],
)
def test_maps_are_known_by_their_names(names, found):
    bounds = np.tile([50.0, 54.0], (len(names), 1))
    assert [(i, j) for i, j, _ in maps(names, bounds)] == found


def test_a_degree_of_longitude_is_shorter_away_from_the_equator():
    ((_, _, scale),) = maps(("lon", "lat"), np.array([[0.0, 10.0], [50.0, 70.0]]))
    assert scale == pytest.approx(0.5)
    ((_, _, scale),) = maps(("lon", "lat"), np.array([[0.0, 10.0], [0.0, 5000.0]]))
    assert scale == 1.0


def test_dates_are_shown_as_dates(made_model):
    html, reader = page_of(made_model(dates=True, times=14))
    assert "2024-03-01, 2024-03-02" in reader.text
    assert ">2024-03-0" in html
    data = data_of(html)
    assert data["knotLabels"][0] == "2024-03-01"
    assert all(label.startswith("2024-03-") for _, label in data["timeTicks"])


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_of_numbers_are_few_and_inside(low, span):
    ticks = number_ticks(low, low + span)
    assert 1 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= at <= low + span * (1 + 1e-6) for at, _ in ticks)


@given(st.integers(-(10**9), 4 * 10**9), st.integers(2, 3 * 10**9))
def test_ticks_of_dates_are_few_and_inside(first, span):
    ticks = time_ticks(first, first + span, True)
    assert 1 <= len(ticks) <= 8
    assert all(first - 1 <= at <= first + span + 1 for at, _ in ticks)
    labels = [label for _, label in ticks]
    assert all(a != b for a, b in pairwise(labels))


def test_numbers_of_time_keep_what_tells_them_apart():
    assert [time_label(t, 20.0, False) for t in (0.0, 20 / 11, 20.0)] == ["0", "1.82", "20"]
    assert [time_label(t, 3.0, False) for t in (2021.25, 2024.0)] == ["2021.25", "2024"]
    assert time_label(1e9, 1e9, False) == "1000000000"


def test_dates_have_a_clock_where_two_would_share_a_day():
    days = 1709251200.0 + 86400 * np.arange(5.0)
    assert time_labels(days, True)[:2] == ["2024-03-01", "2024-03-02"]
    halves = 1709251200.0 + 43200 * np.arange(9.0)
    assert time_labels(halves, True)[:2] == ["2024-03-01 00:00", "2024-03-01 12:00"]


def test_a_template_knows_every_name_it_prints():
    with pytest.raises(UndefinedError, match="'budget' is undefined"):
        render("budget.html")


def test_templates_are_not_loaded_before_something_is_shown():
    code = "import sys; from privtraj.report import cards, page; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_times_of_a_day_have_a_clock():
    assert time_label(1709287200.0, 3600.0, True) == "2024-03-01 10:00"
    assert time_ticks(1709287200.0, 1709294400.0, True)[0] == (1709287200.0, "10:00")


# Verdicts -------------------------------------------------------------------------------------


def found_in(model, **changed):
    changed = replace(model, diagnostics={**model.diagnostics, **changed})
    return {v.name: v for v in verdicts(changed, sampled(changed).people)}


def test_grades_follow_the_limits():
    assert [graded(v, 0.1, 0.5) for v in (0.05, 0.1, 0.3, 0.5, 0.6)] == [
        "good", "good", "look closer", "look closer", "poor"
    ]  # fmt: skip
    assert [graded(v, 50, 5) for v in (60, 50, 10, 5, 4)] == [
        "good", "good", "look closer", "look closer", "poor"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        ("People in cells that stand out", "significant_share", ([0.9] * 5, [0.6] * 5, [0.1] * 5)),
        ("People per slab of time", "people_per_time", ([900.0] * 5, [200.0] * 5, [20.0] * 5)),
    ],
)
def test_verdicts_on_counts(model, name, key, values):
    grades = [found_in(model, **{key: value})[name].grade for value in values]
    assert grades == ["good", "look closer", "poor"]


@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        ("Noise against bandwidth", "noise_over_bandwidth", (0.1, 0.4, 0.9)),
        ("Effective temperature", "effective_temperature", (1.2, 4.0, 30.0)),
        ("Sinkhorn error", "marginal_error", (0.001, 0.1, 0.5)),
    ],
)
def test_verdicts_on_gradients(made_model, name, key, values):
    model = made_model(measure="gradients")
    grades = [found_in(model, **{key: value})[name].grade for value in values]
    assert grades == ["good", "look closer", "poor"]


def test_one_thin_time_is_worth_a_look(model):
    thin = found_in(model, people_per_time=[900.0, 900, 900, 900, 40])
    assert thin["People per slab of time"].grade == "look closer"


def test_clipping_is_told_honestly(made_model, model):
    told = found_in(made_model(measure="gradients"))["Clipping"]
    assert told.value.startswith("10\N{NO-BREAK SPACE}%")
    assert "private, was not paid for" in told.sentence
    assert found_in(model)["Clipping"].value == "nothing is clipped"


def test_people_at_the_walls_are_noticed(model):
    people = np.full((50, 3, 2), 0.5)
    people[:, :, 1] = 0.999
    wall = {v.name: v for v in verdicts(model, people)}["People at the bounds"]
    assert wall.grade == "poor"
    assert "upper bound of 'weight'" in wall.value
    assert "The range of 'weight' misses the data" in wall.sentence
    assert found_in(model)["People at the bounds"].grade == "good"


def test_a_model_without_diagnostics_still_has_a_report(made_model):
    bare = replace(made_model(), diagnostics={}, settings={})
    names = {v.name for v in verdicts(bare, sampled(bare).people)}
    assert names == {
        "Certainty of an attacker",
        "Delta against the people",
        "Blur of one person",
        "Sinkhorn error",
        "People at the bounds",
    }
    assert "How well it went" in report(bare).html()


def test_diagnostics_that_were_not_finite_are_passed_over(model):
    nan = float("nan")
    found = found_in(model, significant_share=[nan, 0.9], people_per_time=[nan])
    assert "91" not in found["People in cells that stand out"].value
    assert "People per slab of time" not in found


def test_the_summary_counts(model):
    good = [v for v in found_in(model).values() if v.grade == "good"]
    assert summary(good) == f"All {len(good)} checks are good."
    poor = replace(good[0], grade="poor")
    assert summary([*good[1:], poor]).startswith(f"Of {len(good)} checks, 1 is poor")


def test_numbers_as_people_write_them():
    assert [percent(v) for v in (0, 0.0002, 0.0123, 0.5)] == [
        "0\xa0%", "less than 0.1\xa0%", "1.2\xa0%", "50\xa0%"
    ]  # fmt: skip
    assert round_number(123456) == "123\u202f000"
    assert round_number(3.14159) == "3.1"
    assert whole_number(123456.4) == "123\u202f456"


# Files and commands ---------------------------------------------------------------------------


def test_a_report_is_written_whole_or_not_at_all(model, tmp_path):
    path = tmp_path / "report.html"
    model.report(path)
    assert path.read_text("utf-8") == report(model).html()
    with pytest.raises(InputError, match="already exists"):
        model.report(path)
    model.report(path, force=True)
    with pytest.raises(InputError, match=r"use a \.html name"):
        write_report(model, tmp_path / "report.pdf")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_the_command_writes_the_page(model, tmp_path, capsys):
    model.save(tmp_path / "m.privtraj")
    out = tmp_path / "report.html"
    assert cli.main(["report", str(tmp_path / "m.privtraj"), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"open {out} in a browser" in said
    assert "<h1>" in out.read_text("utf-8")
    assert (
        cli.main(["report", str(tmp_path / "m.privtraj"), "-o", str(out), "--json", "--force"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["out"] == str(out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--out is needed"),
        (["-o", "report.txt"], "must end in .html"),
        (["-o", "nowhere/report.html"], "there is no directory"),
        (["-o", "taken.html"], "already exists"),
    ],
)
def test_the_command_refuses_in_one_sentence(model, tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    model.save("m.privtraj")
    (tmp_path / "taken.html").write_text("mine")
    assert cli.main(["report", "m.privtraj", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert (tmp_path / "taken.html").read_text() == "mine"


def test_a_seeded_model_is_noted_on_the_command_line(made_model, tmp_path, capsys):
    made_model(private=False).save(tmp_path / "m.privtraj", not_private=True)
    assert cli.main(["report", str(tmp_path / "m.privtraj"), "-o", str(tmp_path / "r.html")]) == 0
    assert "NOT PRIVATE" in capsys.readouterr().err


# The evaluation's page ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(model, tmp_path_factory):
    """What `privtraj evaluate --report` writes, and what it says."""
    folder = tmp_path_factory.mktemp("compared")
    rng = np.random.default_rng(5)
    model.save(folder / "m.privtraj")
    n = 1234
    columns = {
        "age": rng.choice(model.numeric_times[:-1], n),  # nobody at the last time
        "height": rng.uniform(30, 70, n),
        "weight": rng.uniform(30, 70, n),
    }
    export_tables.write_table(pa.table(columns), folder / "t.csv")
    words = ["evaluate", str(folder / "m.privtraj"), str(folder / "t.csv"), "--n", "40"]
    code = cli.main([*words, "--report", str(folder / "c.html"), "--json"])
    return code, (folder / "c.html").read_text("utf-8"), words, folder


def test_the_comparison_says_on_top_that_it_must_not_leave(compared):
    code, html, *_ = compared
    assert code == 0
    reader = _Reader(html)
    assert reader.text.index("Not for release") < reader.text.index("Against the raw data")
    assert "it must not leave the room" in reader.text
    assert "Not for release" in unescape(re.search("<title>(.*?)</title>", html).group(1))
    assert len(html.encode()) < LARGEST


def test_the_comparison_has_scores_with_floor_ceiling_and_verdict(compared):
    text = _Reader(compared[1]).text
    for word in ("W2", "Floor", "Ceiling", "Copies of records", "Worth", "look closer"):
        assert word in text


def test_counts_are_printed_to_the_last_digit(compared):
    text = _Reader(compared[1]).text
    assert "Records 1 234" in text
    assert "People 1 234" in text


def test_the_comparison_shows_both_kinds_of_people(compared, model):
    data = data_of(compared[1])
    counts = data["real"]["counts"]
    assert counts[-1] == 0
    assert sum(counts) == 1234
    points = unpacked(data["real"]["points"], -1)
    assert len(points) == 2 * sum(counts)
    first = points[: 2 * counts[0]].reshape(2, -1)
    assert 0.3 <= first.min() <= first.max() <= 0.7
    assert 'class="real-line"' in compared[1]


def test_the_report_itself_never_shows_raw_records(page):
    assert "real" not in data_of(page[0])
    assert 'class="real-line"' not in page[0]


def test_the_comparison_refuses_what_it_cannot_write(compared, capsys):
    _, _, words, folder = compared
    assert cli.main([*words, "--report", str(folder / "c.html")]) == 2
    assert "already exists" in capsys.readouterr().err
    assert cli.main([*words, "--report", str(folder / "c.txt")]) == 2
    assert "must end in .html" in capsys.readouterr().err


def test_assets_are_inside_the_package():
    assert asset("page.js").strip().startswith('"use strict"')
    assert "</script" not in asset("page.js")
    assert "</style" not in asset("page.css")


def test_the_page_says_whether_persistence_was_measured(made_model):
    assumed, measured = made_model(), made_model(persistence={"lags": []})
    assert "is an assumption" in dict(sections.settings(assumed)["made"])["how people move"]
    said = dict(sections.settings(measured)["made"])["how people move"]
    assert "was measured on people with several records" in said
