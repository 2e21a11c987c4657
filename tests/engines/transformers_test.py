# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Transformers as its users call it, on the emulated GPU: the tokens are those of the CPU. Weights that Accelerate keeps
# on the host cross the bus at every step. Run by run.sh.
import unittest

import accelerate
import torch
from models import make_llama, make_prompt

NEW_TOKENS = 6


def generate(model, prompt, **options):
    with torch.no_grad():
        return model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW_TOKENS,
                              do_sample=False, **options).cpu()


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prompt = make_prompt()
        cls.expected = generate(make_llama(), cls.prompt)
        assert cls.expected.shape[1] > cls.prompt.shape[1] and len(cls.expected.unique()) > 16

    def check(self, tokens):
        self.assertEqual(tokens.tolist(), self.expected.tolist())

    def test_weights_on_the_device(self):
        self.check(generate(make_llama().cuda(), self.prompt.cuda()))

    def test_weights_streamed_by_accelerate(self):
        model = accelerate.cpu_offload(make_llama(), execution_device=0)
        before = sum(p.numel() for p in model.parameters())
        self.check(generate(model, self.prompt.cuda()))
        self.assertTrue(all(p.device.type == "meta" for p in model.parameters()))
        self.assertGreater(before, 0)

    def test_a_device_map_with_half_the_layers_on_the_host(self):
        model = make_llama()
        places = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.norm": 0, "lm_head": 0}
        places.update({f"model.layers.{i}": 0 if i < 2 else "cpu" for i in range(4)})
        self.check(generate(accelerate.dispatch_model(model, places, main_device=0), self.prompt.cuda()))

    def test_beams(self):
        expected = generate(make_llama(), self.prompt, num_beams=3)
        self.assertEqual(generate(make_llama().cuda(), self.prompt.cuda(), num_beams=3).tolist(), expected.tolist())

    def test_bfloat16(self):
        expected = generate(make_llama(torch.bfloat16), self.prompt)
        self.assertEqual(generate(make_llama(torch.bfloat16).cuda(), self.prompt.cuda()).tolist(), expected.tolist())


if __name__ == "__main__":
    unittest.main()
