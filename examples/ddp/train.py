# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""A DistributedDataParallel script as one finds it, made sealed: the two marked lines.

    SEALANE_KEY_FILE=job.key torchrun -r 1 -t 1 --nproc_per_node 2 examples/ddp/train.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sealane.torch  # 1. adds the backend


def main() -> None:
    dist.init_process_group("sealane")  # 2. was "gloo"
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(100, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(dist.get_rank())
    teacher = torch.randn(100, 10, generator=torch.Generator().manual_seed(42))
    for step in range(50):
        inputs = torch.randn(64, 100, generator=data)
        loss = (model(inputs) - inputs @ teacher).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        sent = sealane.torch.traffic()
        print(f"loss {loss.item():.4f}; sealed {sent.records} messages, {sent.bytes} bytes")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
