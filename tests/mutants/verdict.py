"""A pytest plugin: which tests failed, and whether by an assertion; and that the copy was tested.

Told by the environment where the copied package is and where to write. Hypothesis does not shrink
here: that a property is false is enough.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

COPY, REPORT = "PRIVTRAJ_MUTANT", "PRIVTRAJ_MUTANT_REPORT"

_found: dict[str, list[str]] = {"caught": [], "broke": [], "passed": []}


def _is_assertion(error: BaseException) -> bool:
    """Also of several at once, as hypothesis finds them."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_assertion, error.exceptions))
    return isinstance(error, AssertionError | pytest.fail.Exception)


def pytest_configure(config: pytest.Config) -> None:
    import privtraj

    if not Path(privtraj.__file__).is_relative_to(os.environ[COPY]):
        raise pytest.UsageError("the tests do not import the copy")
    quick = settings(settings.default, phases=(Phase.explicit, Phase.generate))
    settings.register_profile("mutants", quick)
    settings.load_profile("mutants")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _found["broke"].append(f"{report.nodeid} (not collected)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    report = yield
    if call.excinfo is not None and report.failed:
        error = call.excinfo.value
        if call.when == "call" and _is_assertion(error):
            _found["caught"].append(item.nodeid)
            if "PRIVTRAJ_REACH" not in os.environ:
                item.session.shouldfail = "one is enough"
        else:
            _found["broke"].append(f"{item.nodeid} ({type(error).__name__}: {error})")
    elif call.when == "call" and report.passed:
        _found["passed"].append(item.nodeid)
    return report


def pytest_sessionfinish() -> None:
    Path(os.environ[REPORT]).write_text(json.dumps(_found), encoding="utf-8")
