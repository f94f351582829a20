"""Three modes: weights, jumps, what the recipes cost, and the whole of a quick run."""

import json

import numpy as np
import pytest

from privtraj.datasets import three_modes_paths
from reproduce import fig_multimodal, three_modes
from reproduce.result import Options
from reproduce.three_modes import (
    forced_jumps,
    jumps,
    mode_weights,
    nearest_mode,
    times_apart,
    unevenness,
)

pytestmark = pytest.mark.thorough

CENTRES = np.array([[[0.0], [0.0]], [[-1.0], [1.0]], [[-2.0], [2.0]]])  # T = 3, two modes on a line


# Modes ----------------------------------------------------------------------------------------


def test_modes_are_apart_where_all_of_them_are():
    assert times_apart(CENTRES, 0.3).tolist() == [False, True, True]
    assert times_apart(CENTRES, 0.6).tolist() == [False, False, True]
    third = np.concatenate([CENTRES, CENTRES[:, :1] + 0.1], axis=1)
    assert not times_apart(third, 0.3).any()


def test_everybody_is_on_the_nearest_mode():
    paths = np.array([[[0.0], [-0.1], [-9.0]], [[0.0], [0.2], [-0.1]]])
    assert nearest_mode(paths, CENTRES)[:, 1:].tolist() == [[0, 0], [1, 0]]


def test_weights_are_shares_of_people():
    weights = mode_weights(np.array([[0, 0], [0, 1], [0, 2], [1, 2]]), 3)
    assert weights.tolist() == [[0.75, 0.25, 0.0], [0.25, 0.25, 0.5]]
    np.testing.assert_allclose(unevenness(weights), [0.75 - 1 / 3, 0.5 - 1 / 3])


def test_jumps_are_counted_per_transition_and_per_path():
    found = jumps(np.array([[0, 0, 0], [0, 1, 0], [2, 2, 1], [1, 1, 1]]))
    assert found.per_transition == pytest.approx(3 / 8)
    assert found.per_path == pytest.approx(2 / 4)
    assert jumps(np.ones((5, 4), int)) == (0.0, 0.0)


def test_what_a_mode_gains_must_cross_from_the_next_one():
    weights = np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.3, 0.4, 0.3]])
    assert forced_jumps(weights) == pytest.approx((0.1 + (0.1 + 0.1)) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_no_paths_cross_less_than_their_weights_force_them_to(seed):
    modes = np.random.default_rng(seed).integers(3, size=(20, 6))
    crossed = np.abs(np.diff(modes, axis=1)).mean()
    assert forced_jumps(mode_weights(modes, 3)) <= crossed + 1e-12


def test_true_paths_hardly_jump_where_weights_are_defined():
    """The floor: misassignment where modes are 5.3 standard deviations apart, next to the ends."""
    paths = three_modes_paths(3000, three_modes.TIMES, seed=1)
    modes = three_modes.modes_of(paths)
    assert modes.shape == (3000, 8)
    found = jumps(modes)
    assert 0 < found.per_transition < 0.003
    assert found.per_path < 0.02
    assert unevenness(mode_weights(modes, 3)).max() < 0.01


# What the recipes cost ------------------------------------------------------------------------


def test_the_warm_start_composes_to_the_budget_and_wastes_none():
    recipe = three_modes.warm_started(three_modes.Size(), "replace-one")
    assert 0.99 < recipe.epsilon <= three_modes.EPSILON


def test_the_annealed_phases_are_the_papers():
    recipe = three_modes.annealed(three_modes.Size(), "replace-one")
    assert [(p.iterations, p.eta, p.tau) for p in recipe.phases] == [
        (1000, 0.005, 2.5),
        (500, 0.003, 1.5),
        (500, 0.001, 1.0),
    ]
    assert {p.rho for p in recipe.phases} == {20 / 3000}
    assert (recipe.m, recipe.C, recipe.side, recipe.delta) == (50, 1.0, 3.0, 0.01)
    np.testing.assert_allclose(np.abs(recipe.start).max(axis=0), 1, atol=2e-3)


# A whole run ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick():
    """The smallest run of everything."""
    return fig_multimodal.run(Options(quick=True))


def test_every_model_has_its_numbers(quick):
    rows = {row["model"]: row for row in quick.rows}
    assert set(rows) == {
        "truth",
        "truth, identities dropped",
        "annealed",
        "clusters alone",
        "warm start",
        "warm start, dt 1",
        "ours, add-remove",
        "ours, replace-one",
    }
    for row in rows.values():
        shares = [row[f"{mode}_0.444"] for mode in three_modes.MODES]
        assert sum(shares) == pytest.approx(1)
        assert 0 <= row["squared_w2"] < 10
    for name in three_modes.RECIPES:
        composed, added = (rows[name][f"{kind}_epsilon_replace_one"] for kind in ("exact", "added"))
        assert rows[name]["exact_epsilon"] == pytest.approx(composed, rel=1e-3)
        assert rows[name]["exact_epsilon_add_remove"] < composed < added
    for adjacency in ("add-remove", "replace-one"):
        ours = rows[f"ours, {adjacency}"]
        assert 0.99 < ours["exact_epsilon"] <= 1.0
        assert ours["forced_jumps"] / 2 <= ours["jumps_exact"] <= ours["paths_exact"]


def test_settings_and_rows_are_plain_numbers_and_words(quick):
    whole = json.loads(json.dumps({"settings": quick.settings, "rows": quick.rows}))
    assert whole["settings"]["seeds_annealed"] == 1
    assert len(whole["settings"]["times_apart"]) == 8


def test_the_text_tells_both_sides(quick):
    for words in ("**Agrees.**", "**Does not.**", "**Ours**"):
        assert words in quick.text


def test_the_figure_has_eight_panels_on_the_same_axes(quick):
    panels = quick.figures["fig-multimodal"].axes[:8]
    assert {axes.get_xlim() for axes in panels} == {(-1.5, 1.5)}
    assert {axes.get_ylim() for axes in panels} == {(-1.5, 1.5)}
    assert all(len(axes.lines) == three_modes.SHOWN_PATHS for axes in panels)
