#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Random programs under the runtime, on the emulated GPU, for as long as you like.

    tests/soak/soak.py [--build DIR] [--minutes M | --runs R] [--seed N] [--only RUN]

Every run is one program of the build tree with random switches of the emulated GPU, a random policy,
random options and now and then a fault. It must end by itself with right bytes, and the device (the
emulator's own counters) must have verified every byte that was sealed; under an attack it must end
with CUDA's error and nothing else. While a program runs, its memory, descriptors and threads are
watched: a program that repeats itself must not need more and more of them.

A failure prints the seed, the command that replays it and the environment of the program; the soak
goes on and exits with 1 at its end. What timing does is not replayed, everything else is.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN_SECONDS_MAX = 180
FORGED = "214"  # CUDA_ERROR_ECC_UNCORRECTABLE

# Growth that is no leak: caches that fill, threads that start with the first copy that needs them.
RSS_SLACK_KB = 96 << 10
DESCRIPTOR_SLACK = 12
THREAD_SLACK = 12
STARTED_CPU_SECONDS = 0.3  # by then a program has begun to repeat itself

TROUBLES = ["none", "fork", "rotate", "host-function", "small-fetch", "reset", "crowd", "free", "exit", "attack", "threads", "stall",
            "no-threads", "one-thread", "no-lock", "no-lock-swap"]
LIFECYCLES = ["fork", "exec", "exit", "free", "destroy", "signals", "registered", "dlclose"]
EXAMPLES = [
    ["layer_swap", "--width", "256", "--steps", "4"],
    ["layer_swap_drv", "--width", "256", "--steps", "5", "--order", "random", "--rewrite", "50"],
    ["kv_swap", "--layers", "3", "--steps", "6", "--token-words", "512"],
    ["kv_swap", "--mode", "lifo", "--requests", "6", "--steps", "48", "--token-words", "256"],
    ["decode_loop", "--steps", "40"],
    ["mini_llm", "--schedule", "flexgen", "--hidden", "64", "--steps", "6"],
    ["mini_llm", "--schedule", "vllm", "--hidden", "64", "--steps", "20"],
]


class Run:
    """What one run does, decided by the seed and its number alone."""

    def __init__(self, seed, number, tree, long_seconds):
        self.dice = random.Random(f"{seed}:{number}")
        self.tree = tree
        self.attacked = False
        self.environment = {"SEALANE_EMU_CC": "on", "SEALANE_EMU_GPUS": "2"}
        self.command = self.choose_program(long_seconds)
        self.choose_switches()
        self.choose_options()
        self.choose_fault()

    def sometimes(self, probability):
        return self.dice.random() < probability

    def choose_program(self, long_seconds):
        tests = self.tree / "tests"
        self.kind = self.dice.choices(["random", "stale", "trouble", "lifecycle", "example"],
                                      [4, 4, 4, 2, 3])[0]
        example = self.dice.choice(EXAMPLES)
        if self.kind == "example" and not (self.tree / "examples" / example[0]).exists():
            self.kind = "random"  # not built
        if self.kind == "random":  # repeats itself: this is where growth would show
            self.environment["RANDOM_ORDER_SEED"] = str(self.dice.randrange(1 << 31))
            self.environment["RANDOM_ORDER_THREADS"] = str(self.dice.choice([1, 2, 4]))
            self.environment["RANDOM_ORDER_SECONDS"] = str(long_seconds)
            return [tests / "random_order_test", "--gtest_brief=1"]
        if self.kind == "stale":
            memory = self.dice.choice(["pinned", "pageable"])
            return [tests / "stale", memory, self.dice.randrange(1 << 31), 25]
        if self.kind == "trouble":
            return [tests / "trouble", self.dice.choice(TROUBLES)]
        if self.kind == "lifecycle":
            return [tests / "lifecycle", self.dice.choice(LIFECYCLES)]
        return [self.tree / "examples" / example[0]] + example[1:]

    def choose_switches(self):
        for name, values in [("REACH", ["dlsym"]), ("STAGED", ["on"]), ("AAD", ["on"]),
                             ("UPDATES", ["2", "3"]), ("FRESH_CONTEXTS", ["on"]),
                             ("SEAL_THREAD", ["on"]), ("WIPES", ["off"]), ("CHATTER", ["2", "3", "7"]),
                             ("QUEUES", ["2", "3"]), ("MEMOPS", ["off"]),
                             ("MESSAGE", ["65536", "262144"]), ("SLOTS", ["1", "2"]),
                             ("ROTATE", ["300000", "5000000", "50000000"]), ("CONTEXTS", ["3", "5"])]:
            if self.sometimes(0.15):
                self.environment["SEALANE_EMU_" + name] = self.dice.choice(values)
        if "crowd" in map(str, self.command):
            self.environment["SEALANE_EMU_CONTEXTS"] = "8"

    def choose_options(self):
        environment = self.environment
        environment["SEALANE_WORKERS"] = self.dice.choice(["1", "2", "3", "3", "5"])
        environment["SEALANE_POLICY"] = self.dice.choices(
            ["speculate", "sealane", "parallel", "stock"], [9, 1, 1, 1])[0]
        if self.sometimes(0.15):
            parts = ["default", "engine", "async", "parallel", "register", "speculate", "pinned"]
            chosen = [part for part in parts if self.sometimes(0.6)]
            environment["SEALANE_ENABLE"] = ",".join(chosen) or "none"
        if self.sometimes(0.3):
            environment["SEALANE_SLOT_MB"] = self.dice.choice(["1", "2", "4", "16"])
        if self.sometimes(0.3):
            environment["SEALANE_PAGE_GUARDS"] = "0"
        if self.sometimes(0.15):
            environment["SEALANE_EARLY"] = "0"
        if self.sometimes(0.15):
            environment["SEALANE_STAGING_MB"] = self.dice.choice(["0", "1", "4"])
        if self.sometimes(0.15):
            environment["SEALANE_VERIFY"] = self.dice.choice(["10", "1000000"])
        if self.sometimes(0.1):
            environment["SEALANE_OBSERVE"] = "1"

        # What a program needs to make sense at all.
        if self.command[-1] == "registered":
            environment["SEALANE_ENABLE"] = "engine,async,register"
        if self.command[-1] == "stall":
            environment.update(SEALANE_POLICY="speculate", SEALANE_WORKERS="3")
            environment.pop("SEALANE_ENABLE", None)
        if self.command[-1] in ("registered", "stall"):
            environment.pop("SEALANE_OBSERVE", None)

    def choose_fault(self):
        if self.kind == "trouble":
            self.attacked = "attack" in map(str, self.command)
        elif self.kind in ("stale", "example") and self.sometimes(0.2):
            attack = self.dice.choice(["flip", "drop", "swap", "duplicate", "truncate"])
            where = self.dice.choice(["", ":to_host"])
            self.environment["SEALANE_EMU_ADVERSARY"] = f"{attack}@{self.dice.randint(2, 30)}{where}"
            self.attacked = True


class Watched:
    """A running process: memory, descriptors and threads, early and late in its life. How late it is
    its own processor time tells: by the clock a busy machine would have it start for most of its life."""

    def __init__(self, process):
        self.process = process
        self.samples = []

    def sample(self):
        try:
            root = Path(f"/proc/{self.process.pid}")
            fields = dict(line.split(":", 1) for line in (root / "status").read_text().splitlines())
            ticks = (root / "stat").read_text().rpartition(")")[2].split()[11:13]
            self.samples.append((sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
                                 int(fields["VmRSS"].split()[0]), len(os.listdir(root / "fd")),
                                 int(fields["Threads"])))
        except (OSError, KeyError, ValueError):
            pass  # it has just ended

    def growth(self):
        late_from = self.samples[-1][0] * 2 / 3 if self.samples else 0
        early = [sample[1:] for sample in self.samples if sample[0] < late_from]
        late = [sample[1:] for sample in self.samples if sample[0] >= late_from]
        if late_from < STARTED_CPU_SECONDS or min(len(early), len(late)) < 3:
            return None
        early = [max(column) for column in zip(*early)]
        late = [max(column) for column in zip(*late)]
        slack = (RSS_SLACK_KB + early[0] // 4, DESCRIPTOR_SLACK, THREAD_SLACK)
        for name, before, after, allowed in zip(("resident KiB", "descriptors", "threads"), early,
                                                late, slack):
            if after > before + allowed:
                return f"needs more and more: {name} {before}, later {after}"
        return None


def execute(run, scratch, long_seconds):
    """Runs it; nothing, or what was wrong."""
    truth = Path(scratch) / "truth"
    truth.unlink(missing_ok=True)
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                   "LD_LIBRARY_PATH": str(run.tree / "lib/emu"),
                   "LD_PRELOAD": os.environ.get("SOAK_PRELOAD_FIRST", "") +
                                 str(run.tree / "lib/sealane/libsealane-preload.so"),
                   "SEALANE_EMU_STATS": str(truth), **run.environment}
    for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
        if name in os.environ:
            environment[name] = os.environ[name]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([str(word) for word in run.command], env=environment, stdout=said,
                                   stderr=subprocess.STDOUT, cwd=scratch)
        watched = Watched(process)
        end = time.monotonic() + RUN_SECONDS_MAX
        while process.poll() is None and time.monotonic() < end:
            watched.sample()
            time.sleep(min(0.1, long_seconds / 30))
        hangs = process.poll() is None
        if hangs:
            process.kill()
        process.wait()
        said.seek(0)
        text = said.read().decode(errors="replace")
    problem = "it hangs" if hangs else judge(run, process.returncode, text, truth) or watched.growth()
    return problem and f"{problem}\n{text[-3000:]}"


def judge(run, code, text, truth):
    if "broken invariant" in text:
        return "a broken invariant"
    if code < 0:
        return f"ended by signal {-code}"
    if "stale" in text or "wrong byte" in text:
        return "wrong bytes"
    if run.attacked and run.kind != "trouble":
        # Whether the attack met a message depends on how many there were.
        return None if code == 0 or FORGED in text else f"exit {code} under attack, without the error"
    if code != 0:
        return f"exit {code}"
    ends_in_flight = run.attacked or "exit" in map(str, run.command)
    if ends_in_flight or not truth.exists():
        return None
    counted = json.loads(truth.read_text())
    for direction in ("to_device", "to_host"):
        lane = counted[direction]
        if lane["rejected"] or lane["sealed_bytes"] != lane["verified_bytes"]:
            return f"the device did not verify what was sealed: {direction} {lane}"
    return None


def command_line(run):
    variables = " ".join(f"{name}={value}" for name, value in sorted(run.environment.items()))
    return f"{variables} {' '.join(str(word) for word in run.command)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build", help="the build tree (build)")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--runs", type=int, default=None, help="so many, however long they take")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", type=int, default=None, help="replay this run")
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(1 << 31)
    tree = Path(asked.build).resolve()
    long_seconds = 1 if asked.runs is not None else 3 if asked.minutes < 5 else 60
    bound = f"--minutes {asked.minutes}" if asked.runs is None else f"--runs {asked.runs}"
    print(f"soak: seed {seed}, {bound}", flush=True)
    began = time.monotonic()
    failures = 0
    number = asked.only or 0
    with tempfile.TemporaryDirectory() as scratch:
        while (time.monotonic() - began < asked.minutes * 60 if asked.runs is None
               else number < asked.runs or asked.only is not None):
            run = Run(seed, number, tree, long_seconds)
            problem = execute(run, scratch, long_seconds)
            if problem:
                failures += 1
                print(f"run {number} failed: {problem}\n  replay: {sys.argv[0]} --build {asked.build} "
                      f"{bound} --seed {seed} --only {number}\n"
                      f"  or: {command_line(run)}", flush=True)
            number += 1
            if asked.only is not None:
                break
    print(f"soak: {number - (asked.only or 0)} runs, {failures} failed, "
          f"{time.monotonic() - began:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
