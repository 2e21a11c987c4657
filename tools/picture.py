#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what README.md begins with, from what was measured. Usage: picture.py docs/results/picture.txt > docs/copies.svg

The file is what `tools/copy_results.sh picture` wrote: a median and its interquartile range for each bar.
"""

import re
import sys
from typing import Dict, NamedTuple

WIDTH = 549  # of the longest bar, in pixels
LEFT = 170


class Bar(NamedTuple):
    ms: float
    spread_pct: int  # interquartile range, of the median


def bars(results: str) -> Dict[str, Bar]:
    """By policy."""
    found = re.findall(r"^(off|stock|sealane) +([0-9.]+) +([0-9]+) %", results, re.M)
    if sorted(policy for policy, _, _ in found) != ["off", "sealane", "stock"]:
        raise SystemExit("picture.py: not what 'tools/copy_results.sh picture' writes, or without spreads")
    return {policy: Bar(float(ms), int(spread)) for policy, ms, spread in found}


def said(bar: Bar) -> str:
    return f"{bar.ms:.1f} ms"


def words(found: Dict[str, Bar]) -> str:
    """The picture in a sentence, for those who do not see it."""
    return f"{said(found['off'])} with CC mode off, {said(found['stock'])} as shipped, {said(found['sealane'])} with Sealane"


def svg(found: Dict[str, Bar]) -> str:
    off, stock, ours = found["off"], found["stock"], found["sealane"]
    scale = WIDTH / stock.ms
    base = round(off.ms * scale)
    more = round((ours.ms - off.ms) * scale)
    spreads = f"{off.spread_pct}, {stock.spread_pct} and {ours.spread_pct} %"
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 250" role="img" font-family="system-ui, 'Liberation Sans', \
sans-serif" font-size="14">
<title>One step of a program that swaps layers: {words(found)}</title>
<style>
  text {{ fill: #1d2328 }} .quiet {{ fill: #5b6670; font-size: 12px }}
  @media (prefers-color-scheme: dark) {{ text {{ fill: #e6eaed }} .quiet {{ fill: #9aa5ae }} }}
</style>
<text x="0" y="16" font-weight="600">A program that keeps its layers in CPU memory, and copies each to the GPU when it \
is needed</text>
<g transform="translate(0 40)">
  <text x="0" y="22">CC mode off</text>
  <rect x="{LEFT}" y="6" width="{base}" height="22" rx="3" fill="#8a949d"/>
  <text x="{LEFT + base + 10}" y="22">{said(off)}</text>
  <text x="0" y="66">CC mode as shipped</text>
  <rect x="{LEFT}" y="50" width="{base}" height="22" rx="3" fill="#8a949d"/>
  <rect x="{LEFT + base}" y="50" width="{WIDTH - base}" height="22" rx="3" fill="#d1495b"/>
  <text x="{LEFT + base + 23}" y="66" style="fill:#fff">{said(stock)}: one core encrypts, and the program waits</text>
  <text x="0" y="110">with Sealane</text>
  <rect x="{LEFT}" y="94" width="{base}" height="22" rx="3" fill="#8a949d"/>
  <rect x="{LEFT + base}" y="94" width="{more}" height="22" rx="3" fill="#2a9d6f"/>
  <text x="{LEFT + base + more + 10}" y="110">{said(ours)}: all cores encrypt, copies are asynchronous again</text>
</g>
<text class="quiet" x="0" y="196">MEASURED on the emulated GPU with the costs of an H100 in a TDX guest: layer_swap, 8 \
workers; medians of 7 runs,</text>
<text class="quiet" x="0" y="213">interquartile ranges {spreads} (docs/results/picture.txt). Never yet on a real \
confidential GPU.</text>
<text class="quiet" x="0" y="240">sealane run -- PROGRAM: no change to the program, the driver or what is \
protected.</text>
</svg>
"""


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(svg(bars(file.read())))
