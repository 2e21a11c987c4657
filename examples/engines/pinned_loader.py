# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch alone: a training loop whose batches a DataLoader puts into pinned memory, copied without blocking."""

import torch
from torch.utils.data import DataLoader, TensorDataset


def training(small: bool):
    torch.manual_seed(20250204)
    count = 24 if small else 96
    data = TensorDataset(torch.randn(count, 3, 64, 64), torch.randint(0, 10, (count,)))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=4), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(2048, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train():
        losses = []
        for images, labels in DataLoader(data, batch_size=8, pin_memory=True):
            images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    return f"PyTorch {torch.__version__}", train
