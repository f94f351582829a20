"""Warm starts: what they cost, that they see released sums alone, and how near they come."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from privtraj.base.errors import BudgetError, InputError
from privtraj.datasets import three_modes
from privtraj.paper import warm_starts as warm
from privtraj.paper.warm_starts import (
    CLUSTER_CLIP,
    Centres,
    Clusters,
    cluster_vectors,
    directions,
    mixture_particles,
    offsets,
    on_simplex,
    private_clusters,
    private_means,
    private_medians,
)
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.noise import GAUSSIAN_TV_PER_DRAW, SeededSource

Z = 4.0
K = 3

STARTS = {
    "means": (lambda guard, people: private_means(guard, people, Z), warm.MEANS, 1, 2),
    "medians": (lambda guard, people: private_medians(guard, people, Z, 5), warm.MEDIANS, 5, 2),
    "clusters": (
        lambda guard, people: private_clusters(guard, people, K, Z, 6),
        warm.CLUSTERS,
        6,
        K * 4,
    ),
}
each_start = pytest.mark.parametrize("name", STARTS)


@pytest.fixture(scope="module")
def guard_of(snapshots_of):
    """Function: clouds, source or seed -> a guard whose ledger pays for anything asked here."""

    def make(clouds, source=0, epsilon=200.0):
        noise = SeededSource(source) if isinstance(source, int) else source
        dimensions = np.shape(clouds[0])[1]
        return snapshots_of(list(clouds), dimensions).guarded(Guard, Ledger(epsilon, 1e-2), noise)

    return make


class Recorder:
    """A guard that writes down what is asked of it and what it answers."""

    def __init__(self, guard):
        self._guard = guard
        self.touched, self.asked, self.answers = set(), [], []

    def __getattr__(self, name):
        self.touched.add(name)
        return self._answer if name == "ask" else getattr(self._guard, name)

    def _answer(self, release):
        question = release.question
        self.asked.append((question.statistic, question.parameters, question.clip))
        self.answers.append(self._guard.ask(release))
        return self.answers[-1]


class Replay:
    """No data at all: public sizes, and the answers that somebody else was given."""

    def __init__(self, recorder):
        self.n_times, self.n_features = recorder.n_times, recorder.n_features
        self._answers = iter(recorder.answers)

    def ask(self, release):
        return next(self._answers)


def values(result):
    """All numbers of a result, one after the other."""
    parts = vars(result).values() if isinstance(result, Clusters) else [result]
    return np.concatenate([np.ravel(part) for part in parts])


def unit_modes(n, seed, times=10):
    """Three modes in the unit cube: clouds (T, n, 2) and the true places (T, 3, 2)."""
    u, points = three_modes(n, times, seed)
    x, y = -np.cos(np.pi * u[::n]), np.sin(np.pi * u[::n])
    places = np.stack([[x, y], [2 * u[::n] - 1, 0 * y], [x, -y]]).transpose(2, 0, 1)
    return np.clip((points.reshape(times, n, 2) + 1.5) / 3, 0, 1), (places + 1.5) / 3


def matched(clusters, places):
    """Distances (T, k) to the places, and the weights (T, k), in the order of the places."""
    distances, weights = [], []
    for centres, share, true in zip(clusters.centres, clusters.weights, places, strict=True):
        apart = np.linalg.norm(true[:, None] - centres[None], axis=-1)
        rows, columns = linear_sum_assignment(apart)
        distances.append(apart[rows, columns])
        weights.append(share[columns])
    return np.array(distances), np.array(weights)


# What it costs, and what it sees --------------------------------------------------------------


@each_start
def test_the_ledger_has_exactly_the_releases_promised(name, guard_of, moving_blobs):
    start, what, releases, width = STARTS[name]
    guard = guard_of(moving_blobs(4, 50, 2))
    start(guard, np.full(4, 50))
    slack = 4 * width * GAUSSIAN_TV_PER_DRAW
    assert guard.ledger.events == ((GaussianSum(Z, what, slack), 1),) * releases
    assert guard.ledger.tally.gdp_mu == pytest.approx(math.sqrt(releases) / Z)


@each_start
def test_nothing_of_the_guard_is_used_but_its_door_and_public_sizes(name, guard_of, moving_blobs):
    start = STARTS[name][0]
    recorder = Recorder(guard_of(moving_blobs(4, 50, 2)))
    start(recorder, np.full(4, 50))
    assert recorder.touched <= {"ask", "n_times", "n_features"}


@each_start
def test_the_released_sums_determine_everything_that_follows(name, guard_of, moving_blobs):
    start = STARTS[name][0]
    recorder = Recorder(guard_of(moving_blobs(4, 50, 2)))
    first = start(recorder, np.full(4, 50))
    again = start(Replay(recorder), np.full(4, 50))
    np.testing.assert_array_equal(values(first), values(again))


@each_start
def test_the_first_question_does_not_depend_on_the_data(name, guard_of, moving_blobs):
    start = STARTS[name][0]
    first = []
    for clouds in (moving_blobs(4, 50, 2), np.zeros((4, 7, 2))):
        recorder = Recorder(guard_of(clouds))
        start(recorder, np.full(4, 50))
        statistic, parameters, clip = recorder.asked[0]
        leaves = parameters if isinstance(parameters, tuple) else (parameters,)
        assert all((np.asarray(leaf) == np.asarray(leaf)[:1]).all() for leaf in leaves)
        first.append((statistic, *(np.asarray(leaf).tolist() for leaf in leaves), clip.tolist()))
    assert first[0] == first[1]


@each_start
def test_a_budget_that_is_too_small_is_not_overdrawn(name, guard_of, moving_blobs):
    guard = guard_of(moving_blobs(4, 50, 2), epsilon=0.1)
    with pytest.raises(BudgetError):
        STARTS[name][0](guard, np.full(4, 50))
    assert guard.ledger.spent() <= 0.1


in_cube = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=2)


@settings(max_examples=40)
@given(
    points=st.lists(in_cube, min_size=8, max_size=8),
    places=st.lists(in_cube, min_size=K, max_size=K),
    radius=st.floats(1e-3, 1),
)
def test_every_vector_is_within_its_clip_so_nobody_is_clipped(points, places, radius):
    points, places = jnp.asarray(points, jnp.float32), jnp.asarray(places, jnp.float32)
    middle = jnp.full(2, 0.5)
    for vectors, clip in (
        (offsets(points, middle), math.sqrt(2) / 2),
        (directions(points, places[0]), 1.0),
        (cluster_vectors(points, Centres(places, jnp.float32(radius))), CLUSTER_CLIP),
    ):
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(np.float64(vectors), axis=-1).max() <= clip * (1 + 1e-6)


def test_a_person_on_the_median_pulls_nowhere():
    at = jnp.asarray([[0.2, 0.7], [0.2, 0.8]])
    np.testing.assert_allclose(directions(at, at[0]), [[0, 0], [0, 1]], atol=1e-6)


def test_cluster_vectors_are_pull_count_and_residual_of_the_nearest_centre():
    places = jnp.asarray([[0.2, 0.2], [0.8, 0.8]])
    points = jnp.asarray([[0.2, 0.3], [0.8, 0.1]])
    got = cluster_vectors(points, Centres(places, jnp.float32(0.2))).reshape(2, 2, 4)
    np.testing.assert_allclose(got[0], [[0, 0.5, 1, -0.25], [0, 0, 0, 0]], atol=1e-6)
    far = np.array([0.6, -0.1]) / np.hypot(0.6, 0.1)
    np.testing.assert_allclose(got[1], [[*far, 1, 0.5], [0, 0, 0, 0]], atol=1e-6)


# Any input ------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(order=st.permutations(range(20)), name=st.sampled_from(sorted(STARTS)))
def test_the_order_of_rows_changes_nothing(order, name, guard_of, moving_blobs):
    start, clouds = STARTS[name][0], moving_blobs(3, 20, 2)
    before = start(guard_of(clouds), np.full(3, 20))
    after = start(guard_of(clouds[:, list(order)]), np.full(3, 20))
    np.testing.assert_array_equal(values(before), values(after))


@each_start
@pytest.mark.parametrize("people", [[0, 1, 30], [-12, 0, 1e9]])
@pytest.mark.parametrize("quiet", [False, True])
def test_empty_bins_and_bins_of_one_give_numbers_in_the_cube(name, people, quiet, guard_of, silent):
    rng = np.random.default_rng(0)
    clouds = [np.zeros((0, 2)), np.ones((1, 2)), rng.uniform(size=(30, 2))]
    result = STARTS[name][0](guard_of(clouds, silent() if quiet else 1), people)
    numbers = values(result)
    assert np.isfinite(numbers).all()
    assert numbers.min() >= 0
    assert numbers.max() <= 1
    if name == "clusters":
        np.testing.assert_allclose(result.weights.sum(axis=1), 1)
        assert (result.spread > 0).all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda guard: private_means(guard, 50, 1.0),
        lambda guard: private_means(guard, np.full(4, np.nan), 1.0),
        lambda guard: private_medians(guard, np.full(3, 50), 1.0, 5),
        lambda guard: private_medians(guard, np.full(4, 50), 1.0, 0),
        lambda guard: private_clusters(guard, np.full(4, 50), 0, 1.0, 5),
        lambda guard: private_clusters(guard, np.full(4, 50), 2, 1.0, 0),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_spent(ask, guard_of, moving_blobs):
    guard = guard_of(moving_blobs(4, 50, 2))
    with pytest.raises(InputError):
        ask(guard)
    assert guard.ledger.events == ()


# How near they come ---------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5])
def test_means_are_exact_without_noise_and_as_noisy_as_stated_with_it(
    d, guard_of, moving_blobs, silent
):
    clouds = moving_blobs(40, 100, d)
    people = np.full(40, 100)
    exact = private_means(guard_of(clouds, silent()), people, Z)
    np.testing.assert_allclose(exact, clouds.mean(axis=1), atol=1e-6)
    error = private_means(guard_of(clouds), people, Z) - clouds.mean(axis=1)
    # standard error of a standard deviation of 40 d draws: 11 % at d = 1; 4 of them
    assert error.std() == pytest.approx(Z * math.sqrt(d) / 2 / 100, rel=0.45)


def with_outliers(times, n, d, share, seed=0):
    """Clouds (T, n, d) of which a share is far off in a corner, and the places of the others."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0.1, 0.9, size=(times, 1, d))
    clouds = places + 0.05 * rng.standard_normal((times, n, d))
    clouds[:, : int(share * n)] = places < 0.5
    return np.clip(clouds, 0, 1), places[:, 0]


