"""A model and further people: what is kept, what is paid, who has the sum."""

import json
import warnings
from dataclasses import replace
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest

import blindfold
import privtraj as pt
from privtraj import cli
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.privacy.accounting import Parallel, epsilon_at, from_entries, releases
from privtraj.privacy.certificate import (
    BATCHES,
    SECURE_NOISE,
    Certificate,
    batch,
    certify_disjoint,
)
from privtraj.privacy.guard import Guard, MemoryRows, WithPast
from privtraj.privacy.ledger import Ledger
from privtraj.stream import extend as extend_module
from privtraj.stream.people import People, new_key


def month(k, people=300, seed=0, **declared):
    """People of month k, who go to the right."""
    rng = np.random.default_rng([seed, k + 1])
    times = k + rng.random(people)
    points = np.stack([0.2 + 0.05 * times, np.full(people, 0.5)], axis=1)
    points = np.clip(points + 0.05 * rng.standard_normal((people, 2)), 0, 1)
    declared = {"time_range": (k, k + 1)} | declared
    return pt.Snapshots.from_arrays(times, points, bounds=[(0, 1)] * 2, **declared)


@pytest.fixture(scope="session")
def january():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pt.TrajectorySynthesizer(1.0, 1e-5, windows=8, seed=0).fit(month(0))


@pytest.fixture(scope="session")
def march(january):
    february = january.extend(month(1), new_people=True, seed=1)
    return february.extend(month(2), new_people=True, seed=2)


def test_published_particles_stay_to_the_bit(january, march):
    old = len(january.knots)
    assert np.array_equal(march.knots[:old], january.knots)
    assert np.array_equal(march.particles[:old], january.particles)
    assert np.array_equal(march.marginals[: len(january.times)], january.marginals)
    assert march.times[-1] == 3
    assert np.abs(march.marginals[-1].mean(axis=0) - [0.35, 0.5]).max() < 0.05
    assert march.sample(20, [0.5, 2.5], seed=0).values.shape == (20, 2, 2)


def test_the_dearest_batch_counts_and_the_certificate_says_why(march, tmp_path):
    stated = march.certificate
    (tree,) = stated.guarantee.parts
    assert isinstance(tree, Parallel)
    assert len(tree.branches) == 3
    assert march.verify() == pytest.approx(1.0, abs=1e-6)
    assert "what the dearest of them costs, and not the sum" in str(stated)
    assert "Whoever is in all of them has epsilon 3 and delta 3e-05" in str(stated)
    march.save(tmp_path / "march.privtraj", not_private=True)
    again = pt.load(tmp_path / "march.privtraj")
    assert again.sha256 == march.sha256
    assert np.array_equal(again.counted, march.counted)


def test_without_a_word_that_people_are_new_batches_add_up(january):
    grown = january.extend(month(1), seed=1)
    assert grown.certificate.epsilon == pytest.approx(2.0, rel=1e-3)
    grown.verify()
    assert grown.certificate.delta == pytest.approx(2e-5)
    assert "they add up: whoever is in all of them has epsilon 2 and" in str(grown.certificate)
    new = grown.extend(month(2), new_people=True, seed=2)
    assert new.verify() == pytest.approx(2.0, rel=1e-3)


def test_more_people_at_known_times_improve_them_if_they_may(march):
    late = month(1, people=900, seed=3)
    with pytest.raises(InputError, match="past='revise'"):
        march.extend(late, new_people=True, seed=3)
    revised = march.extend(late, past="revise", new_people=True, seed=3)
    counted = [one["counted"] for one in revised.certificate.public_inputs[BATCHES]]
    assert counted == pytest.approx([300, 300, 300, 900], abs=120)
    assert np.array_equal(revised.times, march.times)
    people = np.array(revised.diagnostics["people_per_time"])
    assert people.sum() - sum(march.diagnostics["people_per_time"]) == pytest.approx(900, abs=120)
    assert revised.verify() == pytest.approx(1.0, abs=1e-6)
    assert "4. from 1.0 to 2.0, late: after" in str(revised.certificate)
    both = march.extend(month(3, time_range=(1.5, 4)), new_people=True, seed=3)  # and a later month
    old = len(march.knots)
    assert np.array_equal(both.particles[:old], march.particles)
    assert "4. from 1.5 to 4.0, late" in str(both.certificate)


