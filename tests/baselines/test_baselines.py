"""What every baseline promises: a sensible fit, the stated cost, the stated sensitivity."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest

import baselines
import privtraj as pt
from methods import MarginalSynthesizer, PrivateMeasure
from privtraj.audit.canaries import People, Worlds
from privtraj.audit.scores import log_likelihood_ratio
from privtraj.audit.transcript import Transcript
from privtraj.base.errors import InputError
from privtraj.privacy.guard import Guard

TIMES = 4
POINTS = 200
BOX = [(-1.5, 1.5)] * 2
BINS = np.linspace(0, 1, TIMES)

LEAN = {"points": POINTS, "seed": 3}
INFERENCE = {"particles": 32, "steps": 24}
PURE = {
    "histogram": lambda **s: baselines.ThresholdedHistogram(1.0, **LEAN | s),
    "histogram by hand": lambda **s: baselines.ThresholdedHistogram(1.0, cells=12, **LEAN | s),
    "hierarchy": lambda **s: PrivateMeasure(1.0, **LEAN | s),
    "hierarchy by hand": lambda **s: PrivateMeasure(1.0, cells=8, **LEAN | s),
}
PRIVATE = PURE | {
    "mixture": lambda **s: baselines.ClusterMixture(1.0, 1e-5, k=3, steps=8, **LEAN | s)
}
EVERY = PRIVATE | {
    "uniform": lambda **s: baselines.Uniform(1.0, 1e-5, **LEAN | s),
    "non-private": lambda **s: baselines.NonPrivate(**INFERENCE, **LEAN | s),
}
# squared W2 to fresh people; 50 real people score 0.03, the middle of the box about 0.9
BOUNDS = {
    "histogram": 0.08,
    "histogram by hand": 0.08,
    "hierarchy": 0.12,
    "hierarchy by hand": 0.10,
    "mixture": 0.03,
    "uniform": 2.0,
    "non-private": 0.01,
}


@pytest.fixture(scope="module")
def people():
    times, points = pt.datasets.three_modes(300, TIMES, seed=1)
    return pt.Snapshots.from_arrays(times, points, bounds=BOX, bins=BINS)


@pytest.fixture(scope="module")
def others():
    return pt.datasets.three_modes(300, TIMES, seed=2)[1].reshape(TIMES, -1, 2)


@pytest.fixture(scope="module")
def models(people):
    return {name: make().fit(people) for name, make in EVERY.items()}


def watched(baseline, watch):
    """The baseline with its guard put through `watch`."""
    kind = type(baseline)

    def make(*args, **options):
        return watch(Guard(*args, **options))

    made = type(kind.__name__, (kind,), {"guard_class": staticmethod(make)})
    return made(**{each.name: getattr(baseline, each.name) for each in fields(baseline)})


# Fits -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_a_fit_is_near_the_people(name, models, others):
    clouds = np.swapaxes(models[name].sample(POINTS, seed=0).values, 0, 1)
    assert pt.metrics.average_squared_w2(clouds, others) < BOUNDS[name]


@pytest.mark.parametrize("name", EVERY)
def test_a_file_agrees_with_its_certificate(name, models, tmp_path):
    models[name].save(tmp_path / "m", not_private=True)
    loaded = pt.load(tmp_path / "m")
    assert loaded.verify() == pytest.approx(loaded.certificate.epsilon, rel=1e-9)


def test_asking_nobody_is_far_from_the_people(models, others):
    assert pt.metrics.average_squared_w2(models["uniform"].marginals, others) > 1


def test_without_noise_the_fit_is_the_best(models, others):
    scores = {
        name: pt.metrics.average_squared_w2(model.marginals, others)
        for name, model in models.items()
    }
    assert min(scores, key=scores.get) == "non-private"


@pytest.mark.parametrize("name", ["histogram", "hierarchy", "mixture", "uniform"])
def test_observation_noise_adds_nothing_where_particles_are_people(name, models):
    plain, noisy = (
        models[name].sample(50, seed=1, observation_noise=on).values for on in (False, True)
    )
    np.testing.assert_array_equal(plain, noisy)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", ["histogram", "hierarchy", "mixture", "uniform"])
def test_other_dimensions(name, d, moving_blobs, snapshots_of):
    model = EVERY[name]().fit(snapshots_of(list(moving_blobs(3, 100, d))))
    assert model.particles.shape == (3, POINTS, d)
    assert model.particles.min() >= 0
    assert model.particles.max() <= 1


def test_where_no_cell_stands_out_people_are_uniform_on_the_box(snapshots_of, silent):
    few = snapshots_of([np.full((8, 2), 0.5), np.empty((0, 2))])
    baseline = baselines.ThresholdedHistogram(1.0, cells=64, seed=5)
    model = watched(baseline, lambda guard: Recorder(guard, silent())).fit(few)
    np.testing.assert_allclose(model.marginals.mean(axis=1), 0.5, atol=0.05)
    np.testing.assert_allclose(model.marginals.std(axis=1), 12**-0.5, atol=0.03)


# Cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", PRIVATE)
def test_a_fit_costs_what_was_asked_and_hardly_less(name, adjacency, people):
    certificate = PRIVATE[name](adjacency=adjacency).fit(people).certificate
    assert certificate.verify() == pytest.approx(certificate.epsilon)
    assert 0.999 < certificate.epsilon <= 1
    assert certificate.delta == (0 if name in PURE else 1e-5)
    assert certificate.adjacency == adjacency


def test_the_uniform_box_costs_nothing(models):
    certificate = models["uniform"].certificate
    assert certificate.verify() == 0
    assert certificate.ledger == ()


@pytest.mark.parametrize(("adjacency", "epsilon"), [("add-remove", 1.0), ("replace-one", 0.5)])
def test_replacing_halves_the_epsilon_of_the_noise(adjacency, epsilon, people):
    made = PURE["histogram by hand"](adjacency=adjacency).fit(people)
    (entry,) = made.certificate.ledger
    assert entry["noise_epsilon"] == pytest.approx(epsilon, rel=1e-6)


def test_declared_counts_are_free_and_on_the_certificate(people):
    given = {"public_counts": [300] * TIMES, "adjacency": "replace-one"}
    certificate = PURE["histogram"](**given).fit(people).certificate
    assert len(certificate.ledger) == 1
    assert certificate.public_inputs["people per time (declared public)"] == [300] * TIMES


@pytest.mark.parametrize("name", ["histogram", "hierarchy", "mixture"])
def test_several_records_of_a_person_are_paid_for(name):
    rng = np.random.default_rng(0)
    who, times = np.divmod(np.arange(600), 3)
    snapshots = pt.Snapshots.from_arrays(
        times / 2,
        rng.uniform(size=(600, 2)),
        bounds=[(0, 1)] * 2,
        bins=np.arange(3) / 2,
        person=who,
        records_per_person=3,
    )
    certificate = PRIVATE[name]().fit(snapshots).certificate
    assert 0.999 < certificate.verify() <= 1


# Sensitivity ----------------------------------------------------------------------------------


class Recorder(Guard):
    """Keeps what the guard answers to counts."""

    def __init__(self, guard, source):
        self.__dict__.update(vars(guard))
        self._view = replace(self._view, source=source)
        self.answers = []

    def ask(self, release):
        self.answers.append(super().ask(release))
        return self.answers[-1]


def answers(baseline, snapshots, silent):
    """All counts that left the guard, without noise."""
    recorders = []

    def record(guard):
        recorders.append(Recorder(guard, silent()))
        return recorders[-1]

    watched(baseline, record).fit(snapshots)
    (recorder,) = recorders
    return recorder.answers


@pytest.mark.parametrize("name", ["histogram by hand", "hierarchy by hand"])
def test_one_person_moves_one_count_of_each_release_by_one(name, snapshots_of, silent):
    rng = np.random.default_rng(1)
    rows = [rng.uniform(size=(40, 2)) for _ in range(3)]
    more = [*rows[:2], np.append(rows[2], [[0.9, 0.1]], axis=0)]
    other = [np.append(rows[0], [[0.3, 0.3]], axis=0), *rows[1:]]
    without, present, replaced = (
        answers(PURE[name](), snapshots_of(each), silent) for each in (rows, more, other)
    )
    assert [np.abs(a - b).sum() for a, b in zip(without, present, strict=True)] == [1] * len(
        present
    )
    assert [np.abs(a - b).sum() for a, b in zip(replaced, present, strict=True)] == [2] * len(
        present
    )


@pytest.mark.parametrize("name", ["histogram", "hierarchy", "hierarchy by hand"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_no_transcript_says_more_than_epsilon(name, adjacency, snapshots_of):
    person, nobody = People.at(2, np.array([0.9, 0.9])), People.nobody(2)
    instead = People.at(0, np.array([0.1, 0.1])) if adjacency == "replace-one" else nobody
    data = snapshots_of([np.empty((0, 2)), np.full((30, 2), 0.5), person.points])
    ratios = []
    for seed in range(12):
        transcript = Transcript(Worlds(nobody, instead, person))
        PURE[name](adjacency=adjacency, seed=seed).fit(data, watcher=transcript)
        ratios.append(log_likelihood_ratio(transcript.answers))
    assert np.abs(ratios).max() <= 1 + 1e-9
    assert np.max(ratios) > 0.2  # the attack sees what it should


def test_the_ledger_of_each_release():
    def events(baseline, snapshots):
        ledgers = []
        watched(baseline, lambda guard: ledgers.append(guard.ledger) or guard).fit(snapshots)
        return [event for event, _ in ledgers[0].events]

    times, points = pt.datasets.three_modes(100, TIMES, seed=1)
    snapshots = pt.Snapshots.from_arrays(times, points, bounds=BOX, bins=BINS)
    (one,) = events(PURE["histogram by hand"](), snapshots)
    assert one.epsilon == pytest.approx(1, rel=1e-6)
    head, cells = events(PURE["histogram"](), snapshots)
    assert head.epsilon == pytest.approx(0.05)
    assert cells.epsilon == pytest.approx(0.95, rel=1e-6)
    levels = events(PURE["hierarchy by hand"](), snapshots)
    assert len(levels) == 1 + 3
    assert sum(event.epsilon for event in levels) == pytest.approx(1, rel=1e-6)
    assert len(events(PRIVATE["mixture"](), snapshots)) == 1 + 8


# What may be released -------------------------------------------------------------------------


def test_a_seed_repeats_the_fit_and_marks_it(models, people, tmp_path):
    again = PURE["histogram"]().fit(people)
    np.testing.assert_array_equal(again.particles, models["histogram"].particles)
    assert not again.certificate.private
    free = PURE["histogram"](seed=None).fit(people)
    assert free.certificate.private
    free.save(tmp_path / "free.privtraj")
    loaded = pt.load(tmp_path / "free.privtraj")
    assert loaded.settings["baseline"] == "ThresholdedHistogram"
    assert loaded.certificate.verify() <= 1


def test_what_is_not_private_cannot_be_taken_for_it(people, tmp_path):
    model = baselines.NonPrivate(0.1, 1e-9, particles=4, steps=2).fit(people)
    certificate = model.certificate
    assert not certificate.private
    assert certificate.epsilon > 1e5
    assert certificate.delta > 0.999
    assert certificate.attacker["advantage"] == 1
    assert "NOT PRIVATE: the records were used as they are" in str(certificate)
    assert "seed" not in repr(model)
    certificate.verify()
    path = tmp_path / "model.privtraj"
    with pytest.raises(InputError, match="not_private=True"):
        model.save(path)
    model.save(path, not_private=True)
    assert not pt.load(path).certificate.private


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (baselines.ThresholdedHistogram, {"epsilon": 0}),
        (baselines.ThresholdedHistogram, {"epsilon": 1e-3}),
        (baselines.ThresholdedHistogram, {"delta": 1}),
        (baselines.ThresholdedHistogram, {"adjacency": "both"}),
        (baselines.ThresholdedHistogram, {"cells": 1}),
        (baselines.ThresholdedHistogram, {"cells": 8.0}),
        (baselines.ThresholdedHistogram, {"cells": 2**14}),
        (baselines.ThresholdedHistogram, {"points": 1}),
        (baselines.ThresholdedHistogram, {"count_share": 1}),
        (baselines.ThresholdedHistogram, {"diffusivity": 0}),
        (baselines.ThresholdedHistogram, {"seed": -1}),
        (PrivateMeasure, {"cells": 12}),
        (PrivateMeasure, {"epsilon": 0.005, "cells": 64}),
        (baselines.ClusterMixture, {"delta": 0}),
        (baselines.ClusterMixture, {"k": 0}),
        (baselines.ClusterMixture, {"steps": True}),
        (baselines.NonPrivate, {"particles": 1}),
        (baselines.NonPrivate, {"steps": 1}),
        (MarginalSynthesizer, {"algorithm": "GAN"}),
        (MarginalSynthesizer, {"cells": 1}),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(kind, settings, people):
    with pytest.raises(InputError) as error:
        kind(**settings).fit(people)
    assert re.fullmatch(r"[^\n]+[^.\n]", str(error.value))


def test_only_snapshots_are_fitted():
    with pytest.raises(InputError, match="Snapshots"):
        baselines.Uniform().fit(np.zeros((3, 2)))
