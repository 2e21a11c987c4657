# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""What sealing costs a step of FSDP2 (fully_shard), and whether the losses are Gloo's.

    SEALANE_KEY_FILE=job.key torchrun --nproc_per_node 4 examples/ddp/fsdp2.py --model gpt-14 --steps 30

Trains the same transformer on the same generated data over Gloo and over Sealane, sealed, in the same processes, one
step of each per round, so that whatever else the machine does hits both alike. Prints the losses of both, how far they
are apart, and the ratio of the times within rounds. Ends with exit 1 if losses differ by more than 1e-5 of their size.
For PyTorch 2.
"""

import argparse
import os
import statistics
import sys
import time
from typing import Any, List

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import sealane.torch
from models import MODELS

TOLERANCE = 1e-5
WARM_UP = 3  # rounds whose times do not count


class Sharded:
    """One copy of the model, its parameters spread over the ranks of a group."""

    def __init__(self, name: str, group: Any) -> None:
        torch.manual_seed(0)
        task = MODELS[name]()
        mesh = DeviceMesh.from_group(group, "cpu")
        for block in task.model.blocks:
            fully_shard(block, mesh=mesh)
        self.model = fully_shard(task.model, mesh=mesh)
        self.batch = task.batch
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.generator = torch.Generator().manual_seed(dist.get_rank())
        self.group = group
        self.losses: List[float] = []
        self.seconds: List[float] = []

    def step(self) -> None:
        inputs, targets = self.batch(self.generator)
        start = time.perf_counter()
        self.optimizer.zero_grad()
        logits = self.model(inputs)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        loss.backward()
        self.optimizer.step()
        self.seconds.append(time.perf_counter() - start)
        mean = loss.detach().double()
        dist.all_reduce(mean)  # over Gloo, the world's, whichever group has trained
        self.losses.append(float(mean) / dist.get_world_size())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    texts = [name for name in MODELS if name.startswith(("gpt", "bert"))]
    parser.add_argument("--model", choices=texts, default="gpt-14")
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("start it with torchrun --nproc_per_node N")
    dist.init_process_group("gloo")
    gloo = Sharded(options.model, dist.group.WORLD)
    sealed = Sharded(options.model, dist.new_group(backend="sealane"))
    for number in range(WARM_UP + options.steps):
        for one in (gloo, sealed) if number % 2 == 0 else (sealed, gloo):
            one.step()
    apart = max(abs(a - b) / abs(b) for a, b in zip(sealed.losses, gloo.losses))
    records = sealane.torch.traffic(sealed.group).records
    if dist.get_rank() == 0:
        rounds = list(zip(sealed.seconds, gloo.seconds))[WARM_UP:]
        low, middle, high = statistics.quantiles([a / b for a, b in rounds], n=4, method="inclusive")
        print(f"fsdp2 {options.model}, {dist.get_world_size()} ranks, {len(rounds)} rounds")
        for name, one in (("gloo", gloo), ("sealed", sealed)):
            curve = " ".join(f"{loss:.6f}" for loss in one.losses[:: max(1, len(one.losses) // 8)])
            middle_ms = 1e3 * statistics.median(one.seconds[WARM_UP:])
            print(f"  {name:6} {middle_ms:8.1f} ms a step; losses {curve}")
        print(f"  losses differ by {apart:.1e} of their size at most; {records} messages sealed by rank 0")
        print(f"  sealed takes {middle:.3f}x Gloo's time (quartiles {low:.3f}, {high:.3f})", flush=True)
    dist.destroy_process_group()
    return 0 if apart <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
