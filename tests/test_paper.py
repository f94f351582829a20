"""The published algorithm: its step is the formula, its cost is exact, its starts are paid for."""

import numpy as np
import pytest
from scipy.special import logsumexp

from privtraj import Snapshots
from privtraj.dynamics import start
from privtraj.dynamics.objective import objective
from privtraj.errors import InputError
from privtraj.paper import PaperSynthesizer, Phase, WarmStart
from privtraj.privacy import noise
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger

T, N = 3, 40
QUICK = {"m": 6, "delta": 1e-4, "seed": 0}
FULL = [Phase(3, 0.01, 20.0)]  # closed-form accounting, so that tests are fast


@pytest.fixture(scope="module")
def people(moving_blobs):
    points = moving_blobs(T, N, 2).reshape(-1, 2)
    return Snapshots.from_arrays(
        np.repeat(np.arange(T), N), points, bounds=[(0, 1)] * 2, bins=np.arange(float(T))
    )


def clouds(snapshots):
    return [snapshots._points[snapshots._bins == i].astype(np.float64) for i in range(T)]


# The step -------------------------------------------------------------------------------------


def partners(x, y, reg):
    """Mean partner of every x under the entropic plan, by log-domain Sinkhorn to convergence."""
    cost = ((x[:, None] - y[None]) ** 2).sum(-1) / 2 / reg
    f, g = np.zeros(len(x)), np.zeros(len(y))
    for _ in range(500):
        f = -np.log(len(x)) - logsumexp(g[None] - cost, axis=1)
        g = -np.log(len(y)) - logsumexp(f[:, None] - cost, axis=0)
    plan = np.exp(f[:, None] + g[None] - cost)
    return plan @ y / plan.sum(axis=1, keepdims=True)


def by_hand(x, data, phase, m, clip, lam, sigma):
    """One step of the formula in the module's docstring, without noise, everybody in the batch."""
    dt = 1 / (T - 1)
    moved = x.copy()
    for i in range(T):
        away = x[i][None] - data[i][:, None]
        log_w = -(away**2).sum(-1) / (2 * sigma**2)
        w = np.exp(log_w - logsumexp(log_w, axis=1, keepdims=True))
        v = m * dt / (lam * sigma**2) * w[:, :, None] * away
        norm = np.sqrt((v**2).sum(axis=(1, 2), keepdims=True))
        fit = (v * np.minimum(1, clip / norm)).sum(axis=0) / len(data[i])
        pull = sum(
            (x[i] - partners(x[i], x[j], phase.tau * dt)) / dt for j in (i - 1, i + 1) if 0 <= j < T
        )
        moved[i] -= phase.eta * (fit + pull)
    return moved


@pytest.mark.parametrize(("clip", "sigma"), [(0.5, 0.1), (1e3, 0.3)])
def test_a_step_is_the_formula(people, silent, clip, sigma):
    phase, m = Phase(1, 0.02, 1.0), 6
    recipe = PaperSynthesizer([phase], m=m, C=clip, lam=0.7, sigma=sigma, delta=1e-4)
    x = np.random.default_rng(1).uniform(size=(T, m, 2))
    guard = Guard(people, Ledger(50.0, 1e-4), silent())
    rng = np.random.default_rng(0)
    state = recipe._run(phase, guard, np.full(T, float(N)), start.at(x, sigma), people, rng)
    expected = by_hand(x, clouds(people), phase, m, clip, 0.7, sigma)
    np.testing.assert_allclose(state.mixture.particles, expected, atol=2e-4)


# The cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "epsilon"), [("add-remove", 0.602), ("replace-one", 0.879)])
def test_the_papers_seventh_digit_costs_what_it_costs(adjacency, epsilon):
    recipe = PaperSynthesizer(
        [Phase(250, 0.01, 1.0, 5 / 626)], delta=1e-4, adjacency=adjacency, count_epsilon=None
    )
    assert recipe.epsilon == pytest.approx(epsilon, abs=1e-3)


def test_phases_composed_cost_less_than_phases_added_up():
    phases = [Phase(10, 0.005, 50.0), Phase(5, 0.003, 30.0), Phase(5, 0.001, 20.0)]
    recipe = PaperSynthesizer(phases, delta=0.01, count_epsilon=None)
    assert recipe.epsilon < 0.7 * recipe.added_epsilon()


