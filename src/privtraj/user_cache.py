"""Where things that can be made again are kept from one run to the next."""

from __future__ import annotations

import os
from pathlib import Path


def folder(name: str) -> Path:
    """The place of one kind of them in the user's cache; it may not exist yet."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "privtraj" / name
