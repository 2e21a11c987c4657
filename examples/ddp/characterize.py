# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""What sealing costs a training step: DDP over Gloo, over Sealane in plain mode, and sealed.

    SEALANE_KEY_FILE=job.key torchrun -r 1 -t 1 --nproc_per_node 4 examples/ddp/characterize.py \
        --models gpt-14,mlp-25 --ranks 2,4 --buckets 25 --json ddp.json

All variants train the same model on the same generated data in the same processes, one iteration of
each per round, so that whatever else the machine does hits them alike. docs/ddp-study.md describes the
measurement and the JSON; `sealane report` draws it. Ends with exit 1 if the losses do not agree.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import time
from contextlib import nullcontext
from typing import Any, Dict, List, NamedTuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sealane.torch
from models import MODELS, Task

GLOO = ("gloo", "plain")
SEALED = ("sealane", "sealed")
VARIANTS = (GLOO, ("sealane", "plain"), SEALED)
OTHER = "other"  # in the place of a mode: a backend of --backend
WARM_UP = 3  # DDP sorts its buckets after the first iteration
# Losses are compared after the warm-up: ranks are added in another order than by Gloo, and training
# amplifies the last bit.
LOSS_TOLERANCE = 1e-4

# Emulated GPU TEEs. These three are all that is published as numbers.
_SOURCE = "arXiv 2501.11771"
PUBLISHED = [
    {"model": "average", "ranks": 4, "buckets": None, "slowdown": 8.68, "source": _SOURCE},
    {"model": "GPT-2-XL", "ranks": 4, "buckets": "25", "slowdown": 41.6, "source": _SOURCE},
    {"model": "GPT-2-XL", "ranks": 4, "buckets": "large", "slowdown": 3.03, "source": _SOURCE},
]
DIFFERS = (
    "What differs: measured are CPU ranks of one machine, whose cores compute, seal and copy by turns, "
    "and whose records pass through shared memory. Published are four GPUs that compute much faster "
    "than CPUs and whose packages exchange sealed messages in an emulated TEE; the models are larger. "
    "Compare the shapes (does the number of messages matter? the size of buckets?), not the numbers."
)


