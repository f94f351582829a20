"""What the tests of scripts share: a script as a module for a while, and a run of it."""

import concurrent.futures
import contextlib
import importlib
import io
import os
import pickle
import runpy
import subprocess
import sys
import warnings
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest

from reproduce import parallel

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


class ThisProcess:
    """Computes here what would be sent to another process, pickled all the same."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *arguments):
        function, arguments = _sent((function, arguments))
        done = Future()
        done.set_result(_sent(function(*arguments)))
        return done

    def map(self, function, *columns):
        return [self.submit(function, *row).result() for row in zip(*columns, strict=True)]


def _sent(something):
    return pickle.loads(pickle.dumps(something))


def run(script: str, *words: str) -> str:
    """What a script prints: as a program, but in this process, which has imported what it needs."""
    path, printed, known = ROOT / script, io.StringIO(), set(sys.modules)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", [script, *words])
        patch.setattr(sys, "path", [str(path.parent), *sys.path])
        for module in (parallel, concurrent.futures):
            patch.setattr(module, "ProcessPoolExecutor", ThisProcess)
        patch.chdir(ROOT)
        with warnings.catch_warnings(action="default"):  # POT's are no errors in a process alone
            runpy.run_path(str(path), run_name="__main__")
    for name in set(sys.modules) - known:  # another folder may have modules of these names
        if path.parent == Path(getattr(sys.modules[name], "__file__", None) or "").parent:
            del sys.modules[name]
    return printed.getvalue()


def run_alone(*command: str) -> str:
    """What a script prints, in a process of its own."""
    found = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # reproduce/ stands beside the package
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3600,
        env={**os.environ, "PYTHONPATH": found},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
