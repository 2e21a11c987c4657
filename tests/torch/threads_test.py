# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Where no thread can be made for a call, or for a part of one: is that an error, on all ranks, and never a result?

Starts itself anew under a system that refuses threads when it is told to (refuse_threads.c).
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Callable, Dict, List, Tuple

BEGUN_ANEW = "SEALANE_TEST_PRELOADED"


def begin_anew() -> None:
    """Before PyTorch is imported, which takes seconds."""
    source = pathlib.Path(__file__).with_name("refuse_threads.c")
    directory = tempfile.mkdtemp(prefix="sealane-torch-")
    library = directory + "/refuse_threads.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(source), "-ldl"], check=True)
    before = os.environ.get("LD_PRELOAD", "")
    environment = {**os.environ, BEGUN_ANEW: before, "LD_PRELOAD": f"{before}:{library}" if before else library}
    os.execve(sys.executable, [sys.executable, "-W", "ignore", *sys.argv], environment)


if __name__ == "__main__" and BEGUN_ANEW not in os.environ:
    begin_anew()

import torch  # noqa: E402  pylint: disable=wrong-import-position
import torch.distributed as dist  # noqa: E402  pylint: disable=wrong-import-position

from harness import Case, join  # noqa: E402  pylint: disable=wrong-import-position

COUNT = 4


def refuse_threads(count: int) -> None:
    ctypes.CDLL(None).refuse_threads(count)


def threads_to_refuse() -> int:
    return int(ctypes.CDLL(None).threads_to_refuse())


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return "no error"


def tensors(value: float, count: int = 2) -> List[torch.Tensor]:
    return [torch.full((COUNT,), value + i) for i in range(count)]


def backend() -> Any:
    return dist.distributed_c10d._get_default_group()  # pylint: disable=protected-access


# Each of several parts, but for the first.
def gather_several(rank: int, size: int) -> None:
    backend().allgather_coalesced([tensors(-1) for _ in range(size)], tensors(rank)).wait()


def product_of_several(rank: int, _: int) -> None:
    dist.all_reduce_coalesced(tensors(rank), dist.ReduceOp.PRODUCT)


def all_to_all(rank: int, size: int) -> None:
    dist.all_to_all(tensors(-1, size), tensors(rank, size))


def sum_of_one(rank: int, _: int) -> None:
    dist.all_reduce(tensors(rank)[0])


CALLS: Dict[str, Callable[[int, int], None]] = {
    function.__name__: function for function in (gather_several, product_of_several, all_to_all, sum_of_one)
}


def refused(rank: int, size: int, directory: str, key: str, name: str) -> Tuple[int, List[str]]:
    """Rank 0 gets no thread for the first operation of a call; then all make another call."""
    join(rank, size, directory, key, seconds=600)
    if rank == 0:
        refuse_threads(1)
    first = error_of(lambda: CALLS[name](rank, size))
    left = threads_to_refuse()
    return left, [first, error_of(lambda: sum_of_one(rank, size))]


def message_refused(rank: int, size: int, directory: str, key: str) -> List[str]:
    """Rank 0 gets no thread for a message that it sends, nor for one that it receives; that one it asks for again."""
    join(rank, size, directory, key, seconds=600)
    message = torch.ones(COUNT)
    calls: List[Callable[[], Any]] = [lambda: dist.send(message, 0)]
    if rank == 0:
        calls = [lambda: dist.send(message, 1), lambda: dist.recv(message, 1), lambda: dist.recv(message, 1)]
    errors = []
    for i, call in enumerate(calls):
        if i < 2 and rank == 0:
            refuse_threads(1)
        errors.append(error_of(call))
    errors.append(error_of(dist.barrier))
    dist.destroy_process_group()
    return errors


class Threads(Case):
    """A time-out of 600 s is not meant to be reached: a rank that takes longer than harness.py's 540 hangs."""

    def test_a_call_of_which_a_part_was_refused_is_an_error_on_all_ranks(self) -> None:
        for name in CALLS:
            with self.subTest(name):
                (self.directory / "store").unlink(missing_ok=True)
                for rank, (left, errors) in enumerate(self.ranks(2, refused, name)):
                    self.assertEqual(left, 0, "no thread was asked for")
                    self.assertNotIn("no error", errors)
                    if rank == 0:
                        self.assertIn("no thread can be made", errors[0])
                    else:
                        self.assertIn("rank 0 gave up", errors[0])

    def test_a_message_that_found_no_thread_leaves_the_group_in_order(self) -> None:
        errors, _ = self.ranks(2, message_refused)
        self.assertIsNotNone(errors, "rank 0 has died")
        self.assertNotIn("no error", errors[:2])
        self.assertEqual(errors[2:], ["no error"] * 2)


if __name__ == "__main__":
    preloaded = pathlib.Path(os.environ["LD_PRELOAD"].rpartition(":")[2])
    os.environ["LD_PRELOAD"] = os.environ.pop(BEGUN_ANEW)  # not for what the ranks start
    preloaded.unlink()  # it is loaded
    preloaded.parent.rmdir()
    unittest.main()
