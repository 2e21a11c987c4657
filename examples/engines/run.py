# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Runs one engine: a warm-up, which is learned from, then a timed part. Usage: run.py ENGINE [--small] [--json FILE]

Time is told by CUDA events. `hash` is of the tokens or losses: whoever computes something else has another one.
"""

import argparse
import hashlib
import importlib
import json

import torch

# Which function of which module sets it up: it gives what runs, the work to do, and what ends it if that is needed.
ENGINES = {
    "transformers": ("transformers_offload", "weights"),
    "transformers-map": ("transformers_offload", "half_the_weights"),
    "transformers-kv": ("transformers_offload", "kv_cache"),
    "peft": ("peft_offload", "lora"),
    "flexgen": ("flexgen_offload", "weights"),
    "flexgen-kv": ("flexgen_offload", "weights_and_cache"),
    "loader": ("pinned_loader", "training"),
    "staged": ("staged_copies", "decoding"),
}


def count(answer) -> int:
    return sum(map(count, answer)) if isinstance(answer, list) else 1


def measure(work):
    first = work()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    timed = work()
    end.record()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    return begin.elapsed_time(end) / 1e3, [first, timed]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--small", action="store_true", help="fewer layers and tokens: for recordings")
    parser.add_argument("--json", help="where to write figures; stdout if it is not said")
    asked = parser.parse_args()
    torch.set_num_threads(2)
    module, setup = ENGINES[asked.engine]
    about, work, *ends = getattr(importlib.import_module(module), setup)(asked.small)
    try:
        seconds, answers = measure(work)
    finally:
        for end in ends:
            end()
    text = json.dumps({
        "total_s": seconds,
        "tokens_per_s": count(answers[1]) / seconds if seconds > 0 else 0,
        "hash": hashlib.sha256(repr(answers).encode()).hexdigest()[:16],
        "about": about,
        "answers": answers,
    })
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as out:
            out.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
