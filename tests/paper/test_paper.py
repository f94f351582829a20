"""The published algorithm: its step is the formula, its cost is exact, its starts are paid for."""

import numpy as np
import pytest
from scipy.special import logsumexp

from in_bins import rows_in_bins
from privtraj import Snapshots
from privtraj.base.errors import BudgetError, InputError
from privtraj.paper.dynamics import at, objective
from privtraj.paper.synthesizer import PaperSynthesizer, Phase, TakingPart, TimeSample, WarmStart
from privtraj.paper.trace import Trace, w2_against_epsilon
from privtraj.privacy import noise
from privtraj.privacy.guard import CellCounts, Guard, Laplace, Release
from privtraj.privacy.ledger import Ledger

T, N = 3, 40
QUICK = {"m": 6, "delta": 1e-4, "seed": 0}
PUBLIC = {"public_counts": N, "adjacency": "replace-one"}
FULL = [Phase(3, 0.01, 20.0)]  # closed-form accounting, so that tests are fast


@pytest.fixture(scope="module")
def people(moving_blobs):
    points = moving_blobs(T, N, 2).reshape(-1, 2)
    return Snapshots.from_arrays(
        np.repeat(np.arange(T), N), points, bounds=[(0, 1)] * 2, bins=np.arange(float(T))
    )


def clouds(snapshots):
    rows = rows_in_bins(snapshots)
    return [rows.points[rows.slabs == i].astype(np.float64) for i in range(T)]


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
    guard = people.guarded(Guard, Ledger(50.0, 1e-4), silent())
    rng = np.random.default_rng(0)
    everybody = TakingPart(np.arange(T), guard, np.full(T, float(N)))
    state = recipe._run(phase, everybody, at(x, sigma), people, rng)
    expected = by_hand(x, clouds(people), phase, m, clip, 0.7, sigma)
    np.testing.assert_allclose(state.mixture.particles, expected, atol=2e-4)


def test_a_larger_box_is_the_same_recipe_in_its_own_units(people, silent):
    """Lengths doubled: C and sigma double, tau and transport quadruple, so 1 / lambda does too."""
    x = np.random.default_rng(1).uniform(size=(T, 6, 2))
    moved = []
    for side, tau, sigma, clip in ((1.0, 1.0, 0.2, 0.5), (2.0, 4.0, 0.4, 1.0)):
        recipe = PaperSynthesizer(
            [Phase(1, 0.02, tau)],
            m=6,
            C=clip,
            sigma=sigma,
            side=side,
            lam=0.7 / side**2,
            delta=1e-4,
        )
        everybody = TakingPart(
            np.arange(T),
            people.guarded(Guard, Ledger(50.0, 1e-4), silent()),
            np.full(T, float(N)),
        )
        state = at(x, sigma / side)
        rng = np.random.default_rng(0)
        moved.append(recipe._run(recipe.phases[0], everybody, state, people, rng))
    one, other = (np.asarray(state.mixture.particles) for state in moved)
    np.testing.assert_allclose(one, other, atol=1e-5)
    assert np.abs(one - x).max() > 1e-3


# The cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "epsilon"), [("add-remove", 0.602), ("replace-one", 0.879)])
def test_the_papers_seventh_digit_costs_what_it_costs(adjacency, epsilon):
    recipe = PaperSynthesizer(
        [Phase(250, 0.01, 1.0, 5 / 626)], delta=1e-4, adjacency=adjacency, public_counts=626
    )
    assert recipe.epsilon == pytest.approx(epsilon, abs=1e-3)


def test_phases_composed_cost_less_than_phases_added_up():
    phases = [Phase(10, 0.005, 50.0), Phase(5, 0.003, 30.0), Phase(5, 0.001, 20.0)]
    recipe = PaperSynthesizer(phases, delta=0.01, public_counts=N)
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


def test_the_recipe_is_held_to_its_plan(people, monkeypatch):
    """Whatever is asked beyond it, however little, is not answered."""
    ask = Guard.ask

    def curious(guard, release):
        ask(guard, Release(CellCounts(2), Laplace(1e-3), "only a little"))
        return ask(guard, release)

    monkeypatch.setattr(Guard, "ask", curious)
    with pytest.raises(BudgetError, match=r"'only a little'.* is not on the plan"):
        PaperSynthesizer(FULL, **QUICK).fit(people)


