"""What tests of batches share."""

import os

import pytest

from privtraj.privacy import ledger_file
from privtraj.stream import people as people_module


@pytest.fixture
def fast(monkeypatch):
    """Cheap fingerprints and no waiting for the disk: a kill of a process loses nothing of it."""
    monkeypatch.setattr(ledger_file, "_SCRYPT_N", 2)
    monkeypatch.setattr(os, "fsync", lambda file: None)
    tables = people_module._TABLES.replace("synchronous = EXTRA", "synchronous = OFF")
    monkeypatch.setattr(people_module, "_TABLES", tables)
