"""A model against raw records: what is read, what is compared, and what is said about it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import privtraj as pt
from privtraj import metrics
from privtraj.base.errors import InputError
from privtraj.metrics.evaluation import LEAST, NOTICE
from privtraj.metrics.records import read_records, shared_people

T, SIDE = 3, 10.0
BOUNDS = np.array([[0.0, SIDE], [0.0, SIDE]])


def walk(n, seed, noise=0.02):
    """Paths (n, T, 2) in the unit cube: everybody stays in a place of their own."""
    rng = np.random.default_rng(seed)
    place = 0.5 + 0.08 * rng.standard_normal((n, 1, 2))
    return np.clip(place + noise * rng.standard_normal((n, T, 2)), 0, 1)


def table(paths, first=0, datetime=False):
    n = len(paths)
    times = np.tile(np.arange(T), n).astype(float)
    if datetime:
        times = np.datetime64("2024-01-01") + times.astype(int)
    return {
        "who": np.repeat(np.arange(n) + first, T).astype(str),
        "time": times,
        "x": SIDE * paths[:, :, 0].ravel(),
        "y": SIDE * paths[:, :, 1].ravel(),
    }


def fake(draw=walk, datetime=False):
    """What `evaluate` needs of a model."""
    days = np.datetime64("2024-01-01", "us") + np.arange(T) * np.timedelta64(1, "D")
    times = days.astype(float) / 1e6 if datetime else np.arange(float(T))
    read = 5  # times at which people near each time are read, the same here

    def sample(n, *, times, seed):
        assert len(times) == read * T
        return SimpleNamespace(values=SIDE * np.repeat(draw(n, seed + 77), read, axis=1))

    return SimpleNamespace(
        features=("x", "y"),
        time_name="time",
        datetime=datetime,
        bounds=BOUNDS,
        columns=(pt.Number(0, SIDE, "x"), pt.Number(0, SIDE, "y")),
        numeric_times=times,
        knots=times,
        times=days if datetime else np.arange(float(T)),
        certificate=SimpleNamespace(private=True),
        sample=sample,
        growth=None,
    )


# Records --------------------------------------------------------------------------------------


def test_records_go_to_the_nearest_time_and_into_the_box():
    rows = {"time": [-5.0, 0.4, 0.6, 9.0], "x": [-1.0, 5, 5, 99], "y": [0.0, 0, 0, 10]}
    records = read_records(rows, fake())
    assert records.bins.tolist() == [0, 0, 1, 2]
    np.testing.assert_allclose(records.points, [[0, 0], [0.5, 0], [0.5, 0], [1, 1]])
    assert (records.n_people, records.incomplete) == (4, 0)
    assert [len(c) for c in records.clouds()] == records.counts().tolist() == [2, 1, 1]


def test_incomplete_records_are_left_out_and_counted():
    rows = {"time": [0.0, None, 1, 2], "x": [1.0, 1, None, 1], "y": [1.0, 1, 1, 1]}
    records = read_records({**rows, "who": ["a", "b", "c", None]}, fake(), "who")
    assert (len(records.bins), records.incomplete) == (1, 3)


def test_paths_are_those_of_people_seen_at_all_times_first_record_first():
    rows = {
        "who": ["a", "b", "a", "a", "b", "a"],
        "time": [0.0, 0, 1, 1, 2, 2],
        "x": [1.0, 2, 3, 4, 5, 6],
        "y": np.zeros(6),
    }
    records = read_records(rows, fake(), "who")
    np.testing.assert_allclose(records.paths(np.arange(3))[:, :, 0], [[0.1, 0.3, 0.6]])
    np.testing.assert_allclose(records.paths(np.array([0, 2]))[:, :, 0], [[0.1, 0.6], [0.2, 0.5]])
    assert (records.rows() >= 0).tolist() == [[True, True, True], [True, False, True]]


def test_halves_never_part_a_person():
    records = read_records(table(walk(21, 0)), fake(), "who")
    one, other = records.halves(np.random.default_rng(0))
    assert not set(one.people) & set(other.people)
    assert (one.n_people, other.n_people) == (10, 11)
    assert len(one.bins) + len(other.bins) == 63
    assert shared_people(one, other) == 0
    assert shared_people(records, one) == 10


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": ["1", "two", "3"]}, "column 'x' is not numeric"),
        ({"x": [1.0, np.inf, 3.0]}, "1 of 3 records have infinite values"),
        ({"time": np.array(["2024-01-01"] * 3, "datetime64[D]")}, "must hold numbers"),
    ],
)
def test_tables_that_do_not_fit_the_model_are_refused(change, sentence):
    rows = {"time": [0.0, 1, 2], "x": [1.0, 2, 3], "y": [1.0, 2, 3]} | change
    with pytest.raises(InputError, match=sentence):
        read_records(rows, fake())


def test_the_person_must_be_a_column_of_its_own():
    with pytest.raises(InputError, match="'x' is the person"):
        read_records(table(walk(3, 0)), fake(), "x")


# Evaluation -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    shown = []
    result = metrics.evaluate(
        fake(),
        table(walk(120, 0)),
        holdout=table(walk(100, 1), first=1000),
        person="who",
        n=150,
        progress=lambda done, total: shown.append((done, total)),
    )
    percent = [done for done, _ in shown]
    assert {total for _, total in shown} == {100}
    assert percent == sorted(percent)
    assert (percent[0], percent[-1]) == (1, 100)
    assert len(set(percent)) > 10  # it moves
    return result


def test_a_perfect_model_scores_like_fresh_people(found):
    by_name = {row.name: row for row in (*found.scores, *found.path_scores)}
    assert {"w2", "path_w2", "dwell_jsd"} <= set(by_name)
    for row in by_name.values():
        near = abs(row.value - row.floor) < 0.02  # where even a random coupling is not far
        assert near or abs(row.gap) < 0.25, row.name
    assert found.worth.people > 20
    assert found.worth_ceiling == 0
    assert 0.8 < found.memorisation.ratio < 1.3
    assert found.notes == ()


def test_the_text_and_the_json_are_headed_by_the_notice(found):
    text = str(found)
    assert text.splitlines()[0] == NOTICE == "compares with raw data: not for release"
    assert "150 synthetic people against 360 records of 120 people" in text
    assert "Floor: other real people, from the hold-out." in text
    assert "coupled at random" in text
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert next(iter(plain)) == "notice"
    assert plain["notice"] == NOTICE
    assert plain["times"] == plain["path_times"] == ["0.0", "1.0", "2.0"]
    assert len(plain["scores"]) == len(found.scores)
    assert plain["worth"]["low"] <= plain["worth"]["people"] <= plain["worth"]["high"]


def test_a_blurred_model_is_worse_and_one_that_copies_is_caught():
    rows = table(walk(120, 0))
    blurred = metrics.evaluate(fake(lambda n, s: walk(n, s, 0.15)), rows, n=100)
    by_name = {row.name: row for row in blurred.scores}
    assert by_name["w2"].value > 2 * by_name["w2"].floor
    assert blurred.worth.people < 20
    copies = metrics.evaluate(fake(lambda n, s: walk(120, 0)[:n]), rows, n=120)
    assert copies.memorisation.share_close > 0.4  # all people of the reference half came back
    assert copies.path_scores == ()
    assert "Floor: a random half" in str(copies)


def test_dates_are_compared_with_dates():
    rows = table(walk(40, 0), datetime=True)
    found = metrics.evaluate(fake(datetime=True), rows, n=20)
    assert found.settings["times"][0].startswith("2024-01-01")
    with pytest.raises(InputError, match="must hold dates"):
        metrics.evaluate(fake(datetime=True), table(walk(40, 0)))


def test_times_without_people_are_left_out_and_said():
    rows = table(walk(60, 0))
    late = rows["time"] == 2.0
    rows["time"] = np.where(late, np.nan, rows["time"])
    found = metrics.evaluate(fake(), rows, person="who", n=30)
    assert found.notes == (
        "60 records with missing values are left out",
        "1 of 3 times have too few people and are left out",
    )
    assert found.settings["path_times"] == ["0.0", "1.0"]


def test_people_with_one_record_each_have_no_paths():
    rows = table(walk(90, 0))
    rows["who"] = np.arange(270).astype(str)
    found = metrics.evaluate(fake(), rows, person="who", n=30)
    assert found.path_scores == ()
    assert "no scores of paths" in found.notes[0]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({k: v[:1] for k, v in table(walk(3, 0)).items()}, "fewer than two complete records"),
        (table(walk(LEAST, 0)), "no time of the table has 8 people"),
        (table(walk(1, 0)), "one person"),
    ],
)
def test_too_few_people_are_refused(rows, sentence):
    with pytest.raises(InputError, match=sentence):
        metrics.evaluate(fake(), rows, person="who")


def test_a_hold_out_of_the_same_people_is_refused():
    rows = table(walk(30, 0))
    with pytest.raises(InputError, match="30 people are in the table and"):
        metrics.evaluate(fake(), rows, holdout=rows, person="who")