@pytest.mark.parametrize("d", [1, 5])
def test_medians_hold_against_outliers_that_carry_means_away(d, guard_of, silent):
    clouds, places = with_outliers(8, 600, d, 0.3)
    people = np.full(8, 600)
    for source in (silent(), 0):
        medians = private_medians(guard_of(clouds, source), people, math.sqrt(12) / 0.5, 12)
        means = private_means(guard_of(clouds, source), people, 1 / 0.5)
        assert np.linalg.norm(medians - places, axis=1).max() < 0.075
        assert np.linalg.norm(means - places, axis=1).min() > 0.14


def test_medians_are_where_the_pulls_of_people_cancel(guard_of, silent):
    rng = np.random.default_rng(3)
    clouds = rng.beta(1.0, 3.0, size=(4, 200, 2)) * [1, 0.2]
    medians = private_medians(guard_of(clouds, silent()), np.full(4, 200), 1.0, 40)
    away = clouds - medians[:, None]
    pull = (away / np.linalg.norm(away, axis=-1, keepdims=True)).mean(axis=1)
    assert np.linalg.norm(pull, axis=1).max() < 0.02


def test_clusters_of_a_small_budget_find_the_three_modes_at_every_time(guard_of):
    clouds, places = unit_modes(3000, seed=0)
    people, mu, steps = np.full(10, 3000), 0.3, 8
    guard = guard_of(clouds)
    clusters = private_clusters(guard, people, 3, math.sqrt(steps) / mu, steps)
    assert guard.ledger.tally.gdp_mu == pytest.approx(mu)
    distances, weights = matched(clusters, places)
    width = math.sqrt(0.005) / 3
    # at the first and the last time the three modes are one, and three clusters share it
    assert distances[1:-1].max() < 0.5 * width
    np.testing.assert_allclose(weights[1:-1], 1 / 3, atol=0.1)
    assert distances[[0, -1]].max() < 2 * width
    np.testing.assert_allclose(clusters.spread[1:-1], width, rtol=0.15)


