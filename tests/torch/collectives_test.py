# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does every collective give what Gloo gives, for every type, and are messages delivered?"""

import os
import threading
import time
import unittest
from typing import Any, List

import torch
import torch.distributed as dist

import sealane.torch
from harness import Case, join, join_beside_gloo

REDUCED = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.int8,
    torch.bool,
]
MOVED = REDUCED + [torch.int16, torch.complex64]
SIZES = [0, 1, 7, 40_000]  # the last takes several records


def values(dtype: torch.dtype, size: int, rank: int) -> torch.Tensor:
    """Small whole numbers: their sums are exact in every type."""
    generator = torch.Generator().manual_seed(1000 * rank + size)
    return torch.randint(0, 5, (size,), generator=generator).to(dtype)


def known_to_gloo(dtype: torch.dtype) -> bool:
    return dtype not in (torch.bfloat16, torch.bool, torch.int16, torch.complex64)


def operators(dtype: torch.dtype) -> List[Any]:
    """The last ones are not the library's: their parts travel whole."""
    op = dist.ReduceOp
    bits = [] if dtype.is_floating_point else [op.BAND, op.BOR, op.BXOR]
    return [op.SUM, op.MIN, op.MAX] + ([op.PRODUCT, *bits] if dtype != torch.bool else [])


def check(what: str, got: torch.Tensor, expected: torch.Tensor) -> None:
    assert got.dtype == expected.dtype, what
    assert torch.equal(got, expected), f"{what}: {got} instead of {expected}"


def reductions(rank: int, size: int, directory: str, key: str) -> int:
    ours = join_beside_gloo(rank, size, directory, key)
    checked = 0
    for dtype in REDUCED:
        # Gloo adds truth values like bytes, and has no bfloat16: judge those by exact relatives.
        judge = {torch.bool: torch.uint8, torch.bfloat16: torch.float32}.get(dtype, dtype)
        for op in operators(dtype):
            for count in SIZES:
                mine = values(dtype, count, rank)
                what = f"{op} of {count} {dtype}"
                if count == 0:
                    dist.all_reduce(mine, op=op, group=ours)
                    continue
                expected = mine.to(judge, copy=True)
                dist.all_reduce(expected, op=op)
                result = mine.clone()
                dist.all_reduce(result, op=op, group=ours)
                check(f"all_reduce {what}", result, expected.to(dtype))
                result = mine.clone()
                dist.reduce(result, size - 1, op=op, group=ours)
                wanted = expected.to(dtype) if rank == size - 1 else mine
                check(f"reduce {what}", result, wanted)
                parts = [values(dtype, count, rank + 10 * to) for to in range(size)]
                result = torch.empty_like(mine)
                dist.reduce_scatter(result, parts, op=op, group=ours)
                sums = [part.to(judge, copy=True) for part in parts]
                for part in sums:
                    dist.all_reduce(part, op=op)
                check(f"reduce_scatter {what}", result, sums[rank].to(dtype))
                result = torch.empty_like(mine)
                dist.reduce_scatter_tensor(result, torch.cat(parts), op=op, group=ours)
                check(f"reduce_scatter_tensor {what}", result, sums[rank].to(dtype))
                several = [mine.clone(), values(dtype, 3, rank)]
                dist.all_reduce_coalesced(several, op=op, group=ours)
                check(f"all_reduce_coalesced {what}", several[0], expected.to(dtype))
                checked += 1
    average = torch.full((9,), float(rank))
    dist.all_reduce(average, op=dist.ReduceOp.AVG, group=ours)
    check("average", average, torch.full((9,), (size - 1) / 2))
    return checked


