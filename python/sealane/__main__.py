# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""The program ``sealane`` (``sealane keygen`` and the rest): the package's own, else the one in PATH."""

import os
import shutil
import sys


def main() -> None:
    """Becomes the program."""
    program = os.path.join(os.path.dirname(__file__), "sealane-program")
    if not os.path.exists(program):  # Debian has it in a package of its own
        program = shutil.which("sealane") or ""
    if not program:
        raise SystemExit("sealane: no program `sealane` in PATH (Debian: the package sealane; a build: build/bin)")
    os.execv(program, ["sealane", *sys.argv[1:]])


if __name__ == "__main__":
    main()
