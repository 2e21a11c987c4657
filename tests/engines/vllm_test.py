# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# vLLM as a whole on the emulated GPU: a Llama made in code, its tokens are those of Transformers on the CPU. What vLLM
# would do by kernels of its own, which are machine code, it is told to leave to PyTorch and Triton. Run by run.sh.
import os
import tempfile
import unittest

os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_USE_V2_MODEL_RUNNER="0", VLLM_USE_FLASHINFER_SAMPLER="0",
                  VLLM_NO_USAGE_STATS="1")

import torch  # noqa: E402
from models import make_llama, make_prompt  # noqa: E402
from vllm import LLM, SamplingParams  # noqa: E402

NEW_TOKENS = 6
BY_PYTORCH = {"ir_op_priority": {name: ["native"] for name in ("rms_norm", "fused_add_rms_norm")}}


class Generate(unittest.TestCase):
    def test_tokens_are_those_of_the_cpu(self):
        model, prompt = make_llama(), make_prompt()
        with torch.no_grad():
            made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW_TOKENS,
                                  min_new_tokens=NEW_TOKENS, do_sample=False)
        expected = made[:, prompt.shape[1]:].tolist()
        with tempfile.TemporaryDirectory() as directory:
            model.save_pretrained(directory)
            engine = LLM(model=directory, dtype="float32", skip_tokenizer_init=True, enforce_eager=True,
                         attention_backend="TRITON_ATTN", compilation_config={"custom_ops": ["none"]},
                         kernel_config=BY_PYTORCH, max_model_len=128, max_num_seqs=2, max_num_batched_tokens=128,
                         num_gpu_blocks_override=32, gpu_memory_utilization=0.5)
        asked = SamplingParams(temperature=0, max_tokens=NEW_TOKENS, min_tokens=NEW_TOKENS, ignore_eos=True,
                               detokenize=False)
        for _ in range(2):
            answers = engine.generate([{"prompt_token_ids": row} for row in prompt.tolist()], asked)
            self.assertEqual([list(answer.outputs[0].token_ids) for answer in answers], expected)


if __name__ == "__main__":
    unittest.main()