def moves(rank: int, size: int, directory: str, key: str) -> int:
    ours = join_beside_gloo(rank, size, directory, key)
    checked = 0
    for dtype in MOVED:
        for count in SIZES[1:]:
            mine = values(dtype, count, rank)
            all_values = [values(dtype, count, other) for other in range(size)]
            what = f"{count} {dtype}"
            if known_to_gloo(dtype):
                gathered = [torch.empty_like(mine) for _ in range(size)]
                dist.all_gather(gathered, mine)
                for other in range(size):
                    check("what Gloo gathers", gathered[other], all_values[other])
            gathered = [torch.empty_like(mine) for _ in range(size)]
            dist.all_gather(gathered, mine, group=ours)
            for other in range(size):
                check(f"all_gather {what}", gathered[other], all_values[other])
            together = torch.empty(size * count, dtype=dtype)
            dist.all_gather_into_tensor(together, mine, group=ours)
            check(f"all_gather_into_tensor {what}", together, torch.cat(all_values))
            lists = [[torch.empty_like(mine), torch.empty_like(mine[:1])] for _ in range(size)]
            dist.all_gather_coalesced(lists, [mine, mine[:1]], group=ours)
            for other in range(size):
                check(f"all_gather_coalesced {what}", lists[other][0], all_values[other])
                check(f"all_gather_coalesced {what}", lists[other][1], all_values[other][:1])
            result = mine.clone()
            dist.broadcast(result, size - 1, group=ours)
            check(f"broadcast {what}", result, all_values[-1])
            gathered = [torch.empty_like(mine) for _ in range(size)] if rank == 1 else None
            dist.gather(mine, gathered, dst=1, group=ours)
            if gathered is not None:
                for other in range(size):
                    check(f"gather {what}", gathered[other], all_values[other])
            result = torch.empty_like(mine)
            dist.scatter(result, all_values if rank == 1 else None, src=1, group=ours)
            check(f"scatter {what}", result, mine)
            received = [torch.empty_like(mine) for _ in range(size)]
            dist.all_to_all(received, [(mine + other).to(dtype) for other in range(size)], group=ours)
            for other in range(size):
                check(f"all_to_all {what}", received[other], (all_values[other] + rank).to(dtype))
            received = torch.empty(size, count, dtype=dtype)
            sent = torch.stack([(mine + other).to(dtype) for other in range(size)])
            dist.all_to_all_single(received, sent, group=ours)
            check(f"all_to_all_single {what}", received[0], (all_values[0] + rank).to(dtype))
            checked += 1
    return checked


def odd_shapes(rank: int, size: int, directory: str, key: str) -> None:
    join(rank, size, directory, key)
    # Memory that is not in one piece: a column, a transposed matrix, channels last.
    for make in (
        lambda: torch.zeros(100, 4)[:, 1],
        lambda: torch.zeros(30, 50).t(),
        lambda: torch.zeros(2, 3, 8, 8).to(memory_format=torch.channels_last),
    ):
        tensor = make()
        tensor += rank + 1
        stride = tensor.stride()
        dist.all_reduce(tensor)
        assert tensor.stride() == stride
        assert torch.equal(tensor, torch.full_like(tensor, size * (size + 1) / 2))
        dist.broadcast(tensor.zero_().add_(rank), 1)
        assert torch.equal(tensor, torch.ones_like(tensor))
    numbered = torch.arange(12.0).view(3, 4).t() + 100 * rank  # the order must survive
    dist.broadcast(numbered, 0)
    assert torch.equal(numbered, torch.arange(12.0).view(3, 4).t())
    uneven = [rank * 10 + torch.arange(float(to + 1)) for to in range(size)]
    received = torch.empty(size * (rank + 1))
    dist.all_to_all_single(
        received, torch.cat(uneven), [rank + 1] * size, [to + 1 for to in range(size)]
    )
    expected = torch.cat([10 * other + torch.arange(float(rank + 1)) for other in range(size)])
    assert torch.equal(received, expected)


def messages(rank: int, size: int, directory: str, key: str) -> None:
    join(rank, size, directory, key)
    # Everybody receives before sending, large ones, while a collective passes between.
    incoming = torch.zeros(300_000)
    receive = dist.irecv(incoming, (rank + 1) % size, tag=5)
    assert not receive.is_completed()  # nobody sends before all have come to the next call
    total = torch.ones(10)
    dist.all_reduce(total)
    send = dist.isend(torch.full((300_000,), float(rank)), (rank - 1) % size, tag=5)
    send.wait()
    receive.wait()
    assert torch.equal(incoming, torch.full((300_000,), float((rank + 1) % size)))
    # A batch, as pipelines use it.
    buffers = [torch.zeros(3, dtype=torch.int64) for _ in range(size)]
    batch = []
    for other in range(size):
        if other != rank:
            batch.append(dist.P2POp(dist.irecv, buffers[other], other))
            batch.append(dist.P2POp(dist.isend, torch.full((3,), rank), other))
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    assert [int(buffer[0]) for buffer in buffers] == [r if r != rank else 0 for r in range(size)]
    dist.barrier()


def wrong_tag(rank: int, size: int, directory: str, key: str) -> str:
    join(rank, size, directory, key)
    if rank == 0:
        dist.send(torch.ones(3), 1, tag=7)
        return ""
    try:
        dist.recv(torch.zeros(3), 0, tag=8)
    except RuntimeError as error:
        return str(error)
    return "taken"


