"""A pytest plugin: which lines of some files each test passes, and which tests are run at all.

Told by the environment, as `verdict` is:

    PRIVTRAJ_MUTANT        the folder of the copied package
    PRIVTRAJ_TESTS         a file of names of tests, run in that order; without one all are run
    PRIVTRAJ_PART          "k/n": the k-th of n parts of what was collected
    PRIVTRAJ_REACH         where to write a line of JSON per test that passed; else none is traced
    PRIVTRAJ_REACH_ROOMS   the rooms whose lines are looked at

What a fixture passes counts for every test that has it, though it is made once. What is remembered
by `functools.cache` is forgotten before every test, so that a test does not profit from another.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

COPY, TESTS, PART = "PRIVTRAJ_MUTANT", "PRIVTRAJ_TESTS", "PRIVTRAJ_PART"
REACH, ROOMS = "PRIVTRAJ_REACH", "PRIVTRAJ_REACH_ROOMS"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that are asked for, in their order."""
    if TESTS in os.environ:
        order = {name: k for k, name in enumerate(json.loads(Path(os.environ[TESTS]).read_text()))}
        items[:] = sorted(
            (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
        )
    if PART in os.environ:
        part, parts = map(int, os.environ[PART].split("/"))
        items[:] = items[len(items) * part // parts : len(items) * (part + 1) // parts]


class _Passed:
    """Lines and seconds of what runs now; of what it waits for, too, the lines alone."""

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()
        self.seconds = 0.0


class Recorder:
    """Follows the lines of some rooms."""

    def __init__(self) -> None:
        package = Path(os.environ[COPY]) / "privtraj"
        rooms = os.environ[ROOMS].split(",")
        self._files = {
            str(path): path.relative_to(package).as_posix()
            for room in rooms
            for path in (package / room).glob("*.py")
        }
        self._stack = [_Passed()]
        self._since = time.monotonic()
        self._fixtures: dict[object, _Passed] = {}

    def _trace(self, frame, event, argument):  # type: ignore[no-untyped-def]
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame, event, argument):  # type: ignore[no-untyped-def]
        if event == "line":
            file = self._files[frame.f_code.co_filename]
            self._stack[-1].lines.add((file, frame.f_lineno))
        return self._line

    def _tick(self) -> None:
        now = time.monotonic()
        self._stack[-1].seconds += now - self._since
        self._since = now

    def _begin(self) -> None:
        self._tick()
        self._stack.append(_Passed())

    def _end(self) -> _Passed:
        self._tick()
        done = self._stack.pop()
        self._stack[-1].lines |= done.lines
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):  # type: ignore[no-untyped-def]
        self._begin()
        try:
            return (yield)
        finally:
            self._fixtures[fixturedef] = self._end()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):  # type: ignore[no-untyped-def]
        _forget()
        self._passed = False
        self._begin()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            self._write(item, self._end())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._passed = report.passed
        elif report.failed:
            self._passed = False

    def _write(self, item: pytest.Item, own: _Passed) -> None:
        if not self._passed:
            return
        known = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
        used = [self._fixtures[each[-1]] for each in known if each[-1] in self._fixtures]
        lines = defaultdict(list)
        for file, line in own.lines.union(*(each.lines for each in used)):
            lines[file].append(line)
        costs = {f"{each[-1].baseid} {each[-1].argname}": self._fixtures[each[-1]].seconds
                 for each in known if each[-1] in self._fixtures}  # fmt: skip
        told = {"test": item.nodeid, "seconds": round(own.seconds, 3), "lines": lines}
        told["fixtures"] = {name: round(cost, 3) for name, cost in costs.items() if cost > 0.05}
        with open(os.environ[REACH], "a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")


def _forget() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("privtraj"):
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def pytest_configure(config: pytest.Config) -> None:
    if REACH in os.environ:
        config.pluginmanager.register(Recorder(), "reach-recorder")
