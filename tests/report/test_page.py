"""The report as a file: what it promises, what it never says, how large it is."""

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from report_pages import NASTY
from scipy.stats import norm

from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.motion.reference import Inertia
from privtraj.privacy.certificate import (
    BY_PERSON,
    CHECKED,
    EVERY_ROW,
    MOST_RECORDS,
    PUBLIC_COUNTS,
    STATED,
    certify,
)
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger, calibrate_gaussian
from privtraj.report.page import (
    as_script_data,
    asset,
    budget,
    declared,
    render,
    report,
    settings,
    write_report,
)

LARGEST = 3_000_000


class Read(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, page):
        super().__init__()
        self.html = page if isinstance(page, str) else page.html()
        self.tags, self.attributes, self.pieces, self.inside = [], [], [], []
        self.feed(self.html)
        self.text = " ".join(" ".join(self.pieces).split())

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
            self.pieces.append(data)

    @property
    def data(self):
        found = re.search(r'id="data">(.*?)</script>', self.html, re.DOTALL)
        return json.loads(found.group(1))


@pytest.fixture(scope="module")
def model(reports):
    return reports("plain")[0]


@pytest.fixture(scope="module")
def page(reports):
    return Read(reports("plain")[1])


# The first screen -----------------------------------------------------------------------------
# What the numbers are is computed here again: of one randomised response, which is the worst that
# an epsilon allows, an attacker is right with chance e^epsilon / (1 + e^epsilon); of Gaussian sums
# of noise z with chance Phi(1 / (2 z)); at a given delta these have the epsilon that is stated.

PEOPLE = 25_000  # of the models made here: enough for the least epsilon
WORDS = {  # what each word claims of the chance of being right
    "hardly shows": (0.5, 0.55),
    "shows faintly at most": (0.55, 0.75),
    "may show": (0.75, 0.9),
    "may show clearly": (0.9, 0.99),
    "may be plain to see": (0.99, 1.0),
}
CASES = {
    "epsilon 0.1": (0.1, 1e-6, "counts"),
    "epsilon 1": (1.0, 1e-6, "counts"),
    "epsilon 8": (8.0, 1e-6, "counts"),
    "epsilon 50": (50.0, 1e-6, "counts"),
    "pure": (1.0, 0.0, "counts"),
    "delta 0.5": (1.0, 0.5, "counts"),
    "small epsilon, delta 0.5": (0.1, 0.5, "sums"),
    "sums, epsilon 8": (8.0, 1e-6, "sums"),
}


def ledger_of(epsilon, delta, kind, adjacency="add-remove"):
    """A budget that one release spends, and the chance of being right that it leaves."""
    ledger = Ledger(epsilon, delta, adjacency)
    if kind == "counts":  # delta is not used by them: what it stands for is the promise
        ledger.spend(LaplaceCounts(epsilon, "people per cell"))
        return ledger, 1 / (1 + math.exp(-epsilon))
    mu = calibrate_gaussian(epsilon, delta, adjacency)
    ledger.spend(GaussianSum(1 / mu, "clipped sums of a step"))
    return ledger, float(norm.cdf(mu / 2))


@pytest.fixture
def first_screen(made_model):
    """Function: ledger -> the certificate, and the text above everything and of the guarantee."""

    def make(ledger, private=True, **public):
        public = {MOST_RECORDS: 1, **public}
        model = replace(
            made_model(people_per_time=[PEOPLE / 5] * 5),
            certificate=certify(ledger, public_inputs=public, private_noise=private),
        ).sealed()
        html = report(model).html()
        start = html.index('<section id="guarantee"')
        top = html[html.index("<body>") : html.index("<main")]
        screen = Read(top + html[start : html.index("</section>", start)])
        return model.certificate, screen.text.replace("\xa0", " ")

    return make


def number(pattern, text):
    return float(re.search(pattern, text)[1].replace(",", ""))


