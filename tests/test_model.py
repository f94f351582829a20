"""The released model: sampling that agrees with the marginals, and files that do not lie."""

import hashlib
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import privtraj as pt
from privtraj.base.errors import InputError
from privtraj.metrics import squared_wasserstein2, wasserstein2
from privtraj.model import paths
from privtraj.model.model import TrajectoryModel, load
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.ledger import Ledger

T, M, D = 4, 24, 2
BOUNDS = np.array([[-10.0, 10.0], [100.0, 300.0]])


def certificate(private_noise=True):
    ledger = Ledger(1.0, 1e-5)
    ledger.spend(GaussianSum(8.0, "sums", 1e-12))
    return certify(ledger, public_inputs={"bounds": BOUNDS.tolist()}, private_noise=private_noise)


def build(times=(0.0, 1.0, 2.0, 5.0), datetime=False, seed=0, **changes):
    rng = np.random.default_rng(seed)
    centre = np.linspace(0.25, 0.75, T)[:, None, None]
    particles = np.clip(centre + 0.08 * rng.standard_normal((T, M, D)), 0, 1).astype(np.float32)
    values = {
        "particles": particles.astype(np.float64),
        "weights": rng.dirichlet(np.full(M, 5.0), size=T),
        "bandwidth": np.array([0.03, 0.02, 0.02, 0.04]),
        "diffusivity": 0.002,
        "numeric_times": np.array(times),
        "bounds": BOUNDS,
        "features": ("left", "right"),
        "time_name": "age",
        "datetime": datetime,
        "certificate": certificate(),
        "cloud_size": 64,
        "settings": {"measure": "gradients", "cells_per_side": None},
        "diagnostics": {"people_per_time": [1.0, 2.0]},
    }
    return TrajectoryModel(**{**values, **changes})


@pytest.fixture(scope="module")
def model():
    return build().sealed()


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "a.privtraj"
    model.save(path)
    return path


# Sampling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("coupling", ["entropic", "exact"])
@pytest.mark.parametrize("interpolation", ["bridge", "linear", "spline"])
def test_samples_are_inside_the_bounds_and_have_the_stated_shape(model, coupling, interpolation):
    times = [5.0, 0.0, 0.3, 0.3, 4.9]
    paths = model.sample(50, times, seed=1, coupling=coupling, interpolation=interpolation)
    assert paths.values.shape == (50, 5, D)
    assert np.isfinite(paths.values).all()
    assert (paths.values >= BOUNDS[:, 0]).all()
    assert (paths.values <= BOUNDS[:, 1]).all()
    np.testing.assert_array_equal(paths.times, times)
    np.testing.assert_allclose(paths.values[:, 2], paths.values[:, 3])


def test_values_stay_inside_the_bounds_when_the_model_presses_against_the_walls():
    wall = build(particles=np.ones((T, M, D)), bandwidth=np.full(T, 0.5), diffusivity=50.0)
    values = wall.sample(300, np.linspace(0, 5, 20), seed=0).values
    assert (values >= BOUNDS[:, 0]).all()
    assert (values <= BOUNDS[:, 1]).all()
    assert values.std(axis=(0, 1)).min() > 0


