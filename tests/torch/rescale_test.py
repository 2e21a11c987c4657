# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does a sealed job go on from its checkpoint with more ranks when a machine comes late, and with fewer when one is lost?

Run by tools/torch2.sh, with torchrun as people start it: an agent for each of two machines, both of which are this one.
Every start joins anew, so its keys are its own (Session.EverySessionHasOtherKeys says that of each two sessions).
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
from typing import Callable, List, NamedTuple, Optional

from harness import Case

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ddp" / "elastic.py"
PATIENCE = 300.0  # for anything that must happen


class Place(NamedTuple):
    """Where a rank is, by its own words."""

    pid: int
    step: int  # -1 while it joins
    ranks: int


def parent_of(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[1])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Job:
    """Agents of torchrun that make one job."""

    def __init__(self, directory: pathlib.Path, key: str) -> None:
        self.directory = directory
        self.progress = directory / "progress"
        self.progress.mkdir()
        self.checkpoint = directory / "checkpoint.pt"
        self.agents: List[subprocess.Popen] = []
        self.endpoint = f"localhost:{free_port()}"
        self.environment = dict(os.environ, SEALANE_KEY_FILE=key, OMP_NUM_THREADS="1")
        # Agents that share one store do not tell its address to one that comes late: over Gloo it waits as well.
        self.environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"

    def add_machine(self, ranks: int) -> subprocess.Popen:
        command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nnodes", "1:2"]
        command += ["--nproc_per_node", str(ranks), "--max_restarts", "3", "--monitor_interval", "0.1"]
        command += ["--rdzv_backend", "c10d", "--rdzv_endpoint", self.endpoint, "--rdzv_id", "rescale"]
        command += ["--rdzv_conf", "last_call_timeout=1", "--local_addr", "localhost"]
        command += [str(SCRIPT), str(self.checkpoint), "--steps", "1000000", "--pause", "0.01"]
        command += ["--progress", str(self.progress)]
        with open(self.directory / f"machine-{len(self.agents)}.out", "w", encoding="utf-8") as out:
            agent = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=self.environment)
        self.agents.append(agent)
        return agent

    def places(self) -> List[Place]:
        """Of all ranks that have said something, by rank; the last words of each."""
        newest = {}
        for path in sorted(self.progress.glob("*-*[0-9]"), key=lambda path: path.stat().st_mtime):
            pid, where, ranks = path.read_text(encoding="ascii").split()
            newest[int(path.name.split("-")[1])] = Place(int(pid), -1 if where == "joining" else int(where), int(ranks))
        return [newest[rank] for rank in sorted(newest)]

    def wait_until(self, condition: Callable[[List[Place]], Optional[List[Place]]]) -> List[Place]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.agents[0].poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if found := condition(self.places()):
                    return found
            time.sleep(0.02)
        raise AssertionError(f"{self.places()}\n{self.last_words()}")

    def trains_with(self, ranks: int, past: int, others_than: List[Place]) -> List[Place]:
        """Waits until that many new processes train together and are past that step."""
        before = {place.pid for place in others_than}

        def so_far(places: List[Place]) -> Optional[List[Place]]:
            group = places[:ranks]
            if len(group) < ranks or any(place.ranks != ranks or place.pid in before for place in group):
                return None
            return group if all(place.step > past for place in group) else None

        return self.wait_until(so_far)

    def last_words(self) -> str:
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(self.directory.glob("*.out"))]
        return "\n".join(f"machine {number}:\n{text}" for number, text in enumerate(texts))

    def end(self) -> None:
        for agent in self.agents:
            agent.terminate()  # it ends its ranks
        for agent in self.agents:
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.wait(60)
            agent.kill()
            agent.wait()


class Rescale(Case):
    def test_a_machine_that_comes_late_joins_and_one_that_is_lost_is_done_without(self) -> None:
        job = Job(self.directory, self.key)
        self.addCleanup(job.end)
        job.add_machine(ranks=2)
        two = job.trains_with(2, past=10, others_than=[])  # there are checkpoints by then
        late = job.add_machine(ranks=1)
        three = job.trains_with(3, past=two[0].step, others_than=two)
        lost = [place.pid for place in three if parent_of(place.pid) == late.pid]
        self.assertEqual(len(lost), 1)
        for pid in (late.pid, *lost):
            os.kill(pid, signal.SIGKILL)
        job.trains_with(2, past=three[0].step, others_than=two + three)
        # Every start but the first went on from a checkpoint, which the one before had written.
        begun = [int(step) for step in re.findall(r"begins with step (\d+)", job.last_words())]
        self.assertGreaterEqual(len(begun), 3)
        self.assertEqual(begun.count(0), 1, begun)


if __name__ == "__main__":
    unittest.main()
