#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does every test that a page names as its proof exist? Usage: named_tests.py CTEST BUILD SOURCE

A page may name a test (`preload.forged`), a pattern for ctest (-R) or one for a program of tests (--gtest_filter): each
must match something. Ends with 77 where not all tests are built.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Iterator, List, Tuple

# Families that are there wherever the preload is. Others depend on what is installed.
NAMED = re.compile(r"`((?:preload|cuda|clients)\.[a-z0-9_.*-]+)`")
CTEST = re.compile(r"ctest [^`\n]*-R (?:'([^']+)'|([^\s`']+))")
FILTER = re.compile(r"--gtest_filter='?([^'`\s]+)")
OPTIONAL = re.compile(r"NAME|valgrind|constant_time|torch")  # a placeholder; what needs more than Debian's minimum


def all_tests(ctest: str, build: str) -> List[str]:
    """By way of a directory whose only part is the build: ctest writes a log where it looks, also if it only lists."""
    with tempfile.TemporaryDirectory() as apart:
        pathlib.Path(apart, "CTestTestfile.cmake").write_text(f'subdirs("{build}")\n', encoding="utf-8")
        said = subprocess.run([ctest, "--test-dir", apart, "-N"], capture_output=True, text=True, check=True)
    return re.findall(r"^ *Test +#\d+: (.+)$", said.stdout, re.M)


def named_on(text: str) -> Iterator[Tuple[str, "re.Pattern[str]"]]:
    """What stands on the page, and what it means."""
    for name in NAMED.findall(text):
        yield name, re.compile("^" + re.escape(name).replace(r"\*", ".*"))
    for quoted, bare in CTEST.findall(text):
        pattern = (quoted or bare).replace("\\|", "|")  # in a table a bar is escaped
        if not OPTIONAL.search(pattern):
            yield pattern, re.compile(pattern)
    for patterns in FILTER.findall(text):
        for pattern in patterns.split("-")[0].split(":"):
            yield pattern, re.compile(fnmatch.translate(pattern))


def main() -> None:
    ctest, build, source = sys.argv[1:]
    tests = all_tests(ctest, build)
    if any(test.endswith("_NOT_BUILT") for test in tests):
        print("not all tests are built: nothing to compare with")
        sys.exit(77)
    checked, wrong = 0, 0
    for page in [pathlib.Path(source, "README.md"), *sorted(pathlib.Path(source, "docs").rglob("*.md"))]:
        for name, meaning in named_on(page.read_text(encoding="utf-8")):
            checked += 1
            if not any(meaning.search(test) for test in tests):
                wrong += 1
                print(f"{page}: there is no test {name}")
    print(f"{checked} names of tests, {wrong} of tests that are not there")
    sys.exit(1 if wrong > 0 or checked < 30 else 0)


if __name__ == "__main__":
    main()
