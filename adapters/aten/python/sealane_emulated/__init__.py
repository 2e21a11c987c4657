# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators for the emulated GPU. PyTorch itself calls take_over() at the end of `import torch`."""

import atexit
import os
import sys


def take_over() -> None:
    import torch

    if torch.version.cuda is None or os.environ.get("SEALANE_EMU_ATEN") == "off":
        return
    library = os.path.join(os.path.dirname(__file__), f"operators-{torch.__version__}.so")
    if not os.path.exists(library):
        print(
            f"sealane emulated GPU: no operators were built for PyTorch {torch.__version__} (docs/engines.md): "
            "tensors move, kernels of its wheel are machine code and cannot run",
            file=sys.stderr,
        )
        return
    torch.ops.load_library(library)
    torch.ops.sealane_emulated.take_over()
    atexit.register(_wait_for_devices)


def _wait_for_devices() -> None:
    """Threads of the device use PyTorch's libraries: they are done before these are."""
    import torch

    if not torch.cuda.is_initialized():
        return
    for device in range(torch.cuda.device_count()):
        try:
            torch.cuda.synchronize(device)
        except RuntimeError:
            pass  # a failed context runs nothing any more
