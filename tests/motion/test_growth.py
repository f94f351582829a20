"""Populations that change: numbers over time, who is there, who comes from whom.

Numbers are compared with binomial noise at z = 5, a false alarm in 10^6 readings; seeds are fixed.
"""

import json
import re
import warnings

import numpy as np
import pytest

import privtraj as pt
from privtraj.base.errors import InputError
from privtraj.columns.kinds import Axes
from privtraj.measures.over_time import pooled_over_time
from privtraj.motion.growth import Growth, Sizes, released_sizes, smoothed
from privtraj.motion.population import (
    MOMENTS,
    PARTING,
    Lives,
    ancestors,
    descendants,
    even_lives,
    family,
    pedigree,
)
from privtraj.motion.process import Reference
from privtraj.motion.reference import Brownian, Inertia

TIMES = np.linspace(0, 1, 10)
BOX = [(-1.3, 1.3), (-1.3, 1.3)]
SPLIT = TIMES > 0.6  # when the branches are apart
CERTAIN = 5.0


def fitted(population, epsilon=50.0, **how):
    snaps = pt.Snapshots.from_arrays(population.times, population.points, bounds=BOX, bins=TIMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pt.TrajectorySynthesizer(epsilon, 1e-5, seed=1, **how).fit(snaps)


@pytest.fixture(scope="module")
def cells():
    return pt.datasets.branching_population(300, TIMES, seed=3)


@pytest.fixture(scope="module")
def model(cells):
    return fitted(cells, growth="released")


def true_sizes(cells):
    total = cells.counts.sum(axis=1)
    return total / total[-1]


def binomial(n, share):
    return CERTAIN * np.sqrt(n * share * np.maximum(1 - share, 0)) + 4  # and whole numbers


# Sizes ----------------------------------------------------------------------------------------


def test_a_rate_is_exponential_and_a_table_is_so_in_between():
    rate = Growth(-0.5).sizes(2.0, 4.0, {})
    np.testing.assert_allclose(rate.at(np.array([0, 0.5, 1])), np.exp([0, -1, -2]))
    table = Growth({2: 10, 4: 40, 6: 20}).sizes(2.0, 4.0, {})
    np.testing.assert_allclose(table.at(np.array([0, 0.25, 0.5, 1])), [0.25, 0.5, 1, 0.5])


def test_a_table_is_constant_beyond_its_ends():
    sizes = Growth({"2024-01-02": 1.0, "2024-01-03": 2.0}).sizes(1704067200.0, 4 * 86400.0, {})
    np.testing.assert_allclose(sizes.at(np.array([0, 0.25, 0.5, 0.75, 1])), [0.5, 0.5, 1, 1, 1])


def test_released_numbers_are_smoothed_as_their_noise_allows():
    """Ten numbers of noise 10 %: less than half of their squared error is left, over 200 draws."""
    rng, clock = np.random.default_rng(0), np.linspace(0.05, 0.95, 10)
    truth = 1.5 * clock
    noisy = truth + 0.1 * rng.standard_normal((200, 10))
    kept = np.array([smoothed(row, np.full(10, 0.01), clock) for row in noisy])
    assert np.mean((kept - truth) ** 2) < 0.5 * np.mean((noisy - truth) ** 2)


def test_numbers_without_noise_are_left_as_they_are():
    clock = np.linspace(0.05, 0.95, 10)
    values = np.sin(9 * clock)
    np.testing.assert_allclose(smoothed(values, np.full(10, 1e-8), clock), values, atol=1e-3)


def test_records_are_counted_per_length_of_time():
    told = {
        "people_per_time": [1000.0, 500.0, 1000.0],
        "people_middles": [2.0, 5.0, 8.0],
        "people_lengths": [4.0, 2.0, 4.0],
        "people_noise": 0.0,
    }
    np.testing.assert_allclose(released_sizes(told, 0.0, 10.0).at(TIMES), 1.0, atol=1e-6)


def test_people_at_any_time_who_double_are_found_to(cells):
    """Records of density e^t over continuous time, 20,000 of them, epsilon 5."""
    rng = np.random.default_rng(5)
    times = np.log1p(rng.uniform(size=20_000) * np.expm1(1.0))
    points = rng.normal(0.5, 0.1, (20_000, 1))
    snaps = pt.Snapshots.from_arrays(times, points, bounds=[(0, 1)], time_range=(0, 1))
    grown = pt.TrajectorySynthesizer(5.0, 1e-5, seed=2, growth="released").fit(snaps)
    paths = grown.sample(5000, times=TIMES, seed=1)
    np.testing.assert_allclose(paths.numbers / 5000, np.exp(TIMES - 1), atol=0.04)


# Lives ----------------------------------------------------------------------------------------

HISTORIES = {
    "growth": Sizes(np.array([0.0, 1.0]), np.array([0.0, 2.0])),
    "drop-out": Sizes(np.array([0.0, 1.0]), np.array([0.0, -2.0])),
    "up and down": Sizes(np.array([0.0, 0.4, 1.0]), np.array([0.0, 1.5, 0.5])),
    "still": Sizes(np.array([0.0, 1.0]), np.zeros(2)),
}


@pytest.mark.parametrize("turnover", [0.0, 1.5])
@pytest.mark.parametrize("name", HISTORIES)
def test_as_many_are_there_as_the_size_says(name, turnover):
    n, times = 4000, np.linspace(0, 1, 41)
    sizes = HISTORIES[name]
    lives = even_lives(n, sizes, turnover, np.random.default_rng(0))
    there = lives.at(times).sum(axis=0)
    share = sizes.at(times)
    scale = there.sum() / share.sum()
    assert (np.abs(there - scale * share) <= binomial(n, scale * share / n)).all()
    assert (np.abs(there - scale * share) <= 40).all()  # and closer than chance: 1 % of n
    assert (lives.begin <= lives.end).all()


def test_who_leaves_is_anybody():
    """Drop-out at rate 2 of people who are there from the start: a life is exponential."""
    lives = even_lives(20_000, HISTORIES["drop-out"], 0.0, np.random.default_rng(1))
    assert (lives.begin == 0).all()
    np.testing.assert_allclose(np.mean(lives.end < 0.5), 1 - np.exp(-1), atol=0.01)
    np.testing.assert_allclose(np.mean(lives.end < 1), 1 - np.exp(-2), atol=0.01)


def test_turnover_makes_lives_short_and_keeps_their_number():
    lives = even_lives(20_000, HISTORIES["still"], 4.0, np.random.default_rng(2))
    whole = (lives.begin > 0) & (lives.end < 1)
    assert np.mean(lives.begin == 0) == pytest.approx(1 / 5, abs=0.01)
    begun = lives.begin < 0.25
    assert np.mean((lives.end - lives.begin)[begun] > 0.25) == pytest.approx(np.exp(-1), abs=0.02)
    assert whole.any()


# Unbalanced least action ----------------------------------------------------------------------


def two_groups(rng, first, second, apart=0.6, width=0.02):
    centres = np.repeat([[0.2, 0.5], [0.2 + apart, 0.5]], [first, second], axis=0)
    return centres + width * rng.standard_normal((first + second, 2))


def test_growth_is_learned_where_people_cannot_have_moved():
    rng = np.random.default_rng(0)
    x, y = two_groups(rng, 100, 100), two_groups(rng, 75, 25)
    r = descendants(x, y, x)
    assert r[:100].mean() / r[100:].mean() == pytest.approx(3, rel=0.1)


def test_motion_is_not_taken_for_growth():
    rng = np.random.default_rng(0)
    x = two_groups(rng, 100, 100)
    r = descendants(x, x + np.array([0.05, 0.0]), x)
    assert r.std() / r.mean() < 0.1


def test_lineages_stay_where_groups_multiply_and_move_where_people_do():
    """Of a group of 10 % that becomes 90 %, the ancestors are its own: nobody came over."""
    rng, many = np.random.default_rng(0), 200
    clouds = np.stack([two_groups(rng, many - n, n, apart=0.4) for n in (20, 60, 100, 140, 180)])
    assert (ancestors(clouds)[0, :, 0] > 0.4).mean() > 0.85
    moved = ancestors(clouds[[2] * 4] + np.linspace(0, 0.3, 4)[:, None, None] * [1.0, 0.0])
    assert np.ptp(moved[..., 0].mean(axis=1)) == pytest.approx(0.3, rel=0.2)


def test_whoever_is_at_the_rim_is_not_carried_to_a_fate_that_grows():
    """Groups that nearly touch, of which one triples: people at the rim of the other would be the
    nearer way. One cloud that moves is not taken for one that grows in front."""
    rng = np.random.default_rng(3)
    x, y = (two_groups(rng, 120 - k, k, apart=0.24, width=0.03) for k in (20, 60))
    r = descendants(x, y, x)
    other, own = r[:100], r[100:]
    assert own.mean() / other.mean() == pytest.approx(5, rel=0.04)
    cloud, way = 0.5 + 0.1 * rng.standard_normal((120, 2)), 0.05
    moved = np.log(descendants(cloud, cloud + np.array([way, 0.0]), cloud))
    share = np.cov(moved, cloud[:, 0])[0, 1] / way  # of the way that growth explains
    assert share < 0.6


def test_mass_that_grew_is_not_transported():
    rng = np.random.default_rng(1)
    clouds = np.stack([two_groups(rng, 128 + 32 * k, 128 - 32 * k) for k in range(3)])
    weights, clock = np.full((3, 256), 1 / 256), np.array([0, 0.5, 1.0])
    sizes = Sizes(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    people = pedigree(clouds, weights, clock, Reference(), sizes, None)
    assert np.abs(np.diff(people.knots[:, :, 0], axis=1)).max() < 0.3
    alive = (people.born[:, None] < np.arange(3)) & (np.arange(3) <= people.died[:, None])
    np.testing.assert_array_equal(alive.sum(axis=0), people.alive)
    np.testing.assert_allclose(people.alive / people.alive[-1], sizes.at(clock), atol=0.002)
    left = [(people.knots[alive[:, k], k, 0] < 0.5).mean() for k in range(3)]
    np.testing.assert_allclose(left, [0.5, 0.625, 0.75], atol=0.01)
    daughters = people.mother >= 0
    before = people.knots[daughters, 0], people.knots[people.mother[daughters], 0]
    np.testing.assert_array_equal(*before)


@pytest.mark.parametrize("windows", ["auto", 3])
def test_nobody_crosses_where_one_of_two_fates_takes_over(windows):
    """Also where days are measured together: curves through them carried half of a fate over."""
    rng, days = np.random.default_rng(2), np.arange(7.0)
    day = np.repeat(days, 570)
    upper = rng.uniform(size=len(day)) < 1 / (1 + np.exp(2.44 * (1 - day / 3)))
    places = 0.5 + 0.15 * np.stack([np.zeros(len(day)), np.where(upper, 1, -1)], axis=1)
    snaps = pt.Snapshots.from_arrays(
        day, places + 0.04 * rng.standard_normal(places.shape), bounds=[(0, 1)] * 2, bins=days
    )
    how = {"growth": "released by_place=learned", "windows": windows, "seed": 2}
    model = pt.TrajectorySynthesizer(1.0, 1e-6, **how).fit(snaps)
    cells = model.sample(2000, times=days, branching=True, seed=0)
    ended_up = cells.present[:, -1] & (cells.values[:, -1, 1] > 0.5)
    assert (cells.values[ended_up, 0, 1] < 0.5).mean() < 0.1
    between = np.abs(model.marginals[..., 1] - 0.5) < 0.05
    assert between.mean() < 0.05


def test_a_public_rate_by_place_is_followed():
    rng = np.random.default_rng(2)
    clouds = np.stack([two_groups(rng, 128, 128), two_groups(rng, 188, 68)])

    def rate(x, t):
        return np.where(x[:, 0] < 0.5, 1.0, 0.0)

    weights, clock = np.full((2, 256), 1 / 256), np.array([0, 1.0])
    people = pedigree(clouds, weights, clock, Reference(), None, rate)
    descended = np.bincount(people.mother[people.mother >= 0], minlength=people.alive[0]) + 1
    left = people.knots[: people.alive[0], 0, 0] < 0.5
    assert descended[left].mean() == pytest.approx(np.e, rel=0.15)
    assert descended[~left].mean() == pytest.approx(1, rel=0.15)


def test_shares_that_change_for_good_are_not_smoothed_away():
    """Groups far apart whose share goes from .5 to .8: transport flattens it, growth does not."""
    from privtraj.measures.over_time import GridMeasure

    share = np.linspace(0.5, 0.8, 10)
    centres = np.tile([[0.25, 0.1], [0.25, 0.9]], (10, 1, 1))
    weights = np.stack([share, 1 - share], axis=1)
    sides = np.full(10, 0.1)
    measure = GridMeasure(centres, weights, sides, np.ones(10))
    moved, grown = (
        np.abs(pooled_over_time(measure, np.ones(9), 300.0, reach=reach).weights[:, 0] - share)
        for reach in (np.inf, 0.2)
    )
    assert grown.max() < 0.02 < moved.max()


# Branching ------------------------------------------------------------------------------------


def test_daughters_begin_where_their_mothers_are_and_part():
    n, times = 400, np.linspace(0, 1, 33)
    when = np.append(times, MOMENTS)
    rng = np.random.default_rng(0)
    own = rng.uniform(0.1, 0.9, (n, 1, 2)) + 0.05 * when[None, :, None]
    lives = Lives(np.append(np.zeros(100), rng.uniform(0.1, 0.9, 300)), np.ones(n))
    people = family(own, times, lives, np.zeros(2, bool), Axes.numeric(2))
    assert (people.parent[:100] == -1).all()
    assert (people.parent[100:] >= 0).all()
    for child in range(100, n):
        mother, t = people.parent[child], people.lives.begin[child]
        assert people.lives.begin[mother] < t
        past = times <= t
        np.testing.assert_array_equal(people.values[child, past], people.values[mother, past])
        later = times > t + PARTING
        np.testing.assert_allclose(people.values[child, later], own[child, : len(times)][later])


# Models ---------------------------------------------------------------------------------------

WAYS = ["released", "released by_place=learned", "released turnover=0.5"]


@pytest.mark.thorough
@pytest.mark.parametrize(("growth", "branching"), [*zip(WAYS, [False, True, False], strict=True)])
def test_numbers_and_branches_of_a_growing_population(cells, model, growth, branching):
    n = 6000
    paths = model.with_growth(growth).sample(n, seed=0, branching=branching)
    share = true_sizes(cells)
    scale = paths.numbers[-1]
    noise = binomial(scale, share) + 0.03 * scale  # of so many people, and of the cells themselves
    assert (np.abs(paths.numbers - scale * share) <= noise).all()
    upper = np.array([(paths.values[paths.present[:, k], k, 1] > 0).mean() for k in range(10)])
    truth = cells.counts[:, 0] / cells.counts.sum(axis=1)
    assert np.abs(upper - truth)[SPLIT].max() < 0.02


READ, SOME, ROUNDS = (0, 5, 9), 250, 8


@pytest.fixture(scope="module")
def everybody(model):
    """At each of three times: people of the model, and W2 to them of others, again and again."""
    people = np.random.default_rng(0).permutation(
        model.with_growth(None).sample(6000, seed=2).values
    )
    many, others = people[:1000], people[1000:]
    floors = [
        [
            pt.metrics.wasserstein2(others[r * SOME : (r + 1) * SOME, k], many[:, k])
            for r in range(2 * ROUNDS)
        ]
        for k in READ
    ]
    return many, np.array(floors)


@pytest.mark.thorough
@pytest.mark.parametrize(("growth", "branching"), [*zip(WAYS, [False, True, True], strict=True)])
def test_those_who_are_there_have_the_marginals_of_the_model(model, everybody, growth, branching):
    """Mean W2 to the model's people of eight portions, within 4 standard errors, of those who have
    the right law: a false alarm in 10^4 times."""
    grown = model.with_growth(growth).sample(12_000, seed=1, branching=branching)
    many, floors = everybody
    rng = np.random.default_rng(1)
    for k, floor in zip(READ, floors, strict=True):
        there = rng.permutation(grown.values[grown.present[:, k], k])
        portions = there[: len(there) // SOME * SOME].reshape(-1, SOME, 2)[:ROUNDS]
        found = np.mean([pt.metrics.wasserstein2(some, many[:, k]) for some in portions])
        error = floor.std(ddof=1) * np.sqrt(1 / len(portions) + 1 / len(floor))
        assert found < floor.mean() + 4 * error


def test_cells_do_not_cross_to_the_other_branch_where_growth_is_learned(model):
    def crossing(growth):
        paths = model.with_growth(growth).sample(4000, seed=0)
        both = paths.present[:, 6] & paths.present[:, 9]
        upper = paths.values[both][:, [6, 9], 1] > 0
        return np.mean(upper[:, 0] != upper[:, 1])

    assert crossing("released by_place=learned") < 0.02 < 0.05 < crossing("released")


@pytest.mark.parametrize("growth", WAYS)
def test_siblings_share_their_past_exactly(model, growth):
    paths = model.with_growth(growth).sample(
        500, times=np.linspace(0, 1, 50), seed=4, branching=True
    )
    assert (paths.parent >= 0).sum() > 100
    for child in np.flatnonzero(paths.parent >= 0):
        mother, born = paths.parent[child], paths.lives[child, 0]
        past = paths.numeric_times <= born
        np.testing.assert_array_equal(paths.values[child, past], paths.values[mother, past])
        assert paths.lives[mother, 0] < born
        assert not paths.present[child, paths.numeric_times < born].any()
    assert (
        np.nanmax(np.abs(np.diff(paths.values, axis=1))) < 0.5
    )  # nobody jumps to where they belong


def test_values_are_absent_where_nobody_is(model):
    paths = model.with_growth("released turnover=1").sample(300, seed=0)
    np.testing.assert_array_equal(np.isnan(paths.values).any(axis=2), ~paths.present)
    assert paths.parent is None
    here = (paths.lives[:, :1] <= paths.numeric_times) & (paths.numeric_times <= paths.lives[:, 1:])
    np.testing.assert_array_equal(here, paths.present)


def test_everybody_is_there_without_growth(model):
    paths = model.with_growth(None).sample(50, seed=0)
    assert paths.present.all()
    assert paths.lives is None
    assert paths.to_arrow().num_rows == 500


def test_a_decline_ends_paths_early(model):
    paths = model.with_growth(-1.0).sample(3000, seed=0)
    assert paths.present[:, 0].all()
    share = np.exp(-TIMES)
    assert (np.abs(paths.numbers - 3000 * share) <= binomial(3000, share)).all()


@pytest.mark.parametrize("reference", [Brownian(0.01), Inertia(memory=0.3, share=0.5)])
def test_growth_goes_with_every_reference(model, reference):
    paths = model.with_reference(reference).sample(500, seed=0, branching=True)
    assert 0 < paths.numbers[0] < paths.numbers[-1] == 500


def test_features_that_never_fall_do_not_fall_in_families(model):
    rising = model.with_constraints(monotone=["x1"], precision={"x2": 0.1})
    paths = rising.sample(500, times=np.linspace(0, 1, 30), seed=0, branching=True)
    assert np.nanmin(np.diff(paths.values[:, :, 0], axis=1)) >= 0
    tenths = paths.values[paths.present][:, 1] * 10
    np.testing.assert_allclose(tenths, np.rint(tenths), atol=1e-6)


@pytest.mark.thorough
def test_few_people_and_few_times(model):
    for growth in WAYS:
        grown = model.with_growth(growth)
        for n in (1, 2, 7):
            paths = grown.sample(n, times=[0.5], seed=n, branching=True)
            assert paths.values.shape == (n, 1, 2)


def test_a_seed_repeats_the_population(model):
    one, two = (model.sample(200, seed=3, branching=True) for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.parent, two.parent)


# Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("growth", [*WAYS, 0.3, {0: 1.0, 1: 5.0}, None])
def test_growth_is_kept_in_the_file_of_a_model(model, growth, tmp_path):
    grown = model.with_growth(growth)
    grown.save(tmp_path / "m.privtraj", not_private=True)
    again = pt.load(tmp_path / "m.privtraj")
    assert again.growth == grown.growth
    one, two = (m.sample(50, seed=1) for m in (grown, again))
    np.testing.assert_array_equal(one.present, two.present)
    again.verify()


def test_a_table_of_dates_is_kept():
    growth = Growth({"2024-01-01": 2, np.datetime64("2024-03-01"): 4})
    assert Growth.from_dict(json.loads(json.dumps(growth.to_dict()))) == growth
    with pytest.raises(InputError, match="table of numbers"):
        growth.check(datetime=False)


HOSTILE = [
    "released",
    [],
    {"size": "released"},
    {"size": "released", "by_place": None, "turnover": 0, "more": 1},
    {"size": "released", "by_place": "os.system", "turnover": 0},
    {"size": "released", "by_place": None, "turnover": -1},
    {"size": "released", "by_place": None, "turnover": "1"},
    {"size": None, "by_place": None, "turnover": 0},
    {"size": [[0, 1]], "by_place": None, "turnover": 0},
    {"size": [[0, 1], [1]], "by_place": None, "turnover": 0},
    {"size": [[0, 1], [1, -1]], "by_place": None, "turnover": 0},
    {"size": [[0, 1], [[1], 1]], "by_place": None, "turnover": 0},
    {"size": [[0, 1], ["x", 1]], "by_place": None, "turnover": 0},
    {"size": 1e999, "by_place": None, "turnover": 0},
    {"size": True, "by_place": None, "turnover": 0},
    {"size": {"a": 1}, "by_place": None, "turnover": 0},
]


@pytest.mark.parametrize("written", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_growth_is_refused(written):
    with pytest.raises(InputError):
        Growth.from_dict(written)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"people_per_time": [1.0], "people_middles": [0.5], "people_lengths": [0.0]},
        {"people_per_time": [1.0, 2.0], "people_middles": [0.5, 0.1], "people_lengths": [1.0, 1.0]},
        {"people_per_time": [1.0, None], "people_middles": [0, 1], "people_lengths": [1, 1]},
        {"people_per_time": [1.0], "people_middles": [0.5, 1.0], "people_lengths": [1.0]},
    ],
)
def test_released_numbers_that_cannot_be_are_refused(told):
    with pytest.raises(InputError, match="numbers of people over time"):
        Growth().sizes(0.0, 1.0, {**told, "people_noise": 1.0})


@pytest.mark.parametrize("far", [{"size": 1e308}, {"size": 0.0, "turnover": 1e300}])
def test_growth_beyond_all_numbers_is_refused_in_a_file_too(model, far, tmp_path):
    from dataclasses import replace

    with pytest.raises(InputError, match="unit of time"):
        model.with_growth(Growth(**far))
    replace(model, growth=Growth(**far)).sealed().save(tmp_path / "m.privtraj", not_private=True)
    with pytest.raises(InputError, match="its growth cannot be read"):
        pt.load(tmp_path / "m.privtraj")


def test_a_function_is_no_part_of_a_file(model, tmp_path):
    grown = model.with_growth(lambda x, t: np.where(x[:, 1] > 0, 2.0, 0.5))
    paths = grown.sample(2000, seed=0, branching=True)
    expected = np.exp(np.cumsum(np.append(0, np.full(9, 1.6 / 9))))
    assert paths.numbers[-1] / paths.numbers[0] == pytest.approx(expected[-1], rel=0.15)
    with pytest.raises(InputError, match="cannot be written"):
        grown.save(tmp_path / "m.privtraj", not_private=True)


# Tables, maps, pictures -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def born(model):
    return model.with_growth("released turnover=1").sample(60, seed=0, branching=True)


def test_the_long_table_has_no_row_for_the_absent(born, tmp_path):
    table = born.to_arrow()
    assert table.column_names == ["path", "time", "parent", "x1", "x2"]
    assert table.num_rows == born.present.sum() < 600
    frame = born.to_frame()
    assert not frame.isna().any(axis=None)
    np.testing.assert_array_equal(frame.groupby("time").size(), born.numbers)
    np.testing.assert_array_equal(frame["parent"], born.parent[frame["path"]])
    for name in ("p.csv", "p.parquet", "p.arrow"):
        born.save(tmp_path / name)
    import pyarrow.csv
    import pyarrow.parquet

    assert pyarrow.csv.read_csv(tmp_path / "p.csv").num_rows == table.num_rows
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").equals(table)


def test_polars_has_no_row_for_the_absent(born):
    pytest.importorskip("polars")
    assert born.to_polars().height == born.present.sum()


def test_cells_of_anndata_are_those_who_are_there(born, tmp_path):
    anndata = pytest.importorskip("anndata")
    data = born.to_anndata()
    assert data.n_obs == born.present.sum()
    assert list(data.obs.columns) == ["path", "time", "parent", "descendants"]
    np.testing.assert_array_equal(data.uns["privtraj_growth"]["cells"], born.numbers)
    moves = data.obsp["T_fwd"]
    np.testing.assert_allclose(moves.sum(axis=1), 1)
    times, parents = data.obs["time"].to_numpy(), data.obs["parent"].to_numpy()
    before, after = moves.nonzero()
    ahead = times[after] > times[before]
    assert (ahead | (before == after)).all()
    births = data.obs["path"].to_numpy()[before] != data.obs["path"].to_numpy()[after]
    assert births.sum() >= (born.lives[:, 0][born.parent >= 0] < 1).sum() // 2
    direct = parents[after[births]] == data.obs["path"].to_numpy()[before[births]]
    assert direct.mean() > 0.5  # of the others, the mother was born since
    at_first = times == times.min()
    assert data.obs["descendants"][at_first].sum() == born.numbers[-1]  # nobody from nowhere
    named = born.to_anndata(fates=lambda ends: np.where(ends[:, 1] > 0, "upper", "lower"))
    upper = (born.values[born.present[:, -1], -1, 1] > 0).mean()
    assert named.uns["privtraj_fates"]["upper"] == pytest.approx(upper)
    with pytest.raises(InputError, match="fates must name one for each"):
        born.to_anndata(fates=lambda ends: "upper")
    # as written, in steps that follow from the bounds
    np.testing.assert_allclose(data.obsm["X_features"], born.values[born.present], atol=1e-4)
    path, k = map(int, data.obs_names[7].split("-"))
    np.testing.assert_allclose(data.obsm["X_features"][7], born.values[path, k], atol=1e-4)
    born.save(tmp_path / "p.h5ad")
    assert anndata.read_h5ad(tmp_path / "p.h5ad").n_obs == data.n_obs


@pytest.fixture(scope="module")
def trips(born):
    return pt.Paths(
        born.values,
        born.numeric_times,
        ("lon", "lat"),
        "time",
        False,
        present=born.present,
        lives=born.lives,
        parent=born.parent,
    )


def test_lines_on_a_map_are_where_people_are(trips):
    lines = trips.to_geojson()["features"]
    often = trips.present.sum(axis=1)
    assert [line["properties"]["path"] for line in lines] == list(np.flatnonzero(often >= 2))
    for line in lines:
        path = line["properties"]["path"]
        assert len(line["geometry"]["coordinates"]) == often[path]
        assert line["properties"]["times"] == trips.times[trips.present[path]].tolist()
        assert line["properties"]["parent"] == trips.parent[path]


def test_points_on_a_map_are_where_people_are(trips):
    pytest.importorskip("geopandas")
    frame = trips.to_geopandas()
    assert len(frame) == trips.present.sum()
    assert not frame.geometry.is_empty.any()


def test_movingpandas_has_those_who_move(trips):
    pytest.importorskip("movingpandas")
    moving = trips.to_movingpandas(origin="2024-01-01", unit="hours")
    assert len(moving.trajectories) == (trips.present.sum(axis=1) >= 2).sum()


@pytest.mark.usefixtures("without_refits")
def test_pictures_and_cards_of_a_population(model, born, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    from privtraj import plot

    plot.paths(born)
    plot.marginals(born)
    model.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    data = page.split('type="application/json"')[1].split("</script>")[0]
    assert not re.search(r"[:,\[ ]NaN[,\] }]", data)  # as a number, not letters of a picture


def test_a_population_is_evaluated(cells, model):
    some = slice(None, None, 20)
    x1, x2 = cells.points[some].T
    found = pt.evaluate(model, {"time": cells.times[some], "x1": x1, "x2": x2}, n=100)
    assert "nan" not in json.dumps(found.to_dict()).lower()
