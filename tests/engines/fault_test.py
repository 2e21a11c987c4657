# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# An operator that fails on the device fails the context, as a kernel does: later calls get the CUDA error. Run by
# run.sh.
import unittest

import torch
import torch.nn.functional as F


class Faults(unittest.TestCase):
    def test_an_index_that_is_none_fails_the_context(self):
        with self.assertRaisesRegex(RuntimeError, "CUDA error"):
            F.embedding(torch.tensor([99], device="cuda"), torch.randn(3, 4, device="cuda"))
            torch.cuda.synchronize()
        with self.assertRaisesRegex(RuntimeError, "CUDA error"):
            torch.arange(3).cuda()


if __name__ == "__main__":
    unittest.main()
