#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Are the figures of README.md's first screen and of the pages' headline claims those of a command? Usage: claims.py SOURCE

Each is looked up in the file under docs/results that a command wrote, and must be what stands there, rounded as the page
rounds it. A figure that was predicted or measured must have its interval or spread there too. Numbers of formats must
be those of the code.
"""

import pathlib
import re
import sys
from typing import Dict, List, NamedTuple, Tuple

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tools"))
import picture  # pylint: disable=import-error,wrong-import-position


class Row(NamedTuple):
    published: Tuple[float, float]
    model: float
    has_interval: bool
    counted: bool


def read(name: str) -> str:
    return (SOURCE / name).read_text(encoding="utf-8")


def one_line(text: str) -> str:
    """Pages are wrapped; claims are not."""
    return re.sub(r"\s+", " ", text)


def validated() -> Dict[str, Row]:
    """The rows of docs/results/validate.txt, by name. A name may go on in an indented line, where its figures are."""
    rows: Dict[str, Row] = {}
    begun = ""
    for line in read("docs/results/validate.txt").split("of those that set no parameter", 1)[0].splitlines():
        found = re.match(r"^( *\S.*?)  +([0-9.]+)(?:-([0-9.]+))? (?:us|GB/s|%|x|ms) +([0-9.]+) +(\S+) ", line)
        if not found:
            begun = line.strip() if re.match(r"^\S.*[a-z,]$", line) else ""
            continue
        name = f"{begun} {found[1].strip()}" if found[1].startswith("  ") else found[1]
        low = float(found[2])
        rows[name] = Row((low, float(found[3] or low)), float(found[4]), found[5] != "-", not line.endswith(" c"))
    return rows


def rounds_to(exact: float, shown: str) -> bool:
    digits = len(shown.split(".")[1]) if "." in shown else 0
    return abs(exact - float(shown)) <= 0.5001 * 10**-digits


def check_picture(wrong: List[str]) -> None:
    found = picture.bars(read("docs/results/picture.txt"))
    if picture.svg(found) != read("docs/copies.svg"):
        wrong.append("docs/copies.svg is not what tools/picture.py draws of docs/results/picture.txt")
    if f"![{picture.words(found)}](docs/copies.svg)" not in read("README.md"):
        wrong.append(f"README.md: the picture's words are not '{picture.words(found)}'")


# What people published, as README.md and the demo quote it: whole numbers of rows that `validate` foretells.
QUOTED = (
    (r"(?:los(?:ing|es)|serving) (\d+) to \d+ %", "vLLM OPT-30B, worst stock loss"),
    (r"(?:los(?:ing|es)|serving) \d+ to (\d+) %", "FlexGen OPT-66B, stock loss"),
    (r"(?:becom(?:ing|es)|training) (\d+)(?:x| times|-)", "average over models, 4 GPUs"),
    (r"up to (\d+)", "GPT-2-XL, 4 GPUs, 25 MiB buckets"),
)


def check_quoted(wrong: List[str]) -> None:
    rows = validated()
    for page in ("README.md", "tools/demo.sh"):
        text = one_line(read(page).replace('" \\\n', " ").replace('"', ""))
        for pattern, name in QUOTED:
            said = re.search(pattern, text)
            if said is None:
                wrong.append(f"{page}: nothing like '{pattern}'")
            elif int(said[1]) not in (int(rows[name].published[0]), round(rows[name].published[0])):
                wrong.append(f"{page}: '{said[0]}', but {name} is {rows[name].published[0]}")
            if not rows[name].has_interval:
                wrong.append(f"docs/results/validate.txt: {name} has no interval")


def check_bench_seal(wrong: List[str]) -> None:
    """Rows of the sample: name and figures of the record in README.md, and the same in the results."""
    results = [line.split() for line in read("docs/results/engines-zen3.txt").splitlines()]
    sample = re.findall(r"^(seal|open) +(DRAM|L2) +64 KiB +(.*)$", read("README.md"), re.M)
    if len(sample) < 4:
        wrong.append("README.md: no sample of 'bench seal'")
    for operation, place, figures in sample:
        row = next(line for line in results if line[:4] == [operation, place, "64", "KiB"])
        # memcpy (spread) nt copy (spread), four engines with spreads, of memcpy, of openssl
        rates = [row[4], *row[8:16:2]]
        if figures.split()[:5] + figures.split()[-2:] != rates + [row[-1], row[-2]]:
            wrong.append(f"README.md: {operation} {place}: {figures}, but the results have {' '.join(row)}")


def check_validation(wrong: List[str]) -> None:
    results = one_line(read("docs/results/validate.txt"))
    page = one_line(read("docs/validation.md"))
    numbers, sources, counted, share = re.search(
        r"(\d+) numbers from (\d+) sources; (\d+) of them, (\d+) %, set no parameter", results).groups()
    inside, inside_of, inside_pct = re.search(r" all +\d+ .*?(\d+) of (\d+), (\d+) %", results).groups()
    for sentence in (f"{numbers} numbers from {sources} sources, of which {counted} ({share} %) set no parameter",
                     f"Of the {inside_of} numbers that set no parameter, {inside} lie inside: {inside_pct} %"):
        if sentence not in page:
            wrong.append(f"docs/validation.md: does not say '{sentence}'")
    # The table by kind: points and how many of them lie inside.
    for kind, points, within in re.findall(r"\| ([a-zA-Z][^|]*?) \| (\d+) \| (\d+) \|", page):
        name = re.sub(r" \(.*\)", "", kind).replace("copies, CC on", "copies")
        found = re.search(rf" {re.escape(name)} +(\d+) +[0-9.]+ % +[0-9.]+ % +(\d+) of \1", results)
        if not found or (points, within) != found.groups():
            wrong.append(f"docs/validation.md: {kind}: {within} of {points}, but the results have {found and found[0]}")


# Cells of the table "What it says" with one figure for each of these rows, predicted.
PREDICTED = (
    ("FlexGen OPT-66B, loss with stock CC", ["FlexGen OPT-66B, stock loss"]),
    ("vLLM OPT-30B, worst loss with stock CC", ["vLLM OPT-30B, worst stock loss"]),
    ("vLLM OPT-30B under PipeLLM", ["vLLM under PipeLLM, least loss", "vLLM under PipeLLM, worst loss"]),
    ("FlexGen OPT-66B under PipeLLM", ["FlexGen OPT-66B under PipeLLM"]),
    ("loss with 1, 4, 8, 16", [f"SGLang, {n} at a time, stock loss" for n in (1, 4, 8, 16)]),
    ("loss with 32, 64, 128, 256", [f"SGLang, {n} at a time, stock loss" for n in (32, 64, 128, 256)]),
    ("loss with a thread for copies", ["SGLang with a thread for copies, 1 at a time, loss"]),
    ("vLLM on Blackwell, loss", ["vLLM on Blackwell, stock loss"]),
    ("KV restore; model load, one context against a pool",
     ["KV restore to first token, stock", "model load, one context against a pool"]),
    ("SGLang on B200, unpatched; patched, loss",
     ["SGLang on B200, unpatched, stock loss", "SGLang on B200, patched, loss"]),
    ("B200, a step kernel by kernel; as one graph",
     ["B200, a step launched kernel by kernel", "B200, a step that is one graph"]),
    ("B200, a training step over encrypted NVLink", ["a step over encrypted NVLink"]),
    ("training, loss of throughput", ["training, loss of throughput"]),
    ("H100 in TDX, in a loop; at a rate, loss",
     ["H100 in TDX, in a closed loop, stock loss", "H100 in TDX, at a fixed rate, stock loss"]),
    ("H100 in 2025; in 2024, loss", ["H100, Llama 2, stock loss", "H100 in SEV-SNP, most queries, stock loss"]),
    ("DeepSeek-R1 on 8 B200, patched, loss", ["DeepSeek-R1 on 8 B200, patched, loss"]),
    ("GPT-2-XL, 4 GPUs, large buckets", ["GPT-2-XL, 4 GPUs, large buckets"]),
    ("average over models", ["average over models, 4 GPUs"]),
)


def check_predictions(wrong: List[str]) -> None:
    rows = validated()
    cells = {line.split("|")[2].strip(): line.split("|")[4] for line in read("docs/validation.md").splitlines()
             if line.count("|") == 6}
    for what, names in PREDICTED:
        shown = re.findall(r"[0-9.]+", cells.get(what, ""))
        if len(shown) != len(names):
            wrong.append(f"docs/validation.md: '{what}': {cells.get(what)} is not {len(names)} figures")
            continue
        for figure, name in zip(shown, names):
            if not rounds_to(rows[name].model, figure):
                wrong.append(f"docs/validation.md: '{what}': {figure}, but {name} is {rows[name].model}")
            if not rows[name].has_interval:
                wrong.append(f"docs/results/validate.txt: {name} has no interval")


def check_evidence(wrong: List[str]) -> None:
    page = one_line(read("docs/evidence.md"))
    results = read("docs/results/validate.txt")
    median, worst = re.search(r"^recorded runs +3 +([0-9.]+) % +([0-9.]+) %", results, re.M).groups()
    claim = re.search(r"off by (\d+) % at worst, (\d+) % in the median, over three programs", page)
    if claim is None or not (rounds_to(float(worst), claim[1]) and rounds_to(float(median), claim[2])):
        wrong.append(f"docs/evidence.md: recorded runs are off by {worst} % at worst, {median} % in the median")
    ratios: Dict[int, List[float]] = {7: [], 8: []}
    for line in read("docs/results/ddp-2core-vm.txt").split("The same command")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 10 and cells[1] in ("2", "4"):
            for at in ratios:
                ratios[at].append(float(cells[at].split("x")[0]))
    claim = (f"{min(ratios[7]):.2f}x to {max(ratios[7]):.2f}x of our plain mode and "
             f"{min(ratios[8]):.2f}x to {max(ratios[8]):.2f}x of plain Gloo")
    if claim not in page:
        wrong.append(f"docs/evidence.md: does not say '{claim}'")


def check_hooked_calls(wrong: List[str]) -> None:
    """What a call costs more under the preload, at most, and what a claim costs."""
    measured = read("docs/results/calls-zen4.txt")
    dearest: Dict[Tuple[bool, str], float] = {}
    for setting, library, more in re.findall(
            r"^(CC off, preload|CC on, disabled|CC on, preload) +(cu|EVP)\w+ +l[a-z ]+[0-9.]+ +([-+][0-9.]+) ",
            measured, re.M):
        case = (setting == "CC on, preload", library)
        dearest[case] = max(dearest.get(case, 0.0), float(more))
    claimed = re.search(r"^claim/page_guards/1/.*_median .*us_per_MiB=([0-9.]+)", measured, re.M)
    claim = (f"With CC off a call of the driver costs at most {dearest[False, 'cu']:.1f} ns more under the runtime, one "
             f"of libcrypto {dearest[False, 'EVP']:.1f} ns; with CC on {dearest[True, 'cu']:.0f} and "
             f"{dearest[True, 'EVP']:.0f} ns if there is nothing to do. A request claims a foreseen MiB in "
             f"{float(claimed[1]):.1f} us where pages are guarded.")
    if claim not in one_line(read("docs/evidence.md")):
        wrong.append(f"docs/evidence.md: does not say '{claim}'")
    said = re.search(r"With CC on a hooked call costs (\d+) ns or less if there is nothing to do",
                     one_line(read("docs/runtime.md")))
    if said is None or not rounds_to(dearest[True, "cu"], said[1]):
        wrong.append(f"docs/runtime.md: a hooked call with CC on costs {dearest[True, 'cu']} ns more, "
                     f"not {said and said[1]}")


def check_versions(wrong: List[str]) -> None:
    """What docs/wire-format.md says of versions is what the code speaks."""
    page = one_line(read("docs/wire-format.md"))
    record = re.search(r"kVersion = (\d+);", read("src/seal/record.h"))[1]
    protocol = re.search(r"kProtocolVersion = (\d+);", read("src/core/session/hello.h"))[1]
    for sentence in (f"# The record format, version {record} ", f"version of the protocol (1 byte, {protocol})"):
        if sentence not in page:
            wrong.append(f"docs/wire-format.md: does not say '{sentence}'")
    if re.findall(r"\| (\d+) \| (\d+) \| [^|]+ \|", page)[-1] != (record, protocol):
        wrong.append(f"docs/wire-format.md: its last version is not format {record}, protocol {protocol}")


def main() -> None:
    wrong: List[str] = []
    for check in (check_picture, check_quoted, check_bench_seal, check_validation, check_predictions, check_evidence,
                  check_hooked_calls, check_versions):
        check(wrong)
    print("\n".join(wrong) or "every figure is one that a command wrote")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
