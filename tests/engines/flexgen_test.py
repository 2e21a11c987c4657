# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# FlexGen from PyPI on the emulated GPU, weights and KV cache on the host: its tokens are the likeliest ones of the
# same OPT in Transformers on the CPU. Run by run.sh.
import unittest

import flexgen_offload
import torch
from transformers import OPTConfig, OPTForCausalLM


def make_reference(config):
    """The same model, in float32."""
    model = OPTForCausalLM(OPTConfig(
        vocab_size=config.vocab_size, hidden_size=config.hidden_size, num_hidden_layers=config.num_hidden_layers,
        ffn_dim=config.ffn_embed_dim, max_position_embeddings=config.max_seq_len, num_attention_heads=config.n_head,
        word_embed_proj_dim=config.hidden_size, dropout=0.0, pad_token_id=1, bos_token_id=2, eos_token_id=None))
    weights = {"model." + name.replace("decoder.layer_norm", "decoder.final_layer_norm"): torch.from_numpy(values)
               for name, values in flexgen_offload.make_weights(config)}
    weights["lm_head.weight"] = weights["model.decoder.embed_tokens.weight"]
    model.load_state_dict(weights)
    return model.eval()


def are_likeliest(tokens, batches):
    """Is each token the one the model gives the highest logit, being fed these very tokens?"""
    config = flexgen_offload.make_config(small=True)
    prompt = torch.from_numpy(flexgen_offload.make_prompt(config, batches))
    made = torch.tensor(tokens)
    with torch.no_grad():
        logits = make_reference(config)(torch.cat([prompt, made], dim=1)).logits[:, prompt.shape[1] - 1:-1]
    # FlexGen computes in float16: of two that are nearly as likely (logits have a deviation of 1.6) it may take either.
    behind = logits.max(-1).values - logits.gather(-1, made.unsqueeze(-1)).squeeze(-1)
    return behind.max().item() < 0.02


class Generate(unittest.TestCase):
    def check(self, setup, batches):
        _, generate, close = setup(small=True)
        try:
            tokens = generate()
            self.assertGreater(len({token for row in tokens for token in row}), 6)
            self.assertTrue(are_likeliest(tokens, batches))
            self.assertEqual(generate(), tokens)
        finally:
            close()

    def test_weights_on_the_host(self):
        self.check(flexgen_offload.weights, 1)

    def test_weights_and_cache_on_the_host(self):
        self.check(flexgen_offload.weights_and_cache, 2)


if __name__ == "__main__":
    unittest.main()
