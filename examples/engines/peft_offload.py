# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""PEFT: LoRA fine-tuning; the frozen base weights stay on the host and cross the bus in every step."""

import accelerate
import peft
import torch
from accelerate.hooks import attach_align_device_hook
from models import make_llama, make_prompt

ABOUT = f"PEFT {peft.__version__}, Accelerate {accelerate.__version__}"


def _stream_base_weights(model):
    for name, module in model.named_modules():
        if "lora_" in name or not list(module.parameters(recurse=False)):
            continue
        attach_align_device_hook(module, execution_device=torch.device("cuda", 0), offload=True,
                                 weights_map={k: v.data for k, v in module.named_parameters(recurse=False)})
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.cuda()
    for module in model.modules():
        for key, buffer in module._buffers.items():
            module._buffers[key] = buffer.cuda() if buffer is not None else None


def lora(small: bool):
    torch.manual_seed(20250203)
    config = peft.LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)
    model = peft.get_peft_model(make_llama(2 if small else 4), config)
    _stream_base_weights(model)
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
