"""The benchmark of regret: its grammar of populations, and what its table says."""

import numpy as np
import pytest
from script_runs import imported


@pytest.fixture(scope="module")
def regret():
    with imported("benchmarks", "regret") as module:
        yield module


def test_a_population_follows_from_its_seed_and_lies_in_the_box(regret):
    for seed in range(40):
        one = regret.Population.of(seed)
        assert one == regret.Population.of(seed)
        assert 500 <= one.people <= 100_000
        people = one.drawn(np.linspace(0, 1, 50), np.random.default_rng(0))
        assert people.shape == (50, one.features)
        assert ((people >= 0) & (people <= 1)).all()


def test_every_shape_motion_and_number_of_features_is_drawn_in_both_halves(regret):
    for half in range(2):
        some = [regret.Population.of(seed) for seed in range(half, 300, 2)]
        assert {one.shape for one in some} == set(regret.SHAPES)
        assert {one.motion for one in some} == set(regret.MOTIONS)
        assert {one.features for one in some} == set(regret.FEATURES)


def test_regret_is_the_error_of_auto_over_the_best_by_hand(regret):
    errors = {("7", "2"): (0.001, 0.003), ("7", "8"): (0.0005,), ("7", "auto"): (0.0008,)}
    rows = {}
    for (seed, option), values in errors.items():
        for run, value in enumerate(values):
            rows[seed, "windows", option, str(run)] = {"error": str(value)}
    assert regret.regrets(rows)["windows", 7][0] == pytest.approx(9e-4 / 6e-4)


def test_an_option_that_is_lucky_in_one_run_is_not_the_best_of_the_others(regret):
    rows = {}
    for option, values in {"2": (0.0, 6e-4), "4": (2e-4, 2e-4), "auto": (3e-4, 3e-4)}.items():
        for run, value in enumerate(values):
            rows["7", "windows", option, str(run)] = {"error": str(value)}
    best, elsewhere = regret.regrets(rows)["windows", 7]
    assert best == pytest.approx(4e-4 / 3e-4)
    assert elsewhere == pytest.approx(4e-4 / 5e-4)  # "4" for the first run, "2" for the second
