# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Somebody changes one message on the bus while an engine works: the engine ends with PyTorch's CUDA error, and every
# token or loss it gave before is right. Run by run.sh with --adversary and ENGINES_ATTACKED.
import os
import unittest

import accelerate
import flexgen_test
import peft_test
import torch
import transformers_test
from models import make_llama, make_prompt

RUNS = 40  # more messages than the attack waits for


class Attacked(unittest.TestCase):
    def until_the_error(self, work, expected):
        """Runs until the attack is met."""
        with self.assertRaises(RuntimeError) as raised:
            for _ in range(RUNS):
                self.assertEqual(work(), expected)
        self.assertIn("CUDA error", str(raised.exception))
        self.assertIn("ECC", str(raised.exception))
        with self.assertRaises(RuntimeError):  # and it stands
            torch.arange(8).cuda()
            torch.cuda.synchronize()

    @unittest.skipIf(os.environ["ENGINES_ATTACKED"] != "transformers", "the other engine")
    def test_transformers(self):
        prompt = make_prompt()
        expected = transformers_test.generate(make_llama(), prompt).tolist()
        model = accelerate.cpu_offload(make_llama(), execution_device=0)
        there = prompt.cuda()
        self.until_the_error(lambda: transformers_test.generate(model, there).tolist(), expected)

    @unittest.skipIf(os.environ["ENGINES_ATTACKED"] != "peft", "the other engine")
    def test_peft(self):
        tokens = make_prompt()
        expected = [round(loss, 3) for loss in peft_test.train(peft_test.make_adapted(), tokens)]

        def train():
            model = peft_test.make_adapted()
            peft_test.stream_base_weights(model)
            return [round(loss, 3) for loss in peft_test.train(model, tokens.cuda())]

        self.until_the_error(train, expected)

    @unittest.skipIf(os.environ["ENGINES_ATTACKED"] != "flexgen", "the other engine")
    def test_flexgen(self):
        _, generate, close = flexgen_test.flexgen_offload.weights(small=True)
        try:
            self.until_the_error(lambda: flexgen_test.are_likeliest(generate(), batches=1), True)
        finally:
            close()


if __name__ == "__main__":
    unittest.main()
