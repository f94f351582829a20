"""What a released model is worth, estimated from nothing but itself."""

import dataclasses
import json

import numpy as np
import pytest

import privtraj as pt
from privtraj.assess import quality as estimate
from privtraj.assess import simulate
from privtraj.assess.quality import (
    PossibleCrowd,
    Quality,
    can_be_refitted,
    estimated_quality,
    read_times,
    refitted,
)

N = 2400


@pytest.fixture(scope="module", autouse=True)
def small():
    """A coarse yardstick, which is read in no time."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in {"POINTS": 300, "PANELS": 3}.items():
            patch.setattr(simulate, name, number)
        for name, number in {"POPULATION": 3000, "READ_TIMES": 4}.items():
            patch.setattr(estimate, name, number)
        yield


def crowd(moments, seed):
    """Two groups that part."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], len(moments), p=[0.3, 0.7]) * (0.05 + 0.25 * moments)
    noise = 0.05 * rng.standard_normal((len(moments), 2))
    return np.clip(0.5 + np.column_stack([side, side / 2]) + noise, 0, 1)


def fitted(epsilon, seed=1, times=None):
    rng = np.random.default_rng(seed)
    moments = rng.uniform(0, 1, N) if times is None else rng.choice(times, N)
    snapshots = pt.Snapshots.from_arrays(
        moments,
        crowd(moments, seed + 100),
        bounds=[(0.0, 1.0)] * 2,
        time_range=(0.0, 1.0),
        bins=times,
    )
    return pt.TrajectorySynthesizer(epsilon, 1e-5, seed=seed).fit(snapshots)


@pytest.fixture(scope="module")
def models():
    return {epsilon: fitted(epsilon) for epsilon in (0.05, 8.0)}


@pytest.fixture(scope="module")
def found(models):
    return {epsilon: estimated_quality(model, refits=2) for epsilon, model in models.items()}


@pytest.mark.thorough
def test_more_budget_is_worth_more(found):
    little, much = found[0.05].worth, found[8.0].worth
    assert little.worth < min(much.worth / 3, 40)  # 42 are true of this draw, 2 to 17 of others
    for worth in (little, much):
        assert worth.low < worth.worth < worth.high


def test_every_time_has_an_estimate_of_its_own(found, models):
    times = found[8.0].numeric_times
    assert times == (0.125, 0.375, 0.625, 0.875)
    assert len(found[8.0].at_times) == len(times)
    worths = [each.worth for each in found[8.0].at_times]
    assert min(worths) <= found[8.0].worth.worth <= max(worths)


def test_more_refits_are_made_only_where_two_are_far_apart(models, monkeypatch):
    model, found = models[8.0], {}
    for apart in (1.0, 100.0):
        errors = iter([1e-3] * 4 + [1e-3 * apart] * 4 + [1e-3] * 8)
        monkeypatch.setattr(simulate.Yardstick, "error", lambda self, x, e=errors: next(e))
        monkeypatch.setattr(simulate.Yardstick, "error_of", lambda self, n: 1 / n)
        found[apart] = estimated_quality(model)
    assert (found[1.0].refits, found[100.0].refits) == (2, 4)
    assert found[100.0].worth.low < found[1.0].worth.low


def test_a_fit_by_tables_is_made_again_once_and_its_interval_is_wider(models, monkeypatch):
    monkeypatch.setattr(simulate.Yardstick, "error", lambda self, x: 1e-3)
    monkeypatch.setattr(simulate.Yardstick, "error_of", lambda self, n: 1 / n)
    found = [estimated_quality(models[8.0])]
    monkeypatch.setattr(estimate, "told_by_tables", lambda model: (1.0, 2400.0))
    found.append(estimated_quality(models[8.0]))
    assert [one.refits for one in found] == [2, 1]
    assert found[0].worth.worth == found[1].worth.worth
    assert found[1].worth.low < 0.9 * found[0].worth.low


# Refits ------------------------------------------------------------------------------------------


def test_refits_have_the_budget_and_the_frame_of_the_model(models):
    model = models[8.0]
    again = refitted(model, 5)[0]
    assert again.certificate.target_epsilon == model.certificate.target_epsilon
    assert again.certificate.delta == model.certificate.delta
    assert again.settings["measure"] == model.settings["measure"]
    assert again.features == model.features
    np.testing.assert_array_equal(again.knots[[0, -1]], model.knots[[0, -1]])
    total = np.sum(model.diagnostics["people_per_time"])
    assert np.sum(again.diagnostics["people_per_time"]) == pytest.approx(total, rel=0.05)


