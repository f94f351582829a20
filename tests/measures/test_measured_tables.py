"""Marginal tables: groups, denoising, particles and people, and a fit from snapshots to a model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import privtraj as pt
from privtraj.columns.kinds import Axes
from privtraj.measures import pairs
from privtraj.measures.pairs import on_simplex
from privtraj.measures.products import MOTION, Problem, Product, Target, drawn, slopes
from privtraj.measures.tables import ROUNDS, TABLES
from privtraj.measures.windows import Ends

shares = st.lists(st.floats(0, 1), min_size=2, max_size=30).filter(lambda x: sum(x) > 0)


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=30))
def test_the_nearest_shares_are_shares(values):
    found = on_simplex(np.array(values))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)


def test_shares_stay_what_they_are():
    np.testing.assert_allclose(on_simplex(np.array([0.2, 0.0, 0.8])), [0.2, 0.0, 0.8])


@given(shares, st.integers(2, 16), st.booleans())
def test_cells_and_groups_of_a_number_are_runs(values, count, lack):
    cut = pairs.cut_number(np.array(values), count, max(count // 2, 2), lack)
    for of in (cut.cells, cut.groups, cut.bands):
        assert of[0] == 0
        assert set(np.diff(of)) <= {0, 1}
        assert not lack or np.count_nonzero(of == of[-1]) == 1
    np.testing.assert_array_equal(cut.of_cell[cut.cells], cut.groups)
    np.testing.assert_array_equal(cut.of_group[cut.groups], cut.bands)
    assert cut.groups[-1] < 2 * count + 3


def test_tails_of_a_number_are_cut_finer_and_a_constant_is_one_cell():
    places = (np.arange(1024) + 0.5) / 1024
    people = np.exp(-0.5 * ((places - 0.5) / 0.1) ** 2)
    people /= people.sum()
    cut = pairs.cut_number(people, 8, 4, False)
    held = np.bincount(cut.bands, people)
    np.testing.assert_allclose(held, [0.17, 0.33, 0.33, 0.17], atol=0.02)  # least squares: .163
    assert pairs.count(pairs.cut_number(np.eye(1024)[300], 8, 4, False).cells) == 1


def test_nobody_is_far_from_all_others_where_people_are_few_beside_the_noise():
    rng, places = np.random.default_rng(0), (np.arange(1024) + 0.5) / 1024
    people = np.exp(-0.5 * ((places - 0.3) / 0.05) ** 2)
    people *= 900 / people.sum()
    far = []
    for _ in range(10):
        tables = [people.reshape(n, -1).sum(axis=1) for n in (16, 64, 1024)]
        noisy = [table + 30 * rng.standard_normal(len(table)) for table in tables]
        far.append(pairs.smoothed(noisy, 900.0, 30.0)[places > 0.6].sum() / 900)
    assert np.mean(far) < 0.01


def test_a_contrast_that_stands_out_alone_is_kept_and_others_are_not():
    values = np.random.default_rng(0).standard_normal(60)
    values[7] = 8.0
    kept, square, _ = pairs._kept(values, np.ones(60), np.ones(60))
    assert kept[7] > 0.8 * values[7]
    assert np.abs(np.delete(kept, 7)).mean() < 0.1
    assert (square >= kept**2).all()  # what is in doubt is a variance


def test_a_trend_is_a_contrast_of_its_own():
    when = pairs.Basis.of(np.full(4, 0.25), True).fine
    theta = np.linspace(-1, 1, 4)[:, None, None] * np.ones((1, 2, 3))
    seen = np.broadcast_to([1.0, 1.0, np.inf], theta.shape)
    line, *rest = pairs.Contrasts(theta, seen).over_time(when)
    np.testing.assert_allclose(np.abs(line.theta), np.sqrt(5 / 9))
    np.testing.assert_allclose(line.variance[0], [[0.25, 0.25, np.inf]] * 2)
    for other in rest:
        np.testing.assert_allclose(other.theta, 0, atol=1e-12)


@given(shares, st.floats(0, 1))
def test_levels_that_are_not_rare_have_a_cell_of_their_own(values, least):
    people = np.array(values)
    of = pairs.cut_levels(people, least, False, 4).cells
    assert set(of) == set(range(of.max() + 1))
    for level in np.flatnonzero(people >= least):
        assert np.count_nonzero(of == of[level]) == 1


@given(shares, st.floats(1e-6, 1))
def test_cells_of_ordered_levels_are_neighbours_with_enough_people(values, least):
    people = np.array(values)
    cut = pairs.cut_levels(people, least, True, 4)
    np.testing.assert_array_equal(cut.of_group[cut.groups], cut.bands)
    of = cut.cells
    assert set(np.diff(of)) <= {0, 1}
    held = np.bincount(of, people)
    assert len(held) == 1 or (held > least / 2).all()


@pytest.mark.parametrize("near", [True, False])
def test_functions_of_groups_are_orthonormal(near):
    shares = np.array([0.1, 0.4, 0.2, 0.3])
    shares, values, _ = pairs.Basis.of(shares, near).fine
    np.testing.assert_allclose(values.T @ (shares[:, None] * values), np.eye(4), atol=1e-12)


def test_who_lacks_a_number_is_a_function_of_its_own():
    bands = np.array([0, 0, 1, 1, 2])
    basis = pairs.Basis.of(np.array([0.1, 0.3, 0.1, 0.3, 0.2]), True, bands, True)
    for shares, values, scale in (basis.fine, basis.coarse):
        lacks = values[:, -1]
        assert np.ptp(lacks[:-1]) == pytest.approx(0)
        assert shares @ lacks == pytest.approx(0)
        np.testing.assert_allclose(values[-1, 1:-1], 0, atol=1e-12)  # polynomials of the others
        assert np.isfinite(scale[[0, 1, -1]]).all()
    assert np.isinf(basis.coarse.scale[2:4]).all()  # two bands tell a line
    np.testing.assert_array_equal(basis.order, [-1, 1, 2, 3, 0])


def test_bands_tell_the_contrasts_that_they_can_tell_as_groups_do():
    rng = np.random.default_rng(0)
    bands = np.arange(12) // 3
    basis = pairs.Basis.of(rng.dirichlet(np.full(12, 9.0)), True, bands)
    table = 1 + 0.3 * np.outer(EVEN.fine.values[:, 1], basis.fine.values[:, 1])
    table *= 1000 * np.outer(EVEN.fine.shares, basis.fine.shares)
    expected = 1000 * np.outer(EVEN.fine.shares, basis.fine.shares)
    inside = pairs.indicator(bands)
    few = pairs.Contrasts.of(
        (table @ inside)[None], (expected @ inside)[None], 25.0, EVEN.fine, basis.coarse
    )
    all_of_them = pairs.Contrasts.of(table[None], expected[None], 25.0, EVEN.fine, basis.fine)
    assert few.theta[0, 1, 1] == pytest.approx(0.3)
    assert all_of_them.theta[0, 1, 1] == pytest.approx(0.3)
    assert few.variance[0, 1, 1] < all_of_them.variance[0, 1, 1] / 2
    assert np.isinf(few.variance[0, 1, 4:]).all()
    both = few.and_also(all_of_them)
    assert (both.variance < 1.001 * np.minimum(few.variance, all_of_them.variance)).all()
    assert np.isfinite(both.theta).all()


def denoised(noisy, expected, noise, rows, columns):
    """The table, and what is in doubt of its contrasts."""
    seen = pairs.Contrasts.of(noisy, expected, noise**2, rows.fine, columns.fine)
    found = seen.denoised(rows, columns)
    return expected + expected.sum() * found.away, found.doubt


EVEN = pairs.Basis.of(np.full(10, 0.1), True)
LEVELS = pairs.Basis.of(np.full(10, 0.1), False)


@pytest.mark.parametrize("rows", [EVEN, LEVELS])
def test_noise_alone_is_no_dependence(rows):
    rng = np.random.default_rng(0)
    expected = np.full((1, 10, 10), 50.0)
    noisy = expected + 7 * rng.standard_normal((50, 10, 10))
    found = [denoised(one[None], expected, 7.0, rows, EVEN) for one in noisy]
    left = [np.sqrt(np.mean((one[0] - expected) ** 2)) for one in found]
    assert np.mean(left) < 2.1  # three tenths of the noise
    variance = 7.0**2 / 5000**2 * np.outer(rows.fine.scale, EVEN.fine.scale)
    assert np.mean([one[1].sum() for one in found]) < variance.sum() / 5  # and hardly in doubt


@pytest.mark.parametrize("rows", [EVEN, LEVELS])
def test_a_strong_dependence_is_kept_nearly_whole(rows):
    rng = np.random.default_rng(1)
    expected = np.full((1, 10, 10), 100.0)
    truth = expected + 60 * np.outer(np.linspace(-1, 1, 10), np.linspace(-1, 1, 10))
    noisy = truth + 5 * rng.standard_normal((1, 10, 10))
    found = denoised(noisy, expected, 5.0, rows, EVEN)
    assert np.sqrt(np.mean((found[0] - truth) ** 2)) < 0.6 * np.sqrt(np.mean((noisy - truth) ** 2))


def test_a_mean_in_a_small_group_is_kept_beside_large_ones():
    """3 % of the people, whose number is one standard deviation higher than that of others."""
    shares, groups, noise = np.append(np.full(9, 0.97 / 9), 0.03), 8, 34.0
    ranks = (np.arange(groups) + 0.5) / groups
    scores = norm.ppf(ranks)
    inside = np.full((10, groups), 1 / groups)
    shift = np.array([0, 0.3, -0.3, 0.8, -0.8, 0, 0.5, -0.5, 0, 1.0])
    inside = inside * np.exp(np.outer(shift, scores))
    inside /= inside.sum(axis=1, keepdims=True)
    truth = 8000 * shares[:, None] * inside
    expected = np.outer(shares, truth.sum(axis=0))[None]
    rows = pairs.Basis.of(shares, False)
    columns = pairs.Basis.of(truth.sum(axis=0) / 8000, True)
    rng, found = np.random.default_rng(2), []
    for _ in range(100):
        noisy = truth + noise * rng.standard_normal(truth.shape)
        made = denoised(noisy[None], expected, noise, rows, columns)[0][0]
        found.append(made[-1] @ scores / (8000 * shares[-1]))
    assert np.mean(found) > 0.6 * (inside[-1] @ scores)
    assert np.std(found) < 0.35


def test_a_number_by_itself_keeps_a_skewed_middle_an_atom_and_empty_places():
    rng = np.random.default_rng(3)
    for place in (np.exp(3 + rng.standard_normal(8000)) / 5000, np.full(8000, 0.3)):
        counts = [
            np.bincount(np.minimum((place * side).astype(int), side - 1), minlength=side)
            + 40 * rng.standard_normal(side)
            for side in (16, 64, 1024)
        ]
        found = pairs.smoothed(counts, 8000.0, 40.0) / 8000
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        median = np.searchsorted(np.cumsum(found), 0.5) / 1024
        assert median == pytest.approx(np.median(place), abs=2 / 1024)
        high = (np.quantile(place, 0.999) * 1024).astype(int) + 1
        assert found[2 * high :].sum() < 0.005


MIDDLES = Ends(np.arange(4.0), 0.0, 0.0)
SIZES = np.array([100.0, 300.0, 200.0, 400.0])
AXES = Axes((0, 3, 2), (False, False, False), (False, False, True))


CUTS = [
    pairs.Cut(*(np.arange(side),) * 3, near) for side, near in ((8, True), (3, False), (2, False))
]
SHARES = [np.full(side, 1 / side) for side in (8, 3, 2)]


def products(rng):
    """q of 40 particles in four slabs: a number, a category that changes, a fixed one."""
    number = rng.dirichlet(np.ones(8), (4, 40))
    changing = rng.dirichlet(np.ones(3), (4, 40))
    fixed = rng.dirichlet(np.ones(2), (4, 40))
    return [number, changing, fixed]


def made(q):
    return [Product(*one) for one in zip(q, CUTS, SHARES, strict=True)]


def test_people_are_as_their_particles_are():
    rng = np.random.default_rng(0)
    q = products(rng)
    people, weights = drawn(made(q), AXES, MIDDLES, SIZES, 40_000, rng)
    assert people.shape == (4, 40_000, 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    levels = AXES.level_of(people)
    for slab in range(4):
        # weights make a standard error larger: a chance of one in a million or less
        for column, found in enumerate(((people[slab, :, 0] * 8).astype(int), *levels[slab].T[1:])):
            shares = np.bincount(found, weights[slab], minlength=q[column].shape[2])
            np.testing.assert_allclose(shares, q[column][slab].mean(axis=0), atol=0.02)
    np.testing.assert_array_equal(people, AXES.centred(people))


def test_fixed_levels_never_change_and_others_as_seldom_as_they_can():
    rng = np.random.default_rng(1)
    q = products(rng)
    levels = AXES.level_of(drawn(made(q), AXES, MIDDLES, SIZES, 40_000, rng)[0])
    assert (levels[:, :, 2] == levels[0, :, 2]).all()
    changed = np.mean(levels[1:, :, 1] != levels[:-1, :, 1], axis=1)
    least = 0.5 * np.abs(np.diff(q[1], axis=0)).sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(changed, least, atol=0.0125)


@pytest.fixture(scope="module")
def table():
    """Sex, a diagnosis that spreads, and a number that depends on it."""
    rng = np.random.default_rng(3)
    n = 8000
    t = rng.uniform(0, 2, n)
    sex = rng.random(n) < 0.4
    ill = rng.random(n) < 0.2 + 0.25 * t
    hb = np.where(ill, 9.0, 5.0) + 0.3 * rng.standard_normal(n)
    return {
        "t": t,
        "sex": np.where(sex, "F", "M"),
        "diagnosis": np.where(ill, "ill", "well"),
        "hb": np.where(rng.random(n) < 0.1, np.nan, hb),
    }


COLUMNS = {
    "sex": pt.Category(["F", "M"], fixed=True),
    "diagnosis": pt.Category(["well", "ill"]),
    "hb": pt.Number(3, 13, missing=True),
}


@pytest.fixture(scope="module")
def model(table):
    people = pt.Snapshots.from_table(table, time="t", time_range=(0, 2), columns=COLUMNS)
    return pt.TrajectorySynthesizer(1.0, 1e-5, seed=0).fit(people)


def test_auto_takes_tables_where_there_are_categories(model):
    assert model.settings["measure"] == "tables"
    tables = [one for one in model.certificate.ledger if one["what"].startswith(f"{TABLES}: ")]
    assert sum(entry["times"] for entry in tables) == len(ROUNDS)
    assert model.certificate.epsilon <= 1.0


def test_the_certificate_names_the_columns_of_every_table(model):
    said = [one["what"].partition(": ")[2] for one in model.certificate.ledger]
    alone, every_two, *chosen = filter(None, said)
    assert alone == "sex, diagnosis, hb"
    assert every_two == "every two of sex, diagnosis, hb, and each over time"
    assert all("diagnosis x hb" in one or "over time" in one for one in chosen)
    model.verify()


def test_shares_follow_the_data(model):
    levels = Axes.of(model.columns).level_of(model.particles)
    at = np.clip((0.2 + 0.25 * model.knots), 0, 1)
    ill = ((levels[:, :, 1] == 1) * model.weights).sum(axis=1)
    # noise of a share of 1,000 people in a slab is .02, chance .015: four of them, and smoothing
    np.testing.assert_allclose(ill, at, atol=0.08)
    assert (levels[:, :, 0] == 0).mean() == pytest.approx(0.4, abs=0.04)
    assert (levels[:, :, 0] == levels[:1, :, 0]).all()
    assert (levels[:, :, 3] == 1).mean() == pytest.approx(0.1, abs=0.04)


def test_groups_do_not_mix(model):
    levels = Axes.of(model.columns).level_of(model.particles)
    hb = 3 + 10 * model.particles[:, :, 2]
    known = levels[:, :, 3] == 0
    assert np.mean((hb > 6.3) & (hb < 7.7) & known) < 0.05
    for level, centre in ((0, 5.0), (1, 9.0)):
        mine = known & (levels[:, :, 1] == level)
        assert np.mean(np.abs(hb[mine] - centre) < 1.3) > 0.85


def test_people_who_lack_a_number_leave_no_trace_in_it(model):
    levels = Axes.of(model.columns).level_of(model.particles)
    hb = 3 + 10 * model.particles[:, :, 2]
    known = levels[:, :, 3] == 0
    assert (
        np.mean((np.abs(hb - 8.0) < 0.2) & known) < 0.02
    )  # where one in ten is counted as missing


def test_a_seed_gives_the_same_model(table, model):
    people = pt.Snapshots.from_table(table, time="t", time_range=(0, 2), columns=COLUMNS)
    assert pt.TrajectorySynthesizer(1.0, 1e-5, seed=0).fit(people).sha256 == model.sha256


def test_listed_times_are_slabs_of_their_own(table):
    days = {**table, "t": np.round(table["t"] * 2)}
    people = pt.Snapshots.from_table(days, time="t", bins=[0, 1, 2, 3, 4], columns=COLUMNS)
    found = pt.TrajectorySynthesizer(1.0, 1e-5, seed=0).fit(people)
    np.testing.assert_array_equal(found.knots, [0, 1, 2, 3, 4])


def test_categories_alone_have_a_model(table):
    few = {name: COLUMNS[name] for name in ("sex", "diagnosis")}
    people = pt.Snapshots.from_table(table, time="t", time_range=(0, 2), columns=few)
    found = pt.TrajectorySynthesizer(1.0, 1e-5, seed=0, windows=3).fit(people)
    assert found.particles.shape[2] == 2
    one = pt.Snapshots.from_table(
        table, time="t", time_range=(0, 2), columns={"sex": COLUMNS["sex"]}
    )
    assert pt.TrajectorySynthesizer(1.0, 1e-5, seed=0).fit(one).particles.shape[2] == 1


def test_numbers_may_be_measured_by_tables_too():
    rng = np.random.default_rng(0)
    points = rng.normal(0.5, 0.1, (2000, 4)).clip(0, 1)
    people = pt.Snapshots.from_arrays(
        rng.uniform(0, 1, 2000), points, bounds=[(0, 1)] * 4, time_range=(0, 1)
    )
    found = pt.TrajectorySynthesizer(2.0, 1e-5, seed=0, measure="tables").fit(people)
    np.testing.assert_allclose(found.marginals.mean(axis=(0, 1)), 0.5, atol=0.04)


def test_who_lacks_a_number_is_told_from_those_at_its_middle():
    """Three in ten are at the middle of eleven values, where a number that is missing is put, and
    are all well; three in ten lack it, and are all ill. A share is off by 1 % (20 seeds)."""
    rng = np.random.default_rng(0)
    n, who = 6000, rng.permutation(6000) % 10
    words = np.where(who < 3, np.nan, np.where(who < 6, 5, rng.integers(0, 11, n)))
    angle = np.where(np.isnan(words), np.nan, 12.0)
    table = {"t": rng.uniform(0, 1, n), "ill": np.isnan(words), "words": words, "angle": angle}
    columns = {
        "ill": pt.Boolean(),
        "words": pt.Integer(0, 10, missing=True),
        "angle": pt.Angle(24, missing=True),
    }
    people = pt.Snapshots.from_table(table, time="t", time_range=(0, 1), columns=columns)
    found = pt.TrajectorySynthesizer(4.0, 1e-5, seed=0).fit(people).sample(3000).to_frame()
    lacks, ill = found["words"].isna(), found["ill"].astype(bool)
    assert lacks.mean() == pytest.approx(0.3, abs=0.04)
    assert found["angle"].isna()[lacks].mean() > 0.9
    assert ill[lacks].mean() > 0.9
    middle = found["words"].fillna(-1) == 5
    assert middle.mean() == pytest.approx(0.3 + 0.4 / 11, abs=0.04)
    assert ill[middle].mean() < 0.1


KINDS = {
    "number": pt.Number(0, 10),
    "lacking": pt.Number(0, 10, missing=True),
    "integer": pt.Integer(0, 3),
    "angle": pt.Angle(24, missing=True),
    "category": pt.Category([f"v{k}" for k in range(12)]),
    "ordered": pt.Ordered(["I", "II", "III"], missing=True),
    "yes": pt.Boolean(fixed=True),
}


@pytest.mark.parametrize(
    "seed",
    [0, pytest.param(1, marks=pytest.mark.thorough), pytest.param(2, marks=pytest.mark.thorough)],
)
@pytest.mark.parametrize(
    ("n", "epsilon", "names"),
    [
        (60, 0.3, ["number", "integer", "angle"]),
        (10, 1.0, ["number", "category"]),
        (12, 0.01, ["lacking", "yes", "ordered"]),
        (10, 100.0, list(KINDS)),
        pytest.param(300, 1.0, ["category"], marks=pytest.mark.thorough),
        pytest.param(3000, 0.1, list(KINDS), marks=pytest.mark.thorough),
        (60, 0.3, ["number", "lacking", "angle"]),
        pytest.param(100_000, 20.0, list(KINDS), marks=pytest.mark.thorough),
    ],
)
def test_whatever_was_paid_for_is_finite(n, epsilon, names, seed):
    """However small the budget and few the people: noise may be all there is."""
    if seed and n > 100:
        pytest.skip("one seed where noise is not all there is")
    rng = np.random.default_rng(seed)
    draws = {
        "number": rng.normal(5, 1, n),
        "lacking": np.where(rng.random(n) < 0.5, np.nan, 5.0),
        "integer": rng.integers(0, 2, n),
        "angle": np.where(rng.random(n) < 0.3, np.nan, rng.uniform(0, 24, n)),
        "category": rng.choice(["v0", "v7"], n),
        "ordered": rng.choice(["I", "III"], n),
        "yes": rng.random(n) < 0.1,
    }
    table = {"t": rng.uniform(0, 1, n), **{name: draws[name] for name in names}}
    columns = {name: KINDS[name] for name in names}
    people = pt.Snapshots.from_table(table, time="t", time_range=(0, 1), columns=columns)
    made = pt.TrajectorySynthesizer(epsilon, 1e-5, seed=seed, measure="tables").fit(people)
    assert np.isfinite(made.particles).all()
    assert made.particles.min() >= 0
    assert made.particles.max() <= 1
    lacks = [name for name in names if columns[name].missing]
    frame = made.sample(20, seed=seed).to_frame()
    assert frame.drop(columns=lacks).notna().all().all()


def test_slopes_are_those_of_the_misfit():
    rng = np.random.default_rng(0)
    sides, windows = (12, 6, 3), 3
    some = np.array([0, 0, 0, 1, 1, 2])
    cuts = [
        pairs.Cut(np.arange(12), np.arange(12) // 4, np.arange(12) // 6, True),
        pairs.Cut(np.arange(6), some, some, True, True),  # five cells, and who lacks the number
        pairs.Cut(*(np.arange(3),) * 3, False),
    ]

    def target(*shape):
        return Target(np.float32(rng.random(shape)), np.float32(rng.random(shape)))

    problem = Problem(
        sizes=np.float32([0.2, 0.5, 0.3]),
        people=1000.0,
        cuts=cuts,
        alone=[target(side) for side in sides],
        over_time=[target(windows, 3) for _ in sides],
        pairs=target(9, 9),
        parts=target(2, 9, 9),
        part_of_window=np.array([0, 0, 1]),
        places={j: np.float32(rng.standard_normal(sides[j])) for j in (0, 1)},
        covariances=target(2, 2),
    )
    q = [rng.dirichlet(np.ones(side), (windows, 5)) for side in sides]
    there = 3 * 2 / (1 / problem.sizes[1:] + 1 / problem.sizes[:-1])[:, None, None]

    def misfit(q):
        each = (problem.sizes / 5)[:, None, None]
        grouped = [one @ pairs.indicator(cut.of_cell) for one, cut in zip(q, cuts, strict=True)]
        shares = [(one * each).sum(axis=1) for one in q]
        total = sum(t.misfit(one.sum(axis=0)) for t, one in zip(problem.alone, shares, strict=True))
        for t, one in zip(problem.over_time, grouped, strict=True):
            total += t.misfit((one * each).sum(axis=1))
        together = np.concatenate(grouped, axis=-1)
        tables = np.einsum("sma,smb->sab", together * each, together)
        total += problem.pairs.misfit(tables.sum(axis=0))
        total += problem.parts.misfit(np.stack([tables[:2].sum(axis=0), tables[2]]))
        away = np.stack([q[j] @ at for j, at in problem.places.items()], axis=-1)
        total += problem.covariances.misfit(np.einsum("sma,smb->ab", away * each, away))
        for one, cut in zip(q, cuts, strict=True):
            change = np.diff(one, axis=0) * np.sqrt(there)
            moved = (change**2).sum() / 2
            if cut.near:
                known = one.shape[-1] - cut.lacks
                far = np.abs(np.subtract.outer(*[np.arange(known + cut.lacks)] * 2)) / known
                far[known:], far[:, known:], far[known:, known:] = 1, 1, 0
                moved = np.einsum("sma,ab,smb->", change, 1 - far, change) / 2
                if not cut.lacks and np.allclose(change.sum(axis=-1), 0, atol=1e-6):
                    cumulative = (np.cumsum(change, axis=-1) ** 2).sum() / known
                    assert moved == pytest.approx(cumulative)
            total += MOTION * problem.people * (windows - 1) * moved / 5
        return total

    misfit(q)
    for j, slope in enumerate(slopes([np.float32(one) for one in q], problem, problem.members)):
        for _ in range(4):
            at = tuple(rng.integers(side) for side in q[j].shape)
            ends = []
            for step in (-1e-4, 1e-4):
                moved = [one.copy() for one in q]
                moved[j][at] += step
                ends.append(misfit(moved))
            assert slope[at] == pytest.approx((ends[1] - ends[0]) / 2e-4, rel=2e-3, abs=1e-5)