def test_clusters_of_other_sizes_and_dimensions_are_found(guard_of):
    rng = np.random.default_rng(1)
    places = rng.permuted(np.tile(np.linspace(0.15, 0.85, 4)[:, None], (6, 1, 5)), axis=1)
    share = np.array([0.1, 0.2, 0.3, 0.4])
    who = np.repeat(np.arange(4), (1000 * share).astype(int))
    clouds = np.clip(places[:, who] + 0.04 * rng.standard_normal((6, 1000, 5)), 0, 1)
    clusters = private_clusters(guard_of(clouds), np.full(6, 1000), 4, math.sqrt(8), 8)
    distances, weights = matched(clusters, places)
    assert distances.max() < 0.03
    np.testing.assert_allclose(weights, np.tile(share, (6, 1)), atol=0.03)


def test_centres_leave_a_fixed_point_of_lloyd_iteration(guard_of, silent, monkeypatch):
    rng = np.random.default_rng(0)
    # the first centres stand so that one is nearest to both modes of the left, two share the right
    places = np.array([[0.3, 0.1], [0.3, 0.9], [0.85, 0.5]])
    clouds = np.clip(places[np.arange(300) % 3] + 0.03 * rng.standard_normal((1, 300, 2)), 0, 1)

    def worst():
        clusters = private_clusters(guard_of(clouds, silent()), [300], 3, 1.0, 8)
        return matched(clusters, places[None])[0].max()

    monkeypatch.setattr(
        warm,
        "_even_offsets",
        lambda n, d: np.resize([[-0.25, 0.01], [0.5, 0.2], [0.5, -0.2]], (n, d)),
    )
    assert worst() < 0.01
    monkeypatch.setattr(warm, "_relocate", lambda *_: None)
    assert worst() > 0.3