class Trainer:
    """One variant: its own copy of the model, its own group."""

    def __init__(self, task: Task, group: Any, bucket_mb: float, seed: int) -> None:
        self.group = group
        self.task = task
        self.model = DistributedDataParallel(
            task.model, process_group=group, bucket_cap_mb=bucket_mb
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)
        self.generator = torch.Generator().manual_seed(seed)
        self.spare = torch.Generator().manual_seed(seed)  # for batches that train nothing
        self.loss = float("nan")
        self.early_loss = float("nan")
        self.step_ms = 0.0

    def iterate(self, communicate: bool = True) -> float:
        """One iteration; milliseconds. Without communication it trains nothing, and the step is
        the last one's time."""
        inputs, targets = self.task.batch(self.generator if communicate else self.spare)
        self.optimizer.zero_grad(set_to_none=False)
        start = time.perf_counter()
        with nullcontext() if communicate else self.model.no_sync():
            logits = self.model(inputs)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
            loss.backward()
        half_way = time.perf_counter()
        if communicate:
            self.optimizer.step()
            self.loss = loss.item()
            self.step_ms = 1e3 * (time.perf_counter() - half_way)
        return 1e3 * (half_way - start) + self.step_ms

    def bucket_elements(self) -> List[int]:
        told = self.model._get_ddp_logging_data()
        sizes = told.get("rebuilt_bucket_sizes") or told["bucket_sizes"]
        return [int(size) // 4 for size in str(sizes).split(",")]


class Samples(NamedTuple):
    iteration: Dict[Any, List[float]]
    compute: List[float]
    communication: Dict[Any, List[float]]
    others: "Others"


class Others:
    """How many cores somebody else took meanwhile, on this machine or from it (steal time)."""

    def __init__(self) -> None:
        self.cores = 0.0
        self._start = self._now()

    @staticmethod
    def _now() -> List[float]:
        """Seconds: the clock's, of all cores, of this process."""
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, _idle, _wait, irq, soft_irq, steal = map(
                int, stat.readline().split()[1:9]
            )
        busy = (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")
        mine = os.times()
        return [time.perf_counter(), busy, mine.user + mine.system]

    def stop(self, group: Any) -> None:
        clock, busy, mine = (now - then for now, then in zip(self._now(), self._start))
        ours = dist.get_world_size(group) * mean_over_ranks([mine], group)[0]
        self.cores = max(0.0, busy - ours) / clock


def all_reduce_alone(buckets: List[torch.Tensor], group: Any) -> float:
    """What the buckets take when nothing else is going on; milliseconds."""
    dist.barrier(group=group)
    start = time.perf_counter()
    for bucket in buckets:
        dist.all_reduce(bucket, group=group)
    return 1e3 * (time.perf_counter() - start)


def agreed(value: int, group: Any) -> int:
    """Rank 0's number, on all ranks."""
    box = torch.tensor([value])
    dist.broadcast(box, 0, group=group)
    return int(box)


def mean_over_ranks(samples: List[float], group: Any) -> List[float]:
    times = torch.tensor(samples, dtype=torch.float64)
    dist.all_reduce(times, group=group)
    return (times / dist.get_world_size(group)).tolist()


def measure(trainers: Dict[Any, Trainer], gloo: Any, seconds: float) -> Samples:
    for trainer in trainers.values():
        for _ in range(WARM_UP):
            trainer.iterate()
        trainer.early_loss = trainer.loss
    some = next(iter(trainers.values()))
    buckets = [torch.zeros(count) for count in some.bucket_elements()]
    samples = Samples({v: [] for v in trainers}, [], {v: [] for v in trainers}, Others())

    def one_round(number: int) -> None:
        order = list(trainers)
        order = order[number % len(order) :] + order[: number % len(order)]
        for variant in order:
            samples.iteration[variant].append(trainers[variant].iterate())
        samples.compute.append(some.iterate(communicate=False))
        if number % 4 == 0:
            for variant in order:
                alone = all_reduce_alone(buckets, trainers[variant].group)
                samples.communication[variant].append(alone)

    start = time.perf_counter()
    one_round(0)
    rounds = agreed(int(min(200, max(5, seconds / (time.perf_counter() - start)))), gloo)
    for number in range(1, rounds):
        one_round(number)
    samples.others.stop(gloo)
    for times in (*samples.iteration.values(), *samples.communication.values(), samples.compute):
        times[:] = mean_over_ranks(times, gloo)
    return samples


def percentile(samples: List[float], percent: int) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def quartiles(samples: List[float]) -> List[float]:
    """What a quarter, a half and three quarters of the samples do not exceed."""
    return statistics.quantiles(samples, n=4, method="inclusive")


def slowdown(name: str, samples: List[float], base: List[float]) -> Dict[str, float]:
    """The ratios within rounds: their median, and the quartiles around it."""
    low, middle, high = quartiles([a / b for a, b in zip(samples, base)])
    return {name: round(middle, 3), f"{name}_q1": round(low, 3), f"{name}_q3": round(high, 3)}


def row(name: str, ranks: int, bucket_mb: float, variant: Any, trainer: Trainer, samples: Samples):
    times = samples.iteration[variant]
    alone = statistics.median(samples.communication[variant])
    compute = statistics.median(samples.compute)
    exposed = max(0.0, quartiles([a - b for a, b in zip(times, samples.compute)])[1])
    sent, last_loss = sealane.torch.Traffic(0, 0), trainer.loss
    if variant == SEALED:
        before = sealane.torch.traffic(trainer.group)
        trainer.iterate()
        after = sealane.torch.traffic(trainer.group)
        sent = sealane.torch.Traffic(after.records - before.records, after.bytes - before.bytes)
    return {
        "model": name,
        "backend": variant[0],
        "mode": variant[1],
        "ranks": ranks,
        "bucket_mb": bucket_mb,
        "iteration_ms": round(statistics.median(times), 3),
        "iteration_ms_p10": round(percentile(times, 10), 3),
        "iteration_ms_p90": round(percentile(times, 90), 3),
        "compute_ms": round(compute, 3),
        "exposed_ms": round(exposed, 3),
        "comm_ms": round(alone, 3),
        "overlap": round(min(1.0, max(0.0, 1 - exposed / alone)), 3) if ranks > 1 else None,
        "sealed_messages": sent.records,
        "sealed_bytes": sent.bytes,
        "rounds": len(times),
        "loss": last_loss,
        **slowdown("slowdown_vs_plain", times, samples.iteration[("sealane", "plain")]),
        **slowdown("slowdown_vs_gloo", times, samples.iteration[GLOO]),
        **against_others(times, samples),
        "others_cores": round(samples.others.cores, 2),
    }


def against_others(times: List[float], samples: Samples) -> Dict[str, float]:
    ratios: Dict[str, float] = {}
    for (backend, mode), base in samples.iteration.items():
        if mode == OTHER:
            ratios.update(slowdown(f"slowdown_vs_{backend}", times, base))
    return ratios


def study(name: str, ranks: int, bucket_mb: float, groups: Dict[Any, Any], seconds: float):
    trainers = {}
    for variant, group in groups.items():
        torch.manual_seed(0)
        trainers[variant] = Trainer(MODELS[name](), group, bucket_mb, seed=dist.get_rank())
    samples = measure(trainers, groups[GLOO], seconds)
    rows = [row(name, ranks, bucket_mb, v, trainers[v], samples) for v in trainers]
    losses = [trainer.early_loss for trainer in trainers.values()]
    if max(losses) - min(losses) > LOSS_TOLERANCE * abs(losses[0]):
        raise SystemExit(f"{name}, {ranks} ranks: losses differ: {losses}")
    return rows


def make_groups(ranks: int, others: List[str]) -> Dict[Any, Any]:
    members = list(range(ranks))
    groups = {}
    for backend, mode in (*VARIANTS, *((other, OTHER) for other in others)):
        options = sealane.torch.Options(mode=mode) if backend == "sealane" else None
        groups[(backend, mode)] = dist.new_group(members, backend=backend, pg_options=options)
    return groups


def machine() -> Dict[str, Any]:
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "torch": torch.__version__,
        "sealane": sealane.torch.__version__,
        "threads_per_rank": torch.get_num_threads(),
    }


def identity(entry: Dict[str, Any]) -> Any:
    return tuple(entry[k] for k in ("model", "backend", "mode", "ranks", "bucket_mb"))


def read(path: str) -> Dict[Any, Dict[str, Any]]:
    """The rows of an earlier run, if there was one."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {identity(entry): entry for entry in json.load(file)["rows"]}


def write(path: str, rows: List[Dict[str, Any]]) -> None:
    """Rows of an earlier run stay, unless they were measured again."""
    kept = read(path)
    kept.update({identity(entry): entry for entry in rows})
    document = {
        "study": "ddp",
        "machine": machine(),
        "rows": list(kept.values()),
        "published": PUBLISHED,
        "differs": DIFFERS,
    }
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def show(entry: Dict[str, Any], others: List[str]) -> None:
    print(
        f"{entry['model']:12} {entry['ranks']} ranks {entry['bucket_mb']:6g} MB  "
        f"{entry['backend']:8} {entry['mode']:6} {entry['iteration_ms']:9.1f} ms  "
        f"compute {entry['compute_ms']:8.1f} ms  comm {entry['comm_ms']:7.1f} ms  "
        f"{entry['slowdown_vs_plain']:6.3f}x plain  {entry['slowdown_vs_gloo']:6.3f}x gloo  "
        + "".join(f"{entry[f'slowdown_vs_{other}']:6.3f}x {other}  " for other in others)
        + f"{entry['rounds']:3} rounds  loss {entry['loss']:.5f}",
        flush=True,
    )


def model_names(text: str) -> List[str]:
    names = text.split(",")
    for name in names:
        if name not in MODELS:
            known = ", ".join(MODELS)
            raise argparse.ArgumentTypeError(f"there is no model '{name}'; there are: {known}")
    return names


def group_sizes(text: str) -> List[int]:
    if not all(word.isdecimal() and int(word) >= 1 for word in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers from 1, as 1,2,4")
    return [int(word) for word in text.split(",")]


def bucket_sizes(text: str) -> List[float]:
    try:
        sizes = [float(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or not all(1 <= size <= 1000 for size in sizes):
        raise argparse.ArgumentTypeError(f"'{text}': not a list of numbers from 1 to 1000, as 5,25")
    return sizes


def other_backend(text: str) -> str:
    """NAME=MODULE: a backend that PyTorch knows by that name once the module is imported."""
    name, _, module = text.partition("=")
    if not name.isidentifier() or not module:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=MODULE, as gloo_tls=gloo_tls")
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"{module} cannot be imported: {error}") from error
    if not hasattr(dist.Backend, name.upper()):
        raise argparse.ArgumentTypeError(f"{module} registers no backend '{name}'")
    return name


def study_file(path: str) -> str:
    """Told before anything is measured."""
    try:
        read(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"{path} is no file of this study: {error!r}") from error
    if not os.access(os.path.dirname(path) or ".", os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write in {os.path.dirname(path) or '.'}")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0],
        epilog="Started by torchrun; docs/ddp-study.md says how.",
    )
    parser.add_argument(
        "--models",
        type=model_names,
        default=list(MODELS),
        help="of " + ", ".join(MODELS) + " (all)",
    )
    parser.add_argument(
        "--ranks", type=group_sizes, help="group sizes, as 1,2,4 (all ranks of torchrun)"
    )
    parser.add_argument(
        "--buckets", type=bucket_sizes, default=[25.0], help="bucket_cap_mb of DDP, 1 to 1000 (25)"
    )
    parser.add_argument("--seconds", type=float, default=20, help="per model, ranks, bucket (20)")
    parser.add_argument(
        "--backend",
        type=other_backend,
        action="append",
        default=[],
        metavar="NAME=MODULE",
        help="another backend, and the module that registers it; may be given several times",
    )
    parser.add_argument("--json", type=study_file, help="where to add the rows")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("start it with torchrun -r 1 -t 1 --nproc_per_node N")
    if options.json and options.backend:
        parser.error("--json is for what `sealane report` draws, without --backend")

    dist.init_process_group("gloo")
    sizes = options.ranks or [dist.get_world_size()]
    if max(sizes) > dist.get_world_size():
        parser.error(f"--ranks {max(sizes)} needs torchrun --nproc_per_node {max(sizes)}")
    for ranks in sizes:
        groups = make_groups(ranks, options.backend)
        for name in options.models:
            for bucket_mb in options.buckets:
                if dist.get_rank() >= ranks:
                    continue
                rows = study(name, ranks, bucket_mb, groups, options.seconds)
                if dist.get_rank() == 0:
                    for entry in rows:
                        show(entry, options.backend)
                    if options.json:
                        write(options.json, rows)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