def test_people_at_listed_times_are_drawn_there():
    times = [0.0, 0.2, 0.6, 1.0]
    model = fitted(4.0, 3, times)
    assert model.diagnostics["listed_times"]
    assert refitted(model, 1)[0].diagnostics["listed_times"]
    np.testing.assert_array_equal(read_times(model, 8), times)
    assert not fitted(4.0, 3).diagnostics["listed_times"]


def test_possible_people_are_as_sharp_as_the_model_cannot_tell(models):
    few, many = (PossibleCrowd(models[epsilon]) for epsilon in (0.05, 8.0))
    assert few.stands < many.stands
    for crowd in (few, many):
        people = crowd.places(np.repeat([0.2, 0.8], 2000), 3)
        assert len(np.unique(people[:2000], axis=0)) <= crowd.stands
        there = crowd.model.sample(4000, times=[0.2], seed=4).values[:, 0]
        side = np.mean(crowd.model.diagnostics["cell_side"])
        assert np.abs(people[:2000].mean(axis=0) - there.mean(axis=0)).max() < side / 2
        moved = simulate.drawn(crowd.model, np.array([0.2, 0.8]), crowd.stands, crowd.seed)
        assert np.isin(people[2000:, 0], moved[:, 1, 0]).all()  # the same stands, later


def test_many_people_are_simulated_by_fewer(models, monkeypatch):
    monkeypatch.setitem(simulate.ENOUGH, True, 600)
    again = refitted(models[0.05], 1)[0]
    assert np.sum(again.diagnostics["people_per_time"]) < 2000
    assert again.certificate.target_epsilon == pytest.approx(0.05 * N / 600, rel=0.6)


def test_a_model_that_tells_too_little_has_no_estimate(models):
    model = models[8.0]
    silent = dataclasses.replace(model, diagnostics={})
    assert not can_be_refitted(silent)
    assert estimated_quality(silent) is None
    assert silent.quality() is None


def test_a_fit_that_is_refused_has_no_estimate(models, monkeypatch):
    def refused(*args):
        raise pt.InputError("no")

    monkeypatch.setattr(estimate, "refitted", refused)
    assert estimated_quality(models[8.0]) is None


# Words, files ------------------------------------------------------------------------------------


def test_json_and_back(found):
    for quality in found.values():
        text = json.dumps(quality.to_dict(), allow_nan=False)
        assert Quality.from_dict(json.loads(text)) == quality


def test_an_estimate_is_kept_and_needs_the_released_file_alone(
    models, found, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, made = tmp_path / "model.privtraj", []

    def estimated(model, progress=None):
        made.append(model)
        return found[0.05]

    monkeypatch.setattr(estimate, "estimated_quality", estimated)
    models[0.05].save(path, not_private=True)
    for _ in range(2):
        assert pt.load(path).quality() == found[0.05]
        assert len(made) == 1
    file = next((tmp_path / "cache" / "privtraj" / "assessed").iterdir())
    file.write_text("{")
    assert pt.load(path).quality() == found[0.05]
    assert len(made) == 2


def test_ages_that_go_with_dates_are_worth_what_others_are(monkeypatch, tmp_path):
    """Refits were told dates as numbers, so that everybody of them was at the bounds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rng = np.random.default_rng(2)
    day = rng.integers(0, 1000, 600)
    table = {"day": np.datetime64("2022-01-01") + day, "age": rng.normal(50, 8, 600) + day / 365}
    snapshots = pt.Snapshots.from_table(
        table, time="day", time_range=("2022-01-01", "2024-09-27"), bounds={"age": (0, 110)}
    )
    model = pt.TrajectorySynthesizer(9.0, 0.0, ageing=["age"], windows=2, seed=1).fit(snapshots)
    assert estimated_quality(model, refits=1).worth.worth > 5


@pytest.mark.slow
def test_categories_have_groups():
    table = pt.datasets.diabetes_clinic(2000, seed=2)
    columns = {name: pt.datasets.DIABETES_COLUMNS[name] for name in ("hba1c", "diagnosis")}
    snapshots = pt.Snapshots.from_table(table, time="month", columns=columns, time_range=(0, 24))
    model = pt.TrajectorySynthesizer(4.0, 1e-5, seed=1).fit(snapshots)
    quality = estimated_quality(model, refits=1)
    assert len(quality.groups) == 5
    assert sum(group.share for group in quality.groups) == pytest.approx(1)
    assert quality.worth.worth > 1
