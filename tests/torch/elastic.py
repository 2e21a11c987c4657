# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does a sealed job recover from kill -9 at any moment, as often as it comes, and leave nothing behind?

    PYTHONPATH=build/torch2/python build/torch2/venv/bin/python tests/torch/elastic.py --restarts 20 [--seed 1]

torchrun runs examples/ddp/elastic.py; this kills one of its ranks per attempt: while it joins, or after some steps, by
lot. Every attempt must get as far as the lot says, so the one before has recovered, or the job's last words are shown.
The result must be that of a run that nobody disturbed, to the last bit (gradients are such that sums do not round, so
that a sum that lacks a rank's part, has it twice or is an earlier one's shows). Afterwards nothing may be left: no entry in
/dev/shm or the temporary directory, no socket of ours, no process, no key file but the one that was given; and the ranks
of late starts must have no more threads and open files than those of early ones. Prints one line per restart, and a
summary at the end (--summary FILE). With torchrun a rank that starts imports PyTorch, which takes its time; --fork has
the same agent fork them, for hundreds of restarts. A start that fails by itself, say because the machine was too busy for
a rank to join in time, counts as one that ended with an error if torchrun says which, and is told.
"""

import argparse
import collections
import contextlib
import multiprocessing
import os
import pathlib
import random
import re
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple, Optional, Set

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ddp" / "elastic.py"
PATIENCE = 300.0  # for anything that must happen


def start(directory: pathlib.Path, name: str, ranks: int, restarts: int, steps: int, fork: bool) -> subprocess.Popen:
    progress = directory / (name + ".progress")
    progress.mkdir()
    if fork:
        command = [sys.executable, "-W", "ignore", __file__, "--agent", str(ranks), str(restarts)]
    else:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--monitor_interval", "0.1"]
        command += ["--nproc_per_node", str(ranks), "--max_restarts", str(restarts), str(SCRIPT)]
    command += [str(directory / (name + ".pt")), "--steps", str(steps), "--progress", str(progress)]
    command += ["--pause", "0.02", "--exact"]
    environment = dict(os.environ, SEALANE_KEY_FILE=str(directory / "key"), OMP_NUM_THREADS="1")
    environment["TMPDIR"] = str(directory / "tmp")
    with open(directory / (name + ".out"), "w", encoding="utf-8") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)


def run_script(arguments: List[str]) -> None:
    """In a rank that was forked: what torchrun would have started."""
    sys.argv = [str(SCRIPT), *arguments]
    runpy.run_path(str(SCRIPT), run_name="__main__")


def be_agent(ranks: int, restarts: int, arguments: List[str]) -> None:
    """torchrun's agent, with ranks that are forked from a process that has PyTorch imported and one thread."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    multiprocessing.set_forkserver_preload(["torch", "torch._dynamo", "sealane.torch"])
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id="elastic",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        monitor_interval=0.1,
        start_method="forkserver",
    )
    elastic_launch(config, run_script)(arguments)


def seen(progress: pathlib.Path, attempt: int, rank: int) -> Optional[List[str]]:
    try:
        return (progress / f"{attempt}-{rank}").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return None


def unix_sockets() -> Dict[str, str]:
    """Names by inode."""
    lines = pathlib.Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    fields = [line.split() for line in lines if "sealane" in line]
    return {field[6]: field[7] for field in fields}


class Load(NamedTuple):
    """What a rank holds."""

    threads: int
    files: int
    sockets: Set[str]  # that have a name


def load_of(pid: int) -> Load:
    names = unix_sockets()
    files = os.listdir(f"/proc/{pid}/fd")
    sockets = set()
    for file in files:
        with contextlib.suppress(OSError):
            inode = os.readlink(f"/proc/{pid}/fd/{file}")
            sockets.add(names.get(inode[len("socket:[") : -1], ""))
    return Load(len(os.listdir(f"/proc/{pid}/task")), len(files), sockets - {""})


def kill_one(
    job: subprocess.Popen,
    progress: pathlib.Path,
    attempt: int,
    ranks: int,
    lot: random.Random,
    loads: List[Load],
) -> Optional[str]:
    """Waits until a rank of that attempt has come as far as the lot says, and kills it. None if the attempt has ended."""
    rank = lot.randrange(ranks)
    steps = lot.choice([None, None, 0, 1, 2, 3, 7])  # None: somewhere between its first line and its first step
    pause = lot.random() * 1.5 if steps is None else 0.0
    deadline = time.monotonic() + PATIENCE
    first = None
    while time.monotonic() < deadline:
        if job.poll() is not None:
            raise SystemExit(f"the job ended in attempt {attempt}; {last_words(progress.parent, progress.stem)}")
        if any(seen(progress, attempt + 1, other) for other in range(ranks)):
            return None
        now = seen(progress, attempt, rank)
        if now is not None:
            if now[1] != "joining" and first is None:
                first = int(now[1])
            if steps is None or (first is not None and int(now[1]) >= first + steps):
                time.sleep(pause)
                pid, where, _ = seen(progress, attempt, rank) or now
                if where != "joining":
                    loads.append(load_of(int(pid)))
                os.kill(int(pid), signal.SIGKILL)
                return f"rank {rank} killed at {'step ' if where != 'joining' else ''}{where}"
        time.sleep(0.005)
    raise SystemExit(f"attempt {attempt} does not get on; {last_words(progress.parent, progress.stem)}")


def last_error(directory: pathlib.Path, name: str) -> str:
    """Why a start ended that nobody has killed, in the words of a rank."""
    text = (directory / (name + ".out")).read_text(encoding="utf-8", errors="replace")
    errors = re.findall(r"RuntimeError: (sealane: .*)", text)
    if not errors:
        raise SystemExit(f"a start has ended by itself and nobody says why; {last_words(directory, name)}")
    return errors[-1]


