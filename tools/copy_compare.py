#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Has a change made copies slower? Two builds of sealane, run by run in turn, on the emulated GPU.

Usage: copy_compare.py OLD NEW [--rounds N] [--seconds S] [--platform P] [--old-platform P] [--pairs OLD=NEW,...]
                       [--examples NAME,...] [--samples FILE]

OLD and NEW are programs `sealane` with their libraries and examples beside them (build/bin/sealane). A round runs each
example under each pair of policies once with either program, the first of the two changing from round to round; what is
printed is the median of the ratios new : old within rounds, with its quartiles, and both medians. `--pairs
parallel=sealane` compares what was called `parallel` with what is called `sealane`. OLD and NEW may be one program,
to compare policies. Both must model the same machine: where OLD's platform of that name has other numbers,
`--old-platform` names a file for it that has not. With `--samples` what was measured is kept in FILE, and what is
already there counts: a long measurement can be made in parts. Exit code 1: a row is slower by more than 3 %.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Dict, List, Tuple

# As `bench copy` has them: steps of 50 to 100 us need more, or one sees how long a thread takes to wake.
DILATION = {"decode_loop": "100", "mini_llm-vllm": "100"}
EXAMPLES = "layer_swap,kv_swap,decode_loop,mini_llm-flexgen,mini_llm-vllm,mini_llm-peft"
SLOWER = 1.03

Samples = Dict[str, Dict[str, List[Tuple[float, float]]]]  # example, pair: old and new of each round, in s


@functools.lru_cache(maxsize=None)
def one_round(program: str) -> Tuple[str, str]:
    """The first programs counted seconds, and ended with the round in which they had passed."""
    options = subprocess.run([program, "bench", "copy", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return ("--rounds", "1") if "--rounds" in options else ("--seconds", "0")


def measure(program: str, example: str, policy: str, platform: str) -> float:
    command = [program, "bench", "copy", *one_round(program), "--examples", example, "--policies", policy]
    command += ["--platform", platform, "--dilation", DILATION.get(example, "20"), "--json", "-"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"copy_compare.py: {' '.join(command)}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)["rows"][0]["total_s"]


def run_rounds(args: argparse.Namespace, samples: Samples) -> None:
    began = time.monotonic()
    for number in range(args.rounds):
        took = (time.monotonic() - began) / max(1, number)
        if args.seconds and number > 0 and time.monotonic() + took > began + args.seconds:
            break
        for example in args.examples.split(","):
            for pair in args.pairs.split(","):
                old, new = pair.split("=")
                done = samples.setdefault(example, {}).setdefault(pair, [])
                runs = [(args.old, example, old, args.old_platform or args.platform),
                        (args.new, example, new, args.platform)]
                times = [0.0, 0.0]
                for which in ((0, 1), (1, 0))[len(done) % 2]:
                    times[which] = measure(*runs[which])
                done.append((times[0], times[1]))
        if args.samples:
            with open(args.samples, "w", encoding="utf-8") as file:
                json.dump(samples, file)


def quartiles(values: List[float]) -> Tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def table(samples: Samples) -> Tuple[str, List[str]]:
    """And which rows are slower."""
    rows = [("example", "old", "new", "old ms", "new ms", "new : old", "quartiles", "rounds")]
    slower = []
    for example, pairs in samples.items():
        for pair, times in pairs.items():
            low, middle, high = quartiles([new / old for old, new in times])
            old_ms, new_ms = (1e3 * statistics.median(column) for column in zip(*times))
            old, new = pair.split("=")
            ratio = f"{middle:.3f}"
            spread = f"{low:.3f}-{high:.3f}"
            rows.append((example, old, new, f"{old_ms:.2f}", f"{new_ms:.2f}", ratio, spread, str(len(times))))
            if middle > SLOWER:
                slower.append(f"{example}, {old} -> {new}: {ratio}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if i < 3 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines), slower


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0, help="no further round that would end later")
    parser.add_argument("--platform", default="h100-tdx")
    parser.add_argument("--old-platform", default="")
    parser.add_argument("--pairs", default="parallel=parallel,parallel=sealane")
    parser.add_argument("--examples", default=EXAMPLES)
    parser.add_argument("--samples", default="")
    args = parser.parse_args()
    samples: Samples = {}
    if args.samples and os.path.exists(args.samples):
        with open(args.samples, encoding="utf-8") as file:
            samples = json.load(file)
    run_rounds(args, samples)
    text, slower = table(samples)
    print(text)
    print("Device time, medians; new : old is the median of ratios within rounds.")
    print(f"Slower by more than 3 %: {'; '.join(slower) or 'none'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
