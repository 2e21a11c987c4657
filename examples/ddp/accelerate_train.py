# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Sealed training with Hugging Face Accelerate: the marked lines.

    SEALANE_KEY_FILE=job.key accelerate launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no \\
        --dynamo_backend no examples/ddp/accelerate_train.py
    SEALANE_KEY_FILE=job.key torchrun --nproc_per_node 2 examples/ddp/accelerate_train.py

(With --multi_gpu the launcher starts several processes, as torchrun does; with --cpu it starts one, or asks for MPI.)
"""

import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

import sealane.torch  # 1. adds the backend


def main() -> None:
    backend = os.environ.get("EXAMPLE_BACKEND", "sealane")
    torch.distributed.init_process_group(backend)  # 2. Accelerate takes the group that is there
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    torch.manual_seed(0)
    inputs = torch.randn(512, 20)
    targets = inputs @ torch.randn(20, 4)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = DataLoader(TensorDataset(inputs, targets), batch_size=16, num_workers=1)  # a worker that forks
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    loss = torch.zeros(())
    for _ in range(3):
        for x, y in data:
            with accelerator.accumulate(model):
                loss = (model(x) - y).square().mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    mean = accelerator.gather(loss.detach().reshape(1)).mean().item()
    if accelerator.is_main_process:
        sealed = sealane.torch.traffic().records if backend == "sealane" else 0
        print(f"loss {mean:.6f}; sealed {sealed} messages", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