def futures(rank: int, size: int, directory: str, key: str) -> None:
    join(rank, size, directory, key)
    tensors = [torch.full((1000,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    doubled = [work.get_future().then(lambda f: f.value()[0] * 2) for work in works]
    for i, future in enumerate(doubled):
        assert future.wait()[0] == 2 * sum(r + i for r in range(size))
    for work in works:
        assert work.is_completed() and work.wait()
        assert torch.equal(work.result()[0], tensors[works.index(work)])


def waiting_continuations(rank: int, size: int, directory: str, key: str) -> None:
    """Each waits for another collective, and a message, in a way that used to wait for itself."""
    join(rank, size, directory, key)

    def again(future: Any) -> torch.Tensor:
        inner = torch.ones(10)
        dist.all_reduce(inner)
        later = dist.all_reduce(inner, async_op=True).get_future()
        return future.value()[0] + later.wait()[0]

    futures = []
    for _ in range(5):
        futures.append(dist.all_reduce(torch.ones(10), async_op=True).get_future().then(again))
        futures[-1].wait()
    for future in futures:
        assert future.wait()[0] == size + size * size

    def answer(future: Any) -> torch.Tensor:
        reply = torch.zeros(1)
        if rank == 0:
            dist.send(torch.ones(1), 1)
            dist.recv(reply, 1)
        elif rank == 1:
            dist.recv(reply, 0)
            dist.send(torch.ones(1), 0)
        return reply

    if rank < 2:
        first = torch.zeros(1)
        work = dist.isend(first, 1) if rank == 0 else dist.irecv(first, 0)
        work.wait()
        future = work.get_future().then(answer)
        assert future.wait()[0] == 1


def wait_for_file(path: str) -> None:
    deadline = time.monotonic() + 200
    while not os.path.exists(path):
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


def continuations_in_order(rank: int, size: int, directory: str, key: str) -> None:
    """What a continuation calls comes right after what it hangs on, early or late."""
    join(rank, size, directory, key)
    next_was_called = threading.Event()

    def call_another(future: Any) -> torch.Tensor:
        if rank == 0:  # long after the program has gone on
            assert next_was_called.wait(540)
        inner = torch.ones(7)
        dist.all_reduce(inner)
        return future.value()[0][:1] + inner[:1]

    if rank != 0:  # so that the first operation of rank 0 cannot end yet
        wait_for_file(directory + "/hung")
    first = dist.all_reduce(torch.ones(3), async_op=True)
    if rank != 0:  # the continuation runs here and now
        first.wait()
    future = first.get_future().then(call_another)
    if rank == 0:
        with open(directory + "/hung", "w", encoding="ascii"):
            pass
    following = torch.ones(50_000)
    work = dist.all_reduce(following, async_op=True)
    next_was_called.set()
    work.wait()
    assert torch.equal(following, torch.full((50_000,), float(size)))
    assert future.wait()[0] == 2 * size
    dist.barrier()


def continuation_waits_for_the_next(rank: int, size: int, directory: str, key: str) -> None:
    """Rank 0 hangs something on an operation that waits for the one it would hold back."""
    join(rank, size, directory, key)
    works: List[Any] = []
    next_was_called = threading.Event()

    def wait_for_next(future: Any) -> int:
        assert next_was_called.wait(540)
        works[1].wait()
        return 7

    if rank != 0:
        wait_for_file(directory + "/hung")
    works.append(dist.all_reduce(torch.ones(3), async_op=True))
    if rank == 0:
        future = works[0].get_future().then(wait_for_next)
        with open(directory + "/hung", "w", encoding="ascii"):
            pass
    works.append(dist.all_reduce(torch.ones(5), async_op=True))
    next_was_called.set()
    works[1].wait()
    assert rank != 0 or future.wait() == 7


def sub_groups(rank: int, size: int, directory: str, key: str) -> None:
    join(rank, size, directory, key)
    even = dist.new_group([0, 2])
    odd = dist.new_group([1, 3])
    everyone = dist.new_group()
    mine = even if rank % 2 == 0 else odd
    tensor = torch.tensor([rank])
    dist.all_reduce(tensor, group=mine)
    assert int(tensor) == (2 if rank % 2 == 0 else 4)
    dist.broadcast(tensor, rank % 2, group=mine)  # ranks of the world, as c10d has it
    dist.all_reduce(tensor, group=everyone)
    assert int(tensor) == 12
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    names = [f"from {rank}"]
    dist.broadcast_object_list(names, src=3)
    assert names == ["from 3"]
    assert sealane.torch.traffic(mine).records > 0
    dist.destroy_process_group()
    # Another world in the same processes; torch itself needs a fresh store for that.
    join(rank, size, directory, key, store=dist.FileStore(directory + "/second", size))
    again = dist.new_group([1, 2, 3])
    if rank > 0:
        dist.barrier(group=again)
    dist.barrier()


def results_without_history(rank: int, size: int, directory: str, key: str) -> None:
    """What is received is data, and no part of a graph, whatever was given."""
    join(rank, size, directory, key)
    weight = torch.full((size,), float(rank), requires_grad=True)
    parts = [torch.zeros(size) for _ in range(size)]
    dist.gather(weight, parts if rank == 0 else None, 0)
    mine = torch.zeros(size)
    dist.scatter(mine, [weight + to for to in range(size)] if rank == 0 else None, 0)
    exchanged = torch.zeros(size)
    dist.all_to_all_single(exchanged, weight)
    for result in (*parts, mine, exchanged):
        assert not result.requires_grad, result
    assert torch.equal(exchanged, torch.arange(float(size)))


def other_type(rank: int, size: int, directory: str, key: str, name: str) -> str:
    """As many bytes on each rank, of different types."""
    join(rank, size, directory, key)
    mine = torch.ones(4, dtype=torch.float32 if rank == 0 else torch.int32)
    call = {
        "broadcast": lambda: dist.broadcast(mine, 0),
        "all_gather": lambda: dist.all_gather([torch.empty_like(mine) for _ in range(size)], mine),
        "gather": lambda: dist.gather(mine, [torch.empty_like(mine) for _ in range(size)] if rank == 1 else None, 1),
        "message": lambda: dist.send(mine, 1) if rank == 0 else dist.recv(mine, 0),
    }[name]
    try:
        call()
        dist.barrier()  # who was done with its part hears of it here
    except RuntimeError as error:
        return str(error)
    return "no error"


def other_exchange(rank: int, size: int, directory: str, key: str) -> str:
    """Rank 0 sends and rank 1 receives as much, but each in another call."""
    join(rank, size, directory, key)
    mine, parts = torch.ones(4), [torch.ones(4), torch.ones(4)]
    try:
        if rank == 0:
            dist.scatter(mine, parts, 0)
        else:
            dist.gather(mine, parts, 1)
        dist.barrier()
    except RuntimeError as error:
        return str(error)
    return "no error"


def refusals(rank: int, size: int, directory: str, key: str) -> None:
    join(rank, size, directory, key)
    for call, reason in (
        (lambda: dist.all_reduce(torch.ones(2), op=dist.ReduceOp.BAND), "take whole numbers"),
        (
            lambda: dist.all_reduce(torch.ones(2, dtype=torch.int8), op=dist.ReduceOp.AVG),
            "no averages of Char",
        ),
        (lambda: dist.all_reduce(torch.eye(2).to_sparse()), "dense tensors of CPUs and CUDA"),
        (lambda: dist.all_gather([torch.ones(3)] * size, torch.ones(2)), "size of the input"),
    ):
        try:
            call()
        except RuntimeError as error:
            assert reason in str(error), error
        else:
            raise AssertionError(f"not refused: {reason}")
    total = torch.ones(1)
    dist.all_reduce(total)  # nothing of that has hurt the group
    assert int(total) == size


class Collectives(Case):
    def test_reductions_equal_gloos(self) -> None:
        for checked in self.ranks(3, reductions):
            self.assertEqual(checked, sum(len(operators(t)) for t in REDUCED) * (len(SIZES) - 1))

    def test_moves_equal_gloos(self) -> None:
        for checked in self.ranks(3, moves):
            self.assertEqual(checked, len(MOVED) * (len(SIZES) - 1))

    def test_memory_that_is_not_in_one_piece(self) -> None:
        self.ranks(2, odd_shapes)

    def test_messages_do_not_wait_for_each_other(self) -> None:
        self.ranks(3, messages)

    def test_a_wrong_tag_is_an_error_that_names_the_sender(self) -> None:
        self.assertIn("rank 0 sent tag 7 where tag 8", self.ranks(2, wrong_tag)[1])

    def test_futures_and_many_operations_under_way(self) -> None:
        self.ranks(2, futures)

    def test_a_continuation_may_wait_for_another_operation(self) -> None:
        self.ranks(2, waiting_continuations)

    def test_what_continuations_call_has_its_place_in_the_order(self) -> None:
        self.ranks(3, continuations_in_order)

    def test_a_continuation_that_waits_for_a_later_operation_lets_it_go_on(self) -> None:
        self.ranks(2, continuation_waits_for_the_next)

    def test_sub_groups_and_a_second_world(self) -> None:
        self.ranks(4, sub_groups)

    def test_results_have_no_history(self) -> None:
        self.ranks(2, results_without_history)

    def test_other_types_on_one_rank_are_told_by_name(self) -> None:
        for name in ("broadcast", "all_gather", "gather", "message"):
            with self.subTest(name):
                (self.directory / "store").unlink(missing_ok=True)
                errors = " ".join(self.ranks(2, other_type, name))
                self.assertIn("float32", errors)
                self.assertIn("int32", errors)

    def test_other_calls_made_of_messages_are_told_by_name(self) -> None:
        for error in self.ranks(2, other_exchange):  # each hears it of itself, or of the other if that was quicker
            self.assertIn("where this rank called", error)
            self.assertIn("called scatter 0 of float32 from rank 0", error)
            self.assertIn("called gather 0 of float32 to rank 1", error)

    def test_what_it_cannot_do_it_refuses(self) -> None:
        self.ranks(2, refusals)


if __name__ == "__main__":
    unittest.main()