@pytest.mark.parametrize("case", CASES)
def test_every_claim_is_that_of_the_numbers(first_screen, case):
    epsilon, delta, kind = CASES[case]
    ledger, right = ledger_of(epsilon, delta, kind)
    certificate, text = first_screen(ledger)
    stated = certificate.epsilon
    (said,) = re.findall(
        r"Whether any one person is in the data (.*?) in what was released\.", text
    )
    low, high = WORDS[said]
    assert low - 1e-9 <= right <= high + 1e-9
    for pattern in (
        r"about whether a given person is in the data in at most ([\d.]+) % of cases",
        r"Best attacker is right, at most ([\d.]+) %",
    ):
        assert right <= number(pattern, text) / 100 + 1e-9 <= right + 0.0011

    # what epsilon and delta are
    assert stated <= number(r"epsilon = ([\d.]+)", text) <= 1.001 * stated
    factor = re.search(r"by a factor of at most (\d[\d.,]*?|10 to the power of \d+)[,.] ", text)[1]
    power = re.fullmatch(r"10 to the power of (\d+)", factor)
    most = 10.0 ** int(power[1]) if power else float(factor.replace(",", ""))
    assert math.exp(stated) <= most * (1 + 1e-9) <= 10 * math.exp(stated) * 1.1
    chance = re.search(r"plus a chance of (\S+%|1 in [\d,]*\d)", text)
    assert bool(chance) == (delta > 0)
    if chance:
        said = chance[1]
        value = (
            float(said[:-1]) / 100 if said.endswith("%") else 1 / float(said[5:].replace(",", ""))
        )
        assert delta <= value * (1 + 1e-9) <= 1.1 * delta

    # the table of false alarms: no attack on one person finds more than e^epsilon a + delta
    rates = re.findall(r"([\d.]+) % [^%]*?([\d.]+) %", text[text.index("False alarms") :])
    assert [float(alarm) for alarm, _ in rates] == [0.1, 1, 10]
    highest = certificate.attacker["true_positive_rate"].values()
    for (alarm, found), least in zip(rates, highest, strict=True):
        assert least <= float(found) / 100 + 1e-9
        assert least <= math.exp(stated) * float(alarm) / 100 + delta + 1e-9

    # warnings, checks that fail, and nothing that only a small epsilon makes true
    weak_epsilon, weak_delta = epsilon > 8, delta * PEOPLE > 0.1
    assert ("Weak guarantee" in text) == (weak_epsilon or weak_delta)
    assert ("is above 8" in text) == weak_epsilon
    assert ("is large for about 25,000 people" in text) == weak_delta
    good, all_of_them = map(int, re.search(r"Checks that are good (\d+) of (\d+)", text).groups())
    assert (good == all_of_them) == (right <= 0.75 and not weak_epsilon and not weak_delta)
    for word in ("almost the same", "do not exist", "private model", "protected", "safe "):
        assert word not in text.lower(), word


def test_other_guarantees_have_words_of_their_own(first_screen):
    ledger, _ = ledger_of(1.0, 1e-6, "sums", "replace-one")
    _, text = first_screen(ledger, **{PUBLIC_COUNTS: [520] * 5, "bin times": ["0"] * 5})
    assert "What any one person's records say, beyond their time bins, " in text
    assert "Whether any one person is in the data" not in text
    assert "Not protected whether one person is in the data, and in which time bins" in text
    plain = first_screen(ledger)[1]
    assert "What any one person's records say " in plain
    assert "beyond their time bins" not in plain


def test_without_private_noise_there_is_no_guarantee_at_any_epsilon(first_screen):
    _, text = first_screen(ledger_of(0.1, 1e-6, "counts")[0], private=False)
    assert text.index("NOT PRIVATE: do not release") < text.index("Synthetic people")
    assert "There is no guarantee" in text
    assert "Nothing limits what an attacker may find out" in text
    assert "Guarantee none" in text
    assert not any(word in text for word in WORDS)


@pytest.mark.parametrize(
    ("public", "said"),
    [
        ({STATED: [EVERY_ROW]}, "at most one record: stated by the steward, not checked"),
        ({CHECKED: [BY_PERSON]}, "at most one record: checked, by the column that says whose"),
        ({MOST_RECORDS: 3, CHECKED: [BY_PERSON]}, "at most 3 records, each in a time bin of"),
    ],
)
def test_who_says_how_many_records_a_person_has(first_screen, public, said):
    assert said in first_screen(ledger_of(1.0, 1e-6, "counts")[0], **public)[1]


# One file, alone ------------------------------------------------------------------------------


def test_the_page_is_the_same_every_time_and_never_shows_raw_records(model, page):
    assert report(model).html() == page.html
    assert "real" not in page.data


def test_nothing_is_fetched_from_anywhere(page):
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.html)
    for tag, attributes in page.attributes:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name, "#")
            assert value.startswith(("#", "data:,")), (tag, name, value)
    assert not any("style" in attributes for _, attributes in page.attributes)


