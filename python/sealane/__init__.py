# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Sealed communication for training in confidential computing.

``import sealane.torch`` adds the backend ``sealane`` to ``torch.distributed``.
"""

__version__ = "0.1.0"
