# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# vLLM as a whole on the emulated GPU: a Llama made in code, its tokens are those of Transformers on the CPU, also when
# weights or KV cache are on the host. What vLLM would do by kernels of its own, which are machine code, it is told to
# leave to PyTorch and Triton. Run by run.sh; ENGINES_VLLM says what is on the host.
import os
import tempfile
import unittest

ON_HOST = os.environ.get("ENGINES_VLLM", "nothing")
os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_USE_V2_MODEL_RUNNER="0", VLLM_USE_FLASHINFER_SAMPLER="0",
                  VLLM_NO_USAGE_STATS="1", VLLM_WEIGHT_OFFLOADING_DISABLE_UVA="1")

import torch  # noqa: E402
from models import make_llama  # noqa: E402
from vllm import LLM, SamplingParams  # noqa: E402

NEW_TOKENS = 6
PROMPT = 40  # two blocks of the KV cache and a half
BY_PYTORCH = {"ir_op_priority": {name: ["native"] for name in ("rms_norm", "fused_add_rms_norm")}}
OPTIONS = {
    "nothing": {},
    "weights, prefetched": {"offload_group_size": 2, "offload_num_in_group": 1, "offload_prefetch_step": 1},
    "weights, moved": {"cpu_offload_gb": 1},
    "cache": {"kv_offloading_size": 0.03},
}


def make_prompt():
    generator = torch.Generator().manual_seed(20250211)
    return torch.randint(2, 510, (2, PROMPT), generator=generator)


def make_engine(model):
    with tempfile.TemporaryDirectory() as directory:
        model.save_pretrained(directory)
        return LLM(model=directory, dtype="float32", skip_tokenizer_init=True, enforce_eager=True,
                   attention_backend="TRITON_ATTN", compilation_config={"custom_ops": ["none"]},
                   kernel_config=BY_PYTORCH, max_model_len=128, max_num_seqs=2, max_num_batched_tokens=128,
                   num_gpu_blocks_override=32, gpu_memory_utilization=0.5, **OPTIONS[ON_HOST])


class Generate(unittest.TestCase):
    def test_tokens_are_those_of_the_cpu(self):
        model, prompt = make_llama(), make_prompt()
        with torch.no_grad():
            made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW_TOKENS,
                                  min_new_tokens=NEW_TOKENS, do_sample=False)
        expected = made[:, PROMPT:].tolist()
        engine = make_engine(model)
        asked = SamplingParams(temperature=0, max_tokens=NEW_TOKENS, min_tokens=NEW_TOKENS, ignore_eos=True,
                               detokenize=False)
        for attempt in range(2):
            answers = engine.generate([{"prompt_token_ids": row} for row in prompt.tolist()], asked)
            self.assertEqual([list(answer.outputs[0].token_ids) for answer in answers], expected)
            # What the device has forgotten comes from the host, if it is kept there.
            if ON_HOST == "cache":
                kept = [answer.num_cached_tokens for answer in answers]
                self.assertEqual(kept, [0, 0] if attempt == 0 else [32, 32])
            self.assertTrue(engine.reset_prefix_cache())


if __name__ == "__main__":
    unittest.main()
