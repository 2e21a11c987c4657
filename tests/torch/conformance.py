# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does the backend pass what PyTorch itself asks of Gloo?

    PYTHONPATH=build/torch2/python build/torch2/venv/bin/python tests/torch/conformance.py > docs/results/torch-conformance.txt

Takes PyTorch's own test file for backends (torch/testing/_internal/distributed/distributed_test.py, which its wheels
bring along; --file names another), reads it with the word "gloo" meaning "sealane", and runs every test of it with three
ranks. A test that does not pass must be in DIFFERS, with the reason, and one that is there must not pass: else exit 1.
Tests that the file itself skips (mostly: those that need GPUs) are counted by its own reasons. For PyTorch 2.
"""

import argparse
import collections
import importlib
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest
from typing import Any, Dict, List, Tuple

import torch
from torch.testing._internal import common_distributed

import sealane.torch  # noqa: F401  adds the backend

# What the backend does otherwise, on purpose.
DIFFERS: Dict[str, str] = {
    "test_barrier_timeout_full_group": "other words: the error says \"no progress for 1000 ms while waiting for ranks 1, 2\"",
    "test_barrier_timeout_group": "other words: the error says \"no progress for 5000 ms while waiting for rank 2\"",
    "test_ddp_logging_data_cpu": "PyTorch's log of DDP calls every backend that is not its own \"custom\"",
    "test_monitored_barrier_failure_order": "other words: the error says \"not done after 2000 ms; it waits for rank 2\"",
    "test_monitored_barrier_wait_all_ranks": "names the first rank that did not come, not all of them",
    "test_monitored_barrier_gloo": "other words: the error says \"not done after 2000 ms; it waits for rank 1\"",
    "test_monitored_barrier_gloo_rank_0_timeout": "a time-out of zero is none, as for every other call",
    "test_monitored_barrier_gloo_subgroup": "other words: the error says \"not done after 100 ms; it waits for rank 1\"",
    "test_sparse_all_reduce_sum": "sparse tensors are refused",
}

FILE = pathlib.Path(torch.__file__).parent / "testing" / "_internal" / "distributed" / "distributed_test.py"
MODULE = "sealane_distributed_test"


def mapped(source: str) -> str:
    """Gloo's names become ours; what the file says of Gloo's own settings stays Gloo's."""
    source = source.replace("dist.Backend.GLOO", "dist.Backend.SEALANE").replace("dist.is_gloo_available()", "True")
    source = source.replace('BACKEND != "mpi"', 'BACKEND not in ("mpi", "sealane")')  # all_to_all, which Gloo lacks
    lines = [
        line if "ddp_logging_data" in line or "device_backend_map" in line else line.replace('"gloo"', '"sealane"')
        for line in source.split("\n")
    ]
    return "\n".join(lines)


def load(path: pathlib.Path, directory: str) -> Any:
    """The mapped file as a module that the ranks, which are forked, have too."""
    for feature in ("ddp", "subgroup", "gpu", "cuda"):  # the last two: where there is a GPU, which is asked for besides
        common_distributed.DistTestCases.backend_feature[feature].add("sealane")
    # Anybody's message is not taken: a lane has two ends that know each other.
    common_distributed.DistTestCases.skip_collective["sendrecv anysource"].add("sealane")
    (pathlib.Path(directory) / (MODULE + ".py")).write_text(mapped(path.read_text(encoding="utf-8")), encoding="utf-8")
    sys.path.insert(0, directory)
    return importlib.import_module(MODULE)


def fork_ranks(case: Any) -> None:
    """As PyTorch spawns them, but each need not import everything again."""
    case._start_processes(torch.multiprocessing.get_context("fork").Process)


class Collector(unittest.TestResult):
    """What became of every test, one line each as it goes."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self.log = log
        self.outcomes: Dict[str, Tuple[str, str]] = {}

    def note(self, test: Any, what: str, why: str = "") -> None:
        name = test.id().rsplit(".", 1)[1]
        self.outcomes[name] = (what, why)
        print(f"{what:8} {name}  {first_line(why)}", file=self.log, flush=True)

    def addSuccess(self, test: Any) -> None:
        self.note(test, "passed")

    def addSkip(self, test: Any, reason: str) -> None:
        self.note(test, "skipped", reason)

    def addFailure(self, test: Any, err: Any) -> None:
        self.note(test, "failed", str(err[1]))

    def addError(self, test: Any, err: Any) -> None:
        self.note(test, "failed", str(err[1]))


def first_line(text: str) -> str:
    """What went wrong, of a rank's traceback: the line that names the error."""
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*[A-Za-z.]*(Error|Exception)\b", line)]
    return (lines or text.splitlines() or [""])[0][:200]


