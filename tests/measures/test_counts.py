"""Counts: how fine cells may be, and how concentrated people are."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privtraj import Snapshots, TrajectorySynthesizer
from privtraj.measures import counts as module
from privtraj.measures.base import HEAD_COUNT, shrunk_counts
from privtraj.measures.cells import MOST_CELLS_PER_TIME
from privtraj.measures.counts import CELLS, cells_per_side, expected_error
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.noise import SeededSource, laplace_integers, laplace_variance

BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # epsilon

sizes = st.floats(40, 1e5)
dimensions = st.integers(1, 10)
areas = st.floats(1e-4, 1.0)  # share of the box that people occupy


@settings(max_examples=100)
@given(sizes, dimensions, st.floats(0.5, 8), areas)
def test_all_settings_are_within_the_limits(people, d, epsilon, area):
    assert cells_per_side(people, d, epsilon, area) >= 2
    assert cells_per_side(people, d, epsilon, area) ** d <= max(MOST_CELLS_PER_TIME, 2**d)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("people", [40, 130, 600, 3000, 20_000, 100_000])
def test_more_budget_never_buys_less(d, people):
    bought = [cells_per_side(people, d, epsilon) for epsilon in BUDGETS]
    assert all(a <= b for a, b in pairwise(bought))


def test_a_thousand_times_the_people_get_more_cells():
    few, many = (cells_per_side(people, 2, 1.0) for people in (100, 1e5))
    assert many > few


@settings(max_examples=200)
@given(sizes, st.integers(1, 3), st.floats(0.01, 64), areas)
def test_cells_are_even_and_have_the_least_error_of_those_allowed(people, d, epsilon, area):
    side = cells_per_side(people, d, epsilon, area)
    assert isinstance(side, int)
    assert side % 2 == 0
    least = expected_error(side, people, d, epsilon, area)
    for other in range(2, 513, 2):
        if other**d <= MOST_CELLS_PER_TIME:
            assert least < 1.1 * expected_error(other, people, d, epsilon, area)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("people", [40, 300, 3000])
def test_the_least_error_falls_with_the_budget_and_sides_grow_without_jumps(d, people):
    budgets = np.geomspace(0.1, 16, 60)
    sides = [cells_per_side(people, d, epsilon) for epsilon in budgets]
    errors = [expected_error(g, people, d, e) for g, e in zip(sides, budgets, strict=True)]
    assert all(a > b for a, b in pairwise(errors))
    assert all(b <= max(a + 2, 1.34 * a) for a, b in pairwise(sides))


def test_few_people_in_three_features_are_not_counted_in_cells_that_noise_fills():
    """Twelve cells a side for 40 people at epsilon 2 were worth one to three people."""
    assert cells_per_side(40, 3, 1.7) <= 6


@pytest.mark.parametrize("d", [1, 2, 3])
def test_concentrated_people_are_counted_as_others_in_a_smaller_box(d):
    width = module.USUAL_WIDTH
    one, other = (expected_error(g, 500, d, 1.0, (width * s) ** d) for g, s in ((20, 1), (40, 0.5)))
    assert other == pytest.approx(one / 4)


@settings(max_examples=200)
@given(sizes, dimensions, st.floats(0.01, 64), areas, areas)
def test_people_who_occupy_less_of_the_box_never_get_fewer_cells(people, d, epsilon, one, other):
    small, large = (cells_per_side(people, d, epsilon, area) for area in sorted([one, other]))
    assert small >= large


@settings(max_examples=200)
@given(st.tuples(sizes, sizes), dimensions, st.floats(0.01, 64), areas)
def test_more_people_never_get_fewer_cells(people, d, epsilon, area):
    few, many = (cells_per_side(n, d, epsilon, area) for n in sorted(people))
    assert few <= many


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_area_matters_and_is_the_whole_box_unless_told(d):
    told = [cells_per_side(3000, d, 1.0, area) for area in (1.0, 1e-3)]
    assert told[0] == cells_per_side(3000, d, 1.0) < told[1]


M = 64


def occupied_area(counts, epsilon, people, d):
    """The same number of people at every time."""
    return module.occupied_area(counts, epsilon, np.full(len(counts), people), d)


def noisy(exact, times, epsilon, seed):
    """The same people (M,) at so many times, with noise of their own: (times, M)."""
    return exact + laplace_integers(SeededSource(seed), (times, len(exact)), epsilon)


def in_cells(people, held):
    """`people` spread evenly over the first `held` of M cells."""
    exact = np.zeros(M, dtype=np.int64)
    exact[:held] = people // held
    return exact


def by_pairs(exact):
    """Share of the box from exact counts: N^2 / M over the pairs of people who share a cell."""
    return exact.sum() ** 2 / M / (exact * (exact - 1)).sum()


def area_on_a_line(counts, epsilon, people):
    """In one dimension, where what cells add to the width is nothing beside four cells or more."""
    return occupied_area(counts, epsilon, people, 1)


def repeated(exact, times, epsilon, seeds=200):
    people = float(exact.sum())
    return np.array(
        [area_on_a_line(noisy(exact, times, epsilon, s), epsilon, people) for s in range(seeds)]
    )


@pytest.mark.parametrize(("held", "area"), [(M, 1.0), (M // 2, 0.5), (M // 8, 1 / 8)])
def test_with_little_noise_it_is_the_share_of_cells_that_people_are_in(held, area):
    counts = noisy(in_cells(6400, held), 5, 8.0, seed=1)
    assert area_on_a_line(counts, 8.0, 6400.0) == pytest.approx(area, rel=0.02)
    in_a_square = occupied_area(counts, 8.0, 6400.0, 2)
    assert area - 1 / M < in_a_square < 1.02 * area


@pytest.mark.parametrize("d", [1, 2, 3])
def test_people_all_in_one_cell_occupy_a_cell_at_most(d):
    found = occupied_area(noisy(in_cells(6400, 1), 5, 8.0, seed=1), 8.0, 6400.0, d)
    assert 0.02 / M < found < 1.02 / M


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("deviation", [0.3, 0.6, 1.0])  # in cells
def test_what_cells_add_to_the_width_of_a_group_is_undone(d, deviation):
    """A Gaussian group occupies 1 / integral p^2 = (2 sqrt(pi) deviation)^d, wherever it lies."""
    rng, side, people = np.random.default_rng(0), 16, 2000
    true = (2 * np.sqrt(np.pi) * deviation / side) ** d
    found, looks = [], []
    for _ in range(60):
        centre = rng.uniform(5, side - 5, size=d)
        cells = (centre + deviation * rng.standard_normal((people, d))).astype(int)
        exact = np.zeros((side,) * d, dtype=np.int64)
        np.add.at(exact, tuple(cells.T), 1)
        found.append(occupied_area(exact.reshape(1, -1), 20.0, float(people), d))
        looks.append(people**2 / exact.size / (exact * (exact - 1)).sum())
    assert abs(np.mean(found) - true) < 0.5 * abs(np.mean(looks) - true)


def test_unevenly_filled_cells_count_by_how_many_people_share_them():
    exact = np.random.default_rng(0).multinomial(
        9000, np.random.default_rng(1).dirichlet(np.ones(M))
    )
    found = area_on_a_line(noisy(exact, 5, 8.0, seed=1), 8.0, 9000.0)
    assert found == pytest.approx(by_pairs(exact), rel=0.02)


def test_people_who_are_alone_by_chance_do_not_look_concentrated():
    """200 people at random in 64 cells: the square of a Poisson count is not that of its mean."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(200, np.full(M, 1 / M), size=400)
    counts = counts + laplace_integers(SeededSource(0), counts.shape, 8.0)
    assert area_on_a_line(counts, 8.0, 200.0) > 0.95


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("held", [5, 16])
def test_noise_does_not_bias_it(held, epsilon):
    """Over so many times that the standard error, by which it is lowered, hardly matters."""
    exact = in_cells(2000, held)
    counts = noisy(exact, 20_000, epsilon, seed=3)
    pairs = (counts.astype(float) ** 2).sum(axis=1) - M * laplace_variance(epsilon) - exact.sum()
    error = pairs.std() / np.sqrt(len(pairs))
    assert abs(pairs.mean() - (exact * (exact - 1)).sum()) < 4.5 * error
    assert area_on_a_line(counts, epsilon, float(exact.sum())) == pytest.approx(
        by_pairs(exact), rel=0.03
    )


