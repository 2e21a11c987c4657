# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does a sealed job recover from kill -9 at any moment, as often as it comes, and leave nothing behind?

    PYTHONPATH=build/torch2/python build/torch2/venv/bin/python tests/torch/elastic.py --restarts 20 [--seed 1]

torchrun runs examples/ddp/elastic.py; this kills one of its ranks per attempt: while it imports, joins, or after some
steps, by lot. The result must be that of a run that nobody disturbed, to six digits. Prints one line per restart. For hand
and for long runs: twenty restarts take minutes, because a rank that starts imports PyTorch.
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import List, Optional

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ddp" / "elastic.py"
PATIENCE = 300.0  # for anything that must happen


def start(directory: pathlib.Path, name: str, ranks: int, restarts: int, steps: int) -> subprocess.Popen:
    progress = directory / (name + ".progress")
    progress.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--monitor_interval", "0.1"]
    command += ["--nproc_per_node", str(ranks), "--max_restarts", str(restarts), str(SCRIPT)]
    command += [str(directory / (name + ".pt")), "--steps", str(steps), "--progress", str(progress)]
    command += ["--pause", "0.02"]
    environment = dict(os.environ, SEALANE_KEY_FILE=str(directory / "key"), OMP_NUM_THREADS="1")
    with open(directory / (name + ".out"), "w", encoding="utf-8") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)


def seen(progress: pathlib.Path, attempt: int, rank: int) -> Optional[List[str]]:
    try:
        return (progress / f"{attempt}-{rank}").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return None


def kill_one(job: subprocess.Popen, progress: pathlib.Path, attempt: int, ranks: int, lot: random.Random) -> str:
    """Waits until a rank of that attempt has come as far as the lot says, and kills it."""
    rank = lot.randrange(ranks)
    steps = lot.choice([None, None, 0, 1, 2, 3, 7])  # None: somewhere between its first line and its first step
    pause = lot.random() * 1.5 if steps is None else 0.0
    deadline = time.monotonic() + PATIENCE
    first = None
    while time.monotonic() < deadline:
        if job.poll() is not None:
            raise SystemExit(f"the job ended in attempt {attempt}; {last_words(progress.parent, progress.stem)}")
        now = seen(progress, attempt, rank)
        if now is not None:
            if now[1] != "joining" and first is None:
                first = int(now[1])
            if steps is None or (first is not None and int(now[1]) >= first + steps):
                time.sleep(pause)
                pid, where = seen(progress, attempt, rank) or now
                os.kill(int(pid), signal.SIGKILL)
                return f"rank {rank} killed at {'step ' if where != 'joining' else ''}{where}"
        time.sleep(0.005)
    raise SystemExit(f"attempt {attempt} does not get on: see the job's output")


def last_words(directory: pathlib.Path, name: str) -> str:
    lines = (directory / (name + ".out")).read_text(encoding="utf-8").splitlines()
    return f"{name}:\n" + "\n".join(lines[-60:])


def result(directory: pathlib.Path, name: str) -> str:
    lines = (directory / (name + ".out")).read_text(encoding="utf-8").splitlines()
    found = [line[line.index("step ") :] for line in lines if "; weights " in line]
    if not found:
        raise SystemExit(last_words(directory, name))
    return found[-1]


def left_behind() -> List[str]:
    return sorted(name for name in os.listdir("/dev/shm") if "sealane" in name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    lot = random.Random(arguments.seed)
    steps = 12 * arguments.restarts + 40  # always more than the kills let pass
    with tempfile.TemporaryDirectory(prefix="sealane-elastic-") as name:
        directory = pathlib.Path(name)
        (directory / "key").write_text("ab" * 32 + "\n")
        (directory / "key").chmod(0o600)
        before = left_behind()
        job = start(directory, "disturbed", arguments.ranks, arguments.restarts, steps)
        try:
            for attempt in range(arguments.restarts):
                began = time.monotonic()
                what = kill_one(job, directory / "disturbed.progress", attempt, arguments.ranks, lot)
                print(f"restart {attempt + 1}: {what}, {time.monotonic() - began:.1f} s", flush=True)
            if job.wait(PATIENCE) != 0:
                result(directory, "disturbed")
                raise SystemExit("the job failed after its last restart")
        finally:
            if job.poll() is None:
                job.kill()
        undisturbed = start(directory, "undisturbed", arguments.ranks, 0, steps)
        undisturbed.wait(PATIENCE)
        got, expected = result(directory, "disturbed"), result(directory, "undisturbed")
        # Not the same bits: the first step of a start has other buckets, and sums are added in another order.
        weights = [float(text.rsplit(" ", 1)[1]) for text in (got, expected)]
        if abs(weights[0] - weights[1]) > 1e-6 * abs(weights[1]):
            raise SystemExit(f"other weights than without kills: {got}, {expected}")
        new = [entry for entry in left_behind() if entry not in before and "-slots-" not in entry and "-workers-" not in entry]
        if new:
            raise SystemExit(f"left behind in /dev/shm: {new}")
        print(f"{arguments.restarts} restarts, {got}; without: {expected}; nothing left behind")


if __name__ == "__main__":
    main()
