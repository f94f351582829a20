"""Several devices and several processes give the model that one gives, and noise is added once.

Run as a program, this file is one of the processes; each writes what it found to a JSON file.
"""

import json
import os
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

from privtraj.base import processes
from privtraj.base.errors import InputError
from privtraj.data.snapshots import Snapshots
from privtraj.paper import SampledSynthesizer
from privtraj.privacy import noise
from privtraj.privacy import sums as sums_module
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.privacy.sums import chunked
from privtraj.synthesizer import TrajectorySynthesizer

D = 7  # distances are products of matrices beyond six features
MEASURES = {
    "gradients": {"measure": "gradients", "particles": 12, "steps": 4},
    "counts": {"measure": "counts", "cells": 2},
}
SMALL_CHUNKS = sums_module._Layout(16, 4, 512)  # so that these people fill many, unevenly
BEYOND_FLOATS = 2**53 + 1  # no float64 is this number
SECONDS = 1800  # of a machine that is busy with other things; they need one minute


def crowd():
    """Times (n,) and points (n, D) of 900 people in four bins."""
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, 900).astype(float)
    points = 0.3 + 0.1 * times[:, None] + 0.08 * rng.standard_normal((900, D))
    return times, np.clip(points, 0, 1)


def snapshots(times, points):
    return Snapshots.from_arrays(times, points, bounds=[(0, 1)] * D, bins=range(4))


def fitted(people, seed=3):
    """The names of the models by gradients and by counts."""
    return {
        name: TrajectorySynthesizer(4.0, 1e-4, seed=seed, **settings).fit(people).sha256
        for name, settings in MEASURES.items()
    }


def repeated(mine=None):
    """The model of 300 people in one feature with two records each, or of those that are mine."""
    rng = np.random.default_rng(1)
    times, who = np.tile([0.0, 1.0, 2.0, 3.0], 150), np.arange(600) // 2
    points = np.clip(0.5 + 0.1 * rng.standard_normal(600), 0, 1)
    own = np.ones(600, np.bool_) if mine is None else mine(who)
    people = Snapshots.from_arrays(
        times[own],
        points[own],
        bounds=[(0, 1)],
        bins=range(4),
        person=who[own],
        records_per_person=2,
    )
    return TrajectorySynthesizer(4.0, 0.0, seed=3, windows="bins", cells=4).fit(people).sha256


def refusal(ask):
    try:
        ask()
    except InputError as error:
        return str(error)
    return None


# What the other processes run -----------------------------------------------------------------


def on_one_process():
    import jax

    models = fitted(snapshots(*crowd()))
    return {"devices": jax.device_count(), "models": models, "repeated": repeated()}


def with_a_platform_that_does_not_exist():
    """Any look at a device would raise."""
    import jax

    names = np.array(["a", "b"], dtype=object)
    exact = np.array([BEYOND_FLOATS, -7])
    found = {
        "several": processes.several(),
        "is_first": processes.is_first(),
        "total": processes.total(exact) is exact,
        "broadcast_first": processes.broadcast_first(exact) is exact,
        "gathered": processes.gathered(exact).tolist() == [exact.tolist()],
        "people": processes.refuse_shared_people(np.append(names, names)),
        "seed": processes.shared_seed(),
    }
    try:
        jax.devices()
    except RuntimeError:
        return found
    return {"devices": "there are some"}


def in_company(rank, port):
    """One of two processes. The first has a fifth of the people and nobody in the last bin."""
    processes.start(f"127.0.0.1:{port}", 2, rank)
    import jax

    times, points = crowd()
    mine = ((np.arange(900) % 5 == 0) & (times < 3)) == (rank == 0)
    people = snapshots(times[mine], points[mine])
    if rank == 1:
        noise.SeededSource.words = noise.SecureSource.words = _nothing_to_draw
    return {
        "devices": [jax.process_count(), jax.local_device_count(), jax.device_count()],
        "is_first": processes.is_first(),
        "shape": _shape(people),
        "models": fitted(people),
        "repeated": repeated(lambda who: (who % 3 == 0) == (rank == 0)),
        "secret": fitted(people, seed=None),
        "total": processes.total(np.array([2**53, rank + 1])).tolist(),
        "gathered": processes.gathered(np.array([0.1 * rank])).tolist(),
        "broadcast_first": processes.broadcast_first(np.array([2**53 + 1 + rank, -rank])).tolist(),
        "distinct": refusal(lambda: processes.refuse_shared_people(_names(rank, 0))),
        "shared": refusal(lambda: processes.refuse_shared_people(_names(rank, 3))),
        "named": refusal(lambda: _named(rank, 0)),
        "shared names": refusal(lambda: _named(rank, 2)),
        "rate": refusal(lambda: _fit(people, SampledSynthesizer, rate=0.5)),
        "ledger": refusal(lambda: _fit(people, ledger=LedgerFile(f"{port}.jsonl"))),
        "many": refusal(lambda: _fit(people, bits=48)),
    }


def _shape(people):
    """Of the points, as this process sees them over all devices."""
    return chunked(*people._rows.in_slabs(people.axis.bins), people.n_times).points.shape


def _nothing_to_draw(self, count):
    raise AssertionError("only the first process draws noise")


def _names(rank, shared):
    """Fifty names, of which the first few are those of the other process too."""
    return np.array([f"p{k}" if k < shared else f"p{rank}-{k}" for k in range(50)], dtype=object)


