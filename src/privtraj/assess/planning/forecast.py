"""The forecast: what quality to expect, as numbers and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from privtraj.assess.planning.question import LARGEST_WORTH, STAND_INS, Question
from privtraj.assess.planning.words import asked, wrapped
from privtraj.base.arrays import Floats
from privtraj.base.errors import about, aligned
from privtraj.metrics.optimism import estimated
from privtraj.privacy.meaning import LARGE_EPSILON

# Set by hand: what is said of how many people per time.
GOOD = 20  # below it a forecast warns
POOR = 5  # below it one should expect hardly anything
_NOTHING = 0.5  # what "worse than one person" counts in a mean


class Level(NamedTuple):
    """Worth in people per time, and the numbers between which it is in nine cases of ten.

    or_more: the simulated fits were as good as can be told.
    """

    worth: float
    low: float
    high: float
    or_more: bool = False


def level_of(worths: Any, measure: str, budget: float) -> Level:
    """What fits (n,) to stand-ins say of real people: their geometric mean, less what simulations
    are too good by. What is worse than one person counts as half a person in the mean.
    budget: people times epsilon."""
    mean = float(np.exp(np.log(np.maximum(worths, _NOTHING)).mean()))
    found = estimated(mean, measure, budget)
    return Level(found.people, found.low, found.high, found.or_more)


@dataclass(frozen=True)
class Remedies:
    """What alone would reach GOOD people per time, each None if nothing that was tried does."""

    epsilon: float | None
    people: int | None
    features: int | None


@dataclass(frozen=True, eq=False)
class Forecast:
    """What quality to expect of a fit, simulated on stand-ins; nothing in it is about anybody.

    epsilons: (k,) that were tried, `epsilon` among them.  curve: what to expect at each.
    settings: what the fits at `epsilon` chose, (least, most) over stand-ins.
    remedies: None where the forecast is good enough.
    simulated: people in each simulated fit.  fits: simulated at each epsilon.
    """

    question: Question
    epsilons: Floats
    curve: tuple[Level, ...]
    settings: dict[str, Any]
    remedies: Remedies | None
    simulated: int
    fits: int

    @property
    def epsilon(self) -> float:
        """The one that was asked for."""
        return self.question.epsilon

    @property
    def worth(self) -> Floats:
        """(k,) people per time, over the curve."""
        return np.array([level.worth for level in self.curve])

    @property
    def low(self) -> Floats:
        """(k,) below which it is in one case of twenty."""
        return np.array([level.low for level in self.curve])

    @property
    def high(self) -> Floats:
        """(k,) above which it is in one case of twenty."""
        return np.array([level.high for level in self.curve])

    @property
    def expected(self) -> Level:
        """At the epsilon that was asked for."""
        return self.curve[self.epsilons.tolist().index(self.epsilon)]

    @property
    def warning(self) -> str | None:
        """What to know before fitting, and what would help; None if nothing."""
        if self.remedies is None:
            return None
        little = "hardly anything" if self.expected.worth < POOR else "little"
        start = (
            f"{self.question.people:,} people are few for this wish: expect {little}, as "
            f"{_people(self.expected)} per time is below {GOOD}."
        )
        helps, useless = _helps(self.question, self.remedies)
        if not helps:
            return f"{start} No single change that was tried reaches {GOOD}: combine several."
        return (
            f"{start} Any one of these alone would reach {GOOD}, by simulation: "
            f"{'; '.join(helps)}." + f" Alone, {' or '.join(useless)} would not." * bool(useless)
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `from_dict` undoes it."""
        return {
            "question": {**asdict(self.question), "settings": dict(self.question.settings)},
            "expected": self.expected._asdict(),
            "curve": [
                {"epsilon": epsilon, **level._asdict()}
                for epsilon, level in zip(self.epsilons.tolist(), self.curve, strict=True)
            ],
            "settings": self.settings,
            "remedies": None if self.remedies is None else asdict(self.remedies),
            "warning": self.warning,
            "weak_guarantee": self.question.weak,
            "largest_worth": LARGEST_WORTH,
            "stand_ins": list(STAND_INS),
            "fits_per_epsilon": self.fits,
            "simulated_people": self.simulated,
            "privacy_spent": 0,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Forecast:
        """The forecast that `to_dict` wrote."""
        question = {**values["question"]}
        question["settings"] = tuple(sorted(question["settings"].items()))
        curve = [dict(point) for point in values["curve"]]
        remedies = values["remedies"]
        return cls(
            Question(**question),
            epsilons=np.array([point.pop("epsilon") for point in curve], float),
            curve=tuple(Level(**point) for point in curve),
            settings=values["settings"],
            remedies=None if remedies is None else Remedies(**remedies),
            simulated=int(values["simulated_people"]),
            fits=int(values["fits_per_epsilon"]),
        )

    def __str__(self) -> str:
        parts = [
            asked(self.question, _features(self.question.features)),
            _answer(self),
            _curve(self),
            _choices(self),
        ]
        if self.warning is not None:
            parts.append(wrapped(f"WARNING: {self.warning}"))
        return "\n\n".join([*parts, _small_print(self)])


# Words ----------------------------------------------------------------------------------------


def _answer(forecast: Forecast) -> str:
    level = forecast.expected
    meaning = (
        "That is worse than the raw, unprotected record of a single person at each time."
        if level.worth < 1
        else "That means: people are placed as well as by the raw, unprotected records of "
        f"{_people(level)} at each time. It is about positions, not about correlations, rare "
        "values or paths."
    )
    return wrapped(
        f"Expect a result worth {_people(level)} per time ({about(level.low)} to "
        f"{about(level.high)} in nine cases of ten). {meaning}"
    )


def _curve(forecast: Forecast) -> str:
    rows: list[tuple[str, ...]] = [("", "epsilon", "worth", "from", "to", "people per time")]
    for epsilon, level in zip(forecast.epsilons, forecast.curve, strict=True):
        mark = "  >" if epsilon == forecast.epsilon else ""
        more = "+" if level.or_more else ""
        numbers = (f"{about(level.worth)}{more}", about(level.low), about(level.high))
        rows.append((mark, f"{epsilon:.3g}", *numbers, ""))
    return "\n".join(aligned(rows, right=range(1, 5)))


def _choices(forecast: Forecast) -> str:
    settings = forecast.settings
    how = [f"private {settings['measure']}"]
    for key, what in (
        ("cells_per_side", "cells per feature"),
        ("particles", "particles per time"),
        ("steps", "steps"),
        ("slabs", "slabs of time"),
    ):
        least, most = settings[key]
        if most:
            how.append(f"{least} {what}" if least == most else f"{least} to {most} {what}")
    return f"The fit would use {', '.join(how)}."


def _helps(question: Question, remedies: Remedies) -> tuple[list[str], list[str]]:
    """What helps, and what does not."""
    each = {
        "a larger epsilon": remedies.epsilon
        and f"epsilon {remedies.epsilon:.3g}"
        + ", which promises little to anybody" * (remedies.epsilon > LARGE_EPSILON),
        "more people": remedies.people and f"{remedies.people:,} people",
        "fewer features": remedies.features
        and f"{_features(remedies.features)} instead of {question.features}",
    }
    if question.features == 1:
        del each["fewer features"]
    return [yes for yes in each.values() if yes], [no for no, yes in each.items() if not yes]


def _small_print(forecast: Forecast) -> str:
    question = forecast.question
    size = ""
    if forecast.simulated < question.people:
        size = (
            f"with {forecast.simulated:,} people instead of {question.people:,}, "
            "and as much noise per person, "
        )
    return wrapped(
        f"Simulated {size}on {len(STAND_INS)} public stand-in crowds (such as {STAND_INS[0]} or "
        f"{STAND_INS[-1]}), and divided by what simulations were too good by on other data: no "
        "data were read and nothing was spent. Your people may be harder or easier to describe "
        "than these. The report of the fit will say the same number from the released model."
    )


def _people(level: Level) -> str:
    if level.worth < 1:
        return "less than one person"
    if level.worth < 1.5:
        return "about one person"
    return f"about {about(level.worth)} people{' or more' * level.or_more}"


def _features(number: int) -> str:
    return "1 feature" if number == 1 else f"{number} features"
