# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Prints what CMake needs to compile against this interpreter's PyTorch, one NAME=VALUE per line."""

import os
import sysconfig

import torch

inside = os.path.join(os.path.dirname(torch.__file__), "include")  # wheels; Debian: the system's
root = inside if os.path.isdir(os.path.join(inside, "torch", "csrc")) else "/usr/include"
includes = [root, os.path.join(root, "torch/csrc/api/include"), sysconfig.get_paths()["include"]]

print("VERSION=" + torch.__version__.split("+")[0])
print("INCLUDES=" + ";".join(includes))
print("LIBRARIES=" + os.path.join(os.path.dirname(torch.__file__), "lib"))
print("CXX11_ABI=" + str(int(torch._C._GLIBCXX_USE_CXX11_ABI)))
print("PYBIND_ABI=" + str(getattr(torch._C, "_PYBIND11_BUILD_ABI", None) or ""))
print("SUFFIX=" + sysconfig.get_config_var("EXT_SUFFIX"))
