"""Run by test_hostile_files.py in a process of its own: answer every file of a folder.

python answer.py FOLDER MEGABYTES: prints for each file what was said, the seconds of the processor
that it took, and at last by how many megabytes the process grew. It may take no more than so many
megabytes beyond what the library itself takes.
"""

import json
import resource
import signal
import sys
import time
from pathlib import Path

import privtraj as pt
from privtraj.base.errors import PrivtrajError
from privtraj.measures.registry import NAMES, find

PATIENCE = 20  # seconds of the processor for one file: far beyond what is allowed, so that all end


def answer(path):
    try:
        if path.suffix == ".json":
            pt.Certificate.read(path).verify()
        else:
            pt.load(path).verify()
    except PrivtrajError as error:
        return "refused", str(error)
    except BaseException as error:
        return "crashed", f"{type(error).__name__}: {error}"[:200]
    return "accepted", ""


def megabytes_at_most():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main(folder, megabytes):
    for name in NAMES:  # which the library loads when a file has the first of them
        find(name)
    good = Path(folder) / "good.privtraj"
    assert answer(good) == ("accepted", "")  # all is imported, and caches are warm
    Path("/proc/self/clear_refs").write_text("5")  # from now on, what is the most at a time
    before = megabytes_at_most()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    answers = {}
    for path in sorted(Path(folder).iterdir()):
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        said = answer(path)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers[path.name] = (*said, time.process_time() - begun)
    grown = megabytes_at_most() - before
    print(json.dumps({"answers": answers, "grown": grown}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
