#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""The pages of `sealane report` and `sealane trial` in a real browser. Usage: browser.py SEALANE

Loaded from a file, with no name resolvable: do they ask the network for anything, are all charts drawn, does
nothing stick out at 400 pixels, is there a dark page for people who want one, and can they be printed? Ends with 77
without Chromium.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import List

# Appended to a copy of the page: looks at it when it is done, and leaves what it saw in the document.
PROBE = """
<script>
window.addEventListener('load', () => requestAnimationFrame(() => setTimeout(() => {
  const charts = [...document.querySelectorAll('canvas')];
  const painted = canvas => canvas.width > 0 && canvas.height > 0 &&
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(value => value !== 0);
  const background = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
  const sticking = [...document.querySelectorAll('body *')].filter(element =>
    element.getBoundingClientRect().right > document.documentElement.clientWidth + 1 &&
    !element.closest('.scroll, .line, svg')).map(element => element.tagName + '.' + element.className);
  const seen = document.createElement('script');
  seen.type = 'application/json';
  seen.id = 'seen';
  seen.textContent = JSON.stringify({
    charts: charts.length, painted: charts.filter(painted).length,
    requests: performance.getEntriesByType('resource').map(entry => entry.name),
    width: window.innerWidth, sticking: sticking.slice(0, 5),
    cut: [...document.querySelectorAll('.scroll')].filter(element => element.scrollWidth > element.clientWidth + 1).length,
    dark: background.slice(0, 3).reduce((sum, value) => sum + value, 0) < 384,
    errors: window.seenErrors, text: document.body.innerText.length,
  });
  document.body.append(seen);
}, 300)));
</script>
"""
ERRORS = "<script>window.seenErrors = []; window.onerror = message => seenErrors.push(String(message));</script>\n"


def browser(scratch: str) -> List[str]:
    return [
        shutil.which("chromium") or "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000",
        f"--user-data-dir={scratch}/profile", "--allow-file-access-from-files"]


PAPER = 717  # pixels between the margins of A4


def look(page: str, width: int, dark: bool, scratch: str, paper: bool = False) -> dict:
    with open(page, encoding="utf-8") as file:
        html = file.read()
    if paper:  # a browser without a remote control says nothing of a print: the rules for it, on a screen
        html = html.replace("@media print", "@media all")
    copy = os.path.join(scratch, "page.html")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(html.replace("<head>", "<head>" + ERRORS, 1).replace("</body>", PROBE + "</body>"))
    # A window may have a least width; a frame has none.
    frame = os.path.join(scratch, "frame.html")
    command = [
        *browser(scratch), f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--window-size={max(width, 600)},900",
        "--dump-dom", "file://" + frame]
    with open(frame, "w", encoding="utf-8") as file:
        file.write(
            f"<iframe src='page.html' style='width:{width}px;height:800px;border:0'></iframe><script>"
            "const wait = () => { const seen = document.querySelector('iframe').contentDocument"
            "?.getElementById('seen'); if (!seen) return setTimeout(wait, 50);"
            "document.body.append(seen.cloneNode(true)); }; wait();</script>")
    dom = ""
    for _ in range(3):  # on a busy machine its budget of virtual time can be over before the frame is loaded
        dom = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False).stdout
        found = re.search(r'<script type="application/json" id="seen">(.*?)</script>', dom, re.S)
        if found:
            return json.loads(found.group(1))
    raise SystemExit(f"{page}: the browser came to no end; it has {len(dom)} characters")


def print_out(page: str, scratch: str) -> None:
    """By somebody whose screen is dark: paper is not. A dark ground would be a fill of every page."""
    paper = os.path.join(scratch, "paper.pdf")
    subprocess.run([*browser(scratch), "--blink-settings=preferredColorScheme=0", f"--print-to-pdf={paper}",
                    "file://" + page], capture_output=True, timeout=500, check=True)
    with open(paper, "rb") as file:
        pdf = file.read()
    pages = len(re.findall(rb"/Type /Page\b", pdf))
    assert pdf.startswith(b"%PDF") and pages >= 1, f"{page}: {len(pdf)} bytes, {pages} pages"
    css = re.search(r"<style>(.*?)</style>", open(page, encoding="utf-8").read(), re.S)
    assert css and "@media print" in css[1] and "@media (prefers-color-scheme" not in css[1], f"{page}: dark on paper"
    seen = look(page, PAPER, False, scratch, paper=True)
    assert seen["cut"] == 0, f"{page}: tables are cut off on paper: {seen}"
    print(f"ok: {os.path.basename(page)}, printed: {pages} pages")


def check(page: str, charts_min: int, scratch: str) -> None:
    for width, dark in ((1200, False), (400, False), (400, True)):
        seen = look(page, width, dark, scratch)
        name = f"{os.path.basename(page)} at {width} px{', dark' if dark else ''}: {seen}"
        assert seen["errors"] == [], name
        assert seen["requests"] == [], name
        assert seen["charts"] >= charts_min and seen["painted"] == seen["charts"], name
        assert seen["width"] == width and seen["sticking"] == [], name
        assert seen["dark"] == dark, name
        assert seen["text"] > 200, name
        print(f"ok: {os.path.basename(page)}, {width} px{', dark' if dark else ''}: {seen['charts']} charts")


def main() -> None:
    if shutil.which("chromium") is None:
        print("no chromium here: the pages were not looked at")
        sys.exit(77)
    sealane = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        def made(*words: str) -> None:
            subprocess.run([sealane, *words], cwd=scratch, check=True, stdout=subprocess.DEVNULL, timeout=500)

        made("estimate", "--workload", "flexgen", "--model", "opt-30b", "--platform", "h100-sxm", "--steps", "1",
             "--policy", "off,stock,parallel", "--fleet", "--gpu-price", "4", "--core-price", "0.05",
             "--json", "estimate.json")
        made("validate", "--draws", "0", "--json", "validate.json")
        made("report", "estimate.json", "validate.json", "-o", "report.html")
        check(os.path.join(scratch, "report.html"), 2, scratch)
        print_out(os.path.join(scratch, "report.html"), scratch)
        trial = os.path.join(scratch, "trial")
        subprocess.run([sealane, "trial", "--emulate", "-o", trial, "--", "true"], check=False, timeout=500,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        check(os.path.join(trial, "report.html"), 0, scratch)


if __name__ == "__main__":
    main()