def _named(rank, shared):
    """Records of people with these names."""
    Snapshots.from_arrays(
        np.arange(50) % 4,
        np.full((50, 1), 0.5),
        bounds=[(0, 1)],
        bins=range(4),
        person=_names(rank, shared),
    )


def _fit(people, kind=TrajectorySynthesizer, ledger=None, bits=None, **options):
    """A fit, with so many bits for sums on the devices."""
    if bits is not None:
        sums_module.SUM_BITS = bits
    settings = MEASURES["gradients"] | options | {"seed": None if ledger else 3}
    if kind is SampledSynthesizer:
        del settings["measure"]
    kind(4.0, 1e-4, **settings).fit(people, ledger=ledger)


# The tests ------------------------------------------------------------------------------------


def start(out, *words, **environment):
    """This file as a program, which writes to `out` what it found."""
    with out.with_suffix(".log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, __file__, str(out), *map(str, words)],
            env=os.environ | environment,
            cwd=out.parent,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def devices(count):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    return {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}


def finished(processes, outs):
    """What the processes found; one that fails ends the others, who would wait for it."""
    deadline = time.monotonic() + SECONDS
    while any(p.poll() is None for p in processes) and not any(p.poll() for p in processes):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    codes = [process.poll() for process in processes]
    for process in processes:
        process.kill()
        process.wait()
    logs = "\n".join(out.with_suffix(".log").read_text()[-3000:] for out in outs)
    assert codes == [0] * len(outs), logs
    return [json.loads(out.read_text()) for out in outs]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The models of one process with one device."""
    out = tmp_path_factory.mktemp("alone") / "one.json"
    (found,) = finished([start(out, "alone", **devices(1))], [out])
    assert found["devices"] == 1
    return found


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """What two processes found, of two devices each."""
    folder = tmp_path_factory.mktemp("pair")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    outs = [folder / f"{rank}.json" for rank in range(2)]
    processes = [start(out, "pair", rank, port, **devices(2)) for rank, out in enumerate(outs)]
    return finished(processes, outs)


@pytest.mark.thorough
def test_four_devices_give_the_model_of_one(alone, tmp_path):
    out = tmp_path / "four.json"
    (found,) = finished([start(out, "alone", **devices(4))], [out])
    assert found == alone | {"devices": 4}


@pytest.mark.thorough
def test_two_processes_give_the_model_of_one(alone, pair):
    assert [found["devices"] for found in pair] == [[2, 2, 4]] * 2
    assert [found["models"] for found in pair] == [alone["models"]] * 2
    assert pair[0]["shape"] == pair[1]["shape"]


@pytest.mark.thorough
def test_only_the_first_process_draws_noise_and_all_get_its_answer(alone, pair):
    """The second has no source; with secret seeds, they agree on models nobody has seen before."""
    assert [found["is_first"] for found in pair] == [True, False]
    assert pair[0]["secret"] == pair[1]["secret"]
    assert not set(pair[0]["secret"].values()) & set(alone["models"].values())


@pytest.mark.thorough
def test_pairs_of_people_in_two_processes_are_those_of_one(alone, pair):
    """Whose second records are with the first ones; the first process has a third of them."""
    assert [found["repeated"] for found in pair] == [alone["repeated"]] * 2


@pytest.mark.thorough
def test_integers_of_several_processes_are_added_and_told_exactly(pair):
    for found in pair:
        assert found["total"] == [2**54, 3]
        assert found["gathered"] == [[0.0], [0.1]]
        assert found["broadcast_first"] == [BEYOND_FLOATS, 0]


@pytest.mark.thorough
def test_people_in_more_than_one_process_are_refused(pair):
    for found in pair:
        assert found["distinct"] is None
        assert found["shared"].startswith("3 people have records in more than one process")
        assert found["named"] is None
        assert found["shared names"].startswith("2 people have records in more than one process")
        assert "p0" not in found["shared"] + found["shared names"]


@pytest.mark.thorough
def test_what_several_processes_cannot_do_is_refused_by_all_of_them(pair):
    for found in pair:
        assert "use rate=1" in found["rate"]
        assert "a ledger is kept by one process" in found["ledger"]
        assert found["many"] is None  # sums in parts, all processes taking part in each


def test_one_process_sends_nothing_and_touches_no_device(tmp_path):
    out = tmp_path / "none.json"
    (found,) = finished([start(out, "none", JAX_PLATFORMS="absent")], [out])
    assert found == {
        "several": False,
        "is_first": True,
        "total": True,
        "broadcast_first": True,
        "gathered": True,
        "people": None,
        "seed": None,
    }


@pytest.mark.parametrize(
    "some", [{"coordinator": "127.0.0.1:1"}, {"processes": 2, "process": 0}, {"process": 1}]
)
def test_a_part_of_the_addresses_is_refused(some):
    with pytest.raises(InputError, match="or none"):
        processes.start(**some)


def main(out, role, *words):
    roles = {
        "alone": on_one_process,
        "none": with_a_platform_that_does_not_exist,
        "pair": in_company,
    }
    sums_module._layout = lambda: SMALL_CHUNKS
    try:
        Path(out).write_text(json.dumps(roles[role](*map(int, words))))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # without waiting for the others, who wait for this one


if __name__ == "__main__":
    main(*sys.argv[1:])
