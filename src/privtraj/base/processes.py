"""Several processes that fit one model together, each with people of its own.

Every process runs the same program on its own records. What they must agree on goes through here:
exact integers are added up over all processes, and the first process alone draws noise and chance
and tells the others. With one process, the usual case, nothing is sent and no device is touched.
"""

from __future__ import annotations

import secrets
import sys
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privtraj.base.errors import Arg, InputError

Array = TypeVar("Array", bound=NDArray[np.generic])

_PLACE = (Arg("coordinator"), ", ", Arg("processes"), " and ", Arg("process"))
_KEYS = ("people of one h.", "people of one p.")  # sixteen letters each
_AT_A_TIME = 2**23  # people of all processes
PATIENCE = 1800  # seconds until all processes have started, on machines that are busy


def start(
    coordinator: str | None = None, processes: int | None = None, process: int | None = None
) -> None:
    """Join the other processes; call it first, with nothing else under Slurm or Kubernetes jobs.

    coordinator: address host:port of the first process.  processes: how many there are.
    process: number of this one, from 0.
    """
    import jax

    given = [value is not None for value in (coordinator, processes, process)]
    if any(given) and not all(given):
        raise InputError(*_PLACE, " go together: give all three, or none of them")
    if processes is not None and process is not None and not 0 <= process < processes:
        raise InputError(
            Arg("process"),
            f" must be from 0 to {processes - 1}, as there are {processes} processes",
        )
    try:
        jax.distributed.initialize(coordinator, processes, process, initialization_timeout=PATIENCE)
    except (ValueError, RuntimeError):
        raise InputError(
            "this process cannot join the others: start all of them under Slurm, Open MPI or "
            "Kubernetes, or give ",
            *_PLACE,
            " to each",
        ) from None


def several() -> bool:
    """Whether other processes take part; none does unless JAX, which joins them, is loaded."""
    jax = sys.modules.get("jax")
    return jax is not None and bool(jax.distributed.is_initialized()) and jax.process_count() > 1


def is_first() -> bool:
    """Whether this process draws the noise and writes the files."""
    return not several() or sys.modules["jax"].process_index() == 0


def device() -> str:
    """What gradients are computed on, in words: "1 cpu", "8 NVIDIA H200 in 2 processes"."""
    import jax

    devices = f"{jax.device_count()} {jax.devices()[0].device_kind}"
    return f"{devices} in {jax.process_count()} processes" if several() else devices


def gathered(local: Array) -> Array:
    """Arrays of one shape from all processes, (P, ...)."""
    return _exchanged("process_allgather", local) if several() else local[None]  # type: ignore


def total(local: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exact sum over all processes."""
    return local if not several() else gathered(local).sum(axis=0)


def broadcast_first(local: Array) -> Array:
    """What the first process has, everywhere."""
    return _exchanged("broadcast_one_to_all", local) if several() else local


def _exchanged(how: str, local: Array) -> Array:
    """What all processes together make of the array of each, by a function of JAX; in 64 bits."""
    import jax
    from jax.experimental import multihost_utils

    with jax.enable_x64(True):
        return np.asarray(getattr(multihost_utils, how)(local))  # type: ignore[return-value]


def refuse_shared_people(names: NDArray[np.object_]) -> None:
    """Refuse people who have records in more than one process; names: distinct in each process.

    Keyed 128-bit hashes of the names are compared, a part of them at a time.
    """
    if not several():
        return
    from pandas.util import hash_array

    hashes = np.stack([hash_array(names, hash_key=key) for key in _KEYS], axis=1)
    parts, shared = int(gathered(np.array([len(names)])).sum()) // _AT_A_TIME + 1, 0
    for part in range(parts):
        mine = hashes[hashes[:, 0] % parts == part]
        sizes = gathered(np.array([len(mine)]))[:, 0]
        padded = np.zeros((sizes.max(), 2), np.uint64)
        padded[: len(mine)] = mine
        everybody = [rows[:size] for rows, size in zip(gathered(padded), sizes, strict=True)]
        _, counts = np.unique(np.concatenate(everybody), axis=0, return_counts=True)
        shared += int(np.count_nonzero(counts > 1))
    if shared:
        raise InputError(
            f"{shared} people have records in more than one process: give all records of a person "
            "to the same process"
        )


def shared_seed() -> int | None:
    """A seed for public randomness that all processes agree on; None if there is one process."""
    if not several():
        return None
    return int(broadcast_first(np.array([secrets.randbits(62)]))[0])
