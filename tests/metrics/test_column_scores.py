"""Scores of categories, pairs, groups and gaps, against definitions that are written out here."""

import json

import numpy as np
import pytest
from scipy.stats import ks_2samp

import privtraj as pt
from mixed_clinic import COLUMNS, TIMES, mixed_model, mixed_records, mixed_table
from privtraj import metrics
from privtraj.base.errors import InputError
from privtraj.columns.declared import declared_columns
from privtraj.metrics.columns import CELLS, cells_of, numbers_alone, one_hot, unit_points
from privtraj.metrics.records import read_records

SMALL = declared_columns(
    None,
    None,
    columns={"y": pt.Number(0, 10, missing=True), "z": (0, 1), "sex": ["F", "M"], "c": list("abc")},
)


def points(y, z, sex, c):
    """Points of SMALL in the unit cube."""
    values = np.column_stack([np.broadcast_to(v, np.shape(sex)) for v in (y, z, sex, c)])
    return unit_points(values.astype(float), SMALL)


def crowd(n, seed):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    y = np.where(rng.random(n) < 0.2, np.nan, rng.normal(4 + sex, 1.0))
    return points(y, rng.random(n), sex, rng.choice(3, n, p=[0.6, 0.3, 0.1]))


# Points ----------------------------------------------------------------------------------------


def test_a_missing_number_is_in_the_middle_and_its_flag_says_so():
    unit = points([2.0, np.nan], [0.1, 0.2], [0, 1], [0, 2])
    np.testing.assert_allclose(unit[0], [0.2, 0.1, 0.25, 1 / 6, 0.25])
    np.testing.assert_allclose(unit[1], [0.5, 0.2, 0.75, 5 / 6, 0.75])
    np.testing.assert_allclose(numbers_alone(unit, SMALL), unit[:, :2])
    cells, sizes = cells_of(unit, SMALL)
    assert sizes.tolist() == [CELLS + 1, CELLS, 2, 3]
    assert cells.tolist() == [[1, 0, 0, 0], [CELLS, 1, 1, 2]]


def test_two_values_of_a_category_are_at_distance_one_whichever_they_are():
    unit = points([1.0] * 4, [0.5] * 4, [0, 1, 0, 0], [0, 0, 2, 1])
    apart = np.linalg.norm(one_hot(unit, SMALL)[:, None] - one_hot(unit, SMALL)[None], axis=2)
    np.testing.assert_allclose(apart[0], [0, 1, 1, 1])
    np.testing.assert_allclose(apart[2, 3], 1)
    np.testing.assert_allclose(apart[1, 2], np.sqrt(2))


# Columns and pairs -----------------------------------------------------------------------------


def test_errors_of_columns_are_total_variation_and_kolmogorov_smirnov():
    x, y = crowd(400, 0), crowd(300, 1)
    errors = metrics.column_errors(x, y, columns=SMALL)
    there = [side[side[:, 4] < 0.5, 0] for side in (x, y)]
    assert errors[0] == pytest.approx(ks_2samp(*there).statistic)
    assert errors[1] == pytest.approx(ks_2samp(x[:, 1], y[:, 1]).statistic)
    shares = [np.bincount((side[:, 3] * 3).astype(int), minlength=3) / len(side) for side in (x, y)]
    assert errors[3] == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)
    women = [np.mean(side[:, 2] < 0.5) for side in (x, y)]
    assert errors[2] == pytest.approx(abs(women[0] - women[1]))
    gaps = [np.mean(side[:, 4] > 0.5) for side in (x, y)]
    missing = metrics.missing_errors(x, y, columns=SMALL)
    assert missing[0] == pytest.approx(abs(gaps[0] - gaps[1]))
    assert np.isnan(missing[1:]).all()