@pytest.mark.parametrize("times", [2, 10])
@pytest.mark.parametrize("people", [100.0, 1000.0])
def test_noise_alone_is_taken_for_people_spread_evenly(times, people):
    """Lowered by its standard error: noise passes for concentration in fewer than one in four."""
    nobody = np.zeros(M, dtype=np.int64)
    areas = [area_on_a_line(noisy(nobody, times, 0.06, s), 0.06, people) for s in range(300)]
    assert np.mean(np.array(areas) == 1.0) > 0.75
    assert np.median(areas) == 1.0


@pytest.mark.parametrize("held", [16, 32, 64])
def test_it_errs_on_the_side_of_people_spread_out(held):
    exact = in_cells(640, held)
    areas = repeated(exact, 3, 0.2)
    assert np.mean(areas >= min(by_pairs(exact), 1.0)) > 0.75


def test_times_of_different_size_count_by_their_pairs():
    exact = np.stack([in_cells(6400, 8), in_cells(640, 8), in_cells(64, 8)])
    counts = exact + laplace_integers(SeededSource(2), exact.shape, 8.0)
    found = module.occupied_area(counts, 8.0, np.array([6400.0, 640.0, 64.0]), 1)
    assert found == pytest.approx(1 / 8, rel=0.03)


def test_more_times_make_it_sharper():
    exact = in_cells(640, 16)
    few, many = (np.log(repeated(exact, times, 0.3) / by_pairs(exact)) for times in (2, 40))
    assert np.abs(many).mean() < 0.5 * np.abs(few).mean()
    assert many.std() < 0.5 * few.std()


