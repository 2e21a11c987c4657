# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the package's native parts with CMake. SEALANE_BUILD=DIRECTORY uses a build there is."""

import importlib.util
import os
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))


class CMakeBuild(build_ext):
    """_torch, the library under it and the program, as CMake's component "python" has them."""

    def run(self) -> None:
        build = os.environ.get("SEALANE_BUILD")
        if build is None:
            self.require_torch()
            build = os.path.abspath(os.path.join(self.build_temp, "cmake"))
            self.call("-S", HERE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                      f"-DSEALANE_PYTHON={sys.executable}")
        targets = ("sealane-torch", "sealane", "sealane-program")
        self.call("--build", build, "--target", *targets)
        package = os.path.join(HERE, "python") if self.inplace else os.path.abspath(self.build_lib)
        self.call("--install", build, "--component", "python", "--prefix", package)

    @staticmethod
    def require_torch() -> None:
        if importlib.util.find_spec("torch") is None:
            raise SystemExit(
                f"sealane: {sys.executable} sees no PyTorch. Make the environment from the Python that "
                "has it (Debian: /usr/bin/python3 -m venv --system-site-packages), and call pip with "
                "--no-build-isolation"
            )

    @staticmethod
    def call(*arguments: str) -> None:
        if subprocess.call(["cmake", *arguments]) != 0:
            raise SystemExit(
                "sealane: CMake failed: see above. It needs PyTorch with its headers (Debian: "
                "python3-torch libtorch-dev pybind11-dev) and what 'tools/setup.sh build' installs"
            )


setup(ext_modules=[Extension("sealane._torch", sources=[])], cmdclass={"build_ext": CMakeBuild})
