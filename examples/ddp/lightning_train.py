# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Sealed training with Lightning: the marked lines.

    SEALANE_KEY_FILE=job.key torchrun --nproc_per_node 2 examples/ddp/lightning_train.py
"""

import os

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset

import sealane.torch  # 1. adds the backend


class Regression(LightningModule):
    """Something to learn."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))

    def training_step(self, batch: tuple, _: int) -> torch.Tensor:
        inputs, targets = batch
        loss = (self.net(inputs) - targets).square().mean()
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def main() -> None:
    backend = os.environ.get("EXAMPLE_BACKEND", "sealane")
    seed_everything(0, verbose=False)
    inputs = torch.randn(512, 20)
    data = TensorDataset(inputs, inputs @ torch.randn(20, 4))
    trainer = Trainer(
        strategy=DDPStrategy(process_group_backend=backend),  # 2.
        accelerator="cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        max_epochs=3,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Regression(), DataLoader(data, batch_size=16))
    if trainer.is_global_zero:
        sealed = sealane.torch.traffic().records if backend == "sealane" else 0
        print(f"loss {trainer.callback_metrics['loss'].item():.6f}; sealed {sealed} messages", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
