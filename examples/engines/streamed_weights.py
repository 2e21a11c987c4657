# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Frozen weights that stay on the host and are brought to the device by Accelerate whenever their module runs."""

import torch
from accelerate.hooks import attach_align_device_hook


def stream_base_weights(model):
    """Of a model with PEFT's adapters: base weights stay on the host, adapters and buffers live on the device."""
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