@pytest.mark.parametrize("turn", [0.0, 7.0, 20.0])
def test_an_angle_is_compared_wherever_its_circle_begins(turn):
    """Kuiper's statistic; morning and evening, whose cosines are the same, differ in all."""
    clock = declared_columns(None, None, columns={"hour": pt.Angle(24.0), "y": (0, 1)})
    rng = np.random.default_rng(0)
    hours = (
        rng.vonmises(0, 2, (2, 200, 1)) * 24 / (2 * np.pi) + np.array([8.0, 11.0])[:, None, None]
    )
    values = np.concatenate([hours + turn, rng.random((2, 200, 1))], axis=2)
    x, y = (unit_points(side, clock) for side in values)
    ours, theirs = (np.sort(np.mod(side[:, 0], 24)) for side in hours)
    at = np.concatenate([ours, theirs])
    gap = (np.searchsorted(ours, at, "right") - np.searchsorted(theirs, at, "right")) / 200
    kuiper = max(gap.max(), 0) + max(-gap.min(), 0)
    assert metrics.column_errors(x, y, columns=clock)[0] == pytest.approx(kuiper, abs=0.006)
    assert np.isnan(metrics.correlation_errors(x, y, columns=clock)).all()
    early, late = (unit_points(np.array([[h, 0.5]] * 9), clock) for h in (6.5, 17.5))
    assert metrics.column_errors(early, late, columns=clock).tolist() == [1.0, 0.0]
    assert metrics.pair_errors(early, late, columns=clock).tolist() == [1.0]


def test_a_column_that_only_one_side_has_is_all_wrong():
    some, none = points([1.0, 2.0], 0.5, [0, 1], 0), points([np.nan] * 2, 0.5, [0, 1], 0)
    assert metrics.column_errors(some, none, columns=SMALL)[0] == 1
    assert metrics.column_errors(none, none, columns=SMALL)[0] == 0


def test_errors_of_pairs_are_those_of_their_tables():
    x, y = crowd(500, 2), crowd(200, 3)
    errors = metrics.pair_errors(x, y, columns=SMALL)
    (a, sizes), (b, _) = cells_of(x, SMALL), cells_of(y, SMALL)
    k = 0
    for i in range(4):
        for j in range(i + 1, 4):
            box = [(0, sizes[i]), (0, sizes[j])]
            tables = [
                np.histogram2d(side[:, i], side[:, j], bins=(sizes[i], sizes[j]), range=box)[0]
                for side in (a, b)
            ]
            apart = np.abs(tables[0] / len(x) - tables[1] / len(y)).sum() / 2
            assert errors[k] == pytest.approx(apart)
            k += 1
    assert len(errors) == k
    assert metrics.pair_tv(x, y, columns=SMALL) == pytest.approx(errors.mean())


def test_a_wrong_coupling_of_right_columns_is_seen_in_pairs_alone():
    sex = np.repeat([0, 1], 50)
    x, y = points(5.0, 0.5, sex, sex), points(5.0, 0.5, sex, 1 - sex)
    assert metrics.column_errors(x, y, columns=SMALL).max() == 0
    errors = metrics.pair_errors(x, y, columns=SMALL)
    assert errors[-1] == 1  # of sex and c
    assert errors[:-1].max() == 0


def test_correlations_are_of_people_who_have_both_numbers():
    x, y = crowd(400, 4), crowd(300, 5)
    x[:, 1] = np.where(x[:, 4] > 0.5, 0.0, 0.8 * x[:, 0] + 0.2 * x[:, 1])
    errors = metrics.correlation_errors(x, y, columns=SMALL)
    r, s = (np.corrcoef(side[side[:, 4] < 0.5, :2].T)[0, 1] for side in (x, y))
    assert errors[0] == pytest.approx(abs(r - s))
    assert np.isnan(errors[1:]).all()
    assert metrics.correlation_error(x, y, columns=SMALL) == pytest.approx(errors[0])
    constant = points(5.0, x[:300, 1], np.tile([0, 1], 150), 0)
    assert metrics.correlation_errors(constant, constant, columns=SMALL)[0] == 0