def test_the_certificate_states_what_was_foretold(people):
    recipe = PaperSynthesizer([*FULL, Phase(2, 0.005, 15.0)], **QUICK)
    model = recipe.fit(people)
    assert model.certificate.epsilon == pytest.approx(recipe.epsilon, rel=1e-6)
    assert [(e["what"], e["times"]) for e in model.certificate.ledger] == [
        ("people per time", 1),
        ("clipped batch sums of a step", 3),
        ("clipped batch sums of a step", 2),
    ]
    assert model.settings["phases"][1]["tau"] == 15.0
    assert model.certificate.verify() == pytest.approx(recipe.epsilon, rel=1e-6)


def test_sampled_phases_are_paid_for_before_they_run(people):
    recipe = PaperSynthesizer([Phase(2, 0.01, 2.0, 0.25)], count_epsilon=None, **QUICK)
    model = recipe.fit(people)
    (entry,) = model.certificate.ledger
    assert (entry["mechanism"], entry["rate"], entry["times"]) == ("sampled Gaussian", 0.25, 2)
    assert "people per time (declared public)" in model.certificate.public_inputs


def test_full_trajectories_cost_more(moving_blobs):
    points = moving_blobs(T, N, 2).reshape(-1, 2)
    everybody = Snapshots.from_arrays(
        np.repeat(np.arange(T), N),
        points,
        bounds=[(0, 1)] * 2,
        bins=np.arange(float(T)),
        person=np.tile(np.arange(N), T),
        records_per_person=T,
    )
    recipe = PaperSynthesizer(FULL, count_epsilon=None, **QUICK)
    model = recipe.fit(everybody)
    assert model.certificate.ledger[0]["records"] == T
    assert recipe.epsilon < model.certificate.epsilon


# The start ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "begin",
    [
        "normal",
        "uniform",
        [[0.1, 0.2], [0.8, 0.9]],
        WarmStart("means", 5.0),
        WarmStart("medians", 20.0, steps=3),
        WarmStart("clusters", 20.0, steps=3, k=2),
    ],
    ids=str,
)
def test_every_start_gives_a_sound_model_and_is_paid_for(people, begin):
    model = PaperSynthesizer(FULL, start=begin, **QUICK).fit(people)
    assert np.isfinite(model.particles).all()
    assert ((model.particles >= 0) & (model.particles <= 1)).all()
    paid = [entry["what"] for entry in model.certificate.ledger]
    assert len(paid) == (3 if isinstance(begin, WarmStart) else 2)
    assert model.sample(5).values.shape == (5, T, 2)


def test_a_warm_start_of_means_begins_at_the_means(people):
    still = [Phase(1, 1e-9, 50.0)]
    begin = WarmStart("means", 0.4, spread=0.001)
    model = PaperSynthesizer(still, start=begin, count_epsilon=None, **QUICK).fit(people)
    means = [cloud.mean(axis=0) for cloud in clouds(people)]
    # noise of 0.4 sqrt(2) / 2 over 40 people: 0.05 is seven standard deviations
    np.testing.assert_allclose(model.particles.mean(axis=1), means, atol=0.05)


def test_a_released_model_can_be_the_start(people):
    first = PaperSynthesizer(FULL, start="uniform", **QUICK).fit(people)
    second = PaperSynthesizer([Phase(1, 1e-9, 50.0)], start=first, **QUICK).fit(people)
    assert second.certificate.ledger[-1]["times"] == 1
    np.testing.assert_allclose(
        second.particles.mean(axis=(1, 2)), first.particles.mean(axis=(1, 2)), atol=0.2
    )


def test_the_objective_can_be_traced_on_public_data(people):
    """A start far from everybody: the first steps go to the people, so the data fit falls."""
    recipe = PaperSynthesizer(
        [Phase(8, 0.05, 3.0)], start=[[0.95, 0.05]], C=4.0, sigma=0.3, count_epsilon=None, **QUICK
    )
    seen = []
    recipe.fit(people, watch=seen.append)
    gaps = np.full(T - 1, 1 / (T - 1))
    fits = [objective(x, clouds(people), gaps, lam=1.0, sigma=0.3, tau=3.0).fit for x in seen]
    assert len(seen) == 8
    assert fits[-1] < fits[0]


def test_a_seed_repeats_the_run_and_another_does_not(people):
    first, again, other = (
        PaperSynthesizer(FULL, **{**QUICK, "seed": seed}).fit(people).particles
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert noise.source_for(None).private


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"phases": []}, "at least one phase"),
        ({"start": "here"}, "'normal' or 'uniform'"),
        ({"start": WarmStart("means", 5.0, steps=2)}, "one step"),
        ({"start": WarmStart("modes", 5.0)}, "means, medians or clusters"),
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"delta": 0.0}, "raise it"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(people, options, said):
    options = {"phases": FULL, **QUICK, **options}
    with pytest.raises(InputError, match=said):
        PaperSynthesizer(**options).fit(people)
