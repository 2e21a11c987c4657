# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Small models made in code: random weights with a fixed seed, nothing downloaded.
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make_llama(dtype=torch.float32, layers=4):
    torch.manual_seed(20250123)
    config = LlamaConfig(
        vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, initializer_range=0.2, pad_token_id=0, bos_token_id=1,
        eos_token_id=511)
    return LlamaForCausalLM(config).to(dtype).eval()


def make_prompt():
    generator = torch.Generator().manual_seed(20250124)
    return torch.randint(2, 510, (2, 12), generator=generator)
