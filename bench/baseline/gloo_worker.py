#!/usr/bin/python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# One rank of the Gloo baseline of `sealane bench allreduce` (PyTorch's built-in backend).
# Usage: sealane-bench-gloo PIPES RANK SIZE        sealane-bench-gloo --probe
import sys
import time

import torch
import torch.distributed as dist


def contribution(rank, count):
    return ((torch.arange(count, dtype=torch.int64) + rank * 31) % 251).to(torch.float32)


class Job:
    """Buffers of one operation at one size."""

    def __init__(self, op, count, rank, size):
        self.op, self.count, self.rank, self.size = op, count, rank, size
        part = count // size
        self.data = contribution(rank, part if op == "all_gather" else count)
        self.parts = [torch.zeros(part) for _ in range(size)] if op == "all_gather" else []

    def run(self):
        if self.op == "allreduce":
            dist.all_reduce(self.data)
        elif self.op == "all_gather":
            dist.all_gather(self.parts, self.data)
        else:
            dist.broadcast(self.data, 0)

    def wrong(self):
        if self.op == "allreduce":
            expected = sum(contribution(r, self.count) for r in range(self.size))
            return int((self.data != expected).sum())
        if self.op == "broadcast":
            return int((self.data != contribution(0, self.count)).sum())
        return sum(int((part != contribution(r, part.numel())).sum()) for r, part in enumerate(self.parts))


def main():
    if sys.argv[1:] == ["--probe"]:
        return 0 if dist.is_gloo_available() else 1
    base, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    commands = open(f"{base}.{rank}.commands")
    answers = open(f"{base}.{rank}.answers", "w", buffering=1)
    dist.init_process_group("gloo", init_method=f"file://{base}.store", rank=rank, world_size=size)
    print(0, file=answers)
    job = None
    for line in commands:
        words = line.split()
        if len(words) != 4:
            break
        op, count, iterations, check = words[0], int(words[1]) // 4, int(words[2]), words[3] == "1"
        if job is None or check or (job.op, job.count) != (op, count):
            job = Job(op, count, rank, size)
        job.run()
        wrong = job.wrong() if check else 0
        if check:
            job.run()
        if op == "allreduce":
            job.data.zero_()  # sums would grow to infinity
            job.run()
        times = []
        last = time.perf_counter_ns()
        for _ in range(iterations):
            job.run()
            now = time.perf_counter_ns()
            times.append(now - last)
            last = now
        print(wrong, *times, file=answers)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
