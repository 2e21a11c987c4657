# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The programs of `sealane bench engines`, small: the same tokens and losses as those of the CPU, in whatever mode
# this runs, and the detours serving engines take around CC mode. Run by run.sh.
import os
import unittest

import pinned_loader
import staged_copies
import torch


class Staged(unittest.TestCase):
    def test_staged_copies_and_copy_workers_give_the_same_tokens(self):
        _, decode = staged_copies.decoding(small=True)
        expected = staged_copies.reference(12)
        self.assertGreater(len({token for row in expected for token in row}), 16)
        for _ in range(3):
            self.assertEqual(decode(), expected)

    def test_registration_is_what_the_mode_allows(self):
        worker = staged_copies.BlockWorker(1, 4096)
        registered = worker.registered
        worker.close()
        carried = os.environ.get("ENGINES_POLICY") in ("parallel", "sealane", "speculate")
        self.assertEqual(registered, os.environ["ENGINES_CC"] == "off" or carried)


class Loader(unittest.TestCase):
    def test_batches_arrive_as_they_were_also_from_worker_processes(self):
        torch.manual_seed(20250208)
        data = torch.utils.data.TensorDataset(torch.randn(40, 7), torch.arange(40))
        for workers in (0, 2):
            seen = 0
            loader = torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True, num_workers=workers)
            for values, numbers in loader:
                self.assertTrue(values.is_pinned())
                there = values.cuda(non_blocking=True), numbers.cuda(non_blocking=True)
                self.assertTrue(torch.equal(there[0].cpu(), data.tensors[0][numbers]))
                seen += int(there[1].sum().item())
            self.assertEqual(seen, sum(range(40)))

    def test_losses_repeat_and_fall(self):
        losses = [pinned_loader.training(small=True)[1]() for _ in range(2)]
        self.assertEqual(losses[0], losses[1])


if __name__ == "__main__":
    unittest.main()