def test_sampled_phases_are_paid_for_before_they_run(people):
    recipe = PaperSynthesizer([Phase(2, 0.01, 2.0, 0.25)], **PUBLIC, **QUICK)
    model = recipe.fit(people)
    (entry,) = model.certificate.ledger
    assert (entry["mechanism"], entry["rate"], entry["times"]) == ("sampled Gaussian", 0.25, 2)
    assert "people per time (declared public)" in model.certificate.public_inputs


def test_a_recipe_that_costs_nothing_at_its_delta_is_fitted(people):
    recipe = PaperSynthesizer([Phase(2, 0.005, 500.0)], m=6, delta=0.1, **PUBLIC, seed=0)
    assert recipe.epsilon == 0
    assert recipe.fit(people).certificate.epsilon == 0


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
    recipe = PaperSynthesizer(FULL, **PUBLIC, **QUICK)
    model = recipe.fit(everybody)
    assert model.certificate.ledger[0]["records"] == T
    assert recipe.epsilon < model.certificate.epsilon


# A budget, shared -----------------------------------------------------------------------------


def test_a_budget_sets_the_noise_and_shares_divide_it():
    recipe = PaperSynthesizer(
        [Phase(10, 0.005, 2.0), Phase(40, 0.001, 1.0)],
        start=WarmStart("medians", 3.0, steps=4),
        delta=1e-4,
        adjacency="replace-one",
    )
    same = recipe.within(1.5)
    assert 1.49 < same.epsilon <= 1.5
    assert same.phases[0].tau / same.phases[1].tau == pytest.approx(2.0)
    shared = recipe.within(1.5, shares=(2, 1, 1))
    assert 1.49 < shared.epsilon <= 1.5
    parts = [4 / shared.start.noise**2, *(p.iterations / p.tau**2 for p in shared.phases)]
    assert parts / np.sum(parts) == pytest.approx([0.5, 0.25, 0.25])
    assert recipe.phases[0].tau == 2.0
    with pytest.raises(InputError, match="3 positive shares"):
        recipe.within(1.5, shares=(1, 1))
    with pytest.raises(InputError, match="does not cover the counts"):
        recipe.within(0.01)


# Sampled times --------------------------------------------------------------------------------

WIDE = 6


@pytest.fixture(scope="module")
def long(moving_blobs):
    points = moving_blobs(WIDE, N, 2).reshape(-1, 2)
    return Snapshots.from_arrays(
        np.repeat(np.arange(WIDE), N), points, bounds=[(0, 1)] * 2, bins=np.arange(float(WIDE))
    )


def test_a_sample_of_the_times_is_paid_for_as_a_mixture(long):
    recipe = PaperSynthesizer(FULL, times=TimeSample(3, of=WIDE), **PUBLIC, **QUICK)
    model = recipe.fit(long)
    model.verify()
    (entry,) = model.certificate.ledger
    assert (entry["share"], entry["times"]) == (0.5, 1)
    assert len(model.times) == 3
    assert set(model.times) <= set(range(WIDE))
    drawn = model.certificate.public_inputs["times drawn at random"]
    assert [float(t) for t in drawn] == model.times.tolist()
    assert model.certificate.epsilon == pytest.approx(recipe.epsilon, rel=1e-3)
    everybody = PaperSynthesizer(FULL, **PUBLIC, **QUICK)
    # who is replaced may be of either time: half of the times cost what all of them cost
    assert recipe.epsilon == pytest.approx(everybody.epsilon, rel=1e-6)
    third = PaperSynthesizer(FULL, times=TimeSample(2, of=WIDE), **PUBLIC, **QUICK)
    assert third.epsilon < 0.99 * everybody.epsilon
    assert model.certificate.verify() == pytest.approx(recipe.epsilon, rel=1e-3)


