"""A process that has everything imported, and forks for each command: a fit takes .2 s, not 3.

It reads a line of JSON for each request and answers with one:
    {"words": [...], "said": FILE, "limit": BYTES or null, "clock": SECONDS or null}    its pid
    {"wait": PID}                                                     its exit code, below 0: signal

limit: no file may grow beyond so many bytes, as if the disk were full.  clock: that the system's
has jumped by.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path


def run(cli, words, said, limit, clock):
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if clock is not None:
        from privtraj.privacy import ledger_file

        now, then = time.time, datetime.now(UTC) + timedelta(seconds=clock)
        time.time = lambda: now() + clock
        ledger_file._now = then.isoformat
    code = 1
    try:
        code = cli.main(words)
    finally:
        os._exit(code)


def main():
    warnings.simplefilter("ignore")
    import privtraj.report.page  # noqa: F401
    from privtraj import cli

    with tempfile.TemporaryDirectory() as folder:  # imports all that is imported when it is needed
        table, model = Path(folder, "a.csv"), Path(folder, "a.privtraj")
        table.write_text("id,t,x\n" + "".join(f"{k},0.{k},0.{k}\n" for k in range(65)))
        public = f"{table} --person id --time-range 0 1 --json"
        fit = f"fit {public} --time t --feature x 0 1 --epsilon 1 --delta 1e-5 --yes --out {model}"
        extend = f"extend {model} {public} --past revise --out {folder}/b.privtraj"
        for words in (fit, extend):
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                assert cli.main(words.split()) == 0
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                run(cli, **asked)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