def test_more_concentrated_people_look_more_concentrated():
    areas = [np.median(repeated(in_cells(1024, held), 5, 0.5)) for held in (1, 4, 16, 64)]
    assert areas == sorted(areas)
    assert areas[0] < 0.1 < 0.9 < areas[-1]


counts_arrays = arrays(
    np.int64, (3, 16), elements=st.sampled_from([0, -1, -(10**9), 10**9]) | st.integers(-99, 99)
)


@settings(max_examples=100)
@given(counts_arrays, st.floats(1e-4, 64), st.floats(1, 1e8), st.integers(1, 6))
def test_any_counts_give_a_share_of_the_box(counts, epsilon, people, d):
    area = occupied_area(counts, epsilon, people, d)
    assert isinstance(area, float)
    assert 1e-5 < area <= 1


def test_a_survey_is_coarse_whatever_the_number_of_features():
    for d, side in module.SURVEY_SIDES.items():
        assert side >= 2
        assert side**d <= 4096


# The main release -------------------------------------------------------------------------------


class Answers(dict):
    """What was released, and the event that paid for it, by name."""

    def released(self, release, shape, answer):
        self[release.what] = answer, release.event(shape)


def test_people_and_their_noise_are_those_of_the_head_count_and_all_cells(monkeypatch):
    """Each weighted by the other's variance; and cells are chosen and read by the noise that was
    paid for, of people as wide as the look has shown."""
    told, seen, rng = Answers(), {}, np.random.default_rng(0)

    def spied(name):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a: seen.setdefault(name, a) and original(*a))

    spied("cells_per_side")
    spied("estimate")
    measured = module.Counts.measured
    monkeypatch.setattr(
        module.Counts, "measured", lambda *a: seen.setdefault("view", a[1]) and measured(*a)
    )
    points = np.clip(0.4 + 0.1 * rng.standard_normal((900, 2)), 0, 1)
    snapshots = Snapshots.from_arrays(
        rng.random(900), points, bounds=[(0, 1)] * 2, time_range=(0, 1)
    )
    made = TrajectorySynthesizer(1.0, 0.0, measure="counts", particles=8, seed=0)
    model = made.fit(snapshots, watcher=told)
    (heads, head), (cells, paid) = told[HEAD_COUNT], told[CELLS]
    typical, d, epsilon, area = seen["cells_per_side"]
    assert epsilon == seen["estimate"][2] == paid.epsilon
    assert area == pytest.approx((12 * seen["view"].windows.choice.variance / d) ** (d / 2))
    of_head, of_cells = laplace_variance(head.epsilon), laplace_variance(paid.epsilon)
    of_cells *= cells.shape[1]
    expected = (1 / of_head + 1 / of_cells) ** -0.5
    assert model.diagnostics["people_noise"] == pytest.approx(expected)
    people = shrunk_counts(heads[:, 0].astype(float), 2 / head.epsilon**2)
    assert typical == np.median(people)
    summed = shrunk_counts(cells.sum(axis=1).astype(float), of_cells)
    together = (people / of_head + summed / of_cells) / (1 / of_head + 1 / of_cells)
    np.testing.assert_allclose(model.diagnostics["people_per_time"], together)


def test_a_survey_is_read_by_the_noise_that_it_was_paid_for():
    counts = np.repeat([[50, 0]], 4, axis=0).repeat([12, 20], axis=1)
    guard = SimpleNamespace(n_features=1, ask=lambda release: counts)
    people, event = np.full(4, 600.0), LaplaceCounts(0.4, module.SURVEY)
    area = module.surveyed_area(guard, event, people)
    assert area == module.occupied_area(counts, 0.4, people, 1)
    assert area < module.occupied_area(counts, 0.2, people, 1) < 1
