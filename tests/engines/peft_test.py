# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# LoRA fine-tuning by PEFT on the emulated GPU: the losses are those of the CPU, also when the frozen base weights stay
# on the host and cross the bus in every step. Run by run.sh.
import unittest

import torch
from models import make_llama, make_prompt
from peft import LoraConfig, get_peft_model
from streamed_weights import stream_base_weights

STEPS = 4


def make_adapted(layers=2):
    model = make_llama(layers=layers)
    torch.manual_seed(20250125)
    return get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0))


def train(model, tokens):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(STEPS):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


class Lora(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokens = make_prompt()
        cls.expected = train(make_adapted(), cls.tokens)
        assert cls.expected[-1] < cls.expected[0]

    def check(self, losses):
        for got, expected in zip(losses, self.expected, strict=True):
            self.assertAlmostEqual(got, expected, delta=1e-4 * abs(expected))

    def test_base_weights_on_the_device(self):
        self.check(train(make_adapted().cuda(), self.tokens.cuda()))

    def test_base_weights_streamed(self):
        model = make_adapted()
        stream_base_weights(model)
        self.check(train(model, self.tokens.cuda()))


if __name__ == "__main__":
    unittest.main()
