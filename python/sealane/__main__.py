# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""The program ``sealane`` (``sealane keygen`` and the rest), where the package brought it along."""

import os
import sys


def main() -> None:
    """Becomes the program."""
    program = os.path.join(os.path.dirname(__file__), "sealane-program")
    if not os.path.exists(program):
        raise SystemExit("sealane: in a build tree the program is build/bin/sealane")
    os.execv(program, ["sealane", *sys.argv[1:]])


if __name__ == "__main__":
    main()
