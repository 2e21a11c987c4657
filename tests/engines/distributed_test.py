# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Data-parallel training with our backend, each rank on an emulated GPU of its own process: gradients cross the sealed
# bus to the host, are summed over sealed messages and return; the program brings them there and back itself, or gives
# the backend tensors of the device, or trains with DDP. All ranks end with the weights that one process has which sees
# all data. Run by run.sh; skipped where the backend is not built for this PyTorch.
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


def mean_by_way_of_the_host(gradient):
    host = gradient.to("cpu")
    dist.all_reduce(host)
    gradient.copy_(host / RANKS)


def mean_on_the_device(gradient):
    dist.all_reduce(gradient, op=dist.ReduceOp.AVG)


def train_rank(how, rank):
    inputs, targets = make_data()
    mine = slice(rank * 8, rank * 8 + 8)
    model, exchange = make_model().cuda(), lambda gradient: None
    if how == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    else:
        exchange = mean_on_the_device if how == "device" else mean_by_way_of_the_host
    return train(model, inputs[mine].cuda(), targets[mine].cuda(), exchange)


def call_everything(rank):
    """What every call makes of tensors on the device; the same on all ranks, and with tensors of the CPU."""
    results = []
    for device in ("cuda", "cpu"):
        def values(count, device=device):
            return torch.arange(float(count), device=device) + rank

        other_stream = torch.cuda.stream(torch.cuda.Stream())
        with other_stream:
            total = values(300_000)
            dist.all_reduce(total)
        odd = torch.zeros(8, 6, device=device)
        odd[:, ::2].copy_(values(24).view(8, 3))
        dist.all_reduce(odd[:, ::2], op=dist.ReduceOp.PRODUCT)
        root = values(1000)
        dist.broadcast(root, 1)
        gathered = torch.zeros(RANKS * 1000, device=device)
        dist.all_gather_into_tensor(gathered, values(1000))
        parts = [torch.zeros(7, device=device) for _ in range(RANKS)]
        dist.all_gather(parts, values(7))
        scattered = torch.zeros(500, device=device)
        dist.reduce_scatter_tensor(scattered, values(1000))
        everybodys = torch.zeros(RANKS * 500, device=device)
        dist.all_gather_into_tensor(everybodys, scattered)
        message = values(10)
        if rank == 0:
            dist.send(message, 1)
        else:
            dist.recv(message, 0)
        later = dist.all_reduce(values(10), async_op=True).get_future().then(lambda future: future.value()[0] * 2)
        dist.barrier()
        every = [total, odd, root, gathered, *parts, everybodys, message, later.wait()]
        results.append(torch.cat([one.cpu().flatten() for one in every]))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)
    return results[0]


def run_rank(how):
    rank, place = int(os.environ["RANK"]), os.environ["ENGINES_RESULTS"]
    store = f"file://{place}/store"
    dist.init_process_group("cpu:sealane,cuda:sealane", init_method=store, rank=rank, world_size=RANKS)
    result = call_everything(rank) if how == "calls" else train_rank(how, rank)
    torch.save(result, os.path.join(place, f"{rank}.pt"))
    dist.destroy_process_group()


class Distributed(unittest.TestCase):
    def ranks(self, how):
        """What every rank made."""
        with tempfile.TemporaryDirectory() as directory:
            key = pathlib.Path(directory, "key")
            key.touch(mode=0o600)
            key.write_text("cd" * 32 + "\n")
            environment = dict(os.environ, SEALANE_KEY_FILE=str(key), ENGINES_RESULTS=directory)
            ranks = [subprocess.Popen([sys.executable, "-W", "ignore", __file__, "rank", how],
                                      env=dict(environment, RANK=str(rank)))
                     for rank in range(RANKS)]
            self.assertEqual([rank.wait(timeout=500) for rank in ranks], [0] * RANKS)
            return [torch.load(os.path.join(directory, f"{rank}.pt")) for rank in range(RANKS)]

    def test_ranks_on_gpus_of_their_own_learn_what_one_process_learns(self):
        expected = train(make_model(), *make_data(), lambda gradient: None)
        for how in ("host", "device", "ddp"):
            for weights in self.ranks(how):
                torch.testing.assert_close(weights, expected, msg=how)

    def test_tensors_of_the_device_give_what_those_of_the_cpu_give(self):
        first, second = self.ranks("calls")
        torch.testing.assert_close(first, second, rtol=0, atol=0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        run_rank(sys.argv[2])
    else:
        unittest.main()
