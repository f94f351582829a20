"""Models that keep to a domain: no mass and no path outside, parts, files, certificates."""

import json
import shlex
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import shapely

import privtraj as pt
from domain.shapes import BAY, bay, coast_mask, islands, river, streets
from privtraj import cli
from privtraj.assess import quality
from privtraj.base.arrays import with_constant_shares
from privtraj.domain.walking import parts_of
from privtraj.metrics import squared_wasserstein2
from privtraj.model.model import load
from privtraj.privacy.certificate import DOMAIN

BOUNDS = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def commuters(domain, n=3000, seed=0):
    """Who walk from one place of a domain to another, at a time of their own."""
    rng = np.random.default_rng(seed)
    area = domain.ground(("x", "y"), np.array([[0.0, 1.0]] * 2)).ground
    home = area.nearest(rng.normal((0.3, 0.2), 0.08, (n, 2)))
    work = area.nearest(rng.normal((0.65, 0.8), 0.08, (n, 2)))
    time = rng.uniform(size=n)
    share = np.clip((time - 0.2) / 0.6, 0, 1)
    ways = area.ways(home, work).at(np.linspace(0, 1, 201))
    return time, ways[np.arange(n), np.rint(200 * share).astype(int)]


def snapshots(domain, points=None, **options):
    time, places = commuters(domain) if points is None else points
    declared = {"bounds": BOUNDS, "time_range": (0, 1), "bins": 6, "domain": domain}
    return pt.Snapshots.from_arrays(time, places, **(declared | options))


def fitted(snaps, **settings):
    how = {"epsilon": 2.0, "delta": 1e-5, "seed": 1, "particles": 96, "windows": 6} | settings
    return pt.TrajectorySynthesizer(**how).fit(snaps)


@pytest.fixture(scope="module")
def model():
    return fitted(snapshots(river()))


def outside(domain, paths, axes=(0, 1)):
    return int((~domain.inside(paths.values[..., list(axes)].reshape(-1, 2))).sum())


# Paths ----------------------------------------------------------------------------------------


def test_no_path_of_2000_read_at_200_times_is_ever_outside(model):
    paths = model.sample(2000, np.linspace(0, 1, 200), seed=2)
    assert outside(model.domain, paths) == 0
    assert outside(model.domain, model.sample(500, seed=3, observation_noise=False)) == 0
    without = replace(model, domain=None).sample(2000, np.linspace(0, 1, 200), seed=2)
    assert outside(model.domain, without) > 1000  # so there is a river to walk into


@pytest.mark.parametrize(
    "make", [bay, streets, pytest.param(coast_mask, marks=pytest.mark.thorough)]
)
def test_no_path_leaves_a_coast_a_network_or_a_mask(make):
    domain = make()
    model = fitted(snapshots(domain, commuters(domain, 600)), windows=4)
    paths = model.sample(500, np.linspace(0, 1, 100), seed=2)
    assert outside(domain, paths) == 0
    assert domain.inside(model.marginals.reshape(-1, 2)).all()


def test_people_walk_at_one_speed_between_knots_and_never_jump(model):
    at = np.linspace(model.knots[0], model.knots[1], 9)
    paths = model.sample(500, at, seed=4).values
    steps = np.hypot(*np.moveaxis(np.diff(paths, axis=1), -1, 0))
    assert steps.max() < 0.2
    straight = np.hypot(*(paths[:, -1] - paths[:, 0]).T)
    walked = steps.sum(axis=1)
    seen = model.plot.ground.sees(paths[:, 0], paths[:, -1])
    assert np.allclose(walked[seen], straight[seen], atol=1e-9)
    assert np.allclose(steps[seen], steps[seen].mean(axis=1, keepdims=True), atol=1e-9)


