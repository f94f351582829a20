"""Batches over years: what each costs, and what somebody pays who is in several."""

import pytest

from privtraj.assess.plan import horizon
from privtraj.cli import main
from privtraj.privacy.accounting import epsilon_at
from privtraj.privacy.events import Opaque

SEX = {"sex": {"kind": "category", "values": ["F", "M"]}}  # of which nothing is simulated


@pytest.mark.parametrize(
    ("how", "often"),
    [({}, 13), ({"days": 30}, 2), ({"days": 31}, 3), ({"most": 2}, 2), ({"days": 9000}, 36)],
)
def test_a_budget_is_kept_by_whoever_is_in_all_batches_of_a_window(how, often):
    made = horizon(300, "month", 36, budget=2.0, delta=1e-5, columns=SEX, **how)
    epsilon, delta = made.paid[1]
    assert sorted(made.paid) == sorted({1, often, 36})
    assert delta == pytest.approx(1e-5 / often)
    exact = epsilon_at([(Opaque(epsilon, delta, "", "add-remove"), often)], 1e-5, "add-remove")
    assert exact == pytest.approx(made.paid[often][0])
    assert 2 * (1 - 1e-5) < exact <= 2
    assert made.each.question.people == 300
    assert made.whole.question.people == 36 * 300
    assert made.each.question.recipe.epsilon == pytest.approx(epsilon)


def test_the_command_says_what_a_person_pays(capsys):
    words = ["plan", "--people", "300", "--column", "sex", "category", "values=F,M"]
    assert main([*words, "--every", "quarter", "--for", "2y", "--epsilon", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "A batch of 300 people every quarter, 8 in all: epsilon 0.5 and" in said
    assert "Whoever is in 8 batches has epsilon 4, delta 8e-05." in said
