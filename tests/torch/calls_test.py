# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks whose calls differ: is that an error on all of them, in that very call, that names both, whatever differs?"""

import itertools
import os
import pathlib
import time
import unittest
from datetime import timedelta
from typing import Any, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist

from harness import Case, join

COUNT = 4


class Call(NamedTuple):
    """One rank's call, and how an error names it."""

    kind: str
    op: Optional[str] = None
    root: Optional[int] = None
    dtype: str = "int64"

    def words(self) -> List[str]:
        words = [{"all_to_all_single": "all_to_all"}.get(self.kind, self.kind), self.dtype]
        if self.op is not None:
            words.append(self.op.lower())
        if self.root is not None:
            words.append(f"{'from' if self.kind in ('broadcast', 'scatter') else 'to'} rank {self.root}")
        return words

    def named(self, error: str) -> bool:
        """Whether one of the two calls that the error is about is this one."""
        _, _, called = error.partition("called ")
        sides = called.partition(":")[0].split(" where this rank called ")
        kind, *words = self.words()
        return any(side.startswith(kind + " ") and all(f" {w} " in f" {side} " for w in words) for side in sides)

    def ends_early(self) -> bool:
        """Whether a rank that is not the root may be through before it hears of a third one: it has what it called for.

        It is told by its next call, for by then the root has found out.
        """
        return self.kind == "broadcast" or (self.kind == "reduce" and self.op in ("SUM", "AVG", "MIN", "MAX"))

    def make(self, group: Any, gives: int = COUNT, takes: int = COUNT) -> List[torch.Tensor]:
        """`gives` to every other rank of an exchange and `takes` from every other; the results."""
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        dtype = getattr(torch, self.dtype)
        op = getattr(dist.ReduceOp, self.op or "SUM")
        mine = torch.ones(COUNT, dtype=dtype)

        def parts(count: int) -> List[torch.Tensor]:
            return [torch.ones(COUNT if r == rank else count, dtype=dtype) for r in range(size)]

        out, results = parts(gives), parts(takes)
        if self.kind == "all_reduce":
            dist.all_reduce(mine, op, group)
        elif self.kind == "reduce":
            dist.reduce(mine, self.root, op, group)
        elif self.kind == "reduce_scatter":
            dist.reduce_scatter(mine, parts(COUNT), op, group)
        elif self.kind == "all_gather":
            dist.all_gather(parts(COUNT), mine, group)
        elif self.kind == "broadcast":
            dist.broadcast(mine, self.root, group)
        elif self.kind == "gather":
            at_root = dist.get_rank() == self.root
            dist.gather(mine if at_root else out[rank - 1], results if at_root else None, self.root, group)
        elif self.kind == "scatter":
            at_root = dist.get_rank() == self.root
            dist.scatter(mine if at_root else results[rank - 1], out if at_root else None, self.root, group)
        elif self.kind == "all_to_all":
            dist.all_to_all(results, out, group)
        elif self.kind == "all_to_all_single":
            together = torch.cat(results)
            dist.all_to_all_single(together, torch.cat(out), [len(p) for p in results], [len(p) for p in out], group)
        else:
            raise ValueError(self.kind)
        return results


def wait_for_all(rank: int, size: int, directory: str, place: str) -> None:
    """Not by the group, which is broken by then."""
    pathlib.Path(directory, f"{place}-{rank}").touch()
    while not all(os.path.exists(f"{directory}/{place}-{other}") for other in range(size)):
        time.sleep(0.001)


def error_of(call: Any) -> str:
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return "no error"


def make_pairs(rank: int, size: int, directory: str, key: str, pairs: List[Tuple[Call, Call]]) -> List[Tuple[str, str]]:
    """The last rank makes the second call of each pair, all others the first; then all make a right one."""
    join(rank, size, directory, key, seconds=600)
    errors = []
    for most, odd in pairs:
        group = dist.new_group(timeout=timedelta(seconds=600))  # an error is final for its group
        mine = odd if rank == size - 1 else most
        first = error_of(lambda: mine.make(group))
        wait_for_all(rank, size, directory, f"pair{len(errors)}")
        errors.append((first, error_of(lambda: dist.barrier(group))))
    return errors


def make_counts(rank: int, size: int, directory: str, key: str, cases: List[Any]) -> List[Tuple[str, str]]:
    """Of two ranks one gives or takes another count than the other thinks; then both make a right call."""
    join(rank, size, directory, key, seconds=600)
    errors = []
    for call, gives, takes in cases:
        group = dist.new_group(timeout=timedelta(seconds=600))
        first = error_of(lambda: call.make(group, gives[rank], takes[rank]))
        errors.append((first, error_of(lambda: call.make(group))))
    return errors


def make_right(rank: int, size: int, directory: str, key: str, calls: List[Call]) -> int:
    """Calls that are alike go through, with nothing in them as well, in a group whose ranks have other numbers."""
    join(rank, size, directory, key)
    group = dist.new_group(list(range(1, size)))
    for call in calls if rank > 0 else []:
        call.make(group)
        call.make(group, 0, 0)
    return len(calls)


def message_types(rank: int, size: int, directory: str, key: str, pairs: List[Tuple[str, str]]) -> List[str]:
    join(rank, size, directory, key, seconds=600)
    errors = []
    for pair in pairs:
        group = dist.new_group(timeout=timedelta(seconds=600))
        mine = torch.ones(COUNT, dtype=getattr(torch, pair[rank]))
        call = dist.recv if rank == 1 else dist.send
        errors.append(error_of(lambda: call(mine, 1 - rank, group)))
    return errors