# After the releases ---------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
def test_the_projection_is_the_nearest_point_of_the_simplex(weights):
    weights = np.array([weights])
    nearest = on_simplex(weights)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(1)
    # optimality: no corner of the simplex is on the side of the weights
    slope = (weights - nearest)[0]
    assert (slope @ (np.eye(weights.shape[1]) - nearest[0]).T <= 1e-9).all()


def test_first_centres_are_different_and_inside():
    for d in (1, 2, 3, 8):
        offset = warm._even_offsets(40, d)
        assert np.abs(offset).max() <= 0.5
        apart = np.linalg.norm(offset[:, None] - offset[None], axis=-1) + np.eye(40)
        assert apart.min() > 0.3 * 40 ** (-1 / d)


def test_particles_share_the_clusters_by_weight_and_spread_around_them():
    rng = np.random.default_rng(0)
    centres = np.array([[[0.25, 0.25], [0.75, 0.25], [0.5, 0.75]]] * 2)
    weights = np.array([[0.2, 0.3, 0.5], [0.0, 0.01, 0.99]])
    clusters = Clusters(centres, weights, np.array([0.01, 0.02]))
    particles = mixture_particles(clusters, 401, clusters.spread, rng)
    assert particles.shape == (2, 401, 2)
    for i in range(2):
        nearest = np.linalg.norm(particles[i][:, None] - centres[i], axis=-1).argmin(axis=1)
        assert np.abs(np.bincount(nearest, minlength=3) - 401 * weights[i]).max() <= 1
        residual = particles[i] - centres[i][nearest]
        # standard error of a standard deviation of 802 draws: 2.5 %; 5 of them
        assert residual.std() == pytest.approx(clusters.spread[i], rel=0.125)


def test_particles_start_from_means_and_stay_in_the_cube():
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    particles = mixture_particles(means, 50, 0.3, rng)
    assert particles.shape == (3, 50, 2)
    assert particles.min() >= 0
    assert particles.max() <= 1
    still = mixture_particles(means, 5, np.zeros(3), rng)
    np.testing.assert_allclose(still, np.repeat(means[:, None], 5, axis=1))
