# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does what PyTorch 2 adds work over the backend, and give what it gives over Gloo?

Run by tools/torch2.sh: not with PyTorch 1.13, which has none of it. What came after 2.0 is skipped where it is not.
"""

import contextlib
import os
import sys
import unittest
from datetime import timedelta
from typing import Any, Callable, Dict, List

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import sealane.torch
from harness import Case, join, join_beside_gloo

with contextlib.suppress(ImportError):  # see needs()
    import torch.distributed._functional_collectives as functional
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

VERSION = tuple(int(number) for number in torch.__version__.split("+", maxsplit=1)[0].split(".")[:2])
# The compiler of 2.0 refuses Python 3.11.
COMPILER = (2, 1) if sys.version_info >= (3, 11) else (2, 0)


def needs(first: Any, what: str) -> Any:
    """A test of what PyTorch has since that version."""
    return unittest.skipIf(VERSION < first, f"PyTorch {torch.__version__} has no {what}")


class Block(torch.nn.Module):
    """A transformer's block, small."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(torch.relu(self.up(x)))


def transformer() -> torch.nn.Module:
    torch.manual_seed(11)
    return torch.nn.Sequential(*[Block() for _ in range(2)])


def losses_of(model: Any, rank: int, steps: int, optimizer: Any = None) -> List[float]:
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(rank)
    out = []
    for _ in range(steps):
        optimizer.zero_grad()
        x = torch.randn(2, 6, 32, generator=generator)
        loss = (model(x) - x.roll(1, 1)).square().mean()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def close(ours: List[float], theirs: List[float]) -> bool:
    return len(ours) == len(theirs) and all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(ours, theirs))


def beside_gloo(train: Callable[[Any, int], List[float]]) -> Callable[..., bool]:
    def run(rank: int, size: int, directory: str, key: str) -> Any:
        ours = join_beside_gloo(rank, size, directory, key)
        got, expected = train(ours, rank), train(dist.group.WORLD, rank)
        return True if close(got, expected) else (got, expected)

    return run


def with_fsdp2(group: Any, rank: int) -> List[float]:
    mesh = DeviceMesh.from_group(group, "cpu")
    model = transformer()
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return losses_of(model, rank, 6)


def with_fsdp(group: Any, rank: int) -> List[float]:
    model = FullyShardedDataParallel(transformer(), process_group=group, device_id=torch.device("cpu"))
    return losses_of(model, rank, 4)


def with_zero(group: Any, rank: int) -> List[float]:
    model = DistributedDataParallel(transformer(), process_group=group)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, process_group=group, lr=1e-2
    )
    return losses_of(model, rank, 6, optimizer)


def with_tensor_parallel(group: Any, rank: int) -> List[float]:
    mesh = DeviceMesh.from_group(group, "cpu")
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return losses_of(model, 0, 6)  # the same data on all ranks


def with_accumulation(group: Any, rank: int) -> List[float]:
    model = DistributedDataParallel(transformer(), process_group=group, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(rank)
    out = []
    for step in range(6):
        x = torch.randn(2, 6, 32, generator=generator)
        if step % 3 != 2:
            with model.no_sync():
                model(x).square().mean().backward()
            continue
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        out.append(loss.item())
    return out


def with_compile(group: Any, rank: int) -> List[float]:
    """A step of DDP in one graph as far as it goes; "aot_eager" needs no compiler of C++."""
    model = DistributedDataParallel(transformer(), process_group=group)
    return losses_of(torch.compile(model, backend="aot_eager"), rank, 4)


def functional_collectives(rank: int, size: int, directory: str, key: str) -> None:
    join(rank, size, directory, key)
    group = dist.group.WORLD

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(x: torch.Tensor) -> Dict[str, torch.Tensor]:
        return {
            "sum": functional.all_reduce(x, "sum", group) + 0,
            "all": functional.all_gather_tensor(x, 0, group) + 0,
            "part": functional.reduce_scatter_tensor(x.repeat(size), "sum", 0, group) + 0,
            "several": functional.all_reduce_coalesced([x, 2 * x], "sum", group)[1] + 0,
            "gathered": functional.all_gather_into_tensor_coalesced([x, 2 * x], group)[1] + 0,
            "scattered": functional.reduce_scatter_tensor_coalesced(
                [x.repeat(size), 3 * x.repeat(size)], "sum", [0, 0], group
            )[1]
            + 0,
            "exchanged": functional.all_to_all_single(x.repeat(size), None, None, group) + 0,
        }

    got = step(torch.full((4,), float(rank + 1)))
    total = size * (size + 1) / 2
    everyone = torch.arange(1.0, size + 1).repeat_interleave(4)
    expected = {
        "sum": torch.full((4,), total),
        "all": everyone,
        "part": torch.full((4,), total),
        "several": torch.full((4,), 2 * total),
        "gathered": 2 * everyone,
        "scattered": torch.full((4,), 3 * total),
        "exchanged": everyone,
    }
    for name, value in expected.items():
        assert torch.equal(got[name], value), f"{name}: {got[name]} instead of {value}"


def device_names(rank: int, size: int, directory: str, key: str) -> None:
    os.environ["SEALANE_KEY_FILE"] = key
    dist.init_process_group(
        "cpu:sealane,cuda:sealane",
        store=dist.FileStore(directory + "/store", size),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=60),
        device_id=torch.device("cpu:0"),
    )
    total = torch.ones(3)
    dist.all_reduce(total)
    assert int(total[0]) == size
    assert sealane.torch.traffic().records > 0
    dist.destroy_process_group()


