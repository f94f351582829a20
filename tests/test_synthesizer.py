"""Fits from end to end: the budget is kept, settings are honoured, nothing breaks on odd data."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import privtraj
from privtraj import (
    LowBudgetWarning,
    Snapshots,
    TrajectorySynthesizer,
    datasets,
    metrics,
)
from privtraj.base.errors import BudgetError, InputError
from privtraj.measures.counts import Counts
from privtraj.measures.registry import measure_for
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.recipe import SMALLEST_EPSILON

T = 4
SMALL = {  # shapes shared by most fits, so that they are compiled once
    "gradients": {"measure": "gradients", "particles": 8, "steps": 8},
    "counts": {"measure": "counts", "particles": 32},
}
PUBLIC = {"adjacency": "replace-one", "public_counts": [200] * T}
ADJACENCIES = ("add-remove", "replace-one")
LOOKS = ["people at the listed times", "how people move"]
HEADS, SURVEY, CELLS = "people per time", "how concentrated people are", "people per cell"


def fit(snapshots, epsilon=1.0, delta=1e-5, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowBudgetWarning)
        return TrajectorySynthesizer(epsilon, delta, **options).fit(snapshots)


def paid_for(model):
    return [entry["what"] for entry in model.certificate.ledger]


def healthy(model):
    parts = (model.particles, model.weights, model.bandwidth, model.marginals)
    assert all(np.isfinite(part).all() for part in parts)
    assert np.isfinite(model.diffusivity)
    assert model.diffusivity >= 0
    assert (model.bandwidth > 0).all()
    assert ((model.particles >= 0) & (model.particles <= 1)).all()
    np.testing.assert_allclose(model.weights.sum(axis=1), 1.0)
    assert (model.weights > 0).all()


@pytest.fixture(scope="module")
def people(moving_blobs):
    """200 people at each of four times, in data units of [0, 10] x [-1, 1]."""
    clouds = moving_blobs(T, 200, 2)
    points = clouds.reshape(-1, 2) * [10, 2] + [0, -1]
    return Snapshots.from_arrays(
        np.repeat(np.arange(T), 200), points, bounds=[(0, 10), (-1, 1)], bins=np.arange(float(T))
    )


@pytest.fixture(scope="module")
def fits(people):
    """Function: the seeded fit of `people`, made once for each measure and adjacency."""
    made = {}

    def get(measure, adjacency="add-remove"):
        if (measure, adjacency) not in made:
            made[measure, adjacency] = fit(people, adjacency=adjacency, seed=1, **SMALL[measure])
        return made[measure, adjacency]

    return get


# The budget -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("measure", SMALL)
def test_the_whole_budget_is_spent_and_not_more(fits, measure, adjacency):
    model = fits(measure, adjacency)
    healthy(model)
    certificate = model.certificate
    assert 0.98 <= certificate.epsilon <= 1.0
    assert certificate.target_epsilon == 1.0
    assert certificate.delta == 1e-5
    assert certificate.adjacency == adjacency


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("measure", SMALL)
def test_the_ledger_on_the_certificate_explains_both_epsilons(fits, measure, adjacency):
    certificate = fits(measure, adjacency).certificate
    other = next(a for a in ADJACENCIES if a != adjacency)
    assert certificate.cost.epsilon(certificate.delta) == pytest.approx(
        certificate.epsilon, rel=1e-9
    )
    swapped = replace(certificate, adjacency=other).cost.epsilon(certificate.delta)
    assert swapped == pytest.approx(certificate.epsilon_other_adjacency, rel=1e-9)
    larger = certificate.epsilon_other_adjacency > certificate.epsilon
    assert larger == (adjacency == "add-remove")
    assert certificate.slack < 1e-9
    assert (certificate.slack == 0) == (measure == "counts")  # Laplace noise is exact


@pytest.mark.slow
def test_gradients_pay_for_people_and_for_every_step(fits):
    *looks, count, steps = fits("gradients").certificate.ledger
    assert [look["what"] for look in looks] == LOOKS
    assert (count["mechanism"], count["times"]) == ("discrete Laplace", 1)
    assert (steps["mechanism"], steps["times"]) == ("Gaussian", 8)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_counts_pay_for_looks_for_people_and_for_cells(fits, adjacency):
    model = fits("counts", adjacency)
    assert paid_for(model) == [*LOOKS, HEADS, CELLS]
    entries = model.certificate.ledger
    assert [(e["mechanism"], e["times"]) for e in entries] == [("discrete Laplace", 1)] * 4
    assert all(0 < e["epsilon"] < 0.15 for e in entries[:3])
    assert sum(e["epsilon"] for e in entries) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_forced_cells_are_not_surveyed_and_leave_more_for_the_cells(people, adjacency):
    chosen = {"adjacency": adjacency, "seed": 1, "windows": "bins", **SMALL["counts"]}
    forced = fit(people, cells=8, **chosen)
    assert paid_for(forced) == [HEADS, CELLS]
    surveyed = fit(people, **chosen).certificate
    assert forced.certificate.ledger[-1]["epsilon"] > surveyed.ledger[-1]["epsilon"] + 0.01
    assert 0.98 <= forced.certificate.epsilon <= 1.0


def test_public_people_are_surveyed_all_the_same(people):
    public = fit(people, seed=1, **PUBLIC, windows="bins", **SMALL["counts"])
    assert paid_for(public) == [SURVEY, CELLS]
    forced = fit(people, seed=1, **PUBLIC, cells=8, windows="bins", **SMALL["counts"])
    assert paid_for(forced) == [CELLS]
    assert forced.certificate.ledger[0]["epsilon"] == pytest.approx(1.0, abs=0.02)


def test_gradients_are_not_surveyed(fits):
    assert SURVEY not in paid_for(fits("gradients"))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_the_survey_never_makes_the_total_exceed_the_budget(people, adjacency, delta, epsilon):
    given = {"public_counts": [200] * T}
    for options in [{}] if adjacency == "add-remove" else [{}, given]:
        chosen = {"adjacency": adjacency, "seed": 2, "windows": 2, **options, **SMALL["counts"]}
        certificate = fit(people, epsilon, delta, **chosen).certificate
        assert SURVEY in [entry["what"] for entry in certificate.ledger]
        assert 0.98 * epsilon <= certificate.epsilon <= epsilon
        assert certificate.cost.epsilon(certificate.delta) == pytest.approx(
            certificate.epsilon, rel=1e-9
        )
        if delta == 0:
            total = sum(entry["epsilon"] for entry in certificate.ledger)
            assert total == pytest.approx(certificate.epsilon, rel=1e-9)


def test_concentrated_people_get_smaller_cells_than_people_spread_out(snapshots_of):
    rng = np.random.default_rng(0)
    tight = [np.clip(0.4 + 0.02 * rng.standard_normal((2000, 2)), 0, 1) for _ in range(T)]
    loose = [rng.uniform(size=(2000, 2)) for _ in range(T)]
    cells = [
        fit(snapshots_of(clouds), 2.0, seed=0, **SMALL["counts"]).settings["cells_per_side"]
        for clouds in (tight, loose)
    ]
    assert cells[0] > cells[1]


def test_replace_one_buys_half_the_noise_epsilon_of_add_remove(fits):
    weak, strong = (fits("counts", a).certificate.ledger[-1]["noise_epsilon"] for a in ADJACENCIES)
    assert strong == pytest.approx(weak / 2, rel=0.01)


@pytest.mark.parametrize("measure", SMALL)
def test_people_declared_public_are_on_the_certificate_and_not_paid_for(people, fits, measure):
    public = fit(people, seed=1, **PUBLIC, windows="bins", **SMALL[measure])
    how = {"adjacency": "replace-one", "windows": "bins"}
    paid = fit(people, seed=1, **how, **SMALL[measure]).certificate
    declared = [value for key, value in public.certificate.public_inputs.items() if "people" in key]
    assert [200] * T in declared
    assert not any("people per time" in key for key in paid.public_inputs)
    assert len(public.certificate.ledger) == len(paid.ledger) - 1
    main, dear = public.certificate.ledger[-1], paid.ledger[-1]
    if measure == "gradients":
        assert main["noise_multiplier"] < dear["noise_multiplier"]
    else:
        assert main["noise_epsilon"] > dear["noise_epsilon"]
    assert 0.98 <= public.certificate.epsilon <= 1.0


def test_public_inputs_name_bounds_and_bins(fits):
    public = fits("counts").certificate.public_inputs
    assert public["bounds"] == {"x1": [0.0, 10.0], "x2": [-1.0, 1.0]}
    assert len(public["bin times"]) == T


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_without_delta_counts_give_pure_epsilon(people, adjacency):
    model = fit(people, 1.0, 0.0, adjacency=adjacency, seed=0, **SMALL["counts"])
    healthy(model)
    assert 0.98 <= model.certificate.epsilon <= 1.0
    assert model.certificate.delta == 0
    assert model.certificate.slack == 0


def test_without_delta_gradients_are_refused(people):
    with pytest.raises(InputError, match="delta"):
        fit(people, 1.0, 0.0, seed=0, **SMALL["gradients"])


def test_without_delta_auto_counts_even_in_many_dimensions(moving_blobs, snapshots_of):
    model = fit(snapshots_of(list(moving_blobs(T, 50, 6))), 1.0, 0.0, seed=0, particles=32)
    assert model.settings["measure"] == "counts"
    healthy(model)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_small_budget_is_kept_under_both_adjacencies(people, adjacency):
    model = fit(people, 0.03, 1e-5, adjacency=adjacency, seed=0, **SMALL["counts"])
    healthy(model)
    assert 0.98 * 0.03 <= model.certificate.epsilon <= 0.03


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_smallest_budget_that_is_taken_can_be_spent(people, adjacency):
    least = SMALLEST_EPSILON
    model = fit(people, least, 1e-5, adjacency=adjacency, seed=0, **SMALL["counts"])
    healthy(model)
    assert model.certificate.epsilon <= least


def test_full_steps_name_no_rate(fits):
    certificate = fits("gradients").certificate
    assert "sampling rate" not in certificate.public_inputs
    assert certificate.epsilon_clt is None


# Several records per person -------------------------------------------------------------------


def followed(one_per_bin=True, records=3):
    """150 people with a record at each of three times, and a second one at the first time."""
    rng = np.random.default_rng(0)
    times = np.tile([0.0, 1.0, 2.0, 0.1], 150)
    points = 0.5 + 0.1 * rng.standard_normal((len(times), 2))
    return Snapshots.from_arrays(
        times,
        np.clip(points, 0, 1),
        bounds=[(0, 1)] * 2,
        bins=np.arange(float(T)),
        person=np.repeat(np.arange(150), 4),
        records_per_person=records,
        one_per_bin=one_per_bin,
        seed=0,
    )


@pytest.mark.parametrize(("one_per_bin", "factor"), [(True, np.sqrt(3)), (False, 3.0)])
def test_people_of_several_records_pay_for_all_of_them(one_per_bin, factor):
    """sqrt(g) times the noise of one record if in different bins, g times if together."""
    alone = {"seed": 1, "persistence": "off", **PUBLIC, "windows": "bins", **SMALL["gradients"]}
    model = fit(followed(one_per_bin), **alone)
    healthy(model)
    (entry,) = model.certificate.ledger
    assert (entry["records"], entry["together"]) == (3, not one_per_bin)
    two = fit(followed(records=2), **alone)
    base = two.certificate.ledger[0]["noise_multiplier"] / np.sqrt(2)
    assert entry["noise_multiplier"] == pytest.approx(factor * base, rel=1e-3)
    public = model.certificate.public_inputs
    assert public["most records of one person"] == 3
    assert ("records of one person may share a bin" in public) == (not one_per_bin)
    assert 0.98 <= model.certificate.epsilon <= 1.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_counts_of_several_records_pay_for_all_of_them(adjacency):
    model = fit(followed(), adjacency=adjacency, seed=1, **SMALL["counts"])
    healthy(model)
    assert [entry["records"] for entry in model.certificate.ledger] == [3] * 5
    assert sum(entry["epsilon"] for entry in model.certificate.ledger) >= 1.0
    assert 0.97 <= model.certificate.epsilon <= 1.0


# The certificate and the ledger on disk -------------------------------------------------------


@pytest.mark.parametrize("measure", SMALL)
def test_the_certificate_names_the_model_it_belongs_to(fits, measure, tmp_path):
    model = fits(measure)
    assert model.certificate.model_sha256 == model.sha256
    assert model.sha256 in str(model.certificate)
    with pytest.raises(InputError, match="not_private"):
        model.save(tmp_path / "m")
    model.save(tmp_path / "m", not_private=True)
    back = privtraj.load(tmp_path / "m")
    assert back.certificate.model_sha256 == back.sha256 == model.sha256


def test_fits_on_a_ledger_add_up_until_the_cap(people, tmp_path):
    ledger = LedgerFile(tmp_path / "ledger", cap_epsilon=1.0, cap_delta=1e-4)
    settings = TrajectorySynthesizer(0.6, 1e-5, **SMALL["counts"])
    model = settings.fit(people, ledger=ledger)
    (entry,) = ledger.summary()["entries"]
    assert entry["epsilon"] == 0.6  # all that was reserved, though a little less was spent
    assert model.sha256 in str(entry.values())
    with pytest.raises(BudgetError):
        settings.fit(people, ledger=ledger)
    assert len(ledger.summary()["entries"]) == 1
    TrajectorySynthesizer(0.3, 1e-5, **SMALL["counts"]).fit(people, ledger=ledger)
    assert len(ledger.summary()["entries"]) == 2


def test_a_fit_that_fails_has_reserved_its_budget_all_the_same(people, tmp_path, monkeypatch):
    ledger = LedgerFile(tmp_path / "ledger", cap_epsilon=1.0, cap_delta=1e-4)

    def broken(*_):
        raise RuntimeError("power cut")

    monkeypatch.setattr(Counts, "fit", broken)
    with pytest.raises(RuntimeError):
        TrajectorySynthesizer(0.6, 1e-5, **SMALL["counts"]).fit(people, ledger=ledger)
    assert ledger.path.exists()
    (entry,) = ledger.summary()["entries"]
    assert entry["epsilon"] == 0.6


def test_a_seeded_fit_is_on_no_ledger(people, tmp_path):
    ledger = LedgerFile(tmp_path / "ledger", cap_epsilon=1.0, cap_delta=1e-4)
    with pytest.raises(InputError, match="seeded fit is not private"):
        TrajectorySynthesizer(0.6, 1e-5, seed=1, **SMALL["counts"]).fit(people, ledger=ledger)
    assert not (tmp_path / "ledger").exists()


# Seeds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", SMALL)
def test_a_seed_repeats_the_fit_and_forfeits_the_promise(people, fits, measure):
    again = fit(people, seed=1, **SMALL[measure])
    first = fits(measure)
    np.testing.assert_array_equal(first.particles, again.particles)
    np.testing.assert_array_equal(first.weights, again.weights)
    assert first.certificate == again.certificate
    assert first.certificate.private is False
    assert "NOT PRIVATE" in str(first.certificate)
    other = fit(people, seed=2, **SMALL[measure])
    assert (other.particles != first.particles).any()


@pytest.mark.parametrize("measure", SMALL)
def test_without_a_seed_noise_is_private_and_new_each_time(people, measure):
    first, second = (fit(people, **SMALL[measure]) for _ in "ab")
    assert first.certificate.private is True
    assert "NOT PRIVATE" not in str(first.certificate)
    assert (first.particles != second.particles).any()


def test_a_fit_leaves_the_settings_and_the_snapshots_as_they_were(people):
    settings = TrajectorySynthesizer(seed=1, **SMALL["counts"])
    before = dict(vars(settings))
    rows = people._rows.points.copy()
    settings.fit(people)
    assert vars(settings) == before
    np.testing.assert_array_equal(people._rows.points, rows)


# Settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", SMALL)
def test_forced_particles_and_steps_are_honoured(fits, measure):
    model = fits(measure)
    forced = SMALL[measure]
    assert model.particles.shape == (T, forced["particles"], 2)
    assert model.marginals.shape == (T, forced["particles"], 2)
    assert model.settings["particles"] == forced["particles"]
    assert model.settings["steps"] == forced.get("steps", 0)
    assert model.settings["measure"] == measure


def test_steps_are_nothing_to_counts(people, fits):
    asked = fit(people, seed=1, steps=40, **SMALL["counts"])
    np.testing.assert_array_equal(asked.particles, fits("counts").particles)
    np.testing.assert_array_equal(asked.weights, fits("counts").weights)


def test_forced_cells_beyond_counting_are_refused_before_anything_is_spent(people, tmp_path):
    ledger = LedgerFile(tmp_path / "x.ledger", cap_epsilon=9, cap_delta=0.1)
    with pytest.raises(InputError, match="use fewer cells"):
        TrajectorySynthesizer(1.0, 1e-5, cells=2**16, measure="counts").fit(people, ledger=ledger)
    assert not ledger.path.exists()


def test_forced_cells_are_honoured(people):
    model = fit(people, seed=0, cells=6, **SMALL["counts"])
    assert model.settings["cells_per_side"] == 6
    healthy(model)


@pytest.mark.parametrize("measure", SMALL)
def test_a_forced_bandwidth_is_the_bandwidth_of_the_model(people, measure):
    model = fit(people, seed=0, bandwidth=0.07, **SMALL[measure])
    np.testing.assert_allclose(model.bandwidth, 0.07, rtol=1e-3)


def test_a_forced_diffusivity_is_the_diffusivity_of_the_model(people):
    assert fit(people, seed=0, diffusivity=0.123, **SMALL["counts"]).diffusivity == 0.123


@pytest.mark.parametrize("measure", SMALL)
@pytest.mark.parametrize("strength", [0, 0.3, 10])
def test_any_coupling_of_times_from_none_to_ten_is_taken_and_kept(people, measure, strength):
    model = fit(people, seed=1, time_coupling=strength, **SMALL[measure])
    healthy(model)
    assert model.settings["time_coupling"] == strength


def test_people_are_sampled_in_the_papers_wing_only():
    with pytest.raises(TypeError, match="rate"):
        TrajectorySynthesizer(rate=0.5)


def test_coupling_changes_what_becomes_of_the_counts_and_nothing_that_is_paid_for(people, fits):
    alone = fit(people, seed=1, time_coupling=0, **SMALL["counts"])
    assert alone.certificate.ledger == fits("counts").certificate.ledger
    assert alone.settings["cells_per_side"] == fits("counts").settings["cells_per_side"]
    assert (alone.particles != fits("counts").particles).any()


def test_numbers_of_people_are_as_sure_as_they_say(snapshots_of):
    """Those of the model are off by the noise that it states, the root mean square over 20 fits of
    five times. Head counts alone are off by seven times as much."""
    truth, rng = np.array([100, 400, 250, 600, 150]), np.random.default_rng(2)
    crowd = snapshots_of([rng.uniform(size=(n, 1)) for n in truth])
    told = [
        fit(crowd, seed=seed, windows="bins", cells=6, **SMALL["counts"]).diagnostics
        for seed in range(20)
    ]
    off = np.array([each["people_per_time"] for each in told]) - truth
    assert np.sqrt((off**2).mean()) == pytest.approx(told[0]["people_noise"], rel=0.3)


def test_progress_reaches_the_end(people):
    told = []
    TrajectorySynthesizer(seed=0, **SMALL["gradients"]).fit(
        people, progress=lambda done, of: told.append((done, of))
    )
    assert told == [(k, 8) for k in range(1, 9)]


def test_counts_need_not_tell_of_progress(people):
    told = []
    TrajectorySynthesizer(seed=0, **SMALL["counts"]).fit(
        people, progress=lambda done, of: told.append((done, of))
    )
    assert all(0 <= done <= of for done, of in told)


def test_times_bounds_and_names_of_the_model_are_those_of_the_data(fits):
    model = fits("counts")
    np.testing.assert_array_equal(model.times, np.arange(float(T)))
    low, high = model.marginals.min(axis=(0, 1)), model.marginals.max(axis=(0, 1))
    assert (low >= [0, -1]).all()
    assert (high <= [10, 1]).all()
    assert high[0] > 2
    assert model.features == ("x1", "x2")


BAD_SETTINGS = [
    {"epsilon": 0},
    {"epsilon": -1},
    {"epsilon": float("nan")},
    {"epsilon": float("inf")},
    {"delta": -0.1},
    {"delta": 1.0},
    {"delta": float("nan")},
    {"adjacency": "swap"},
    {"measure": "histogram"},
    {"particles": 1},
    {"particles": 2.5},
    {"particles": True},
    {"particles": "8"},
    {"steps": 0},
    {"steps": -3},
    {"cells": 1},
    {"bandwidth": 0},
    {"bandwidth": 0.6},
    {"bandwidth": float("nan")},
    {"time_coupling": -0.1},
    {"time_coupling": 10.1},
    {"time_coupling": float("nan")},
    {"diffusivity": 0},
    {"diffusivity": -1.0},
    {"count_share": 0},
    {"count_share": 0.95},
    {"seed": -1},
]
BAD_KINDS = [
    {"epsilon": "1"},
    {"delta": None},
    {"bandwidth": "wide"},
    {"time_coupling": "strong"},
    {"time_coupling": True},
    {"seed": "x"},
    {"seed": 1.5},
]


def refused_in_one_sentence(people, settings):
    with pytest.raises(InputError) as error:
        TrajectorySynthesizer(**settings).fit(people)
    text = str(error.value)
    assert len(text) > 10
    assert "\n" not in text


@pytest.mark.parametrize("settings", BAD_SETTINGS, ids=str)
def test_bad_settings_are_refused_in_one_sentence(people, settings):
    refused_in_one_sentence(people, settings)


@pytest.mark.parametrize("settings", BAD_KINDS, ids=str)
def test_settings_of_the_wrong_kind_are_refused_in_one_sentence(people, settings):
    refused_in_one_sentence(people, settings)


def test_only_snapshots_can_be_fitted():
    with pytest.raises(InputError, match="Snapshots"):
        TrajectorySynthesizer().fit(np.zeros((20, 2)))


# Odd data -------------------------------------------------------------------------------------


def test_too_few_people_for_the_budget_are_warned_about(moving_blobs, snapshots_of):
    few = snapshots_of(list(moving_blobs(T, 12, 2)))
    for measure in SMALL:
        with pytest.warns(LowBudgetWarning, match="people"):
            model = TrajectorySynthesizer(0.1, 1e-5, seed=0, **SMALL[measure]).fit(few)
        healthy(model)
        assert model.certificate.epsilon <= 0.1


def test_enough_people_for_the_budget_are_not_warned_about(people):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowBudgetWarning)
        TrajectorySynthesizer(8.0, 1e-3, seed=0, **SMALL["counts"]).fit(people)


@pytest.mark.slow
@pytest.mark.parametrize("measure", SMALL)
def test_empty_and_unequal_bins_fit(snapshots_of, measure):
    rng = np.random.default_rng(0)
    uneven = snapshots_of([rng.beta(2, 4, size=(n, 2)) for n in (0, 200, 1, 60)], 2)
    model = fit(uneven, seed=0, **SMALL[measure])
    healthy(model)
    assert np.isfinite(model.sample(50, seed=0).values).all()
    numbers = {"adjacency": "replace-one", "public_counts": [0, 200, 1, 60]}
    healthy(fit(uneven, seed=0, **numbers, **SMALL[measure]))


@pytest.mark.parametrize("measure", SMALL)
def test_people_all_in_one_corner_fit(snapshots_of, measure):
    model = fit(snapshots_of([np.ones((200, 2))] * T), 8.0, 1e-3, seed=0, **SMALL[measure])
    healthy(model)
    assert model.marginals.mean() > 0.85


def test_unequal_gaps_between_times_fit(moving_blobs):
    times = np.array([0.0, 0.1, 3.0, 50.0])
    data = Snapshots.from_arrays(
        np.repeat(times, 200),
        moving_blobs(T, 200, 2).reshape(-1, 2),
        bounds=[(0, 1)] * 2,
        bins=times,
    )
    for settings in SMALL.values():
        healthy(fit(data, seed=0, **settings))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "measure"), [(1, "counts"), (3, None), (6, "gradients")])
def test_auto_fits_any_number_of_features(moving_blobs, snapshots_of, d, measure):
    model = fit(snapshots_of(list(moving_blobs(T, 100, d))), seed=0, particles=8, steps=8)
    healthy(model)
    assert model.particles.shape == (T, 8, d)
    assert model.sample(20, seed=0).values.shape == (20, T, d)
    if measure:
        assert model.settings["measure"] == measure


# Quality --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_modes():
    """Snapshots of 400 people at four times, and what many people would be: T clouds."""
    data = Snapshots.from_arrays(
        *datasets.three_modes(400, T), bounds=datasets.THREE_MODES_BOUNDS, bins=np.linspace(0, 1, T)
    )
    return data, datasets.three_modes(500, T, seed=9)[1].reshape(T, 500, 2)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"measure": "counts"}, {"measure": "gradients", "particles": 64, "steps": 30}]
)
def test_with_a_large_budget_the_marginals_are_close_to_the_truth(three_modes, options):
    data, truth = three_modes
    model = fit(data, 8.0, 1e-5, seed=0, **options)
    released = model.sample(500, seed=0).values.transpose(1, 0, 2)
    error = metrics.average_squared_w2(released, truth)
    uniform = np.random.default_rng(0).uniform(-1.5, 1.5, size=truth.shape)
    assert error < 0.06  # 50 real people score .02, one person about 1
    assert error < 0.2 * metrics.average_squared_w2(uniform, truth)


def test_low_dimensions_count_and_high_dimensions_descend():
    chosen = [measure_for(TrajectorySynthesizer(), d).name for d in range(1, 11)]
    assert chosen == ["counts"] * 2 + ["gradients"] * 8  # experiments/measures.py


def test_every_public_name_can_be_imported():
    for name in privtraj.__all__:
        assert getattr(privtraj, name) is not None


def test_the_public_names_lead_to_the_same_classes():
    assert privtraj.TrajectorySynthesizer is TrajectorySynthesizer
    assert issubclass(privtraj.LowBudgetWarning, UserWarning)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_far_minority_keeps_its_share_of_the_people():
    """One person in ten lives far away; clipping must not talk them out of the model.

    Seeded, so it cannot fail by chance; six seeds gave shares from .073 to .091.
    """
    rng = np.random.default_rng(0)
    times = np.repeat(np.arange(3.0), 2000)
    far = rng.uniform(size=len(times)) < 0.1
    points = np.where(far, 0.9, 0.1)[:, None] + 0.02 * rng.standard_normal((len(times), 3))
    snaps = Snapshots.from_arrays(times, points, bounds=[(0, 1)] * 3, bins=np.arange(3.0))
    people = fit(snaps, 4.0, 1e-5, measure="gradients", seed=0).sample(1000, seed=0).values
    share = (people[..., 0] > 0.5).mean(axis=0)
    assert (np.abs(share - 0.1) < 0.04).all()


@pytest.mark.parametrize("epsilon", [0.1, 8.0, 50.0, 80.0])
def test_counts_spend_the_whole_of_any_epsilon_on_several_records(epsilon):
    """Laplace noise is exact, so no reserve of delta is multiplied by e^epsilon. (A count takes no
    more than `EPSILON_RANGE`, whatever is left.)"""
    times, who = np.tile([0.0, 0.5, 1.0], 120), np.repeat(np.arange(120), 3)
    points = np.random.default_rng(0).uniform(0, 1, (360, 2))
    snapshots = privtraj.Snapshots.from_arrays(
        times, points, bounds=[(0, 1)] * 2, bins=[0, 0.5, 1], person=who, records_per_person=3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = privtraj.TrajectorySynthesizer(epsilon, 1e-3, seed=0).fit(snapshots)
    assert 0.99 * epsilon < model.certificate.epsilon <= epsilon
