# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Transformers: `generate` with what does not fit on the GPU kept on the host."""

import accelerate
import torch
import transformers
from models import make_llama, make_prompt

ABOUT = f"Transformers {transformers.__version__}, Accelerate {accelerate.__version__}"


def _generate(model, prompt, tokens, **options):
    with torch.no_grad():
        made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens,
                              min_new_tokens=tokens, do_sample=False, **options)
    return made[:, prompt.shape[1]:].tolist()


def weights(small: bool):
    """Accelerate brings every module's weights to the device when it is used, and drops them behind it."""
    model = accelerate.cpu_offload(make_llama(2 if small else 4), execution_device=0)
    prompt = make_prompt(1, 8).cuda()
    return ABOUT, lambda: _generate(model, prompt, 4)


def half_the_weights(small: bool):
    """A device map: the first layers live on the device, the others on the host."""
    layers = 4 if small else 6
    places = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.norm": 0, "lm_head": 0}
    places.update({f"model.layers.{i}": 0 if i < layers // 2 else "cpu" for i in range(layers)})
    model = accelerate.dispatch_model(make_llama(layers), places, main_device=0)
    prompt = make_prompt(1, 8).cuda()
    return ABOUT, lambda: _generate(model, prompt, 4)


def kv_cache(small: bool):
    """Weights on the device, keys and values of all layers but the current one on the host."""
    model = make_llama(3 if small else 4).cuda()
    prompt = make_prompt(2, 64 if small else 256).cuda()
    return ABOUT, lambda: _generate(model, prompt, 4 if small else 6, cache_implementation="offloaded")
