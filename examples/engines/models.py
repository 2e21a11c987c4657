# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""A Llama made in code: random weights with a fixed seed, nothing downloaded."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 4096


def make_llama(layers: int) -> LlamaForCausalLM:
    torch.manual_seed(20250201)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=2816, num_hidden_layers=layers,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=1024, initializer_range=0.1,
        pad_token_id=0, bos_token_id=1, eos_token_id=None)
    return LlamaForCausalLM(config).to(torch.bfloat16).eval()


def make_prompt(batch: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(20250202)
    return torch.randint(2, VOCABULARY - 2, (batch, length), generator=generator)
