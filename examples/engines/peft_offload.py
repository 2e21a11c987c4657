# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""PEFT: LoRA fine-tuning; the frozen base weights stay on the host and cross the bus in every step."""

import accelerate
import peft
import torch
from models import make_llama, make_prompt
from streamed_weights import stream_base_weights

ABOUT = f"PEFT {peft.__version__}, Accelerate {accelerate.__version__}"


def lora(small: bool):
    torch.manual_seed(20250203)
    config = peft.LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)
    model = peft.get_peft_model(make_llama(2 if small else 4), config)
    stream_base_weights(model)
    tokens = make_prompt(1, 16).cuda()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)

    def train():
        losses = []
        for _ in range(2 if small else 3):
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    return ABOUT, train