def test_numbers_within_groups():
    sex = np.repeat([0, 1], 40)
    rng = np.random.default_rng(0)
    z = rng.random(80) / 2
    two = declared_columns(None, None, columns={"z": (0, 1), "sex": ["F", "M"]})

    def cloud(values, who):
        return unit_points(np.column_stack([values, who]).astype(float), two)

    moved = z + 0.3 * (sex == 1)
    assert metrics.group_squared_w2(cloud(moved, sex), cloud(z, sex), columns=two) == pytest.approx(
        0.5 * 0.3**2
    )
    swapped = metrics.group_squared_w2(cloud(moved, 1 - sex), cloud(moved, sex), columns=two)
    assert swapped > 0.05
    assert metrics.squared_wasserstein2(moved, moved) == 0  # which all of them together do not see
    women = cloud(moved, np.zeros(80))  # nobody stands in for men but everybody
    everybody = metrics.squared_wasserstein2(moved, moved[sex == 1])
    only = metrics.squared_wasserstein2(moved, moved[sex == 0])
    found = metrics.group_squared_w2(women, cloud(moved, sex), columns=two)
    assert found == pytest.approx((everybody + only) / 2)
    few = cloud(z, np.arange(80) >= 75)
    assert metrics.group_squared_w2(few, few, columns=two) == 0
    assert np.isnan(metrics.group_squared_w2(few[:5], few[:5], columns=two))


# Along paths -----------------------------------------------------------------------------------

STAGES = declared_columns(
    None,
    None,
    columns={"stage": pt.Ordered(list("abc")), "sex": pt.Category(["F", "M"], fixed=True)},
)


def stages(rows):
    levels = np.array(rows, dtype=float)
    return unit_points(np.stack([levels, np.zeros_like(levels)], axis=2), STAGES)


def test_changes_and_their_tables():
    real = stages([[0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 0, 0], [2, 2, 2, 2]])
    ours = stages([[0, 1, 0, 1], [0, 1, 1, 2], [0, 0, 0, 0], [2, 2, 2, 2]])
    assert metrics.changes(real, columns=STAGES).tolist() == [1, 2, 0, 0]
    assert metrics.change_ratio(ours, real, columns=STAGES) == pytest.approx(5 / 3)
    # one of four people takes another step in each of the three gaps
    assert metrics.change_tv(ours, real, columns=STAGES) == pytest.approx(0.25)
    swapped = stages([[1, 1, 0, 0], [0, 1, 1, 2], [0, 0, 0, 0], [2, 2, 2, 2]])
    assert metrics.change_tv(swapped, real, columns=STAGES) > 0
    fixed = declared_columns(None, None, columns={"sex": pt.Category(["F", "M"], fixed=True)})
    assert np.isnan(metrics.change_ratio(real[..., 1:], real[..., 1:], columns=fixed))
    assert np.isnan(metrics.change_tv(real[..., 1:], real[..., 1:], columns=fixed))


# Tables ----------------------------------------------------------------------------------------


def test_columns_of_numbers_change_nothing():
    rng = np.random.default_rng(0)
    clouds = [[rng.random((30, 2)) for _ in range(2)] for _ in range(3)]
    numbers = declared_columns([(0, 1)] * 2, ["a", "b"])
    plain = metrics.cloud_scores(*clouds[:2], fresh=clouds[2])
    told = metrics.cloud_scores(*clouds[:2], fresh=clouds[2], columns=numbers)
    assert told == plain
    assert "pair_tv" not in {score.name for score in plain}


def test_categories_have_lines_of_their_own_and_distances_are_those_of_numbers():
    x, y, z = crowd(60, 0), crowd(60, 1), crowd(60, 2)
    scores = {s.name: s for s in metrics.cloud_scores([x], [y], fresh=[z], columns=SMALL)}
    assert {"column_error", "pair_tv", "group_squared_w2"} <= scores.keys()
    alone = metrics.cloud_scores([x[:, :2]], [y[:, :2]], fresh=[z[:, :2]])
    w2 = next(score for score in alone if score.name == "w2")
    assert scores["w2"].value == pytest.approx(w2.value)
    assert scores["pair_tv"].value == pytest.approx(metrics.pair_tv(x, y, columns=SMALL))
    assert scores["pair_tv"].ceiling > 2 * scores["pair_tv"].floor
    letters = declared_columns(None, None, columns={"c": list("abc")})
    only = metrics.cloud_scores(*[[side[:, 3:4]] for side in (x, y)], columns=letters, fresh=[
        z[:, 3:4]])  # fmt: skip
    assert [score.name for score in only] == ["column_error"]