def test_one_seed_gives_one_sample_and_another_seed_another(model):
    first, again, other = (model.sample(20, seed=s).values for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (model.sample(20).values != model.sample(20).values).any()


def test_people_of_different_blocks_are_as_different_as_any(model, monkeypatch):
    at = np.linspace(0, 5, 7)
    whole = model.sample(400, at, seed=3).values
    monkeypatch.setattr(paths, "_BLOCK", 10 * at.size * D)
    blocks = model.sample(400, at, seed=3).values
    assert len(np.unique(blocks[:, 3, 0])) == 400
    # the same chains with other noise: means differ by chance only, 5.3 standard errors at most
    error = np.sqrt((whole.var(axis=0) + blocks.var(axis=0)) / 400)
    assert (np.abs(whole.mean(axis=0) - blocks.mean(axis=0)) < 5.3 * error).all()


def test_marginals_are_the_weighted_particles_in_data_units(model):
    marginals = model.marginals
    assert marginals.shape == (T, 64, D)
    low, high = BOUNDS.T
    unit = (marginals - low) / (high - low)
    for i in range(T):
        mean = model.weights[i] @ model.particles[i]
        np.testing.assert_allclose(unit[i].mean(axis=0), mean, atol=0.02)
        near = np.abs(unit[i][:, None] - model.particles[i][None]).max(axis=2).min(axis=1)
        assert near.max() < 1e-9


def test_samples_at_the_bin_times_have_the_marginals_of_the_particles(model):
    n = 600
    paths = model.sample(n, seed=0, observation_noise=False)
    rng = np.random.default_rng(1)
    low, high = BOUNDS.T
    for i in range(T):
        sampled = (paths.values[:, i] - low) / (high - low)
        target = model.particles[i][rng.choice(M, 4000, p=model.weights[i])]
        independent = model.particles[i][rng.choice(M, n, p=model.weights[i])]
        error = squared_wasserstein2(sampled, target)
        assert error < 1.5 * squared_wasserstein2(independent, target) + 1e-6


def test_observation_noise_adds_the_bandwidth_to_every_marginal(model):
    with_noise, without = (
        model.sample(4000, seed=2, observation_noise=noisy).values for noisy in (True, False)
    )
    width = BOUNDS[:, 1] - BOUNDS[:, 0]
    extra = (with_noise - without) / width
    # standard error of a standard deviation of 8000 draws: .8 %; 5.3 of them, rate 1e-7
    np.testing.assert_allclose(extra.std(axis=(0, 2)), model.bandwidth, rtol=0.045)


def test_the_middle_of_a_gap_has_the_variance_of_the_bridge(model):
    at = [2.0, 3.5, 5.0]
    values = build(diffusivity=0.02).sample(4000, at, seed=5, observation_noise=False).values
    unit = (values - BOUNDS[:, 0]) / (BOUNDS[:, 1] - BOUNDS[:, 0])
    around = unit[:, 1] - (unit[:, 0] + unit[:, 2]) / 2
    # the gap is 3/5 of the range: variance .02 * .6 / 4, less what folds at the walls
    assert around.var() == pytest.approx(0.003, rel=0.08)


def test_paths_move_to_near_particles_not_to_random_ones(model):
    knots = model.sample(1000, seed=6, observation_noise=False).values
    step = (np.diff(knots, axis=1) ** 2).sum(axis=-1).mean()
    shuffled = knots.copy()
    for i in range(T):
        shuffled[:, i] = np.random.default_rng(i).permutation(knots[:, i])
    assert step < 0.9 * (np.diff(shuffled, axis=1) ** 2).sum(axis=-1).mean()


@pytest.mark.parametrize("n", [0, -3, 2.5, True, "7", None])
def test_a_number_of_paths_that_is_no_count_is_refused(model, n):
    with pytest.raises(InputError, match="whole number"):
        model.sample(n)


@pytest.mark.parametrize(
    "times", [[-0.1], [5.1], [], [np.nan], ["2020-01-01"], [np.datetime64("2020-01-01")], [None]]
)
def test_times_outside_the_range_or_of_another_kind_are_refused(model, times):
    with pytest.raises(InputError, match="times"):
        model.sample(2, times)


@pytest.mark.parametrize("option", ["coupling", "interpolation"])
def test_unknown_couplings_and_interpolations_are_refused(model, option):
    with pytest.raises(InputError, match=option):
        model.sample(2, **{option: "cubic"})


def test_one_time_may_be_given_as_a_number(model):
    assert model.sample(3, 2.5, seed=0).values.shape == (3, 1, D)


def test_models_of_dates_speak_dates():
    day = 86_400.0
    dated = build(times=(0.0, day, 2 * day, 5 * day), datetime=True)
    assert dated.times[1] == np.datetime64("1970-01-02")
    asked = [np.datetime64("1970-01-02T12:00"), "1970-01-06"]
    paths = dated.sample(5, asked, seed=0)
    assert paths.times.tolist() == [
        np.datetime64("1970-01-02T12:00", "us").item(),
        np.datetime64("1970-01-06", "us").item(),
    ]
    assert dated.sample(2, dated.times, seed=0).values.shape == (2, T, D)
    with pytest.raises(InputError, match="dates"):
        dated.sample(2, [1.0])
    with pytest.raises(InputError, match="between 1970-01-01"):
        dated.sample(2, ["1971-01-01"])


def test_the_repr_states_the_promise(model):
    assert "24 particles" in repr(model)
    assert "epsilon" in repr(model)


# Files ----------------------------------------------------------------------------------------


def test_a_saved_model_comes_back_the_same(model, saved):
    back = load(saved)
    for name in ("particles", "weights", "bandwidth", "numeric_times", "bounds", "marginals"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
    for name in ("diffusivity", "features", "time_name", "datetime", "cloud_size"):
        assert getattr(back, name) == getattr(model, name)
    assert back.settings == model.settings
    assert back.diagnostics == model.diagnostics
    assert back.certificate == model.certificate
    np.testing.assert_array_equal(back.sample(30, seed=9).values, model.sample(30, seed=9).values)


def test_saving_twice_gives_the_same_bytes(model, saved, tmp_path):
    model.save(tmp_path / "b.privtraj")
    assert saved.read_bytes() == (tmp_path / "b.privtraj").read_bytes()


def test_an_existing_file_is_kept_unless_forced(model, saved):
    before = saved.read_bytes()
    with pytest.raises(InputError, match="exists"):
        build(seed=1).save(saved)
    assert saved.read_bytes() == before
    build(seed=1).save(saved, force=True)
    assert saved.read_bytes() != before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def one_sentence(error):
    text = str(error.value)
    return "\n" not in text and len(text) > 10 and not text.startswith("(")


def rewritten(path, change):
    """The zip again, its members changed by `change`."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)


def reseal(members, change):
    """Change the header and make its checksum right again, as a patient forger would."""
    header = json.loads(members["model.json"])
    change(header)
    members["model.json"] = json.dumps(header).encode()
    members["model.sha256"] = hashlib.sha256(members["model.json"]).hexdigest().encode()


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def swap_particles_for_pickle(members):
    data = pickled()
    members["particles.npy"] = data
    digest = hashlib.sha256(data).hexdigest()
    reseal(members, lambda header: header["sha256"].update({"particles.npy": digest}))


def swap_particles(members):
    """Other people's particles, every checksum made right again."""
    buffer = io.BytesIO()
    np.save(buffer, np.load(io.BytesIO(members["particles.npy"]))[:, ::-1].copy())
    members["particles.npy"] = buffer.getvalue()
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    reseal(members, lambda header: header["sha256"].update({"particles.npy": digest}))


FORGERIES = {
    "particles of another model": swap_particles,
    "settings of another model": lambda m: reseal(m, lambda h: h["settings"].update(measure="x")),
    "diffusivity of another model": lambda m: reseal(m, lambda h: h.update(diffusivity=0.5)),
    "certificate of another model": lambda m: reseal(
        m, lambda h: h["certificate"].update(model_sha256=build(seed=1).sha256)
    ),
    "one byte of an array": lambda m: m.update(
        {"particles.npy": m["particles.npy"][:-1] + bytes([m["particles.npy"][-1] ^ 1])}
    ),
    "header": lambda m: m.update({"model.json": m["model.json"].replace(b'"age"', b'"Age"')}),
    "epsilon": lambda m: m.update(
        {"model.json": m["model.json"].replace(b'"delta": 1e-05', b'"delta": 1e-06')}
    ),
    "unknown version": lambda m: reseal(m, lambda h: h.update(format=99)),
    "extra member": lambda m: m.update({"more.npy": b"?"}),
    "missing array": lambda m: m.pop("weights.npy"),
    "missing checksum": lambda m: m.pop("model.sha256"),
    "missing header": lambda m: m.pop("model.json"),
    "header of another kind": lambda m: m.update({"model.json": b"[1, 2]"}),
    "header that is no JSON": lambda m: m.update({"model.json": b"\xff{"}),
    "pickle": swap_particles_for_pickle,
    "header without a part": lambda m: reseal(m, lambda h: h.pop("features")),
    "certificate without a part": lambda m: reseal(m, lambda h: h["certificate"].pop("epsilon")),
    "array left out of the list": lambda m: (
        m.pop("bounds.npy"),
        reseal(m, lambda h: h["sha256"].pop("bounds.npy")),
    ),
    "checksums of another kind": lambda m: reseal(m, lambda h: h.update(sha256=5)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_changed_files_are_refused_in_one_sentence(saved, forgery):
    before = saved.read_bytes()
    rewritten(saved, FORGERIES[forgery])
    assert saved.read_bytes() != before
    with pytest.raises(InputError) as error:
        load(saved)
    assert one_sentence(error)


def test_an_unchanged_rewrite_is_accepted(saved, model):
    rewritten(saved, lambda members: None)
    np.testing.assert_array_equal(load(saved).particles, model.particles)


def test_files_of_another_version_name_it(saved):
    rewritten(saved, FORGERIES["unknown version"])
    with pytest.raises(InputError, match="99"):
        load(saved)


def test_no_flipped_byte_and_no_cut_goes_unnoticed_or_crashes(saved, model, tmp_path):
    data = saved.read_bytes()
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged.privtraj"
    refused = 0
    for at in rng.integers(len(data), size=150):
        wrong = bytearray(data)
        wrong[at] ^= 1 << int(rng.integers(8))
        damaged.write_bytes(bytes(wrong))
        try:
            back = load(damaged)
        except InputError:
            refused += 1
        else:  # a byte that zip files do not use, such as a date: nothing may have changed
            np.testing.assert_array_equal(back.particles, model.particles)
            assert back.certificate == model.certificate
    assert refused > 100
    for cut in rng.integers(len(data), size=40):
        damaged.write_bytes(data[:cut])
        with pytest.raises(InputError):
            load(damaged)


@pytest.mark.parametrize("content", [b"", b"PK", b"path,time\n0,1\n", b"\x80\x04N."])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "x.privtraj"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a privtraj model"):
        load(path)


def test_missing_files_and_directories_are_refused(tmp_path):
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "nowhere.privtraj")
    with pytest.raises(InputError):
        load(tmp_path)


def test_a_diagnostic_that_is_not_finite_does_not_keep_a_model_from_disk(tmp_path):
    build(diagnostics={"error": float("nan"), "list": [1.0, float("inf")]}).save(tmp_path / "m")
    assert load(tmp_path / "m").diagnostics == {"error": None, "list": [1.0, None]}


# The certificate belongs to the model ---------------------------------------------------------


def test_a_sealed_model_carries_its_own_hash(model, saved):
    assert model.certificate.model_sha256 == model.sha256
    back = load(saved)
    assert back.sha256 == model.sha256 == back.certificate.model_sha256
    assert build().certificate.model_sha256 is None
    assert build().sha256 == model.sha256  # sealing does not change what is hashed
    assert model.sealed().sha256 == model.sha256


CHANGES = {
    "a particle": lambda m: {"particles": _nudged(m.particles)},
    "a weight": lambda m: {"weights": _nudged(m.weights)},
    "the bandwidth": lambda m: {"bandwidth": _nudged(m.bandwidth)},
    "a time": lambda m: {"numeric_times": m.numeric_times[:-1]},
    "a knot": lambda m: {"knots": _nudged(m.knots), "numeric_times": _nudged(m.numeric_times)},
    "a bound": lambda m: {"bounds": _nudged(m.bounds)},
    "the diffusivity": lambda m: {"diffusivity": m.diffusivity * (1 + 1e-9)},
    "a name": lambda m: {"features": ("left", "Right")},
    "the name of the time": lambda m: {"time_name": "time"},
    "dates": lambda m: {"datetime": True},
    "the cloud": lambda m: {"cloud_size": 65},
    "a setting": lambda m: {"settings": {**m.settings, "measure": "counts"}},
    "the epsilon": lambda m: {"certificate": replace(m.certificate, epsilon=0.01)},
    "the noise": lambda m: {"certificate": replace(m.certificate, noise="none at all")},
    "a diagnostic": lambda m: {"diagnostics": {"people_per_time": [1.0, 2.5]}},
}


def _nudged(array):
    other = array.copy()
    other.flat[-1] = np.float32(other.flat[-1]) + np.float32(1e-3)
    return other


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_hash_changes_with_every_part_of_the_model(model, change, tmp_path):
    other = replace(model, **change(model))
    assert other.sha256 != model.sha256
    other.save(tmp_path / "m")  # saved as it is, with the certificate of the model it was
    with pytest.raises(InputError, match="certificate belongs to another model"):
        load(tmp_path / "m")
    other.sealed().save(tmp_path / "m", force=True)
    assert load(tmp_path / "m").sha256 == other.sha256


def test_a_seeded_model_is_written_only_on_the_word_that_it_is_not_private(tmp_path):
    seeded = build(certificate=certificate(private_noise=False)).sealed()
    with pytest.raises(InputError, match="not_private=True") as error:
        seeded.save(tmp_path / "m")
    assert one_sentence(error)
    assert not list(tmp_path.iterdir())
    seeded.save(tmp_path / "m", not_private=True)
    back = load(tmp_path / "m")
    assert back.certificate.private is False
    assert "NOT PRIVATE" in repr(back)


def test_a_private_model_needs_no_such_word(model, tmp_path):
    model.save(tmp_path / "m", not_private=True)
    assert load(tmp_path / "m").certificate.private is True


# How people move ------------------------------------------------------------------------------

EVERY_PROCESS = [
    pt.Brownian(0.01),
    pt.Inertia(),
    pt.Inertia(drift=pt.Learned()),
    pt.Inertia(memory=2.0, share=0.5),
    pt.OrnsteinUhlenbeck([0.0, 200.0], 0.3),
    pt.OrnsteinUhlenbeck([0.0, 200.0], 0.3, 0.01),
    pt.Drift(([[0.0, 0.1], [-0.1, 0.0]], [1.0, 2.0])),
    pt.Learned(2),
    pt.Learned(2, 0.01),
]


@pytest.mark.parametrize("process", EVERY_PROCESS)
def test_another_reference_process_is_free_and_stays_with_the_model(model, process, tmp_path):
    moved = model.with_reference(process)
    assert moved.certificate.epsilon == model.certificate.epsilon
    assert moved.certificate.ledger == model.certificate.ledger
    moved.save(tmp_path / "moved.privtraj")
    again = load(tmp_path / "moved.privtraj")
    assert again.reference.to_dict() == process.to_dict()
    values = again.sample(60, [0.0, 0.7, 5.0], seed=3).values
    np.testing.assert_array_equal(values, moved.sample(60, [0.0, 0.7, 5.0], seed=3).values)
    assert (values >= BOUNDS[:, 0]).all()
    assert (values <= BOUNDS[:, 1]).all()


@pytest.mark.parametrize("process", EVERY_PROCESS)
def test_the_reference_changes_who_becomes_whom_and_not_who_is_there(model, process):
    """Marginals of 2,000 people at the knots: those of the particles, with every process."""
    even = {"bandwidth": np.zeros(T), "weights": np.full((T, M), 1 / M)}
    plain = build(**even).with_reference(process)
    values = plain.sample(2400, plain.times, seed=0).values
    unit = (values - BOUNDS[:, 0]) / np.ptp(BOUNDS, axis=1)
    for t in range(T):
        assert wasserstein2(unit[:, t], plain.particles[t]) < 0.02  # a fourth of the spread


def test_the_length_of_a_path_does_not_depend_on_how_often_it_is_read():
    smooth = build().with_reference("auto")
    lengths = []
    for count in (40, 400):
        values = smooth.sample(300, np.linspace(0, 5, count), seed=0).values / np.ptp(
            BOUNDS, axis=1
        )
        lengths.append(np.linalg.norm(np.diff(values, axis=1), axis=2).sum(axis=1).mean())
    assert lengths[1] == pytest.approx(lengths[0], rel=0.02)


def test_constraints_are_kept_by_every_path_and_by_the_file(model, tmp_path):
    steps = {"right": 5.0}
    known = model.with_reference("auto").with_constraints(monotone=["left"], precision=steps)
    known.save(tmp_path / "known.privtraj")
    again = load(tmp_path / "known.privtraj")
    assert again.constraints == known.constraints
    values = again.sample(300, np.linspace(0, 5, 50), seed=0).values
    assert np.diff(values[:, :, 0], axis=1).min() >= 0
    np.testing.assert_array_equal(values[:, :, 1] % 5.0, 0.0)


def test_a_model_with_curves_follows_them():
    """Particle i of all knots is one curve; straight ways would swap the two groups."""
    centre = np.linspace(0.2, 0.8, T)[:, None]
    crossing = np.where(np.arange(M) % 2 == 0, centre, 1 - centre)[..., None]
    known = build(
        particles=np.concatenate([crossing, crossing * 0 + 0.5], axis=2),
        weights=np.full((T, M), 1 / M),
        bandwidth=np.zeros(T),
        curves=True,
        reference=pt.Inertia(),
    )
    values = (known.sample(M, seed=0).values[:, :, 0] + 10) / 20
    np.testing.assert_allclose(values.min(), 0.2, atol=1e-6)
    gone = values[:, -1] - values[:, 0]
    np.testing.assert_allclose(np.abs(gone), 0.6, atol=1e-6)