def test_the_policy_names_the_very_script_and_style_of_the_page(page):
    policy = next(a["content"] for t, a in page.attributes if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        text = re.search(rf"<{kind}>(.*?)</{kind}>", page.html, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "</script" not in "".join(asset(name) for name in ("page.js", "charts.js", "draw.js"))


def test_names_and_values_stay_text(reports):
    one, letters = Read(reports("one")[1]), Read(reports("letters")[1])
    assert NASTY in one.text
    assert one.data["features"] == [NASTY]
    for read in (one, letters):
        assert read.tags.count("script") == 2
        assert "b" not in read.tags[read.tags.index("main") :] or '<b>"x' not in read.html
        assert not any("onload" in attributes for _, attributes in read.attributes)
        assert len(read.html) < LARGEST
    assert letters.data["features"] == []
    assert len(letters.data["categories"][0]["labels"]) == 4
    assert "x" * 100 not in letters.text


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
    read = Read(report(replace(strange, certificate=certificate)))
    assert read.tags.count("script") == 2
    assert read.text.count(NASTY) >= 6


def test_landmarks_headings_and_labels(page):
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert page.tags.count(tag) == 1, tag
    ids = {a["id"] for _, a in page.attributes if "id" in a}
    for _, attributes in page.attributes:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set(attributes.get(name, "").split()) <= ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids
    pictures = [a for _, a in page.attributes if a.get("role") == "img"]
    assert all(a["aria-label"] for a in pictures)
    hidden = [a for t, a in page.attributes if t == "svg" and a.get("role") != "img"]
    assert all(a.get("aria-hidden") == "true" for a in hidden)
    for heading in ("Where the budget went", "How well it went", "Settings", "How to cite"):
        assert heading in page.text


def test_a_template_knows_every_name_it_prints():
    with pytest.raises(UndefinedError, match="is undefined"):
        render("report.html")


def test_templates_are_not_loaded_before_something_is_shown():
    code = "import sys; from privtraj.report import page; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("features", "times"), [(1, 2), (2, 300), (50, 40)])
def test_size_stays_below_three_megabytes(made_model, features, times):
    names = tuple(f"a feature of a longer name {k}" for k in range(features))
    html = report(made_model(features=names, times=times, particles=4)).html()
    assert len(html.encode()) < (LARGEST if features > 2 else 1_000_000)


# Sections --------------------------------------------------------------------------------------


def test_budget_parts_add_up_and_leave_the_rest(model, page):
    *parts, left = budget(model.certificate)
    assert [part["what"] for part in parts] == ["people per time", "people per cell"]
    assert sum(part["epsilon"] for part in parts) == pytest.approx(model.certificate.epsilon)
    assert left["epsilon"] == 1 - model.certificate.epsilon
    assert sum(part["share"] for part in (*parts, left)) == pytest.approx(1)
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="50"', page.html)]
    assert sum(widths) == pytest.approx(1000, abs=2 * len(widths) + 1)
    bare = replace(model, certificate=replace(model.certificate, ledger=()))
    assert "Nothing was paid for" in report(bare).html()


def test_dates_are_shown_as_dates(reports):
    assert "2024-03-01, 2024-03-02" in Read(reports("map")[1]).text


def test_what_was_declared_is_listed(reports):
    model, page = reports("mixed")
    rows = {row["name"]: row for row in declared(model.columns)}
    assert rows["sex"]["listed"] == ["F", "M"]
    assert rows["sex"]["more"] == "never changes"
    assert rows["code"]["more"] == "may be missing, any other value counts as 'other'"
    assert (rows["kids"]["domain"], rows["smoker"]["listed"]) == ("0 to 10", ["no", "yes"])
    assert "1950-01-01 to 2010-01-01" in Read(page).text


def test_the_page_says_whether_persistence_was_measured(made_model):
    assumed, measured = made_model(), made_model(persistence={"lags": []})
    forgetting = replace(measured, reference=Inertia(memory=0.5, share=0.4))
    for model in (assumed, measured):  # nobody asked, or found that nobody forgets
        assert "is an assumption" in dict(settings(model)["made"])["how people move"]
    assert "was measured" in dict(settings(forgetting)["made"])["how people move"]


# Files and commands ---------------------------------------------------------------------------


def test_a_report_is_written_whole_or_not_at_all(model, page, tmp_path):
    path = tmp_path / "report.html"
    model.report(path)
    assert path.read_text("utf-8") == page.html
    with pytest.raises(InputError, match="already exists"):
        model.report(path)
    with pytest.raises(InputError, match=r"use a \.html name"):
        write_report(model, tmp_path / "report.pdf")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_the_command_writes_the_page(model, tmp_path, capsys):
    model.save(tmp_path / "m.privtraj")
    out = tmp_path / "report.html"
    assert cli.main(["report", str(tmp_path / "m.privtraj"), "-o", str(out)]) == 0
    assert f"open {out} in a browser" in capsys.readouterr().out
    assert "<h1>" in out.read_text("utf-8")
    for words, sentence in (
        ([], "--out is needed"),
        (["-o", "report.txt"], "must end in .html"),
        (["-o", "nowhere/report.html"], "there is no directory"),
        (["-o", str(out)], "already exists"),
    ):
        assert cli.main(["report", str(tmp_path / "m.privtraj"), *words]) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert said.count("\n") == 1
