#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does every test that a page names as its proof exist? Usage: named_tests.py CTEST BUILD SOURCE

A page may name a test (`preload.forged`, `Join.RanksThat`), a pattern for ctest (-R), one for a program of tests
(--gtest_filter), such a program, or a script of tests: each must match something, a filter a test of the program before
it. Ends with 77 where not all tests are built.
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Callable, Iterator, List, NamedTuple, Tuple


class Test(NamedTuple):
    name: str
    command: List[str]


# Families that are there wherever the preload is, and those for which more than Debian's minimum is needed.
NAMED = re.compile(r"`((?:preload|cuda|clients|valgrind|pages|recipes)\.[a-z0-9_.*-]+)`")
OPTIONAL = {"valgrind": "valgrind", "constant_time": "valgrind", "torch": "torch", "pages.charts": "pages.charts",
            "pages.browser": "pages.browser", "recipes": "recipes"}
CASE = re.compile(r"`([A-Z]\w+\.[A-Z]\w+)`")
CTEST = re.compile(r"ctest [^`\n]*-R (?:'([^']+)'|([^\s`']+))")
FILTER = re.compile(r"(?:(\w+)\s+)?--gtest_filter='?([^'`\s]+)")
PROGRAM = re.compile(r"\bbuild/tests/(\w+)")
SCRIPT = re.compile(r"`(?:[\w/]+/)?(\w+_test\.py)`")  # of files of C++ pages_test knows
PLACEHOLDER = "NAME"


def all_tests(ctest: str, build: str) -> List[Test]:
    """By way of a directory whose only part is the build: ctest writes a log where it looks, also if it only lists."""
    with tempfile.TemporaryDirectory() as apart:
        pathlib.Path(apart, "CTestTestfile.cmake").write_text(f'subdirs("{build}")\n', encoding="utf-8")
        said = subprocess.run(
            [ctest, "--test-dir", apart, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return [Test(each["name"], each.get("command", [])) for each in json.loads(said.stdout)["tests"]]


def is_there(family_of: str, tests: List[Test]) -> bool:
    """Is the family of tests built here that this is of, if it is one of those that need not be?"""
    for word, family in OPTIONAL.items():
        if word in family_of:
            return any(test.name.startswith(family) for test in tests)
    return True


def named_on(text: str, tests: List[Test], build: str) -> Iterator[Tuple[str, Callable[[], bool]]]:
    """What stands on the page, and whether there is such a thing."""
    names = [test.name for test in tests]

    def any_is(meaning: "re.Pattern[str]", among: List[str]) -> Callable[[], bool]:
        return lambda: any(meaning.search(name) for name in among)

    for name in NAMED.findall(text):
        if is_there(name, tests):
            yield name, any_is(re.compile("^" + re.escape(name).replace(r"\*", ".*")), names)
    for name in CASE.findall(text):
        yield name, any_is(re.compile(rf"(^|/){re.escape(name)}(/|$)"), names)
    for quoted, bare in CTEST.findall(text):
        pattern = (quoted or bare).replace("\\|", "|")  # in a table a bar is escaped
        if PLACEHOLDER not in pattern and is_there(pattern, tests):
            yield pattern, any_is(re.compile(pattern), names)
    for program, patterns in FILTER.findall(text):
        own = [test.name for test in tests if not program or pathlib.Path((test.command or [""])[0]).name == program]
        for pattern in patterns.split("-")[0].split(":"):
            yield f"{program} {pattern}".strip(), any_is(re.compile(fnmatch.translate(pattern)), own)
    for program in PROGRAM.findall(text):
        yield "build/tests/" + program, pathlib.Path(build, "tests", program).exists
    arguments = [pathlib.Path(argument).name for test in tests for argument in test.command]
    for name in SCRIPT.findall(text):
        if is_there("torch", tests):  # whose they are
            yield name, any_is(re.compile(rf"^{re.escape(name)}$"), arguments)


def main() -> None:
    ctest, build, source = sys.argv[1:]
    tests = all_tests(ctest, build)
    if any(test.name.endswith("_NOT_BUILT") for test in tests):
        print("not all tests are built: nothing to compare with")
        sys.exit(77)
    checked, wrong = 0, 0
    for page in [pathlib.Path(source, "README.md"), *sorted(pathlib.Path(source, "docs").rglob("*.md"))]:
        for name, exists in named_on(page.read_text(encoding="utf-8"), tests, build):
            checked += 1
            if not exists():
                wrong += 1
                print(f"{page}: there is no test {name}")
    print(f"{checked} names of tests, {wrong} of tests that are not there")
    sys.exit(1 if wrong > 0 or checked < 30 else 0)


if __name__ == "__main__":
    main()