def last_words(directory: pathlib.Path, name: str) -> str:
    lines = (directory / (name + ".out")).read_text(encoding="utf-8").splitlines()
    return f"{name}:\n" + "\n".join(lines[-60:])


def result(directory: pathlib.Path, name: str) -> str:
    lines = (directory / (name + ".out")).read_text(encoding="utf-8").splitlines()
    found = [line[line.index("step ") :] for line in lines if "; weights " in line]
    if not found:
        raise SystemExit(last_words(directory, name))
    return found[-1]


def left_behind(directory: pathlib.Path) -> Set[str]:
    """Files that outlive a process and could be of a rank's. Slots and workers are the machine's quotas, for all."""
    found = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if not re.search("-slots-|-workers-", name)}
    return found | {name for name in os.listdir(directory / "tmp") if "sealane" in name}


def processes_of(directory: pathlib.Path) -> Set[str]:
    """Ranks and agents of this job: its directory is on their command line."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if str(directory).encode() in command and int(entry.name) != os.getpid():
            found.add(f"process {entry.name}")
    return found


def check_nothing_left(directory: pathlib.Path, before: Set[str], loads: List[Load], key: str) -> None:
    opened = set().union(*(load.sockets for load in loads))
    deadline = time.monotonic() + 30  # what was killed is still being cleared away
    while True:
        left = left_behind(directory) - before | opened & set(unix_sockets().values()) | processes_of(directory)
        if not left:
            break
        if time.monotonic() > deadline:
            raise SystemExit(f"left behind: {sorted(left)}")
        time.sleep(0.2)
    keys = [path.name for path in directory.rglob("*key*")]
    if keys != ["key"] or (directory / "key").read_text(encoding="ascii") != key:
        raise SystemExit(f"key files: {keys}")


def check_same_load(loads: List[Load]) -> str:
    """Whether late starts have what early ones had. A rank that has just begun to train may have less."""
    tenth = max(1, len(loads) // 10)
    early, late = loads[:-tenth] or loads, loads[-tenth:]
    most = [(max(load.threads for load in part), max(load.files for load in part)) for part in (early, late)]
    if most[1][0] > most[0][0] or most[1][1] > most[0][1]:
        raise SystemExit(f"threads and open files grow: {most[0]}, later {most[1]}")
    return f"a rank has {most[1][0]} threads and {most[1][1]} open files at most, early ones {most[0][0]} and {most[0][1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--summary", help="file for the last lines")
    parser.add_argument("--fork", action="store_true", help="ranks forked by torchrun's agent: they start at once")
    arguments = parser.parse_args()
    lot = random.Random(arguments.seed)
    steps = 6 * arguments.restarts + 40  # more than the kills let pass
    kinds: Dict[str, int] = collections.Counter()
    loads: List[Load] = []
    seconds: List[float] = []
    failed: List[str] = []
    with tempfile.TemporaryDirectory(prefix="elastic-sealane-") as name:
        directory = pathlib.Path(name)
        key = os.urandom(32).hex() + "\n"
        (directory / "key").touch(mode=0o600)
        (directory / "key").write_text(key, encoding="ascii")
        (directory / "tmp").mkdir()
        before = left_behind(directory)
        spare = 10 + arguments.restarts // 10  # for starts that fail by themselves
        job = start(directory, "disturbed", arguments.ranks, arguments.restarts + spare, steps, arguments.fork)
        try:
            attempt = 0
            while len(seconds) < arguments.restarts:
                began = time.monotonic()
                what = kill_one(job, directory / "disturbed.progress", attempt, arguments.ranks, lot, loads)
                attempt += 1
                if what is None:
                    failed.append(last_error(directory, "disturbed"))
                    print(f"a start ended by itself: {failed[-1]}", flush=True)
                    continue
                seconds.append(time.monotonic() - began)
                kinds["while joining" if what.endswith("joining") else "while training"] += 1
                print(f"restart {len(seconds)}: {what}, {seconds[-1]:.1f} s", flush=True)
            if job.wait(PATIENCE) != 0:
                result(directory, "disturbed")
                raise SystemExit("the job failed after its last restart")
        finally:
            if job.poll() is None:
                job.kill()
        undisturbed = start(directory, "undisturbed", arguments.ranks, 0, steps, arguments.fork)
        undisturbed.wait(PATIENCE)
        got, expected = result(directory, "disturbed"), result(directory, "undisturbed")
        if got != expected:
            raise SystemExit(f"other weights than without kills: {got}, {expected}")
        check_nothing_left(directory, before, loads, key)
    summary = [
        f"{arguments.restarts} kills and restarts of {arguments.ranks} ranks, seed {arguments.seed}: all recovered",
        f"starts that ended with an error before anybody was killed: {len(failed)}",
        *(f"    {error}" for error in failed),
        "killed " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
        f"a restart took {statistics.median(seconds):.1f} s (median), {max(seconds):.1f} s at most",
        f"with kills:    {got}",
        f"without kills: {expected}",
        "left behind: no segment, socket, process, temporary or key file",
        check_same_load(loads),
    ]
    print("\n".join(summary))
    if arguments.summary:
        import torch

        words = [word for word in sys.argv[1:] if word not in ("--summary", arguments.summary)]
        head = ["Restarts of a job whose ranks are killed, MEASURED by tests/torch/elastic.py"]
        head += [f"date:    {time.strftime('%Y-%m-%d', time.gmtime())}", f"torch:   {torch.__version__}", ""]
        head += [f"$ python tests/torch/elastic.py {' '.join(words)}"]
        pathlib.Path(arguments.summary).write_text("\n".join(head + summary) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--agent"]:
        be_agent(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        main()
