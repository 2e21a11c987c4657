# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the package's native parts with CMake. SEALANE_BUILD=DIRECTORY uses a build there is."""

import importlib.util
import os
import shutil
import subprocess
import sys
from typing import List

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))


def torch_version() -> str:
    if importlib.util.find_spec("torch") is None:
        raise SystemExit(
            f"sealane: {sys.executable} sees no PyTorch. Make the environment from the Python that "
            "has it (Debian: /usr/bin/python3 -m venv --system-site-packages), and call pip with "
            "--no-build-isolation"
        )
    import torch  # pylint: disable=import-outside-toplevel

    return torch.__version__.split("+", maxsplit=1)[0]


def has_new_abi() -> bool:
    """PyPI's wheels have the strings of the C++ library's newer ABI since 2.7."""
    import torch  # pylint: disable=import-outside-toplevel

    return bool(torch._C._GLIBCXX_USE_CXX11_ABI)


def requirements() -> List[str]:
    """The PyTorch it is built for; Debian's has a version that no requirement can name."""
    if "SEALANE_BUILD" not in os.environ and importlib.util.find_spec("torch") is None:
        return []  # build_ext says so
    major, minor = torch_version().split(".")[:2]
    return [f"torch=={major}.{minor}.*"] if int(major) >= 2 else []


class CMakeBuild(build_ext):
    """_torch, the library under it and the program, as a CMake component has them."""

    def run(self) -> None:
        version = torch_version()
        build = os.environ.get("SEALANE_BUILD")
        if build is None:
            build = os.path.abspath(os.path.join(self.build_temp, "cmake"))
            self.call("-S", HERE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                      "-DCMAKE_UNITY_BUILD=ON", f"-DSEALANE_PYTHON={sys.executable}",
                      f"-DSEALANE_OLD_ABI={'OFF' if has_new_abi() else 'ON'}")
        backend = self.backend_for(version, build)
        self.call("--build", build, "--target", backend, "sealane", "sealane-program")
        package = os.path.join(HERE, "python") if self.inplace else os.path.abspath(self.build_lib)
        self.call("--install", build, "--component", backend, "--prefix", package)
        self.strip(os.path.join(package, "sealane"))

    @staticmethod
    def backend_for(version: str, build: str) -> str:
        """A build may have two: for the system's PyTorch, and for the one of `make torch2`."""
        for target, package in (("sealane-torch", "python"), ("sealane-torch2", "torch2/python")):
            path = os.path.join(build, package, "sealane", "_build.py")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    if f'TORCH = "{version}"' in file.read():
                        return target
        raise SystemExit(f"sealane: the build in {build} has no backend for PyTorch {version}")

    @staticmethod
    def strip(package: str) -> None:
        """What debuggers want is most of the size."""
        files = [name for name in os.listdir(package) if ".so" in name or name == "sealane-program"]
        if shutil.which("strip") is not None:
            subprocess.check_call(["strip", "--strip-debug", *files], cwd=package)

    @staticmethod
    def call(*arguments: str) -> None:
        if subprocess.call(["cmake", *arguments]) != 0:
            raise SystemExit(
                "sealane: CMake failed: see above. It needs PyTorch with its headers (Debian: "
                "python3-torch libtorch-dev pybind11-dev) and what 'tools/setup.sh build' installs"
            )


setup(
    ext_modules=[Extension("sealane._torch", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    install_requires=requirements(),
)