def test_a_seed_repeats_the_paths_and_other_features_go_along():
    domain = river()
    time, places = commuters(domain, 1000)
    age = np.random.default_rng(0).uniform(20, 60, (len(time), 1))
    points = time, np.hstack([age, places[:, ::-1]])
    snaps = snapshots(domain, points, bounds={"age": (0, 100), **dict(reversed(BOUNDS.items()))})
    model = fitted(snaps, measure="counts", cells=6)
    assert (model.domain.x, model.domain.y) == ("x", "y")
    first, again = (model.sample(300, np.linspace(0, 1, 50), seed=5).values for _ in range(2))
    assert (first == again).all()
    assert domain.inside(first[..., [2, 1]].reshape(-1, 2)).all()
    assert 20 < first[..., 0].mean() < 60


def test_gradients_keep_to_a_domain_too():
    domain = bay()
    few = snapshots(domain, commuters(domain, 600))
    model = fitted(few, measure="gradients", steps=3, particles=16, windows=2)
    assert domain.inside(model.marginals.reshape(-1, 2)).all()
    assert outside(domain, model.sample(200, np.linspace(0, 1, 40), seed=1)) == 0


# Mass -----------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.slow
def test_a_domain_makes_the_marginals_better():
    """A crescent that is a third of the box; fixed seeds, and so no chance of a false alarm. Errors
    with it over those without were .82 where fits without one had a fifth more, and are .9."""
    domain, errors = bay(), {True: [], False: []}

    def people(n, time, rng):
        angle = np.pi * (0.1 + 0.5 * time + 0.3 * rng.beta(2, 2, n))
        turn = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        inner, outer = turn * (0.33, 0.6), turn * (0.45, 0.8)
        share = rng.uniform(0.02, 0.98, (n, 1))
        return (0.5, 0.1) + (1 - share) * inner + share * outer

    for seed in range(4):
        rng = np.random.default_rng(seed)
        time = rng.uniform(size=6000)
        points = time, people(6000, time, rng)
        for bounded in errors:
            snaps = snapshots(domain if bounded else None, points)
            model = pt.TrajectorySynthesizer(1.0, 1e-6, seed=seed).fit(snaps)
            for at in (0.1, 0.5, 0.9):
                found = model.sample(600, [at], seed=3).values[:, 0]
                true = people(600, at, np.random.default_rng(9))
                errors[bounded].append(squared_wasserstein2(found, true))
    assert np.mean(errors[True]) < 0.95 * np.mean(errors[False])


def test_records_outside_change_nothing_but_noisy_counts_that_are_left_out():
    """The guard is asked for the same releases, whatever the domain."""
    time, places = commuters(river())
    models = [fitted(snapshots(domain, (time, places)), cells=16) for domain in (river(), None)]
    ledgers = [model.certificate.ledger for model in models]
    assert ledgers[0] == ledgers[1]
    assert models[0].certificate.epsilon == models[1].certificate.epsilon


def test_a_domain_in_which_nothing_stands_out_is_filled_evenly():
    domain = bay()
    rng = np.random.default_rng(0)
    points = rng.uniform(size=12), rng.uniform(size=(12, 2))
    with pytest.warns(pt.LowBudgetWarning):
        model = fitted(snapshots(domain, points), epsilon=0.05)
    assert domain.inside(model.marginals.reshape(-1, 2)).all()
    assert np.ptp(model.marginals[..., 0]) > 0.5  # and not in the middle of the box


# Parts ----------------------------------------------------------------------------------------


def test_people_stay_on_their_island_and_as_many_are_there_at_all_times():
    domain = islands()
    rng = np.random.default_rng(1)
    on_first = rng.uniform(size=4000) < 0.3
    places = np.where(on_first[:, None], (0.07, 0.07), (0.62, 0.62)) + rng.uniform(
        0, 0.3, (4000, 2)
    )
    model = fitted(snapshots(domain, (rng.uniform(size=4000), places)))
    part = parts_of(model.plot, model.plot.snapped(model.particles))
    first = part[0, model.particles[0].sum(axis=1).argmin()]
    shares = np.where(part == first, model.weights, 0).sum(axis=1)
    assert np.ptp(shares) < 1e-9
    assert shares[0] == pytest.approx(0.3, abs=0.1)
    paths = model.sample(1000, np.linspace(0, 1, 60), seed=1)
    assert outside(domain, paths) == 0
    on = paths.values.sum(axis=2) < 1
    assert (on == on[:, :1]).all()
    assert on[:, 0].mean() == pytest.approx(shares[0], abs=0.01)


