"""The history of a model that grew by batches: what is shown, and what is called a change."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from report_pages import NASTY

import privtraj as pt
from privtraj.privacy.certificate import BATCHES, Certificate, batch
from privtraj.report import history as module
from privtraj.report.history import FALSE_ALARMS, history
from privtraj.report.page import report


def month(k, seed, drift=0.0):
    """300 people of month k: one number that drifts, one at rest."""
    rng = np.random.default_rng([seed, k + 1])
    times = k + rng.random(300)
    middle = np.stack([0.3 + drift * times, np.full(300, 0.5)], axis=1)
    values = np.clip(middle + 0.1 * rng.standard_normal((300, 2)), 0, 1)
    bounds = {NASTY: (0, 1), "still": (0, 1)}
    return pt.Snapshots.from_arrays(times, values, bounds=bounds, time_range=(k, k + 1))


def grown(seed, drift=0.0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=seed).fit(month(0, seed, drift))
    for k in (1, 2):
        model = model.extend(month(k, seed, drift), new_people=True, seed=100 * seed + k)
    return model


@pytest.fixture(scope="module")
def drifting():
    return grown(1, 0.06)


def test_what_drifts_is_named_and_what_rests_is_not(drifting):
    made = history(drifting)
    drift, rest = made["series"]
    assert " since batch " in drift["changed"]
    assert "changed" not in rest
    assert (made["periods"], made["compared"]) == (("1", "2", "3"), 2)
    asked = drifting.ask("mean still by 3 periods").rows
    for row, same in zip(rest["rows"], asked, strict=True):
        assert [row[key] for key in ("people", "value", "low", "high")] == pytest.approx(
            [same[key] for key in ("people", "value", "low", "high")]
        )


def test_the_page_has_a_history_if_there_is_one(drifting, reports, without_refits):
    page = report(drifting).html()
    section = page[page.index('<section id="history"') :].partition("</section>")[0]
    assert "Changed by more than noise explains: mean &lt;/script&gt;" in section
    assert NASTY not in section
    assert "what the dearest of them costs, and not the sum" in section
    assert "With private noise the guarantee would be epsilon = 1" in section
    for one in drifting.certificate.public_inputs[BATCHES]:
        assert f'<td class="n">{one["counted"]:.0f}</td>' in section
        assert one["counted"] == pytest.approx(300, abs=90)
    assert section.count("<svg") == 2
    assert section.count('class="sure"') == 6
    assert 'href="#history"' in page
    assert "history" not in reports("plain")[1].html()


def batched(made_model, *spans, **more):
    """A model that says it grew by batches of these times."""
    model = made_model(**more)
    stated = [batch(tuple(map(str, span)), (1.0, 0.0), 1) for span in spans]
    public = {**model.certificate.public_inputs, BATCHES: stated}
    return replace(model, certificate=replace(model.certificate, public_inputs=public))


def test_a_batch_at_known_times_has_none_of_its_own(made_model):
    model = batched(made_model, (0, 20), (5, 10))
    model.certificate.public_inputs[BATCHES][0].pop("counted")  # as files from before it was kept
    assert Certificate.from_dict(model.certificate.to_dict()) == model.certificate
    assert "late" in str(model.certificate)
    made = history(model)
    assert [one["late"] for one in made["batches"]] == [False, True]
    assert (made["periods"], made["series"], made["compared"]) == (("1",), [], 0)
    assert [one["counted"] for one in made["batches"]] == [None, None]


def test_times_belong_to_the_batch_that_added_them(made_model, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "_answers", lambda model, when, edges: seen.append(when) or [])
    history(batched(made_model, (0, 4), (5, 10), (6, 8), (10, 20)))
    assert seen[0].labels == ("1", "2", "4")
    times = np.array([[0.0], [4.0], [5.0], [10.0], [11.0], [20.0]])
    assert seen[0].of(times).tolist() == [0, 0, 1, 1, 2, 2]
    history(batched(made_model, *((k / 10, k / 10 + 0.1) for k in range(200))))
    assert len(seen[1].labels) == 40
    assert seen[1].labels[-1] == "200"


def test_noise_alone_is_named_as_often_as_is_said(made_model, monkeypatch):
    """Of numbers with independent normal errors whose 90 % intervals hold."""
    model, rng = batched(made_model, (0, 5), (5, 10), (10, 15), (15, 20)), np.random.default_rng(0)

    def noise(*_):
        values = rng.standard_normal((5, 4))
        rows = [[{"value": x, "low": x - 1.645, "high": x + 1.645} for x in one] for one in values]
        return [{"name": "", "rows": one, "write": str} for one in rows]

    monkeypatch.setattr(module, "_answers", noise)
    named = sum(any("changed" in one for one in history(model)["series"]) for _ in range(1500))
    assert 0.6 * FALSE_ALARMS < named / 1500 < 1.3 * FALSE_ALARMS
    lost = {"value": None, "low": None, "high": None}
    monkeypatch.setattr(module, "_answers", lambda *_: [{"rows": [lost] * 4}])
    assert history(model)["compared"] == 0


@pytest.mark.thorough
def test_people_at_rest_are_hardly_ever_named():
    """At 5 %, two or more of eight reports would name something in 6 % of cases."""
    named = [any("changed" in one for one in history(grown(k))["series"]) for k in range(2, 10)]
    assert sum(named) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "theme"), [(400, "dark"), (1400, "light")])
def test_a_history_fits_its_window(drifting, opened, without_refits, width, theme):
    page = opened(report(drifting), width=width, theme=theme)
    assert page.complaints == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
