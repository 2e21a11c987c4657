# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Sealed training that survives its ranks: torchrun starts the group again, under new keys, from a checkpoint.

    SEALANE_KEY_FILE=job.key torchrun --nproc_per_node 3 --max_restarts 5 examples/ddp/elastic.py run.pt

With `--nnodes MIN:MAX` machines may come and go: the group is started again with as many ranks as there are then.
"""

import argparse
import hashlib
import os
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sealane.torch  # noqa: F401  adds the backend

GRID = 2.0**18
LARGEST = 8.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=5, help="steps between checkpoints")
    parser.add_argument("--progress", help="directory: every rank keeps a file with its pid, step and world size")
    parser.add_argument("--pause", type=float, default=0, help="seconds that a step takes beyond its work")
    parser.add_argument("--exact", action="store_true", help="the same bits however often it was killed")
    arguments = parser.parse_args()
    report(arguments.progress, "joining")
    dist.init_process_group("sealane", timeout=timedelta(seconds=60))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(100, 300), torch.nn.ReLU(), torch.nn.Linear(300, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    first = 0
    if os.path.exists(arguments.checkpoint):
        saved = torch.load(arguments.checkpoint)
        first = saved["step"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks; begins with step {first}", flush=True)
    parallel = DistributedDataParallel(model)
    if arguments.exact:
        parallel.register_comm_hook(None, average_on_a_grid)
    teacher = torch.randn(100, 10, generator=torch.Generator().manual_seed(42))
    loss = torch.zeros(())
    for step in range(first, arguments.steps):
        report(arguments.progress, str(step))
        time.sleep(arguments.pause)
        data = torch.Generator().manual_seed(1000 * step + dist.get_rank())  # of the step, not of the process
        inputs = torch.randn(64, 100, generator=data)
        loss = (parallel(inputs) - inputs @ teacher).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and (step + 1) % arguments.every == 0:
            save(arguments.checkpoint, step + 1, model, optimizer)
    if dist.get_rank() == 0:
        weights = sum(parameter.double().sum().item() for parameter in model.parameters())
        print(f"step {arguments.steps}; weights {weights:.9f}, {digest_of(model)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def average_on_a_grid(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Gradients of few enough bits that up to eight are added without rounding: in any order the same bits.

    Without, a start that begins with other buckets than the one before had adds three ranks' gradients in another
    order, as any backend may. Training amplifies the last bit: after a thousand steps of 32 bits, to the fourth digit.
    """
    gradients = bucket.buffer()
    gradients.div_(dist.get_world_size()).clamp_(-LARGEST, LARGEST).mul_(GRID).round_().div_(GRID)
    work = dist.all_reduce(gradients, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def digest_of(model: torch.nn.Module) -> str:
    """Of every bit of the weights."""
    bits = [parameter.detach().flatten().view(torch.uint8) for parameter in model.parameters()]
    return hashlib.sha256(bytes(torch.cat(bits).tolist())).hexdigest()[:16]


def save(path: str, step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """A checkpoint is there or not, never half."""
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def report(directory: str, where: str) -> None:
    if directory:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        path = os.path.join(directory, f"{attempt}-{os.environ['RANK']}")
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(f"{os.getpid()} {where} {os.environ['WORLD_SIZE']}")
        os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