def test_a_part_that_nobody_is_in_at_some_time_gets_a_particle():
    plot = islands().ground(("x", "y"), np.array([[0.0, 1.0]] * 2))
    particles = np.full((3, 4, 2), 0.2)
    particles[0, 0] = particles[2, 0] = 0.8
    weights = np.array([[0.4, 0.2, 0.2, 0.2], [0.1, 0.3, 0.3, 0.3], [0.2, 0.2, 0.3, 0.3]])
    placed, shares, _ = with_constant_shares(particles, weights, parts_of(plot, particles))
    assert placed[1, 0].tolist() == [0.8, 0.8]
    there = np.where(parts_of(plot, placed) == parts_of(plot, placed)[0, 0], shares, 0).sum(axis=1)
    assert np.allclose(there, 0.2)
    assert np.allclose(shares.sum(axis=1), 1)


# Files and certificates -----------------------------------------------------------------------


def test_a_saved_model_keeps_its_domain_and_its_promise(model, tmp_path):
    model.save(tmp_path / "m.privtraj", not_private=True)
    again = load(tmp_path / "m.privtraj")
    assert (again.domain.segments == model.domain.segments).all()
    assert again.domain.public_inputs() == model.domain.public_inputs()
    again.verify()
    assert again.certificate.public_inputs[DOMAIN] == model.domain.public_inputs()
    assert DOMAIN in str(again.certificate)
    assert outside(model.domain, again.sample(300, np.linspace(0, 1, 50), seed=1)) == 0