def test_released_ends_stand_in_for_the_people_there(long):
    ends = WarmStart("means", 0.8, spread=0.01)
    recipe = PaperSynthesizer(
        [Phase(15, 0.08, 15.0)],
        C=2.0,
        sigma=0.3,
        times=TimeSample(2, of=WIDE - 2, ends=ends),
        **PUBLIC,
        **QUICK,
    )
    model = recipe.fit(long)
    assert (model.times[0], model.times[-1], len(model.times)) == (0, WIDE - 1, 4)
    assert [e["what"] for e in model.certificate.ledger] == [
        "sums of private means",
        "clipped batch sums of a step",
    ]
    assert model.certificate.ledger[1]["share"] == 0.5
    rows = rows_in_bins(long)
    means = [rows.points[rows.slabs == i].mean(axis=0) for i in (0, WIDE - 1)]
    # the transport pulls the ends towards their neighbours, so they are not exactly there
    np.testing.assert_allclose(model.particles[[0, -1]].mean(axis=1), means, atol=0.15)
    assert model.sample(4, times=np.linspace(0, WIDE - 1, 9)).values.shape == (4, 9, 2)


@pytest.mark.parametrize(
    ("times", "phases", "said"),
    [
        (TimeSample(3, of=5), FULL, "drawn of 6, not of 5"),
        (TimeSample(2, of=6, ends=WarmStart("means", 5.0)), FULL, "drawn of 4, not of 6"),
        (TimeSample(7, of=6), FULL, "7 of 6 times cannot"),
        (TimeSample(1, of=6), FULL, "make no path"),
        (TimeSample(3, of=6), [*FULL, *FULL], "one phase"),
    ],
)
def test_samples_that_do_not_suit_are_refused(long, times, phases, said):
    with pytest.raises(InputError, match=said):
        PaperSynthesizer(phases, times=times, **QUICK).fit(long)


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
    begin = WarmStart("means", 0.8, spread=0.001)
    model = PaperSynthesizer(still, start=begin, **PUBLIC, **QUICK).fit(people)
    means = [cloud.mean(axis=0) for cloud in clouds(people)]
    # noise of 0.8 sqrt(2) / 2 over 40 people: 0.05 is 3.5 standard deviations, and seeded
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
        [Phase(8, 0.05, 3.0)], start=[[0.95, 0.05]], C=4.0, sigma=0.3, **PUBLIC, **QUICK
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
        ({"phases": [Phase(40, 0.01, 0.5)]}, "cost an epsilon of .*: raise tau"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(people, options, said):
    options = {"phases": FULL, **QUICK, **options}
    with pytest.raises(InputError, match=said):
        PaperSynthesizer(**options).fit(people)


def test_a_trace_tells_every_step_on_public_people(people):
    """From a far corner the people are approached; a clip that nobody reaches clips nobody."""
    settings = {"start": [[0.95, 0.05]], "sigma": 0.3, **PUBLIC, **QUICK}
    tight, wide = (Trace(clouds(people)) for _ in range(2))
    phases = [Phase(8, 0.05, 3.0)]
    PaperSynthesizer(phases, C=1e-3, **settings).fit(people, trace=tight)
    PaperSynthesizer(phases, C=100.0, **settings).fit(people, trace=wide)
    assert [step.step for step in wide.steps] == list(range(8))
    assert (tight.steps[0].clipped, wide.steps[0].clipped) == (1, 0)
    assert tight.steps[0].objective == pytest.approx(wide.steps[0].objective)
    assert wide.steps[0].temperature / tight.steps[0].temperature == pytest.approx(1e10)
    assert wide.steps[-1].w2 < wide.steps[0].w2


def test_a_trace_changes_nothing_and_refuses_a_sample_of_times(people):
    plain = PaperSynthesizer(FULL, **QUICK).fit(people)
    traced = PaperSynthesizer(FULL, **QUICK).fit(people, trace=Trace(clouds(people), every=2))
    np.testing.assert_array_equal(plain.particles, traced.particles)
    with pytest.raises(InputError, match="times are needed"):
        PaperSynthesizer(FULL, **QUICK).fit(people, trace=Trace(clouds(people)[:1]))


def test_distances_over_epsilon_end_with_the_run_without_privacy(people):
    recipe = PaperSynthesizer([Phase(20, 0.05, 1.0)], C=100.0, sigma=0.3, side=2.0, **QUICK)
    found = w2_against_epsilon(recipe, people, clouds(people), epsilons=(0.5, 20.0), seeds=1)
    small, large, exact = found.rows
    assert small.mean > large.mean > 0.5 * exact.mean > 0
    assert "not private" in str(found)
    assert len(found.figure().axes) == 1
