"""Models of mixed columns: who jumps when, what never changes, conditions, and files."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import privtraj as pt
from mixed_models import CLINIC, build, of_particles
from privtraj.base.errors import InputError
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Axes
from privtraj.domain.domain import Domain
from privtraj.model.model import load
from privtraj.model.record import packed
from test_model import one_sentence, reseal, rewritten

TIMES = np.linspace(0, 3, 13)
HOW = {
    "clouds": (False, {}),
    "curves": (True, {}),
    "clouds, exact": (False, {"coupling": "exact"}),
    "clouds, entropic": (False, {"coupling": "entropic"}),
    "curves, exact": (True, {"coupling": "exact"}),
}


def shares(levels, count):
    """(q, C) of levels (n, q)."""
    return np.stack([(levels == c).mean(axis=0) for c in range(count)], axis=-1)


# Sampling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("reference", ["auto", "brownian diffusivity=0.05", "inertia memory=1"])
def test_nobody_ever_changes_what_is_fixed_and_levels_are_levels(how, reference):
    curves, options = HOW[how]
    values = build(curves=curves).with_reference(reference).sample(600, TIMES, **options).values
    sex, born, stage, kids = (values[..., k] for k in (1, 5, 3, 4))
    assert (sex == sex[:, :1]).all()
    assert (born == born[:, :1]).all()
    assert set(np.unique(stage)) <= {0, 1, 2, 3, 4}
    assert set(np.unique(kids)) <= set(range(11))
    assert (born % 86_400 == 0).all()
    assert values.shape == (600, 13, 8)  # without the flag


def test_none_of_100000_paths_changes_sex():
    values = build({"x": (0, 1), "sex": CLINIC["sex"]}).sample(100_000, seed=0).values
    assert (values[..., 1] == values[:, :1, 1]).all()


@pytest.mark.parametrize("how", HOW)
def test_shares_at_knots_are_those_of_the_particles_and_between_them_go_straight(how):
    curves, options = HOW[how]
    columns = declared_columns(None, None, columns={"x": (0, 1), "code": list("abc")})
    rng = np.random.default_rng(1)
    unit = rng.uniform(0.2, 0.8, (3, 300, 2))
    for k, p in enumerate([(0.6, 0.3, 0.1), (0.3, 0.3, 0.4), (0.1, 0.8, 0.1)]):
        unit[k, :, 1] = (rng.choice(3, 300, p=p) + 0.5) / 3
    model = of_particles(columns, unit, np.full((3, 300), 1 / 300), curves)
    model = model.with_reference("auto")
    at = np.linspace(0, 2, 9)
    drawn = model.sample(30_000, at, seed=2, **options).values[..., 1]
    levels = Axes.of(columns).level_of(unit)[..., 1]
    known = shares(levels.T, 3)  # (K, C)
    wanted = np.stack([np.interp(at, [0, 1, 2], known[:, c]) for c in range(3)], axis=1)
    # 27 shares of 30,000 people, stratified at the knots: 5.5 standard errors, rate below 1e-6
    assert np.abs(shares(drawn, 3) - wanted).max() < 5.5 * np.sqrt(0.25 / 30_000)


def test_people_jump_no_more_often_than_shares_ask_for():
    columns = declared_columns(None, None, columns={"code": list("ab")})
    unit = np.full((2, 200, 1), 0.25)
    unit[0, :60], unit[1, :100] = 0.75, 0.75
    model = of_particles(columns, unit, np.full((2, 200), 1 / 200)).with_reference("auto")
    values = model.sample(2000, [0, 1], seed=0).values[..., 0]
    assert (values[:, 0] != values[:, 1]).mean() == pytest.approx(0.2, abs=0.001)


def test_levels_in_order_are_climbed_one_by_one_and_missing_is_no_step():
    columns = declared_columns(
        None, None, columns={"stage": pt.Ordered(["I", "II", "III", "IV"], missing=True)}
    )
    unit = np.empty((2, 10, 1))
    unit[0], unit[1, :5], unit[1, 5:] = 0.1, 0.7, 0.9  # I, then IV or missing
    model = of_particles(columns, unit, np.full((2, 10), 0.1), curves=True).with_reference("auto")
    values = model.sample(2000, np.linspace(0, 1, 400), seed=0).values[..., 0]
    climbed = values[values[:, -1] == 3]
    assert set(np.unique(climbed)) == {0, 1, 2, 3}
    assert (np.diff(climbed, axis=1) >= 0).all()
    assert set(np.unique(values[values[:, -1] == 4])) == {0, 4}
    # the mean level goes straight: 5.3 standard errors of a mean of 1000 binomials of 3 steps
    assert climbed[:, 200].mean() == pytest.approx(1.5, abs=5.3 * np.sqrt(0.75 / 1000))


def test_a_group_whose_share_differs_between_knots_has_the_mean():
    columns = declared_columns(
        None, None, columns={"x": (0, 1), "sex": pt.Category(["F", "M"], fixed=True)}
    )
    unit = np.random.default_rng(0).uniform(0.2, 0.8, (2, 100, 2))
    unit[0, :, 1] = np.where(np.arange(100) < 40, 0.25, 0.75)
    unit[1, :, 1] = np.where(np.arange(100) < 60, 0.25, 0.75)
    for options in ({}, {"coupling": "exact"}, {"coupling": "entropic"}):
        model = of_particles(columns, unit, np.full((2, 100), 0.01)).with_reference("auto")
        women = model.sample(4000, seed=0, **options).values[..., 1] == 0
        assert women.mean() == pytest.approx(0.5, abs=0.01)


def test_a_group_that_a_knot_lacks_is_carried_through_it():
    columns = declared_columns(
        None, None, columns={"x": (0, 1), "sex": pt.Category(["F", "M"], fixed=True)}
    )
    unit = np.random.default_rng(0).uniform(0.2, 0.8, (3, 50, 2))
    unit[..., 1] = 0.25
    unit[0, :10, 1] = unit[2, :10, 1] = 0.75
    for coupling in (None, "exact", "entropic"):
        model = of_particles(columns, unit, np.full((3, 50), 0.02)).with_reference("auto")
        sex = model.sample(3000, TIMES[:9], seed=0, coupling=coupling).values[..., 1]
        assert (sex == sex[:, :1]).all()
        assert sex.mean() == pytest.approx(0.4 / 3, abs=0.03)


def test_numbers_are_missing_where_flags_say_so_and_are_not_drawn_to_the_middle():
    columns = declared_columns(None, None, columns={"hb": pt.Number(0, 1, missing=True)})
    unit = np.empty((3, 40, 2))
    unit[..., 0], unit[..., 1] = 0.1, 0.25
    unit[1, :, 0], unit[1, :, 1] = 0.5, 0.75  # missing at the middle knot, where u is 1/2
    model = of_particles(columns, unit, np.full((3, 40), 1 / 40), curves=True)
    model = model.with_reference("auto")
    paths = model.sample(4000, [0, 0.5, 1, 1.5, 2], seed=0, observation_noise=False)
    gone = np.isnan(paths.values[..., 0])
    assert not gone[:, [0, 4]].any()
    assert gone[:, 2].all()
    # half of the people jump before the middle of an interval: 5.3 standard errors
    assert np.abs(gone[:, [1, 3]].mean(axis=0) - 0.5).max() < 5.3 * np.sqrt(0.25 / 4000)
    np.testing.assert_allclose(paths.values[~gone], 0.1, atol=1e-6)
    assert np.isnan(model.marginals[1, :, 0]).all()


@pytest.mark.parametrize("curves", [False, True])
@pytest.mark.parametrize(
    "columns",
    [
        {"sex": CLINIC["sex"], "stage": CLINIC["stage"]},
        {"code": CLINIC["code"]},
        {"hb": CLINIC["hb"]},
        {"born": CLINIC["born"]},
        {"kids": CLINIC["kids"]},
    ],
    ids=lambda columns: "+".join(columns),
)
def test_few_columns_of_any_kind_make_a_model(columns, curves):
    model = build(columns, curves)
    for coupling in (None, "exact", "entropic"):
        values = model.sample(200, [0, 0.5, 3], seed=0, coupling=coupling).values
        assert values.shape == (200, 3, len(columns))
    for words in ("auto", "inertia memory=1", "learned"):
        assert model.with_reference(words).sample(50, seed=0).values.shape[2] == len(columns)
    assert model.marginals.shape == (4, 256, len(model.columns))


def test_people_who_forget_keep_what_numbers_and_levels_have_to_do_with_each_other():
    columns = declared_columns(None, None, columns={"x": (0, 1), "sex": CLINIC["sex"]})
    rng = np.random.default_rng(0)
    women = np.arange(300) % 2 == 0
    unit = np.empty((4, 300, 2))
    unit[..., 0] = np.where(women, 0.25, 0.75) + 0.03 * rng.standard_normal(300)
    unit[..., 1] = np.where(women, 0.25, 0.75)
    model = of_particles(columns, unit, np.full((4, 300), 1 / 300), curves=True)
    values = model.with_reference("inertia memory=0.3").sample(3000, TIMES, seed=1).values
    apart = values[values[..., 1] == 1][:, 0].mean() - values[values[..., 1] == 0][:, 0].mean()
    assert apart == pytest.approx(0.5, abs=0.02)
    within = values[values[:, 0, 1] == 0][..., 0]
    assert np.corrcoef(within[:, 0], within[:, -1])[0, 1] < 0.5  # and they do forget


def test_marginals_have_levels_and_shares_between_knots():
    columns = declared_columns(None, None, columns={"x": (0, 1), "code": list("abc")})
    unit = np.full((2, 30, 2), 0.5)
    unit[0, :, 1], unit[1, :, 1] = 0.5 / 3, 2.5 / 3
    model = of_particles(
        columns,
        unit,
        np.full((2, 30), 1 / 30),
        curves=True,
        numeric_times=np.array([0, 0.25, 1.0]),
        knots=np.array([0.0, 1.0]),
    )
    levels = model.marginals[..., 1]
    assert set(np.unique(levels)) == {0, 2}
    np.testing.assert_allclose((levels == 2).mean(axis=1), [0, 0.25, 1], atol=0.01)


# Populations and places -----------------------------------------------------------------------


@pytest.mark.parametrize("by_place", [None, "learned"])
@pytest.mark.parametrize("branching", [False, True])
def test_a_population_that_grows_keeps_what_is_fixed(by_place, branching):
    growth = pt.Growth(0.5, by_place=by_place)
    model = build(curves=False).with_reference("auto").with_growth(growth)
    paths = model.sample(600, TIMES, seed=0, branching=branching)
    values = np.where(paths.present[..., None], paths.values, np.nan)
    for k in (1, 5):
        ends = np.nanmax(values[..., k], axis=1), np.nanmin(values[..., k], axis=1)
        np.testing.assert_array_equal(*ends)
    there = paths.values[paths.present]
    assert set(np.unique(there[:, 3])) <= {0, 1, 2, 3, 4}


def test_people_of_a_domain_have_levels_too():
    square = {
        "type": "Polygon",
        "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]],
    }
    columns = {"x": (0, 1), "y": (0, 1), "sex": CLINIC["sex"], "code": CLINIC["code"]}
    domain = Domain.polygon(json.dumps(square)).of_features(("x", "y"))
    model = build(columns, domain=domain)
    values = model.sample(500, TIMES, seed=0).values
    assert (values[..., 2] == values[:, :1, 2]).all()
    assert set(np.unique(values[..., 3])) == {0, 1, 2, 3, 4}
    assert ((values[..., :2] >= 0) & (values[..., :2] <= 1)).all()
    assert model.marginals.shape[2] == 4


# Transitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", ["auto", "brownian diffusivity=0.05"])
@pytest.mark.parametrize("curves", [False, True])
def test_transitions_are_those_of_the_people_who_are_drawn(curves, reference):
    model = build(curves=curves, particles=200).with_reference(reference)
    said = model.transitions("code")
    assert said.labels == ("a", "b", "c", "rest", None)
    assert said.mass.shape == (3, 5, 5)
    np.testing.assert_allclose(said.mass.sum(axis=(1, 2)), 1, atol=1e-6)
    levels = model.sample(20_000, seed=0).values[..., 6].astype(int)
    for k in range(3):
        drawn = np.zeros((5, 5))
        np.add.at(drawn, (levels[:, k], levels[:, k + 1]), 1 / len(levels))
        # 75 shares of 20,000 people: 5.5 standard errors of .5, rate below 1e-5
        assert np.abs(drawn - said.mass[k]).max() < 5.5 * np.sqrt(0.25 / 20_000)
    np.testing.assert_allclose(said.shares[0], said.mass[0].sum(axis=1))
    assert (said.rates >= 0).all()


def test_nothing_goes_between_the_levels_of_a_fixed_column():
    for curves, words in itertools.product((False, True), ("auto", "brownian diffusivity=0.05")):
        mass = build(curves=curves).with_reference(words).transitions("sex").mass
        assert mass[:, [0, 1], [1, 0]].max() < 1e-9


# Conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOW)
def test_conditional_people_are_those_of_everybody_who_meet_the_conditions(how):
    curves, options = HOW[how]
    model = build(curves=curves, particles=300).with_reference("auto")
    at = np.linspace(0.2, 2.9, 6)
    some = model.sample(
        4000,
        at,
        seed=1,
        where={"sex": "F", "kids": (1, 9)},
        at_start={"stage": ["II", "III"]},
        **options,
    ).values
    everybody = model.sample(120_000, at, seed=2, **options).values
    met = (everybody[..., 1] == 0).all(axis=1) & np.isin(everybody[:, 0, 3], [1, 2])
    met &= ((everybody[..., 4] >= 1) & (everybody[..., 4] <= 9)).all(axis=1)
    kept = everybody[met]
    assert len(some) == 4000
    assert (some[..., 1] == 0).all()
    assert np.isin(some[:, 0, 3], [1, 2]).all()
    # 36 means of two samples, columns 2 to 7: 5.3 standard errors each, rate below 1e-5; curves
    # that carry several people make nobody's mean more variable
    for k in range(2, 8):
        error = np.sqrt(some[..., k].var(axis=0) / len(some) + kept[..., k].var(axis=0) / len(kept))
        difference = np.abs(some[..., k].mean(axis=0) - kept[..., k].mean(axis=0))
        assert (difference <= 5.3 * error + 1e-9).all(), k


def test_conditions_of_every_kind():
    model = build(curves=True, particles=400).with_reference("auto")
    first = model.sample(50, where={"born": ("1960-01-01", "1990-01-01")}, seed=0).to_frame()
    assert first.born.between("1960-01-01", "1990-01-01").all()
    assert model.sample(50, at_start={"hb": None}, seed=0).to_frame().hb[::4].isna().all()
    assert model.sample(50, at_start={"stage": None}, seed=0).to_frame().stage[::4].isna().all()
    assert model.sample(50, at_start={"smoker": True}, seed=0).to_frame().smoker[::4].all()
    assert (model.sample(50, at_start={"kids": 3}, seed=0).values[:, 0, 4] == 3).all()
    assert (model.sample(50, at_start={"kids": (8, None)}, seed=0).values[:, 0, 4] >= 8).all()
    assert (model.sample(50, at_start={"site": [2, 5]}, seed=0).values[:, 0, 7] >= 1).all()
    typed = {"site": "2,5", "kids": "3..", "smoker": "true"}
    again = model.sample(20, at_start=typed, seed=0).to_frame().iloc[::4]
    assert again.site.isin([2, 5]).all()
    assert (again.kids >= 3).all()
    assert again.smoker.all()


def test_the_first_time_is_the_earliest_whatever_the_order():
    model = build(curves=True, particles=200).with_reference("auto")
    values = model.sample(200, [3, 0, 1], at_start={"smoker": True}, seed=0).values
    assert (values[:, 1, 2] == 1).all()
    assert not (values[:, 0, 2] == 1).all()


def test_one_seed_gives_the_same_conditional_people_and_numbers_alone_can_be_asked_for():
    model = build({"x": (0, 1), "y": (0, 2)})
    first, again = (model.sample(30, where={"x": (0.2, 0.8)}, seed=3).values for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert ((first[..., 0] >= 0.2) & (first[..., 0] <= 0.8)).all()


def test_conditions_with_growth_hold_for_those_who_are_drawn():
    model = build(curves=True, particles=200).with_reference("auto").with_growth(0.5)
    paths = model.sample(300, TIMES, where={"sex": "M"}, seed=0)
    assert len(paths) == 300
    assert (paths.values[..., 1][paths.present] == 1).all()
    assert paths.lives.shape == (300, 2)


def test_people_of_whom_the_model_has_too_few_are_refused():
    model = build(curves=True, particles=100).with_reference("auto")
    rare = {"sex": "F", "smoker": True, "stage": "I", "code": "a", "site": 5}
    with pytest.raises(InputError, match="too few people"):
        model.sample(10, where=rare)
    with pytest.raises(InputError, match="too few people"):
        build({"x": (0, 1)}).sample(10, where={"x": (0.99999, 1)})


# Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("curves", [False, True])
def test_a_saved_model_of_mixed_columns_draws_the_same_people(tmp_path, curves):
    model = build(curves=curves).with_reference("auto")
    model.save(tmp_path / "m.privtraj")
    back = load(tmp_path / "m.privtraj")
    assert back.columns == model.columns
    np.testing.assert_array_equal(back.sample(40, seed=3).values, model.sample(40, seed=3).values)
    assert back.verify() == pytest.approx(model.certificate.epsilon)


def test_columns_that_the_certificate_does_not_say_are_a_contradiction():
    model = build()
    other = replace(model.columns[1], values=("F", "X"))
    forged = replace(model, columns=(model.columns[0], other, *model.columns[2:])).sealed()
    with pytest.raises(InputError, match="its columns are not the public ones"):
        forged.verify()


def _columns(change):
    def forge(members):
        def on(header):
            change(header["columns"])

        reseal(members, on)

    return forge


HOSTILE = {
    "no list": lambda m: reseal(m, lambda h: h.update(columns=5)),
    "fewer": _columns(lambda c: c.pop()),
    "another name": _columns(lambda c: c[0].update(name="x")),
    "other bounds": _columns(lambda c: c[0].update(high=16)),
    "more values": _columns(lambda c: c[1].update(values=["F", "M", "X"])),
    "values of no kind": _columns(lambda c: c[1].update(values=[[1], [2]])),
    "values that are no list": _columns(lambda c: c[1].update(values=5)),
    "an unknown kind": _columns(lambda c: c[1].update(kind="name")),
    "a kind of no kind": _columns(lambda c: c[1].update(kind=["category"])),
    "another field": _columns(lambda c: c[1].update(more=1)),
    "fixed that is no bool": _columns(lambda c: c[1].update(fixed="no")),
    "other that is no text": _columns(lambda c: c[6].update(other=[1])),
    "a flag of no number": _columns(lambda c: c[-1].update(of="kids")),
    "a number without its flag": _columns(lambda c: c[0].update(missing=False)),
    "a flag in the wrong place": _columns(lambda c: c[2].update(kind="flag", of="hb")),
}


@pytest.mark.parametrize("forgery", HOSTILE)
def test_hostile_columns_are_refused_in_one_sentence(tmp_path, forgery):
    path = tmp_path / "m.privtraj"
    build().save(path)
    rewritten(path, HOSTILE[forgery])
    with pytest.raises(InputError, match="damaged, as it") as error:
        load(path)
    assert one_sentence(error)


def test_levels_are_read_by_their_cell_wherever_in_it_they_are():
    model = build({"x": (0, 1), "code": list("ab")})
    moved = model.particles.copy()
    moved[..., 1] = np.where(moved[..., 1] < 0.5, -3.0, 0.51)
    values = replace(model, particles=moved).sample(500, seed=0).values
    np.testing.assert_array_equal(values[..., 1], model.sample(500, seed=0).values[..., 1])


def test_a_model_of_numbers_has_the_hash_that_it_had():
    plain = build({"x": (0, 1), "y": (0, 2)})
    assert "columns" not in packed(plain)[0]
    assert "columns" in packed(build({"x": pt.Integer(0, 5)}))[0]
