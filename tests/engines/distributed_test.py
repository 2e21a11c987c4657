# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Data-parallel training with our backend, each rank on an emulated GPU of its own process: gradients cross the sealed
# bus to the host, are summed over sealed messages and return. All ranks end with the weights that one process has
# which sees all data. Run by run.sh; skipped where the backend is not built for this PyTorch.
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist

try:
    import sealane.torch  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

RANKS, STEPS = 2, 3


def make_model():
    torch.manual_seed(20250209)
    return torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Tanh(), torch.nn.Linear(96, 8))


def make_data():
    generator = torch.Generator().manual_seed(20250210)
    return torch.randn(16, 64, generator=generator), torch.randn(16, 8, generator=generator)


def train(model, inputs, targets, exchange):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        for parameter in model.parameters():
            exchange(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
    return torch.cat([parameter.detach().cpu().flatten() for parameter in model.parameters()])


def mean_over_ranks(gradient):
    host = gradient.to("cpu")
    dist.all_reduce(host)
    gradient.copy_(host / RANKS)


def run_rank():
    rank, place = int(os.environ["RANK"]), os.environ["ENGINES_RESULTS"]
    dist.init_process_group("sealane", init_method=f"file://{place}/store", rank=rank, world_size=RANKS)
    inputs, targets = make_data()
    mine = slice(rank * 8, rank * 8 + 8)
    weights = train(make_model().cuda(), inputs[mine].cuda(), targets[mine].cuda(), mean_over_ranks)
    torch.save(weights, os.path.join(place, f"{rank}.pt"))
    dist.destroy_process_group()


class Distributed(unittest.TestCase):
    def test_ranks_on_gpus_of_their_own_learn_what_one_process_learns(self):
        expected = train(make_model(), *make_data(), lambda gradient: None)
        with tempfile.TemporaryDirectory() as directory:
            key = pathlib.Path(directory, "key")
            key.touch(mode=0o600)
            key.write_text("cd" * 32 + "\n")
            environment = dict(os.environ, SEALANE_KEY_FILE=str(key), ENGINES_RESULTS=directory)
            ranks = [subprocess.Popen([sys.executable, "-W", "ignore", __file__, "rank"],
                                      env=dict(environment, RANK=str(rank)))
                     for rank in range(RANKS)]
            self.assertEqual([rank.wait(timeout=500) for rank in ranks], [0] * RANKS)
            for rank in range(RANKS):
                torch.testing.assert_close(torch.load(os.path.join(directory, f"{rank}.pt")), expected)


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        run_rank()
    else:
        unittest.main()
