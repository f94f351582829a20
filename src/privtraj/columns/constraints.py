"""What everybody knows of a feature: that it never falls, that it is written in steps.

Imposed on people who are drawn, so it costs nothing; public, so it reveals nothing.

A rising feature of paths (n, K) is put in order by alternating two steps: each path becomes the
middle of its running maximum and its running minimum from behind, the nearest that never falls; and
at each time the people, in their order, get the values that there were, which are the marginal's.
The first step is last, so that nobody falls, and what it still moves is what the marginals, which
are noisy, contradict themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arguments import is_number
from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.columns.precision import in_steps

RISING, FALLING = "rising", "falling"
ROUNDS = 8
"""Of putting paths in order and restoring the marginals; set by hand, more change nothing."""


@dataclass(frozen=True)
class Constraints:
    """monotone: {feature: "rising" or "falling"}.  precision: {feature: step}, 1 for integers."""

    monotone: Mapping[str, str]
    precision: Mapping[str, float]

    @classmethod
    def declared(cls, monotone: Any, precision: Any) -> Constraints:
        """As users give them: monotone may be a list of features that never fall."""
        if isinstance(monotone, str):
            monotone = [monotone]
        try:
            if monotone is not None and not isinstance(monotone, Mapping):
                monotone = dict.fromkeys(monotone, RISING)
            made = cls(dict(monotone or {}), dict(precision or {}))
        except (TypeError, ValueError):
            raise InputError(
                Arg("monotone"), " must list features, and ", Arg("precision"), " a step for each"
            ) from None
        if not set(made.monotone.values()) <= {RISING, FALLING}:
            raise InputError(Arg("monotone"), f" must say '{RISING}' or '{FALLING}' of a feature")
        if not all(is_number(step) and 0 < step < np.inf for step in made.precision.values()):
            raise InputError(Arg("precision"), " must be a step above 0, such as 1 for integers")
        return made

    def check(self, features: Iterable[str], numbers: Iterable[str] | None = None) -> None:
        """Refuse what is said of other features.  numbers: those that are, if not all of them."""
        for name, known in (("monotone", self.monotone), ("precision", self.precision)):
            for feature in known:
                if feature not in features:
                    raise InputError(
                        Arg(name), f" names '{feature}', which is not among the features"
                    )
                if numbers is not None and feature not in numbers:
                    raise InputError(
                        Arg(name),
                        f" names '{feature}', which is not among the features that are numbers",
                    )

    def directions(self, features: tuple[str, ...]) -> Floats:
        """(d,) 1 for features that rise, -1 for those that fall, 0 for others."""
        signs = {RISING: 1.0, FALLING: -1.0}
        return np.array([signs.get(self.monotone.get(name, ""), 0.0) for name in features])

    def rounded(self, values: Floats, features: tuple[str, ...], bounds: Floats) -> Floats:
        """Values (..., d) in steps of the precision, inside the bounds (d, 2)."""
        for k, name in enumerate(features):
            if name in self.precision:
                values[..., k] = in_steps(values[..., k], self.precision[name], *bounds[k])
        return values

    def to_dict(self) -> dict[str, Any]:
        return {"monotone": dict(self.monotone), "precision": dict(self.precision)}


NONE = Constraints({}, {})


def in_order(paths: NDArray[Any], directions: Floats) -> NDArray[Any]:
    """Paths (n, K, d) whose features rise (1), fall (-1) or do as they like (0), by directions."""
    paths = paths.copy()
    for k in np.flatnonzero(directions):
        sign = directions[k]
        values = sign * paths[:, :, k]
        wanted = np.sort(values, axis=0)
        for _ in range(ROUNDS):
            np.put_along_axis(values, np.argsort(_rising(values), axis=0), wanted, axis=0)
        paths[:, :, k] = sign * _rising(values)
    return paths


def _rising(values: NDArray[Any]) -> NDArray[Any]:
    """(n, K) the middle of the largest so far and the smallest to come."""
    above = np.maximum.accumulate(values, axis=1)
    below = np.minimum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    middle: NDArray[Any] = (above + below) / 2
    return middle