def run(module: Any, only: str, log: Any) -> Dict[str, Tuple[str, str]]:
    bases = (module.TestDistBackend, module.DistributedTest._DistTestBase)
    case = type("TestSealane", bases, {"_spawn_processes": fork_ranks, "__module__": MODULE, "__qualname__": "TestSealane"})
    # setUp starts the ranks in this version of the file, or it is left to the class that is made of it.
    plain = case.setUp

    def set_up(self: Any) -> None:
        plain(self)
        if not getattr(self, "processes", []):
            self._spawn_processes()

    case.setUp = set_up
    setattr(module, "TestSealane", case)
    names = [name for name in unittest.TestLoader().getTestCaseNames(case) if re.search(only, name)]
    result = Collector(log)
    for name in names:
        case(name).run(result)
    return result.outcomes


def report(outcomes: Dict[str, Tuple[str, str]], seconds: float) -> int:
    """The file for docs/results; the number of surprises."""
    of: Dict[str, List[str]] = collections.defaultdict(list)
    for name, (what, why) in outcomes.items():
        of[what].append(name)
    print(f"{len(of['passed'])} passed, {len(of['failed'])} differ, {len(of['skipped'])} skipped by the file itself;", end=" ")
    print(f"{seconds:.0f} s")
    surprises = 0
    print("\nDiffer, and why:")
    for name in of["failed"]:
        if name not in DIFFERS:
            surprises += 1
        print(f"  {name}\n      {DIFFERS.get(name, 'NOT EXPECTED: ' + first_line(outcomes[name][1]))}")
    for name in sorted(set(DIFFERS) & set(of["passed"])):
        surprises += 1
        print(f"  {name}\n      NOT EXPECTED: passes")
    print("\nSkipped, by the file's own reasons:")
    reasons = collections.Counter(outcomes[name][1] for name in of["skipped"])
    for reason, count in reasons.most_common():
        print(f"  {count:4}  {reason}")
    print("\nPassed:")
    for name in of["passed"]:
        print(f"  {name}")
    return surprises


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--file", type=pathlib.Path, default=FILE, help="PyTorch's test file (that of its wheel)")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--only", default="", help="tests whose name matches")
    parser.add_argument("--log", default=os.devnull, help="where what the tests print goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sealane-conformance-") as directory:
        key = pathlib.Path(directory) / "key"
        key.touch(mode=0o600)
        key.write_text(os.urandom(32).hex() + "\n", encoding="ascii")
        os.environ.update(
            BACKEND="sealane",
            WORLD_SIZE=str(options.ranks),
            TEMP_DIR=directory,
            SEALANE_KEY_FILE=str(key),
            GLOO_SOCKET_IFNAME="lo",
        )
        for place in ("barrier", "test_dir", "init_dir"):
            (pathlib.Path(directory) / place).mkdir()
        start = time.monotonic()
        progress = os.fdopen(os.dup(2), "w", encoding="utf-8")
        with open(options.log, "w", encoding="utf-8") as log:
            out, err = os.dup(1), os.dup(2)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            try:
                outcomes = run(load(options.file, directory), options.only, progress)
            finally:
                sys.stdout.flush()
                os.dup2(out, 1)
                os.dup2(err, 2)
        print("PyTorch's own tests of a backend, MEASURED by tests/torch/conformance.py")
        print(f"date:    {time.strftime('%Y-%m-%d', time.gmtime())}")
        print(f"torch:   {torch.__version__}, {options.ranks} ranks\nfile:    {options.file.name}\n")
        only = f" --only '{options.only}'" if options.only else ""
        print(f"$ python tests/torch/conformance.py --ranks {options.ranks}{only}")
        return 1 if report(outcomes, time.monotonic() - start) else 0


if __name__ == "__main__":
    sys.exit(main())
