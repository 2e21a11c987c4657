#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does the installed PyTorch backend add two ranks' tensors, sealed? Usage: two_ranks.py KEY_FILE"""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

import sealane.torch


def rank(number: int, meeting: str) -> None:
    dist.init_process_group("sealane", init_method=f"file://{meeting}", rank=number, world_size=2)
    value = torch.full((100_000,), float(number + 1))
    dist.all_reduce(value)
    if not torch.equal(value, torch.full((100_000,), 3.0)):
        raise SystemExit(f"rank {number}: a wrong sum: {value[0]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["SEALANE_KEY_FILE"] = sys.argv[1]
    processes.spawn(rank, args=(sys.argv[1] + ".meeting",), nprocs=2)
    print(f"PyTorch {torch.__version__}: two ranks added, sealed, by sealane {sealane.__version__}")
