# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Sealed training with Hugging Face Transformers' Trainer: the marked lines. The model is made here, small.

    SEALANE_KEY_FILE=job.key torchrun --nproc_per_node 2 examples/ddp/trainer.py
"""

import os
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import sealane.torch  # 1. adds the backend


class Counting(torch.utils.data.Dataset):
    """Sequences that count modulo 50: something to learn."""

    def __len__(self) -> int:
        return 256

    def __getitem__(self, index: int) -> dict:
        ids = (torch.arange(16) + 7 * index) % 50
        return {"input_ids": ids, "labels": ids.clone()}


def main() -> None:
    backend = os.environ.get("EXAMPLE_BACKEND", "sealane")
    torch.distributed.init_process_group(backend)  # 2. the Trainer takes the group that is there
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=32,
    )
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory,
            use_cpu=True,
            per_device_train_batch_size=8,
            num_train_epochs=2,
            learning_rate=5e-3,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=Counting())
        outcome = trainer.train()
    if trainer.is_world_process_zero():
        sealed = sealane.torch.traffic().records if backend == "sealane" else 0
        print(f"loss {outcome.training_loss:.6f}; sealed {sealed} messages", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
