"""Shared settings and helpers. Everything random is seeded: a test passes always or never.

That holds for fits without a seed too: the operating system's entropy is replaced by words that
depend on the name of the test. PRIVTRAJ_TEST_SEED=1 and so on give other words: whoever changes a
statistical test tries a few.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

# One process of tests per core: more threads than that wait for each other in every small product
# of matrices (a solve of 256 x 256 takes twenty times the time). Before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from privtraj.base.space import TimeAxis
from privtraj.columns.kinds import Number
from privtraj.data.snapshots import Snapshots
from privtraj.privacy import noise
from privtraj.privacy.guard import MemoryRows

HERE = Path(__file__).parent

# Nothing is kept in the cache of whoever runs the tests. What JAX compiles stays in .cache for all
# processes and for the next run, as it follows from the code alone; the rest goes with the run.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="privtraj-tests-")
    os.environ["XDG_CACHE_HOME"] = _CACHE.name
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parent / ".cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# What takes longest begins first, so that no process works alone in the end: measured, in order.
LONGEST = (
    "test_docs.py",
    "test_draw.py",
    "test_browser.py",
    "test_audit.py",
    "test_journeys.py",
    "test_fit_leaks.py",
    "test_synthesizer.py",
    "test_kernel_sums.py",
    "test_subspace.py",
    "test_growth.py",
    "test_broken_variants.py",
    "test_sql_rows.py",
    "test_accounting.py",
    "test_cli.py",
    "test_guard.py",
    "test_scripts.py",
    "test_digits.py",
    "test_precision.py",
    "test_blind_spots.py",
    "test_measured_tables.py",
    "test_windows.py",
    "test_paper.py",
    "test_persistence.py",
    "test_models_in_domains.py",
    "test_questions.py",
    "test_quality.py",
    "test_mutants.py",
    "test_mixed_model.py",
    "test_plan.py",
    "test_cli_ledger.py",
    "test_pld.py",
    "test_mistakes.py",
    "test_page.py",
    "test_people.py",
    "test_rates.py",
    "test_hostile_files.py",
    "test_mixed_fits.py",
)

# Slow as a whole; single slow tests carry the mark themselves. `make quick` leaves both out.
SLOW = {
    "audit",
    "paper",
    "test_browser.py",
    "test_docs.py",
    "test_journeys.py",
    "test_precision.py",
    "test_draw.py",
    "test_sql_rows.py",
}

# Whole files that only `make test-all` runs: how much an audit can see, that it sees breaks, and
# float64.
THOROUGH = {
    "test_audit.py",
    "test_blind_spots.py",
    "test_broken_variants.py",
    "test_mixed_canaries.py",
    "test_precision.py",
}

settings.register_profile(
    "privtraj",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("privtraj")


def pytest_collection_modifyitems(items):
    for item in items:
        if SLOW & set(item.path.relative_to(HERE).parts):
            item.add_marker(pytest.mark.slow)
        if item.path.name in THOROUGH:
            item.add_marker(pytest.mark.thorough)
    if "PRIVTRAJ_MUTANT" in os.environ:  # the tests that are named first are run first
        return
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


class _Entropy:
    """Stands for the operating system, where noise is drawn and generators have no seed."""

    def __init__(self):
        self._generator = np.random.default_rng
        self.restart("")

    def restart(self, test):
        """From the name of a test."""
        name = f"{os.environ.get('PRIVTRAJ_TEST_SEED', 0)} {test}"
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest())
        self._words = self._generator(seed)

    def urandom(self, count):
        return self._words.bytes(count)

    def default_rng(self, seed=None):
        return self._generator(self._words.integers(2**63) if seed is None else seed)


_ENTROPY = _Entropy()
assert noise.os is os, "private noise is the operating system's"
noise.os = _ENTROPY
np.random.default_rng = _ENTROPY.default_rng


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    _ENTROPY.restart(item.nodeid)


def _snapshots(bins_of_points, dimensions=None):
    """Snapshots of unit-cube points, one array (n_i, d) per bin; bins may be empty."""
    d = dimensions or next(np.shape(p)[1] for p in bins_of_points if len(p))
    rows = [np.asarray(p, np.float32).reshape(-1, d) for p in bins_of_points]
    times = np.arange(len(rows), dtype=np.float64)
    return Snapshots(
        axis=TimeAxis(times, False, times[[0, -1]]),
        columns=tuple(Number(0.0, 1.0, name=f"x{k + 1}") for k in range(d)),
        time_name="time",
        _rows=MemoryRows(np.concatenate(rows), np.repeat(times, [len(r) for r in rows])),
    )


class _Silent:
    """Words at which every noise table draws zero; remembers how often it was asked."""

    private = False

    def __init__(self):
        self.calls = 0

    def words(self, count):
        self.calls += 1
        return np.full(count, 1 << 63, dtype=np.uint64)


@pytest.fixture(scope="session")
def snapshots_of():
    """Function: list of (n_i, d) arrays in the unit cube -> Snapshots."""
    return _snapshots


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a reason to skip; one for all files, as a process may start only one."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright (pip install playwright)"
    )
    named = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    found = next(filter(None, named), None)
    if found is None:
        pytest.skip("no Chromium on PATH: install one to test the report in a browser")
    quiet = ["--disable-gpu", "--disable-background-networking", "--no-first-run"]
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=[*quiet, *root])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def silent():
    """Class of noise sources without noise."""
    return _Silent


@pytest.fixture
def without_refits(monkeypatch):
    """Reports say nothing about worth, for which they would fit three times more."""
    monkeypatch.setattr("privtraj.assess.quality.quality_of", lambda model, progress=None: None)


@pytest.fixture(scope="session")
def moving_blobs():
    """Function: T clouds (n, d) of a blob that moves through the unit cube."""

    def make(times, n, d, seed=0):
        rng = np.random.default_rng(seed)
        centre = np.linspace(0.3, 0.7, times)[:, None, None]
        return np.clip(centre + 0.06 * rng.standard_normal((times, n, d)), 0, 1)

    return make
