"""What noise leaves of values of categories: as plan, fit and report say it, and as it is."""

import numpy as np
import pytest

import privtraj as pt
from privtraj.assess.groups import (
    USUAL,
    GroupNoise,
    group_noise,
    groups_of,
    half_width,
    outlook,
    sentences,
    told_by_tables,
)
from privtraj.columns.declared import declared_columns

CODES = [f"c{k}" for k in range(8)]
SHARES = np.array([30, 20, 15, 12, 10, 7, 4, 2]) / 100
APARTNESS = np.array([0.5, -0.5, 1.0, -1.0, 0.8, -0.8, 1.2, -1.2])
COLUMNS = {"y": (-5.0, 5.0), "z": (-5.0, 5.0), "code": CODES}


def fitted(people, epsilon, seed=1):
    rng = np.random.default_rng(seed)
    code = rng.choice(len(CODES), people, p=SHARES)
    table = {
        "time": rng.random(people),
        "y": APARTNESS[code] + rng.standard_normal(people),
        "z": rng.standard_normal(people),
        "code": np.array(CODES)[code],
    }
    snapshots = pt.Snapshots.from_table(table, time="time", time_range=(0, 1), columns=COLUMNS)
    return pt.TrajectorySynthesizer(epsilon, 1e-5, seed=seed).fit(snapshots)


@pytest.fixture(scope="module")
def model():
    return fitted(3000, 0.5)


def test_a_value_is_lost_by_its_share_or_by_its_numbers():
    noise = GroupNoise(10.0, 100.0)
    assert [noise.lost(n) for n in (10, 100, 250)] == ["share", "numbers", ""]


@pytest.mark.parametrize("noise", [0.001, 0.1, 3.0])
def test_half_a_width_is_that_of_a_contrast_that_was_shrunk(noise):
    rng = np.random.default_rng(0)
    truth = USUAL * rng.standard_normal(20_000)
    seen = truth + noise**0.5 * rng.standard_normal(20_000)
    kept = seen * USUAL**2 / (USUAL**2 + noise)
    people = kept + 0.1 * rng.standard_normal(20_000)
    held = np.abs(people - truth) <= half_width(noise, 0.1**2)
    assert held.mean() == pytest.approx(0.9, abs=0.01)


def test_more_noise_loses_more():
    columns = declared_columns(None, None, columns=COLUMNS)
    little, much = (group_noise(mu, columns, 3000.0)["code"] for mu in (1.0, 0.1))
    assert much.count == pytest.approx(10 * little.count, rel=0.3)  # in other bands
    assert much.mean > 3 * little.mean


def test_plan_and_model_say_the_same(model):
    (planned,) = pt.plan(3000, columns=COLUMNS, epsilon=0.5).kept
    (told,) = outlook(*told_by_tables(model), model.columns)
    for name in ("fewest_for_share", "fewest_for_means"):
        assert planned[name] == pytest.approx(told[name], rel=0.05)


def test_every_value_has_a_row_those_lost_first(model):
    groups = groups_of(model)
    assert sorted(one.value for one in groups) == CODES
    assert sum(one.share for one in groups) == pytest.approx(1)
    lost = [bool(one.lost) for one in groups]
    assert lost == sorted(lost, reverse=True)
    assert lost[0]
    assert not lost[-1]
    assert "8 values of 'code'" in sentences(groups)[0]


@pytest.mark.slow
def test_means_and_shares_are_off_by_what_is_said(model):
    people = model.sample(4000, times=np.linspace(0, 1, 8), seed=0).to_frame()
    known = {one.value: one for one in groups_of(model)}
    inside = []
    for code, share, apart in zip(CODES, SHARES, APARTNESS, strict=True):
        mine = people[people["code"] == code]
        inside.append(abs(len(mine) / len(people) - share) <= known[code].off + 0.01)
        inside.append(abs(mine["y"].mean() - apart) <= 1.2 * known[code].mean_off)
    assert np.mean(inside) >= 0.8


def test_a_model_of_numbers_alone_has_no_groups():
    rng = np.random.default_rng(0)
    snapshots = pt.Snapshots.from_arrays(
        rng.random(200), rng.random((200, 1)), bounds=[(0, 1)], time_range=(0, 1)
    )
    model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=0).fit(snapshots)
    assert groups_of(model) == ()
    assert sentences(()) == []
