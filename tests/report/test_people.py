"""What a page shows of people, as data: frames, bands, densities, maps by name, categories."""

import base64
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from mixed_clinic import mixed_model, mixed_records
from privtraj import metrics
from privtraj.report.labels import (
    COLOURS,
    LONGEST_LABEL,
    Drawn,
    shares_of,
    time_labels,
)
from privtraj.report.people import (
    DENSITY_BINS,
    NUMBERS,
    axis_ranges,
    bands,
    densities,
    frame_times,
    maps,
    packed,
    page_sampler,
    sampled,
)


def unpacked(text, shape):
    return np.frombuffer(base64.b64decode(text), "<u2").reshape(shape) / 65535


def test_sampled_people_survive_packing(reports):
    model, page = reports("plain")
    shown = sampled(model)
    n, q, d = shown.people.shape
    back = unpacked(page.data["paths"], (d, q, n))
    assert np.abs(back.transpose(2, 1, 0) - shown.people).max() < 1 / 65535
    assert page.data["people"] == n
    assert len(page.data["times"]) == q


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


def test_times_are_written_with_what_tells_them_apart():
    assert time_labels(np.array([0.0, 20 / 11, 20.0]), False) == ["0", "1.82", "20"]
    assert time_labels(np.array([2021.25, 2024.0]), False) == ["2021.25", "2024"]
    days = 1709251200.0 + 86400 * np.arange(5.0)
    assert time_labels(days, True)[:2] == ["2024-03-01", "2024-03-02"]
    halves = 1709251200.0 + 43200 * np.arange(9.0)
    assert time_labels(halves, True)[:2] == ["2024-03-01 00:00", "2024-03-01 12:00"]


def test_a_large_model_is_thinned(made_model):
    from dataclasses import replace

    rng = np.random.default_rng(0)
    model = replace(
        made_model(features=[f"f{k}" for k in range(12)], times=10),
        particles=rng.uniform(0.2, 0.8, (10, 6000, 12)),
        weights=np.full((10, 6000), 1 / 6000),
        curves=True,
    ).with_reference("inertia")
    sampler = page_sampler(model, 0)
    assert sampler["curves"] == NUMBERS // (10 * 12)
    assert not sampler["whole"]


# Categories ------------------------------------------------------------------------------------


def test_few_values_are_drawn_in_their_order():
    drawn = Drawn.of(pt.Ordered(["low", "mid", "high"]), np.array([0.1, 0.2, 0.7]))
    assert drawn.labels == ("low", "mid", "high")
    assert drawn.shades == ("1", "2", "3")
    assert drawn.colours == list(COLOURS[:3])
    assert drawn.group.tolist() == [0, 1, 2]


def test_where_most_people_would_be_others_values_are_merged():
    codes = [f"{area}{k:03}" for area in range(10, 16) for k in range(50)]
    shares = np.full(300, 1 / 300)
    assert Drawn.of(pt.Category(codes), shares).labels == tuple(f"{k}0…" for k in range(10, 16))
    steps = Drawn.of(pt.Ordered([f"s{k}" for k in range(300)]), shares)
    assert (steps.labels[0], steps.labels[-1]) == ("s0 to s42", "s257 to s299")
    assert np.ptp(np.bincount(steps.group)) <= 1  # neighbours, about as many people in each
    words = Drawn.of(pt.Category([f"{chr(200 + k)} word" for k in range(100)]), shares[:100])
    assert words.labels[-1] == "93 others"  # which have nothing in common


def test_a_value_that_has_no_colour_left_keeps_its_name():
    drawn = Drawn.of(pt.Category([f"c{k}" for k in range(8)]), np.full(8, 1 / 8))
    assert drawn.labels == tuple(f"c{k}" for k in range(8))
    assert drawn.shades[-1] == "others"


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


def test_who_is_absent_has_no_share():
    levels = np.array([[0, -1], [1, 1], [1, 0]])
    np.testing.assert_allclose(shares_of(levels, 2), [[1 / 3, 2 / 3], [0.5, 0.5]])
    drawn = Drawn.of(pt.Category(["a", "b"]), np.ones(2) / 2)
    np.testing.assert_allclose(drawn.flows(levels)[0], [[0, 0], [0.5, 0.5]])


@pytest.fixture(scope="module")
def stage(reports):
    return next(one for one in reports("mixed")[1].data["categories"] if one["name"] == "stage")


