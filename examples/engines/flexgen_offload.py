# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""FlexGen: an OPT whose weights (or also its KV cache) live on the host; the next layer is loaded while one computes."""

import importlib.metadata
import os
import tempfile

import numpy as np
from flexgen.compression import CompressionConfig
from flexgen.flex_opt import OptLM, Policy
from flexgen.opt_config import OptConfig
from flexgen.pytorch_backend import TorchDevice, TorchDisk, TorchMixedDevice
from flexgen.utils import ExecutionEnv

ABOUT = f"FlexGen {importlib.metadata.version('flexgen')}"
HIDDEN = 1024
BATCH = 2


def _weight_shapes(config):
    h, v = config.input_dim, config.vocab_size
    yield "decoder.embed_tokens.weight", (v, h)
    yield "decoder.embed_positions.weight", (config.max_seq_len + 2, h)
    for name in ("weight", "bias"):
        yield f"decoder.layer_norm.{name}", (h,)
    for i in range(config.num_hidden_layers):
        layer = f"decoder.layers.{i}."
        for part in ("q", "k", "v", "out"):
            yield f"{layer}self_attn.{part}_proj.weight", (h, h)
            yield f"{layer}self_attn.{part}_proj.bias", (h,)
        yield layer + "fc1.weight", (4 * h, h)
        yield layer + "fc1.bias", (4 * h,)
        yield layer + "fc2.weight", (h, 4 * h)
        yield layer + "fc2.bias", (h,)
        for norm in ("self_attn_layer_norm", "final_layer_norm"):
            yield f"{layer}{norm}.weight", (h,)
            yield f"{layer}{norm}.bias", (h,)


def make_weights(config):
    """Each tensor's name, as OPT's checkpoints have it, and its values."""
    random = np.random.default_rng(20250205)
    for name, shape in _weight_shapes(config):
        if "norm.weight" in name:
            values = np.ones(shape)
        elif name.endswith("bias"):
            values = np.zeros(shape)
        else:
            values = random.standard_normal(shape) * 0.05
        yield name, values.astype(np.float16)


def _write_weights(config, directory):
    """As FlexGen keeps what it has downloaded: one file for each tensor."""
    place = os.path.join(directory, f"{config.name}-np")
    os.makedirs(place)
    for name, values in make_weights(config):
        with open(os.path.join(place, name), "wb") as out:
            np.save(out, values)


def make_config(small):
    return OptConfig(name="opt-small", num_hidden_layers=2 if small else 4, max_seq_len=256, hidden_size=HIDDEN,
                     n_head=8, input_dim=HIDDEN, ffn_embed_dim=4 * HIDDEN, vocab_size=2048)


def make_prompt(config, batches):
    return np.random.default_rng(20250206).integers(4, config.vocab_size, (BATCH * batches, 16))


def _make(small, cache_on_device, batches):
    config = make_config(small)
    directory = tempfile.TemporaryDirectory()
    _write_weights(config, directory.name)
    device, host = TorchDevice("cuda:0"), TorchDevice("cpu")
    disk = TorchDisk(os.path.join(directory.name, "offload"), num_copy_threads=1)
    env = ExecutionEnv(gpu=device, cpu=host, disk=disk, mixed=TorchMixedDevice([device, host, disk]))
    never = CompressionConfig(num_bits=4, group_size=64, group_dim=0, symmetric=False)
    policy = Policy(
        gpu_batch_size=BATCH, num_gpu_batches=batches, w_gpu_percent=0, w_cpu_percent=100,
        cache_gpu_percent=100 if cache_on_device else 0, cache_cpu_percent=0 if cache_on_device else 100,
        act_gpu_percent=100, act_cpu_percent=0, overlap=True, sep_layer=True, pin_weight=True,
        cpu_cache_compute=False, attn_sparsity=1.0, compress_weight=False, comp_weight_config=never,
        compress_cache=False, comp_cache_config=never)
    model = OptLM(config, env, directory.name, policy)
    prompt = make_prompt(config, batches)

    def generate():
        made = model.generate(prompt, max_new_tokens=4 if small else 6)
        return made[:, prompt.shape[1]:].tolist()

    return ABOUT, generate, disk.close_copy_threads


def weights(small: bool):
    """All weights in pinned host memory, the KV cache on the device."""
    return _make(small, cache_on_device=True, batches=1)


def weights_and_cache(small: bool):
    """The KV cache on the host, too, and two batches that take turns on each layer's weights."""
    return _make(small, cache_on_device=False, batches=2)
