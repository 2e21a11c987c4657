# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes, forked from one that has imported PyTorch already (that takes seconds).

The parent must not compute with tensors: threads do not survive a fork.
"""

import contextlib
import multiprocessing
import os
import pathlib
import signal
import tempfile
import time
import traceback
import unittest
from datetime import timedelta
from typing import Any, Callable, List, NamedTuple, Optional

import torch
import torch.distributed as dist

import sealane.torch

with contextlib.suppress(ImportError):  # PyTorch 2: every rank would, when it makes its first DDP
    import torch._dynamo  # noqa: F401  pylint: disable=unused-import

_fork = multiprocessing.get_context("fork")


class Outcome(NamedTuple):
    """What a rank returned, or the error it raised; both None if it died."""

    value: Any
    error: Optional[str]
    seconds: float


class Case(unittest.TestCase):
    """A test with a directory and a key of its own."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="sealane-torch-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.key = self.write_key("key", "ab" * 32)

    def write_key(self, name: str, digits: str, mode: int = 0o600) -> str:
        path = self.directory / name
        path.write_text(digits + "\n")
        path.chmod(mode)
        return str(path)

    def ranks(self, size: int, body: Callable[..., Any], *arguments: Any) -> List[Any]:
        """What every rank returned; the test fails if one did not."""
        outcomes = self.outcomes(size, body, *arguments)
        errors = [f"rank {r}: {outcome.error}" for r, outcome in enumerate(outcomes) if outcome.error]
        self.assertEqual(errors, [], "\n" + "\n".join(errors))
        return [outcome.value for outcome in outcomes]

    def outcomes(
        self, size: int, body: Callable[..., Any], *arguments: Any, timeout: float = 540
    ) -> List[Outcome]:
        """Runs body(rank, size, directory, key, *arguments) in `size` processes."""
        running = []
        for rank in range(size):
            here, there = _fork.Pipe()
            call = (rank, size, str(self.directory), self.key, *arguments)
            process = _fork.Process(target=_rank, args=(there, body, call))
            process.start()
            there.close()
            running.append((process, here))
        deadline = time.monotonic() + timeout
        return [_outcome(process, pipe, deadline) for process, pipe in running]


def _rank(pipe: Any, body: Callable[..., Any], arguments: Any) -> None:
    start = time.monotonic()
    torch.set_num_threads(1)
    try:
        message = (body(*arguments), None)
    except Exception:  # pylint: disable=broad-except
        message = (None, traceback.format_exc(limit=4))
    pipe.send((*message, time.monotonic() - start))
    pipe.close()
    os._exit(0)  # what a rank leaves behind is not the subject here, and torch's exit is slow


def _outcome(process: Any, pipe: Any, deadline: float) -> Outcome:
    outcome = Outcome(None, None, 0)
    with contextlib.suppress(EOFError):
        if not pipe.poll(max(0.0, deadline - time.monotonic())):
            process.kill()
            outcome = Outcome(None, "the rank hangs", 0)
        else:
            outcome = Outcome(*pipe.recv())
    process.join()
    return outcome


def join(
    rank: int,
    size: int,
    directory: str,
    key: Optional[str],
    seconds: float = 600,
    options: Optional[sealane.torch.Options] = None,
    store: Optional[dist.Store] = None,
) -> None:
    """init_process_group("sealane") with a store of the test."""
    if key is not None:
        os.environ["SEALANE_KEY_FILE"] = key
    dist.init_process_group(
        "sealane",
        store=store or dist.FileStore(directory + "/store", size),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=seconds),
        pg_options=options,
    )


def join_beside_gloo(rank: int, size: int, directory: str, key: str) -> Any:
    """A world of Gloo's, and a group of ours with the same ranks."""
    os.environ["SEALANE_KEY_FILE"] = key
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(directory + "/store", size),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=600),
    )
    return dist.new_group(backend="sealane", timeout=timedelta(seconds=600))


def die() -> None:
    """As the kernel would end a process: no destructor runs."""
    os.kill(os.getpid(), signal.SIGKILL)