def test_shares_on_the_page_are_those_of_the_model(stage, reports):
    model = reports("mixed")[0]
    assert stage["labels"] == ("I", "II", "III", "IV")
    particles = metrics.columns.Axes.of(model.columns).level_of(model.particles)[..., 3]
    shares = np.array(stage["shares"])
    for end in (0, -1):
        truth = np.bincount(particles[end], minlength=4) / 120
        np.testing.assert_allclose(shares[end], truth, atol=0.03)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-4)


def test_flows_on_the_page_say_who_changes(stage, reports):
    moves, shares, flows = (np.array(stage[key]) for key in ("moves", "shares", "flows"))
    np.testing.assert_allclose(moves.sum(axis=1), shares[0], atol=1e-4)
    np.testing.assert_allclose(flows[0].sum(axis=0), shares[stage["times"]["at"][1]], atol=1e-4)
    assert 0.3 < np.trace(moves) < 0.9
    model = reports("mixed")[0]
    paths = model.sample(4000, model.times, seed=2)
    level = paths.values[:, :, paths.features.index("stage")]
    changes = np.count_nonzero(np.diff(level, axis=1), axis=1).mean()
    assert stage["changes"] == pytest.approx(changes, abs=0.05)


def test_fixed_columns_and_gaps_are_told_apart(reports):
    categories = {one["name"]: one for one in reports("mixed")[1].data["categories"]}
    assert [one["fixed"] for one in categories.values()] == [True, False, False, False]
    assert categories["sex"]["labels"] == ("F", "M")
    words, *others = reports("mixed")[1].data["lacking"]
    ends = [float(number) / 100 for number in re.findall(r"[\d.]+", words)]
    assert words.startswith("missing in ")
    assert others == ["", "", ""]
    assert (np.abs(np.array(ends) - 0.125) < 0.08).all()
    assert reports("plain")[1].data["categories"] == []


def test_answers_are_those_of_ask(reports):
    model, page = reports("mixed")
    told = page.data["answers"]
    names, what = [one["name"] for one in told["by"]], [words for words, _ in told["what"]]
    assert names[0] == ""
    assert page.data["told"] == (names.index("smoker"), what.index("mean hb"))
    assert what[:4] == ["mean hb", "median hb", "p90 hb", "mean weight"]
    for words, name in [("p90 weight", ""), ("mean hb", "smoker"), ("count", "stage")]:
        rows = told["by"][names.index(name)]["rows"][what.index(words)]
        asked = f"{words} by {told['period']}" + f", {name}" * bool(name)
        found = [[row[end] for end in ("value", "low", "high")] for row in model.ask(asked).rows]
        assert [cell for row in rows for cell in row] == found
    for one in told["by"][1:]:
        shares = np.array(one["rows"][what.index("share")])[..., 0].astype(float)
        np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-3)
    own = np.frombuffer(base64.b64decode(page.data["categories"][0]["people"]), "u1")
    assert len(own) == page.data["people"]
    assert abs(own.mean() - page.data["categories"][0]["shares"][0][1]) < 0.1


def test_numbers_alone_are_on_the_stage_and_whole(reports):
    model, page = reports("mixed")
    assert page.data["features"] == ("hb", "weight", "kids", "born")
    assert page.data["dates"] == [False, False, False, True]
    shown = sampled(model)
    assert np.isfinite(shown.people).all()
    assert 0.05 < np.isnan(shown.values[..., 0]).mean() < 0.2


def test_bands_are_of_those_who_have_the_number(reports):
    many = reports("mixed")[0].sample(500, seed=0).values
    found = bands(many[..., [0]])
    np.testing.assert_allclose(found[0, 2], np.nanmedian(many[..., 0], axis=0))
    assert np.isnan(bands(np.full((3, 2, 1), np.nan))).all()


def test_who_never_has_a_number_is_drawn_last():
    columns = {"hb": pt.Number(4, 16, missing=True), "weight": pt.Number(30, 150)}
    values = mixed_records(200, 2, columns)
    values[::3, :, 0] = np.nan
    values[np.arange(200) % 3 > 0, :, 0] = 10.0
    model = mixed_model(columns, values=values)
    people = sampled(model).people[..., 0]
    assert np.isfinite(people).all()
    assert len(np.unique(people, axis=0)) == len(people)  # whose hb was filled in were all alike
    assert 0.25 < np.isnan(sampled(model).values[..., 0]).mean() < 0.42
