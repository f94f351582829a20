"""The cache folder on every system."""

from pathlib import Path, PureWindowsPath

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import Windows

from privtraj.base import files


def test_the_cache_folder_can_be_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_folder("plans") == tmp_path / "privtraj" / "plans"


@pytest.mark.parametrize(
    ("system", "end"),
    [
        (Unix, ".cache/privtraj/plans"),
        (MacOS, "Library/Caches/privtraj/plans"),
        (Windows, "Local/privtraj/Cache/plans"),
    ],
)
def test_the_cache_folder_is_where_each_system_keeps_caches(system, end, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("platformdirs.windows.get_win_folder", lambda name: "Local")
    monkeypatch.setattr(platformdirs, "PlatformDirs", system)
    folder = files.cache_folder("plans")
    assert PureWindowsPath(folder).as_posix().endswith(end)
    assert isinstance(folder, Path)
