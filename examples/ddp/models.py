# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""The models of the study, written out: same families as the paper's, sizes for CPU ranks.

Every entry of MODELS makes (model, batch): `batch(generator)` returns generated inputs and targets,
and the model maps inputs to the loss's logits. Names end in the MiB of their gradients.
"""

from typing import Callable, Dict, NamedTuple, Tuple

import torch
from torch import nn

Batch = Callable[[torch.Generator], Tuple[torch.Tensor, torch.Tensor]]


class Task(NamedTuple):
    model: nn.Module
    batch: Batch


class Block(nn.Module):
    """One transformer layer, normalised before attention as in GPT-2 and ViT."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (t.view(shape).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) * shape[-1] ** -0.5
        if self.causal:
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.mlp(self.norm2(x))


class TextModel(nn.Module):
    """GPT-2's shape if causal (output tied to the embedding), BERT's encoder if not."""

    def __init__(
        self, vocabulary: int, length: int, width: int, layers: int, heads: int, causal: bool
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.tokens.weight, std=0.02)  # as GPT-2: it is the output's weight too
        self.positions = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.tokens(tokens) + self.positions)
        return self.norm(x) @ self.tokens.weight.t()


class Vit(nn.Module):
    def __init__(self, image: int, patch: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.positions = nn.Parameter(torch.zeros((image // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, heads, False) for _ in range(layers)))
        self.head = nn.Linear(width, 100)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.blocks(x).mean(1))


class Bottleneck(nn.Module):
    """ResNet-50's: 1x1 to narrow, 3x3, 1x1 to widen, and the shortcut."""

    def __init__(self, inside: int, narrow: int, stride: int) -> None:
        super().__init__()
        wide = 4 * narrow
        self.path = nn.Sequential(
            *self._unit(inside, narrow, 1, 1),
            nn.ReLU(),
            *self._unit(narrow, narrow, 3, stride),
            nn.ReLU(),
            *self._unit(narrow, wide, 1, 1),
        )
        nn.init.zeros_(self.path[-1].weight)  # starts as its shortcut, as one trains it in practice
        same = inside == wide and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*self._unit(inside, wide, 1, stride))

    @staticmethod
    def _unit(inside: int, outside: int, kernel: int, stride: int) -> Tuple[nn.Module, nn.Module]:
        conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
        return conv, nn.BatchNorm2d(outside)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet50(width: int) -> nn.Module:
    """3, 4, 6 and 3 bottlenecks; width 64 is the real one."""
    layers = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inside = width
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            layers.append(Bottleneck(inside, width << stage, 2 if i == 0 and stage > 0 else 1))
            inside = 4 * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 100))


def vgg16(width: int, hidden: int) -> nn.Module:
    """13 convolutions and 3 fully connected layers; width 64 and hidden 4096 are the real ones."""
    layers, inside = [], 3
    for outside, count in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(inside, outside * width, 3, 1, 1), nn.ReLU()]
            inside = outside * width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Flatten(), nn.Linear(inside, hidden), nn.ReLU()]
    return nn.Sequential(
        *layers, *head, nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 100)
    )


def mlp(width: int, layers: int) -> nn.Module:
    inner = [m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*inner, nn.Linear(width, 100))


def _text(count: int, vocabulary: int, length: int) -> Batch:
    def batch(generator: torch.Generator) -> Tuple[torch.Tensor, torch.Tensor]:
        tokens = torch.randint(vocabulary, (count, length + 1), generator=generator)
        return tokens[:, :-1], tokens[:, 1:]

    return batch


def _pictures(count: int, *shape: int) -> Batch:
    def batch(generator: torch.Generator) -> Tuple[torch.Tensor, torch.Tensor]:
        pictures = torch.randn(count, *shape, generator=generator)
        return pictures, torch.randint(100, (count,), generator=generator)

    return batch


def _gpt(width: int, layers: int, count: int, length: int) -> Task:
    model = TextModel(1800, length, width, layers, max(2, width // 64), causal=True)
    return Task(model, _text(count, 1800, length))


def _bert(width: int, layers: int, count: int, length: int) -> Task:
    model = TextModel(2000, length, width, layers, max(2, width // 64), causal=False)
    return Task(model, _text(count, 2000, length))


MODELS: Dict[str, Callable[[], Task]] = {
    "gpt-14": lambda: _gpt(256, 4, 4, 128),
    "gpt-43": lambda: _gpt(384, 6, 4, 64),
    "gpt-100": lambda: _gpt(512, 8, 2, 64),
    "bert-30": lambda: _bert(384, 4, 4, 64),
    "vit-27": lambda: Task(Vit(32, 4, 384, 4, 6), _pictures(4, 3, 32, 32)),
    "resnet50-23": lambda: Task(resnet50(32), _pictures(4, 3, 32, 32)),
    "vgg16-19": lambda: Task(vgg16(32, 1024), _pictures(4, 3, 32, 32)),
    "mlp-25": lambda: Task(mlp(1040, 6), _pictures(32, 1040)),
}
