"""Compiled code kept from one run to the next, so that the second one starts at once."""

from __future__ import annotations

import os
import platform

from privtraj import files


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache, unless it was told another place.

    Compiled code holds sizes, rounded up, and no data.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    # by machine: a home may be shared by machines of different kinds
    folder = files.cache_folder("compiled") / platform.node()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # nowhere to keep it: everything works, only slower
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
