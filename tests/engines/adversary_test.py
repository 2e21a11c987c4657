# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Somebody changes one message on the bus: PyTorch gets a CUDA error, never a wrong byte, and the context stays failed.
# Run by run.sh with --adversary.
import unittest

import torch


class Attacked(unittest.TestCase):
    def test_an_attack_ends_in_an_error_and_not_in_wrong_bytes(self):
        torch.manual_seed(20250122)
        with self.assertRaises(RuntimeError) as raised:
            for _ in range(40):
                source = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True).random_(0, 256)
                there = source.to("cuda", non_blocking=True)
                back = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
                back.copy_(there, non_blocking=True)
                torch.cuda.synchronize()
                if not torch.equal(source, back):
                    self.fail("wrong bytes were delivered")
        self.assertIn("ECC", str(raised.exception))
        for _ in range(3):
            with self.assertRaises(RuntimeError):
                torch.arange(8).cuda()
                torch.cuda.synchronize()


if __name__ == "__main__":
    unittest.main()
