"""A model of mixed columns, made by hand, for tests that look at what was released."""

import numpy as np

import privtraj as pt
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import of_tables
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.ledger import Ledger

COLUMNS = {
    "hb": pt.Number(4, 16, missing=True),
    "weight": pt.Number(30, 150),
    "sex": pt.Category(["F", "M"], fixed=True),
    "stage": pt.Ordered(["I", "II", "III", "IV"]),
    "smoker": bool,
    "kids": pt.Integer(0, 10),
    "born": pt.Date("1950-01-01", "2010-01-01", fixed=True),
    "code": pt.Category([f"E{k:02}" for k in range(20)], other="other", missing=True),
}
TIMES = np.linspace(0.0, 2.0, 5)


def mixed_records(n=4000, seed=0, columns=COLUMNS):
    """Levels and numbers (n, 5, e) of people at TIMES, as paths have them: who smokes has more hb,
    stages only rise, codes change rarely, every eighth hb is missing."""
    rng = np.random.default_rng(seed)
    people, at = (n, len(TIMES)), np.arange(len(TIMES))
    start = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    jump = rng.integers(1, 12, n)
    smoker = rng.random(n) < 0.3
    sex = rng.random(n) < 0.45
    codes = rng.choice(22, n, p=np.append(np.linspace(0.09, 0.005, 20), [0.03, 0.02]))
    other = rng.choice(22, n)
    moved = at >= rng.integers(1, 20, n)[:, None]
    values = {
        "hb": np.where(
            rng.random(people) < 0.125,
            np.nan,
            9 + 3 * smoker[:, None] + rng.normal(0, 0.7, people),
        ),
        "weight": 65 + 12 * sex[:, None] + at + rng.normal(0, 8, (n, 1)),
        "sex": np.broadcast_to(sex[:, None], people),
        "stage": np.minimum(start[:, None] + (at >= jump[:, None]), 3),
        "smoker": np.broadcast_to(smoker[:, None], people),
        "kids": np.clip(rng.poisson(1.8, n)[:, None] + (at > 2), 0, 10),
        "born": np.broadcast_to(rng.uniform(-6e8, 1.2e9, (n, 1)), people),
        "code": np.where(moved, other[:, None], codes[:, None]),
    }
    return np.stack([values[name].astype(float) for name in columns], axis=2)


def mixed_model(columns=COLUMNS, people=400, private=True, values=None, **changes):
    """A model whose particles are people of `mixed_records`, or have `values` (n, T, e)."""
    declared = declared_columns(None, None, columns=columns)
    values = mixed_records(people, 1, columns) if values is None else values
    unit = pt.metrics.unit_points(values, declared).swapaxes(0, 1)
    ledger = Ledger(1.0, 1e-5)
    ledger.spend(LaplaceCounts(0.4, "people per cell"))
    public = {
        "bounds": {column.name: column.public_inputs() for column in of_tables(declared)},
        "most records of one person": 1,
    }
    made = TrajectoryModel(
        particles=unit.astype(np.float32).astype(float),
        weights=np.full(unit.shape[:2], 1 / unit.shape[1]),
        bandwidth=np.full(len(unit), 0.01),
        diffusivity=0.01,
        numeric_times=TIMES[: len(unit)],
        bounds=np.array([column.domain for column in declared]),
        features=tuple(column.name for column in declared),
        time_name="year",
        datetime=False,
        certificate=certify(ledger, public_inputs=public, private_noise=private),
        settings={"measure": "counts", "particles": unit.shape[1]},
        columns=declared,
        curves=True,
        knots=TIMES[: len(unit)],
        **changes,
    )
    return made.sealed()


def mixed_table(values, columns=COLUMNS):
    """The long table of values (n, T, e), as a file of records has them."""
    n, t, _ = values.shape
    table = {
        "who": np.repeat(np.arange(n), t).astype(str),
        "year": np.tile(TIMES[:t], n),
    }
    declared = declared_columns(None, None, columns=columns)
    for k, name in enumerate(columns):
        column, flat = declared[k], values[:, :, k].ravel()
        if isinstance(column, pt.Category):
            table[name] = np.array([column.labels[int(level)] for level in flat], dtype=object)
        elif isinstance(column, pt.Date):
            table[name] = (flat * 1e6).astype("datetime64[us]")
        else:
            table[name] = flat
    return table


def two_groups(n, seed=1):
    """Snapshots of n people in two time bins: hba1c around 8.4 with diabetes, which 39 % have, and
    around 5.2 without, hardly anybody between; sex, and a BMI that goes with hba1c."""
    rng = np.random.default_rng(seed)
    times, score, other = 2 * rng.random(n), *rng.standard_normal((2, n))
    ill = rng.random(n) < 0.37 + 0.02 * times
    table = {
        "time": times,
        "hba1c": np.where(ill, 8.4 + 0.75 * score, 5.2 + 0.3 * score),
        "diabetes": ill,
        "sex": rng.choice(["F", "M"], n),
        "bmi": 26.2 + 3.6 * ill + 1.3 * score + 3.45 * other,
    }
    columns = {
        "hba1c": (3.5, 13.5),
        "diabetes": bool,
        "sex": pt.Category(["F", "M"], fixed=True),
        "bmi": (14.0, 54.0),
    }
    return pt.Snapshots.from_table(table, time="time", columns=columns, time_range=(0, 2), bins=2)
