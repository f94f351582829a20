"""Models of mixed columns, made by hand."""

import numpy as np

import privtraj as pt
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Axes, of_tables
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.ledger import Ledger

CLINIC = {
    "hb": pt.Number(4, 15, missing=True),
    "sex": pt.Category(["F", "M"], fixed=True),
    "smoker": bool,
    "stage": pt.Ordered(["I", "II", "III", "IV"], missing=True),
    "kids": pt.Integer(0, 10),
    "born": pt.Date("1950-01-01", "2010-01-01", fixed=True),
    "code": pt.Category(["a", "b", "c"], other="rest", missing=True),
    "site": pt.Category([1, 2, 5]),
}


def build(columns=CLINIC, curves=False, knots=4, particles=60, seed=0, **more):
    """A model of random particles; of curves if they are to be, along which fixed columns stay."""
    made = declared_columns(None, None, columns=columns)
    axes, rng = Axes.of(made), np.random.default_rng(seed)
    unit = rng.uniform(0.1, 0.9, (knots, particles, len(made)))
    weights = rng.dirichlet(np.full(particles, 5.0), size=knots)
    if curves:
        fixed = np.array(axes.fixed)
        unit[..., fixed] = unit[:1, :, fixed]
        weights = np.full_like(weights, 1 / particles)
    return of_particles(made, axes.centred(unit), weights, curves, **more)


def of_particles(columns, unit, weights, curves=False, **more):
    """The model of particles (K, m, d) and weights (K, m), at times 0, 1, ..."""
    bounds = np.array([column.domain for column in columns])
    values = {
        "particles": unit.astype(np.float32).astype(np.float64),
        "weights": weights,
        "bandwidth": np.full(len(unit), 0.02),
        "diffusivity": 0.02,
        "numeric_times": np.arange(len(unit), dtype=float),
        "bounds": bounds,
        "features": tuple(column.name for column in columns),
        "time_name": "year",
        "datetime": False,
        "certificate": _certificate(columns, len(unit)),
        "columns": columns,
        "curves": curves,
    }
    return TrajectoryModel(**{**values, **more}).sealed()


def _certificate(columns, knots):
    ledger = Ledger(1.0, 1e-5)
    ledger.spend(GaussianSum(8.0, "sums", 1e-12))
    public = {
        "bounds": {column.name: column.public_inputs() for column in of_tables(columns)},
        "time range": ["0.0", str(knots - 1.0)],
        "records per person": 1,
    }
    return certify(ledger, public_inputs=public, private_noise=True)
