"""What the tests of scripts share: a script as a module for a while, and a run of it."""

import importlib
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def imported(folder, name, *others):
    """The module of a script, gone afterwards with the others that it imports from its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", sys.path[:])
        patch.syspath_prepend(ROOT / folder)
        yield importlib.import_module(name)
        for each in (name, *others):
            sys.modules.pop(each, None)


def run(*command: str) -> str:
    """What a script prints, run from the root."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