def test_a_ledger_adds_up_what_may_be_the_same_people(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = pt.LedgerFile(tmp_path / "l", cap_epsilon=2, cap_delta=1e-4)
        model = pt.TrajectorySynthesizer(1.0, 1e-5).fit(month(0), ledger=ledger)
        model = model.extend(month(1), ledger=ledger)
        with pytest.raises(BudgetError, match="left"):
            model.extend(month(2), ledger=ledger)
        assert model.extend(month(2), ledger=ledger, new_people=True).verify() > 1
    spent = ledger.summary()
    assert [one["epsilon"] for one in spent["groups"]] == [2.0, 1.0]
    assert all(0.99 < one["spent_epsilon"] <= 1 for one in spent["entries"])


def claiming(model, **claims):
    """The model's certificate, if its batches had said so, and all other things were the same."""
    given = [replace(model.certificate, ledger=one) for one in branches(model)]
    batches = [{**one, **claims} for one in model.certificate.public_inputs["batches"]]
    public = {**model.certificate.public_inputs, "batches": batches}
    return certify_disjoint(given, public_inputs=public)


def branches(model):
    (tree,) = model.certificate.ledger
    return [tuple(one) for one in tree["branches"]]


PAYS = [(2, None, 2), (None, 0.5, 2), (None, 1.5, 3), (2, 1.5, 2), (None, None, 3)]


@pytest.mark.parametrize(("most", "days", "pays"), PAYS)
def test_who_returns_pays_for_as_many_batches_exactly_and_a_certificate_says_so(
    most, days, pays, march
):
    stated = claiming(march, most=most, days=days)
    assert stated.verify() == stated.epsilon
    assert stated.delta == pytest.approx(pays * 1e-5)
    each = [list(releases(from_entries(one))) for one in branches(march)]
    some = [chain(*each[k : k + pays]) for k in range(4 - pays)]  # those that follow each other
    exact = max(epsilon_at(events, stated.delta, "add-remove") for events in some)
    assert stated.epsilon == pytest.approx(exact, rel=1e-9)
    assert stated.epsilon <= stated.target_epsilon == pytest.approx(pays)
    assert ("by records within any" in str(stated)) == (days is not None)
    again = Certificate.from_dict(json.loads(stated.to_json()))
    assert again == stated
    for lie in ({"most": 1}, {"most": 0}, {"most": 4}, {"days": 0.1}, {"to": "3.5"}):
        if days is None and "most" not in lie:
            continue
        batches = [{**one, **lie} for one in stated.public_inputs["batches"]]
        public = {**stated.public_inputs, "batches": batches}
        with pytest.raises(InputError, match="different people"):
            replace(stated, public_inputs=public).verify()


def test_what_does_not_fit_is_refused_before_anything_is_spent(january):
    wrong = pt.Snapshots.from_arrays(
        [1.5] * 20, [[0, 0]] * 20, bounds=[(0, 2)] * 2, time_range=(1, 2)
    )
    with pytest.raises(InputError, match="other bounds"):
        january.extend(wrong)
    whose = {"person": np.arange(300) // 2, "records_per_person": 2}
    with pytest.raises(InputError, match="other most records of one person"):
        january.extend(month(1, **whose))
    with pytest.raises(InputError, match="'keep' or 'revise'"):
        january.extend(month(1), past="forget")
    with pytest.raises(InputError, match="begins before"):
        january.extend(month(-1))


def test_batches_that_nobody_calls_new_are_not_counted_apart(march):
    stated = march.certificate
    batches = [{**one, "most": 0} for one in stated.public_inputs["batches"]]
    lie = replace(stated, public_inputs={**stated.public_inputs, "batches": batches})
    with pytest.raises(InputError, match="different people"):
        lie.verify()


@pytest.mark.parametrize("seed", [None, 0])
def test_a_batch_is_private_if_nobody_knows_its_noise_and_keeps_to_a_plan(
    january, seed, monkeypatch
):
    made = []

    class Seen(Ledger):
        def __init__(self, *budget, **how):
            super().__init__(*budget, **how)
            made.append(self._plan)

    monkeypatch.setattr(extend_module, "Ledger", Seen)
    stated = replace(january.certificate, private=True, noise=SECURE_NOISE)
    model = replace(january, certificate=stated)
    one, other = (model.extend(month(1), new_people=True, seed=seed) for _ in range(2))
    assert one.certificate.private == other.certificate.private == (seed is None)
    assert np.array_equal(one.counted, other.counted) == (seed is not None)
    assert [len(plan.releases) for plan in made] == [1, 1]


def test_people_of_a_batch_may_have_several_records_and_pay_for_each():
    whose = {"person": np.arange(300) // 2, "records_per_person": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=0).fit(month(0, **whose))
        grown = model.extend(month(1, **whose), new_people=True, seed=1)
    (tree,) = grown.certificate.guarantee.parts
    assert [event.person for event, _ in releases(tree.branches[-1])] == [(2, True)]
    assert grown.verify() <= 1
    assert grown.counted[-1, 3] == pytest.approx(2, rel=1e-4)  # the noise of parts of a person


# Who is among people of earlier batches ---------------------------------------------------------


@pytest.fixture
def house(tmp_path, fast):
    """A ledger, and the file of people beside it, of whoever is to be skipped or refused."""
    new_key(tmp_path / "key")
    ledger = pt.LedgerFile(tmp_path / "ledger", cap_epsilon=20, cap_delta=0.1)
    return ledger, lambda **how: People.open(tmp_path / "people", tmp_path / "key", **how)


def test_whoever_returns_is_not_among_the_records_of_a_batch(house):
    class Kept:
        def released(self, release, shape, answer):
            self.people = float(answer.sum())

    (ledger, people), kept = house, Kept()
    first, second = (np.arange(k, k + 300) for k in (0, 200))
    skip = people(returning="skip")
    maker = pt.TrajectorySynthesizer(8.0, 1e-5)
    model = maker.fit(month(0, person=first), ledger=ledger, people=skip)
    grown = model.extend(month(1, person=second), ledger=ledger, people=skip, watcher=kept)
    assert kept.people == pytest.approx(200, abs=40)
    assert grown.certificate.public_inputs[BATCHES][-1]["counted"] == pytest.approx(kept.people)
    assert grown.verify() <= 8
    assert [one["most"] for one in grown.certificate.public_inputs["batches"]][1] == 1


def test_who_comes_late_is_added_and_said_to_be_and_no_correction_undoes_a_release(
    tmp_path, fast, capsys, monkeypatch
):
    """As a steward does it: January, February, late ones of January, and corrections of all."""
    monkeypatch.chdir(tmp_path)

    def run(command, data, ids, start, *more):
        days = [f"2024-0{start}-{1 + k % 28:02d}" for k in range(len(ids))]
        rows = [f"{one},{day},{k % 7}" for k, (one, day) in enumerate(zip(ids, days, strict=True))]
        (tmp_path / data).write_text("\n".join(["id,day,x", *rows, ""]))
        words = f"{command} {data} --person id --time-range 2024-0{start}-01 2024-0{start + 1}-01"
        words += " --ledger l --people p --people-key k"
        code = cli.main([*words.split(), *more])
        return code, capsys.readouterr()

    assert cli.main(["people", "--new-key", "k"]) == 0
    public = "--time day --feature x 0 7 --epsilon 1 --delta 1e-5 --out 1.privtraj --yes"
    caps = ["--cap-epsilon", "1", "--cap-delta", "1e-5"]
    first, later, late = ([f"{k}" for k in range(a, a + 60)] for a in (0, 60, 120))
    assert run("fit", "1.csv", first, 1, *public.split(), *caps)[0] == 0
    assert run("extend 1.privtraj", "2.csv", later, 2, "--out", "2.privtraj")[0] == 0
    spent = pt.LedgerFile("l").summary()["entries"]
    code, said = run("extend 2.privtraj", "3.csv", late, 1, "--out", "3.privtraj")
    assert (code, "--past revise" in said.err) == (2, True)
    corrected = [*(f"{k}.0" for k in range(60)), *late]
    again = "extend 2.privtraj", "4.csv", corrected, 1, "--past", "revise", "--out", "3.privtraj"
    code, said = run(*again)
    stays = "what was released of them stays as it is, corrected or not"
    assert (code, stays in said.err) == (2, True)
    assert pt.LedgerFile("l").summary()["entries"] == spent
    code, said = run(*again, "--returning", "skip")
    assert code == 0
    assert f"60 of 120 people are in an earlier batch (for your eyes only): {stays}" in said.err
    assert "3. from 2024-01-01 to 2024-02-01, late: after its time was released" in said.out
    assert "2. from 2024-02-01 to 2024-03-01, released" in said.out
    entries = pt.LedgerFile("l").summary()["entries"]
    assert [one["what"].split(" of ")[0] for one in entries] == ["fit", "batch", "late batch"]
    model = pt.load("3.privtraj")
    assert model.verify() == pytest.approx(1, abs=1e-6)
    assert sum(model.diagnostics["people_per_time"]) == pytest.approx(180, abs=40)


def test_batches_are_apart_only_if_all_people_of_a_model_are_known(house):
    ledger, people = house
    known, fits = people(), []
    for k in range(2):
        snapshots = month(k, person=np.arange(300 * k, 300 * k + 300))
        _, entry = known.admit(snapshots, ledger, 1.0, 1e-5, "add-remove", "a fit")
        ledger.settle(entry, spent_epsilon=1.0, model=f"{k}" * 64)
        fits.append(f"{k}" * 64)

    def apart(model, *later):
        said = {BATCHES: [batch(("0", "1"), (1.0, 0.0)), *later]}
        stated = SimpleNamespace(model_sha256=model, public_inputs=said)
        return people().tells_apart(stated, ledger)

    when = ("1", "2"), (1.0, 0.0)
    checked, stated = batch(*when, 1, known.in_words()), batch(*when, 1, "stated")
    assert all(map(apart, fits))
    assert apart(fits[1], checked)
    assert not apart(fits[1], stated, checked)
    assert not apart(fits[1], batch(*when))
    assert not apart("2" * 64)
    assert not apart(None)


def test_who_is_in_is_on_the_disk_before_anything_is_released(tmp_path):
    new_key(tmp_path / "key")
    with People.open(tmp_path / "people", tmp_path / "key")._opened(create=True) as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA, also after a power cut


# What the guard lets out ------------------------------------------------------------------------


def blind(kind, model, crowd, guard, monkeypatch):
    """A model that a batch of a crowd has extended, seen by this guard."""
    questions, table = blindfold.Questions(), kind.shape.table(crowd)
    table["t"] += 2
    later = kind.shape.declared() | {"time_range": (2, 4)}
    if "bins" in later:
        later["bins"] = [2.0, 3.0, 4.0]
    monkeypatch.setattr(pt.TrajectorySynthesizer, "guard_class", guard)
    batch = pt.Snapshots.from_table(table, **later, seed=1)
    grown = model.extend(batch, new_people=True, seed=7, past="revise", watcher=questions)
    return blindfold.Seen(grown, questions.asked, [])


@pytest.mark.parametrize(
    "name",
    [
        "counts at any time",
        "counts of bins",
        pytest.param("tables", marks=pytest.mark.thorough),
        pytest.param("gradients", marks=pytest.mark.thorough),
    ],
)
def test_a_batch_is_known_by_what_the_guard_answered_alone(name, monkeypatch):
    kind, tape = blindfold.KINDS[name], []
    model = blindfold.fitted(kind, blindfold.OTHERS, Guard).model
    blind(kind, model, blindfold.OTHERS, blindfold.recording(tape), monkeypatch)
    crowds = blindfold.CORNER, blindfold.MOVING
    each = [blind(kind, model, one, blindfold.replaying(tape), monkeypatch) for one in crowds]
    assert each[0].asked
    blindfold.check_same(*each)


def test_one_person_more_moves_the_counts_of_a_batch_by_one(january):
    class Kept:
        def released(self, release, shape, answer):
            self.answer, self.event = answer, release.event(shape)

    points = np.random.default_rng(0).random((60, 2))
    seen = []
    for people in (60, 59):
        one = pt.Snapshots.from_arrays(
            np.linspace(1, 2, 60)[:people], points[:people], bounds=[(0, 1)] * 2, time_range=(1, 2)
        )
        kept = Kept()
        january.extend(one, new_people=True, seed=1, watcher=kept)
        seen.append(kept)
    assert np.abs(seen[0].answer - seen[1].answer).sum() == 1
    assert seen[0].event.epsilon == pytest.approx(1, abs=1e-4)


def test_people_of_the_past_move_no_answer_by_more_than_a_record():
    rng, halves = np.random.default_rng(0), Slabs.between(np.array([0.5]))
    points, times = rng.random((40, 2)).astype(np.float32), rng.random(40)
    past = MemoryRows(points[:25], times[:25])
    seen = []
    for last in (40, 39):
        rows = WithPast(MemoryRows(points[25:last], times[25:last]), past)
        seen.append((rows.cell_counts(halves, (3, 3)), rows.in_slabs(halves)))
    (counts, every), (fewer, others) = seen
    assert np.array_equal(np.sort(counts - fewer, axis=None), [0] * 17 + [1])
    assert (counts.sum(), len(every.points), len(others.points)) == (40, 40, 39)
    assert np.all(np.diff(every.slabs) >= 0)
    assert {tuple(one) for one in others.points} < {tuple(one) for one in every.points}


def test_windows_that_are_shorter_than_those_of_the_batch_become_one(january, march):
    rows, old = march.counted, january.counted
    held = int(np.sum(old[:, 1] <= rows[0, 1]))  # of January that are the first now
    assert held > 1
    assert np.diff(rows[:, :2]).max() <= (rows[-1, 1] - rows[-1, 0]) * (1 + 1e-9)
    assert np.array_equal(rows[1:, 0], rows[:-1, 1])
    cells = (rows.shape[1] - 5) / (old.shape[1] - 5)  # for each that January had
    assert cells > 1
    assert rows[0, 3] * cells == pytest.approx(old[:held, 3].sum())  # noise of all that was added
    assert rows[0, 5:].sum() == pytest.approx(old[:held, 5:].sum())
    told = march.diagnostics
    assert np.all(np.diff(told["people_middles"]) > 0)
    assert len(told["people_middles"]) == len(told["people_per_time"])


@pytest.mark.thorough
def test_what_is_published_of_the_past_does_not_change_what_later_batches_know():
    first = pt.TrajectorySynthesizer(1.0, 1e-5, measure="tables", seed=0).fit(month(0))
    grown = [
        first.extend(month(1), past=past, new_people=True, seed=1) for past in ("keep", "revise")
    ]
    one, other = (m.extend(month(2), past="revise", new_people=True, seed=2) for m in grown)
    assert np.array_equal(one.particles, other.particles)
    assert np.array_equal(one.past_people, other.past_people)
    assert one.past_people.shape == (pytest.approx(900, rel=0.2), 3)  # a time and two numbers
    assert not one.counted.size


def test_people_who_stand_for_the_past_are_kept_in_a_file(january, tmp_path):
    """Whatever a batch was measured by, the model that is paid for can be read again."""
    people, path = np.random.default_rng(0).random((50, 3)), tmp_path / "a.privtraj"
    model = replace(january, counted=np.empty((0, 0)), past_people=people).sealed()
    model.save(path, not_private=True)
    again = pt.load(path)
    assert np.array_equal(again.past_people, people)
    assert not again.counted.size
    for wrong in (np.ones((50, 4)), people * [[900, 1, 1]], people * [[1, 1e9, 1]]):
        model = replace(january, past_people=wrong).sealed()
        model.save(path, not_private=True, force=True)
        with pytest.raises(InputError, match="its people of the past cannot be read"):
            pt.load(path)