def meshes_and_splits(rank: int, size: int, directory: str, key: str) -> None:
    join(rank, size, directory, key)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    for name, peers in (("data", [rank % 2, rank % 2 + 2]), ("model", [rank // 2 * 2, rank // 2 * 2 + 1])):
        total = torch.tensor([float(rank)])
        dist.all_reduce(total, group=mesh.get_group(name))
        assert float(total) == sum(peers), name
        assert sealane.torch.traffic(mesh.get_group(name)).records > 0
    half = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    total = torch.tensor([float(rank)])
    dist.all_reduce(total, group=half)
    assert float(total) == (1 if rank < 2 else 5)
    again = dist.split_group(parent_pg=half, split_ranks=[[0], [1]])
    dist.barrier(group=again)
    outer = dist.split_group(split_ranks=[[0, 3]])
    if rank in (0, 3):
        dist.all_reduce(total, group=outer)
        assert float(total) == 6
    dist.barrier()


def other_calls(rank: int, size: int, directory: str, key: str) -> str:
    join(rank, size, directory, key)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    before = backend._get_sequence_number_for_group()
    outputs = [torch.zeros(size * 3), torch.zeros(size * 2)]
    with dist._coalescing_manager(async_ops=False):
        for output, count in zip(outputs, (3, 2)):
            dist.all_gather_into_tensor(output, torch.full((count,), float(rank)))
    assert torch.equal(outputs[1], torch.arange(float(size)).repeat_interleave(2))
    with dist._coalescing_manager(async_ops=False):
        parts = [torch.zeros(2), torch.zeros(1)]
        for part in parts:
            dist.reduce_scatter_tensor(part, torch.ones(part.numel() * size))
    assert float(parts[0][0]) == size and float(parts[1][0]) == size
    assert backend._get_sequence_number_for_group() > before
    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.wait()
    assert work.is_completed()
    dist.monitored_barrier(timeout=timedelta(seconds=60))
    try:
        if rank == 0:
            dist.monitored_barrier(timeout=timedelta(milliseconds=300))
        return ""
    except RuntimeError as error:
        return str(error)
    finally:
        store = dist.FileStore(directory + "/store", size)
        store.set(f"done{rank}", "")
        store.wait([f"done{other}" for other in range(size)])
        if rank != 0:
            dist.monitored_barrier(timeout=timedelta(seconds=60))


def detail(rank: int, size: int, directory: str, key: str) -> str:
    """Every call is checked by PyTorch itself before it is made."""
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.set_debug_level_from_env()
    join(rank, size, directory, key)
    total = torch.ones(3)
    dist.all_reduce(total)
    assert float(total[0]) == size
    try:
        dist.all_reduce(torch.ones(3 if rank == 0 else 4))
    except RuntimeError as error:
        return str(error)
    return "no error"


def ended(rank: int, size: int, directory: str, key: str) -> str:
    join(rank, size, directory, key)
    group = dist.group.WORLD
    dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()
    try:
        group.allreduce([torch.ones(3)]).wait()
    except RuntimeError as error:
        return str(error)
    return "no error"


class Torch2(Case):
    def check_like_gloo(self, train: Any, size: int) -> None:
        for same in self.ranks(size, beside_gloo(train)):
            self.assertTrue(same is True, same)

    @needs((2, 6), "FSDP2")
    def test_fsdp2_over_four_ranks_has_gloos_losses(self) -> None:
        self.check_like_gloo(with_fsdp2, 4)

    @needs((2, 1), "FSDP without a GPU")
    def test_fsdp_has_gloos_losses(self) -> None:
        self.check_like_gloo(with_fsdp, 2)

    def test_zero_redundancy_has_gloos_losses(self) -> None:
        self.check_like_gloo(with_zero, 2)

    @needs((2, 6), "meshes made of a group")
    def test_tensor_parallel_has_gloos_losses(self) -> None:
        self.check_like_gloo(with_tensor_parallel, 2)

    def test_accumulated_gradients_have_gloos_losses(self) -> None:
        self.check_like_gloo(with_accumulation, 2)

    @needs(COMPILER, "compiler for this Python")
    def test_a_compiled_step_has_gloos_losses(self) -> None:
        self.check_like_gloo(with_compile, 2)

    @needs((2, 6), "functional collectives like today's")
    def test_functional_collectives_in_one_graph(self) -> None:
        self.ranks(2, functional_collectives)

    @needs((2, 6), "backends by the name of a device")
    def test_devices_by_name(self) -> None:
        self.ranks(2, device_names)

    @needs((2, 6), "groups that are split")
    def test_meshes_and_split_groups(self) -> None:
        self.ranks(4, meshes_and_splits)

    @needs((2, 6), "coalesced calls like today's")
    def test_coalesced_calls_sequence_numbers_and_monitored_barriers(self) -> None:
        errors = self.ranks(2, other_calls)
        self.assertIn("barrier: not done after 300 ms", errors[0])

    @needs((2, 1), "checks of other backends than its own")
    def test_debug_level_detail_finds_calls_that_differ(self) -> None:
        for error in self.ranks(2, detail):
            self.assertIn("Detected mismatch between collectives on ranks", error)

    @needs((2, 6), "shutdown of a group that somebody still holds")
    def test_a_group_that_was_ended_says_so(self) -> None:
        for error in self.ranks(2, ended):
            self.assertIn("the group was shut down", error)


if __name__ == "__main__":
    unittest.main()