def pairs_of(calls: List[Call]) -> List[Tuple[Call, Call]]:
    return list(itertools.combinations(calls, 2))


OPERATORS = ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR")


class Calls(Case):
    def start_anew(self) -> None:
        for left in self.directory.glob("[!k]*"):
            left.unlink()

    def check(self, size: int, pairs: List[Tuple[Call, Call]]) -> None:
        outcomes = self.ranks(size, make_pairs, pairs)
        for (most, odd), *errors in zip(pairs, *outcomes):
            with self.subTest(f"{most} against {odd}"):
                for rank, (first, later) in enumerate(errors):
                    self.assertNotEqual(later, "no error")
                    mine, other = (odd, most) if rank == size - 1 else (most, odd)
                    over = first == "no error"  # and if nobody spoke meanwhile, it is the barrier that differs
                    if over:
                        self.assertTrue(mine.ends_early(), f"{mine} on rank {rank} of {size}")
                        first = later
                    self.assertNotIn("no progress", first)
                    self.assertTrue(mine.named(first) or (over and "barrier" in first), f"{mine}: {first}")
                    self.assertTrue(other.named(first), f"{other}: {first}")

    def test_other_operators(self) -> None:
        for kind, root in (("all_reduce", None), ("reduce", 1), ("reduce_scatter", None)):
            with self.subTest(kind):
                self.start_anew()
                self.check(2, pairs_of([Call(kind, op, root) for op in OPERATORS]))

    def test_other_roots(self) -> None:
        pairs = []
        for op, dtype in (("SUM", "int64"), ("PRODUCT", "int64"), ("SUM", "int8"), ("MAX", "bool")):
            pairs += pairs_of([Call("reduce", op, root, dtype) for root in range(3)])
        for kind in ("broadcast", "gather", "scatter"):
            pairs += pairs_of([Call(kind, None, root) for root in range(3)])
        self.check(3, pairs)

    def test_other_kinds(self) -> None:
        for op in ("SUM", "PRODUCT"):
            with self.subTest(op):
                self.start_anew()
                calls = [Call("all_reduce", op), Call("reduce", op, 0), Call("reduce_scatter", op)]
                calls += [Call("all_gather"), Call("broadcast", None, 0), Call("gather", None, 0)]
                calls += [Call("scatter", None, 0), Call("all_to_all")]
                self.check(3, pairs_of(calls))

    def test_other_types(self) -> None:
        # As many bytes each: nothing but the name tells them apart.
        for types in (("uint8", "int8", "bool"), ("float16", "bfloat16", "int16"), ("int64", "float64")):
            with self.subTest(types):
                self.start_anew()
                pairs = []
                for kind in ("all_gather", "broadcast", "gather", "scatter", "all_to_all", "all_to_all_single"):
                    root = None if kind.startswith("all") else 0
                    pairs += pairs_of([Call(kind, None, root, dtype) for dtype in types])
                for kind, root in (("all_reduce", None), ("reduce", 0), ("reduce_scatter", None)):
                    pairs += pairs_of([Call(kind, "SUM", root, dtype) for dtype in types])
                self.check(2, pairs)

    def test_other_types_of_messages(self) -> None:
        pairs = [("uint8", "int8"), ("int8", "bool"), ("int16", "float16"), ("complex64", "float64")]
        for pair, error in zip(pairs, self.ranks(2, message_types, pairs)[1]):
            with self.subTest(pair):
                self.assertIn(f"bytes {pair[0]} to rank 1 where this rank called", error)
                self.assertIn(f"bytes {pair[1]} to rank 1:", error)

    def test_nothing_against_something(self) -> None:
        cases: List[Any] = []
        for kind in ("all_to_all", "all_to_all_single", "gather", "scatter"):
            for root in (None,) if kind.startswith("all") else (0, 1):
                for given, taken in ((0, COUNT), (COUNT, 0), (COUNT, COUNT - 1)):
                    for giver in (0, 1):
                        if root is not None and (giver == root) != (kind == "scatter"):
                            continue
                        gives = [given if r == giver else COUNT for r in range(2)]
                        takes = [taken if r != giver else COUNT for r in range(2)]
                        cases.append((Call(kind, None, root), gives, takes))
        outcomes = self.ranks(2, make_counts, cases)
        for (call, gives, takes), *errors in zip(cases, *outcomes):
            with self.subTest(f"{call}: {gives} given, {takes} taken"):
                for first, later in errors:
                    self.assertNotEqual(first, "no error")
                    self.assertNotEqual(later, "no error")  # above all: what comes later gets none of it
                    self.assertNotIn("no progress", first)
                named = [
                    f"rank {giver} gives {gives[giver]} elements to rank {1 - giver} that takes {takes[1 - giver]}:"
                    for giver in (0, 1)
                ]
                self.assertTrue(any(name in first for name in named for first, _ in errors), errors)

    def test_the_same_calls(self) -> None:
        calls = [Call("all_reduce", op) for op in OPERATORS] + [Call("reduce_scatter", op) for op in OPERATORS]
        for root in (1, 2, 3):
            calls += [Call("gather", None, root, dtype) for dtype in ("bool", "complex64")]
            calls += [Call("scatter", None, root, dtype) for dtype in ("int16", "float64")]
            calls += [Call("reduce", op, root, "int32") for op in OPERATORS]
        calls += [Call("all_to_all", dtype="int8"), Call("all_to_all_single", dtype="float16"), Call("all_gather")]
        self.assertEqual(self.ranks(4, make_right, calls), [len(calls)] * 4)


if __name__ == "__main__":
    unittest.main()