def test_columns_that_do_not_fit_are_refused():
    x = crowd(9, 0)
    with pytest.raises(InputError, match="5 columns for points of 2 coordinates"):
        metrics.pair_errors(x[:, :2], x[:, :2], columns=SMALL)
    with pytest.raises(InputError, match="bounds and mixed columns"):
        metrics.cloud_scores([x], [x], bounds=[(0, 1)] * 5, columns=SMALL)


# A model against records -----------------------------------------------------------------------

FEW = {name: COLUMNS[name] for name in ("hb", "weight", "sex", "stage", "born")}


@pytest.fixture(scope="module")
def found():
    model = mixed_model(FEW, people=150)
    return pt.evaluate(model, mixed_table(mixed_records(160, 5, FEW), FEW), person="who", n=80)


def test_records_are_read_in_the_kinds_of_the_model():
    values = mixed_records(40, 5, FEW)
    records = read_records(mixed_table(values, FEW), mixed_model(FEW, people=20))
    declared = declared_columns(None, None, columns=FEW)
    expected = unit_points(values.reshape(-1, values.shape[2]), declared)
    np.testing.assert_allclose(records.points, expected, atol=1e-9)
    assert records.incomplete == 0
    table = mixed_table(values, FEW)
    table["weight"][:3] = np.nan  # which may not be missing
    assert read_records(table, mixed_model(FEW, people=20)).incomplete == 3


def test_an_evaluation_has_scores_of_columns_and_pairs(found):
    columns, pairs = found.columns.columns.set_index("name"), found.columns.pairs
    assert list(columns.index) == list(FEW)
    assert len(pairs) == 10
    assert pairs.total_variation.is_monotonic_decreasing
    summary = found.columns.summary
    assert summary["worst_pair"] == [pairs["first"][0], pairs.second[0], pairs.total_variation[0]]
    assert summary["pair_total_variation"] == pytest.approx(np.mean(pairs.total_variation))
    assert columns.missing.isna().to_dict() == {name: name != "hb" for name in FEW}
    assert columns.similarity["sex"] == 1 - columns.error["sex"]
    both = pairs[pairs["first"].isin(["hb", "weight"]) & pairs.second.isin(["hb", "weight"])]
    assert both.similarity.item() == 1 - both.correlation.item() / 2
    assert (columns.worst >= columns.error).all()
    assert set(columns.worst_time) <= {str(time) for time in TIMES}


def test_an_evaluation_of_mixed_columns_is_said_and_written(found):
    whole = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert whole["columns"]["summary"]["column_similarity"] > 0.7
    assert {pair["first"] for pair in whole["columns"]["pairs"]} <= set(FEW)
    assert {"change_ratio", "change_tv"} <= {s.name for s in found.path_scores}
    text = str(found)
    assert "Similarity as SDMetrics counts it" in text
    assert "total variation of pairs" in text
    assert "distances, grids and worth are those of the numbers alone" in found.notes


def test_a_model_with_other_shares_scores_worse(found):
    values = mixed_records(150, 1, FEW)
    values[..., 3] = 3 - values[..., 3]
    wrong = mixed_model(FEW, values=values)
    table = mixed_table(mixed_records(160, 5, FEW), FEW)
    other = pt.evaluate(wrong, table, n=80)
    stage, before = (one.columns.columns.set_index("name").loc["stage"] for one in (other, found))
    assert stage.error > 0.4 > 3 * before.floor
    assert "stage" in other.columns.summary["worst_pair"][:2]