@pytest.mark.thorough
def test_a_model_in_a_domain_has_a_report(model, tmp_path, monkeypatch):
    once = partial(quality.estimated_quality, refits=1)  # how often is a question of tests/assess
    monkeypatch.setattr(quality, "estimated_quality", once)
    monkeypatch.setattr(quality, "POPULATION", 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model.report(tmp_path / "m.html")


@pytest.mark.parametrize("other", [None, bay()])
def test_another_domain_contradicts_the_certificate(model, other):
    changed = replace(model, domain=other and other.of_features(("x", "y"))).sealed()
    with pytest.raises(pt.InputError, match="its domain is not the public one"):
        changed.verify()


def test_a_fit_from_a_database_is_the_same_as_one_from_memory(tmp_path):
    pytest.importorskip("ibis")
    domain = river()
    time, places = commuters(domain, 800)
    table = pd.DataFrame({"time": time, "x": places[:, 0], "y": places[:, 1]})
    (tmp_path / "people").mkdir()
    table.to_parquet(tmp_path / "people" / "all.parquet")
    how = {"time": "time", "bounds": BOUNDS, "time_range": (0, 1), "bins": 6, "domain": domain}
    remote = pt.Snapshots.from_table(tmp_path / "people", **how)
    assert type(remote._rows).__name__ == "SqlRows"
    models = [fitted(snaps) for snaps in (pt.Snapshots.from_table(table, **how), remote)]
    assert models[0].sha256 == models[1].sha256


def test_the_guarantee_reads_no_record_to_place_it():
    """What the guard holds is the same with and without a domain."""
    time, places = commuters(river(), 500)
    places = places + np.random.default_rng(0).normal(0, 0.1, places.shape)  # some in the water
    held = [snapshots(domain, (time, places))._rows.points for domain in (river(), None)]
    assert (held[0] == held[1]).all()


# Files of others ------------------------------------------------------------------------------


def _hostile():
    good = river().of_features(("x", "y")).to_dict()
    line = good["segments"][0]
    yield {}
    yield [good]
    yield {**good, "more": 1}
    yield {**good, "kind": "volume"}
    yield {**good, "kind": ["area"]}
    yield {**good, "x": "z"}
    yield {**good, "x": None}
    yield {**good, "x": "y"}
    yield {**good, "segments": []}
    yield {**good, "segments": "no"}
    yield {**good, "segments": [line[:3]]}
    yield {**good, "segments": [[*line[:3], "1"]]}
    yield {**good, "segments": [[*line[:3], 1e308], line]}
    yield {**good, "segments": [[True, *line[1:]]]}
    yield {**good, "segments": [[5.0, 5.0, 6.0, 6.0], [6.0, 6.0, 5.0, 6.0], [5.0, 6.0, 5.0, 5.0]]}
    yield {**good, "segments": [[k / 3e4, 0.2, k / 3e4, 0.4] for k in range(30_000)]}
    yield {
        **good,
        "kind": "network",
        "segments": [[k / 5e3, 0.2, k / 5e3, 0.4] for k in range(5000)],
    }


@pytest.mark.parametrize("domain", list(_hostile()), ids=lambda value: json.dumps(value)[:40])
def test_a_file_with_a_hostile_domain_is_refused(model, domain, tmp_path):
    class Hostile:
        def to_dict(self):
            return domain

    replace(model, domain=Hostile()).sealed().save(tmp_path / "m.privtraj", not_private=True)
    with pytest.raises(pt.InputError, match="its domain cannot be used"):
        load(tmp_path / "m.privtraj")


def test_particles_of_a_file_that_are_outside_are_brought_inside(model, tmp_path):
    wrong = np.random.default_rng(0).uniform(-0.2, 1.2, model.particles.shape)
    changed = replace(model, particles=wrong).sealed()
    changed.save(tmp_path / "m.privtraj", not_private=True)
    paths = load(tmp_path / "m.privtraj").sample(200, np.linspace(0, 1, 50), seed=1)
    assert outside(model.domain, paths) == 0


# The command line -----------------------------------------------------------------------------


def test_the_command_line_and_a_configuration_take_a_domain(tmp_path, capsys, monkeypatch):
    time, places = commuters(bay(), 600)
    rows = "\n".join(f"{t},{x},{y}" for t, (x, y) in zip(time, places, strict=True))
    (tmp_path / "people.csv").write_text("time,x,y\n" + rows)
    shape = {"type": "Polygon", "coordinates": [BAY]}
    (tmp_path / "bay.geojson").write_text(json.dumps(shape))
    monkeypatch.chdir(tmp_path)
    words = shlex.split(
        "fit people.csv --time time --feature x 0 1 --feature y 0 1 --time-range 0 1 --epsilon 4 "
        "--delta 1e-5 --windows 3 --cells 8 --particles 32 --quiet"
    )
    more = ["--domain", "bay.geojson", "--out", "a.privtraj", "--write-config", "fit.toml"]
    assert cli.main([*words, *more]) == 0
    assert "bay.geojson" in (tmp_path / "fit.toml").read_text()
    assert cli.main(["fit", "--config", "fit.toml", "--out", "b.privtraj"]) == 0
    for name in ("a.privtraj", "b.privtraj"):
        model = load(name)
        model.verify()
        assert model.domain.public_inputs() == bay().of_features(("x", "y")).public_inputs()
        assert outside(bay(), model.sample(100, np.linspace(0, 1, 30), seed=1)) == 0


@pytest.mark.parametrize("make", [bay, pytest.param(river, marks=pytest.mark.thorough)])
def test_exported_lines_stay_inside_between_readings(make):
    """Few readings, joined as a map joins them: the line goes by the corners of the domain."""
    domain = make()
    small = {"particles": 64, "windows": "bins", "seed": 0}
    model = pt.TrajectorySynthesizer(4.0, 1e-5, **small).fit(snapshots(domain))
    paths = model.sample(40, times=np.linspace(0, 1, 5), seed=1)
    lines = paths.to_geojson("x", "y")["features"]
    near = shapely.buffer(domain.shape, 2e-6)  # positions are rounded
    straight = shapely.linestrings(paths.values)
    assert not shapely.covers(near, straight).all()
    for line in lines:
        positions, times = line["geometry"]["coordinates"], line["properties"]["times"]
        assert len(positions) == len(times)
        assert (np.diff(times) >= 0).all()
        assert shapely.covers(near, shapely.LineString(positions))
