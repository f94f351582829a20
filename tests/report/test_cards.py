"""What a notebook shows: nothing that is not public or released, and every text escaped."""

import re
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

import privtraj as pt
from mixed_clinic import COLUMNS, mixed_records, mixed_table

NASTY = """<b>"x"&'</b>"""


class Tags(HTMLParser):
    """Which tags are open, and how often each was opened."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen = [], Counter()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.seen[tag] += 1
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def snapshots():
    rng = np.random.default_rng(0)
    return pt.Snapshots.from_arrays(
        rng.uniform(0, 3, 900),
        rng.normal(0.123456, 0.1, (900, 2)),
        features=[NASTY, "plain"],
        bounds=[(-1, 2), (-1, 2)],
        time_range=(0, 3),
        bins=4,
    )


@pytest.fixture(scope="module")
def model(snapshots):
    return pt.TrajectorySynthesizer(epsilon=1.0, delta=1e-5).fit(snapshots)


def test_every_card_is_whole_html_in_which_names_are_text(snapshots, model):
    for thing in (snapshots, model, model.certificate, model.sample(3)):
        tags = Tags(thing._repr_html_())
        assert tags.open == []
        assert tags.seen["b"] == 1  # the title; the feature's name would be another


def test_snapshots_show_what_is_public_alone(snapshots):
    html = snapshots._repr_html_()
    numbers = set(re.findall(r"(?<![\w#.;:-])-?\d+(?:\.\d+)?", re.sub(r"<[^>]*>", " ", html)))
    assert numbers <= {"4", "0.0", "3.0", "-1", "2", "1"}


def test_a_model_has_its_guarantee_and_its_features(model):
    html = model._repr_html_()
    assert "2: " in html
    assert "epsilon 1, delta 1e-5, add-remove" in html
    assert "NOT PRIVATE" not in html


def test_what_is_not_private_says_so_first(snapshots):
    seeded = pt.TrajectorySynthesizer(epsilon=1.0, delta=1e-5, seed=0).fit(snapshots)
    for thing in (seeded, seeded.certificate):
        assert "NOT PRIVATE: the noise came from a seed" in thing._repr_html_()
    assert "epsilon 1," not in seeded._repr_html_()


def test_paths_show_a_few_rows(model):
    html = model.sample(20, [0.5, 1.5])._repr_html_()
    assert "20 synthetic people at 2 times, 40 rows" in html
    assert html.count("<tr>") == 7


def test_columns_of_every_kind_have_their_words(reports):
    model = reports("mixed")[0]
    assert "8: hb, weight, sex, stage, smoker, kids, born, code" in model._repr_html_()
    rows = model.sample(3, seed=0)._repr_html_()
    assert any(f">{label}<" in rows for label in ("F", "M"))
    public = pt.Snapshots.from_table(
        mixed_table(mixed_records(30)),
        time="year",
        time_range=(0, 2),
        columns=COLUMNS,
        person="who",
        records_per_person=5,
    )._repr_html_()
    assert "category: F, M, never changes" in public
    assert "E05 and 14 more, may be missing" in public
    assert "number: 4 to 16, may be missing" in public
    assert "hb missing" not in public + rows
