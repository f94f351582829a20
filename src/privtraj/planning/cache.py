"""Forecasts kept from one run to the next: one small JSON file for each question.

They hold nothing but the question, which is public, and what was simulated.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from privtraj import files
from privtraj.errors import InputError
from privtraj.files import write_text
from privtraj.planning.forecast import Forecast
from privtraj.planning.question import STAND_INS, Question
from privtraj.version import __version__

FORMAT = 1


def file_of(question: Question) -> Path:
    """Where the answer is kept, by every part of the question and by what made the answer."""
    made_by = {"format": FORMAT, "version": __version__, "stand-ins": STAND_INS}
    whole = {**made_by, "question": asdict(question)}
    key = hashlib.sha256(json.dumps(whole, sort_keys=True, default=float).encode()).hexdigest()
    return files.cache_folder("plans") / f"{key[:32]}.json"


def read(question: Question) -> Forecast | None:
    """What was kept; None if there is nothing that can be read."""
    try:
        kept = Forecast.from_dict(json.loads(file_of(question).read_text("utf-8")))
    except (OSError, RuntimeError):  # RuntimeError: no home
        return None
    except (KeyError, TypeError, ValueError, AttributeError):  # damaged
        return None
    return kept if kept.question == question else None


def keep(forecast: Forecast) -> None:
    """Keep it for the next time, if there is a place for it."""
    try:
        path = file_of(forecast.question)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps(forecast.to_dict(), allow_nan=False, default=float)
        write_text(f"{text}\n", path, force=True)
    except (OSError, RuntimeError, InputError):
        return
