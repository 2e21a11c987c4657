# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""A decoding loop with the detours that serving engines take around CC mode by hand.

1. Inputs are staged (vLLM): the copy goes to a staging buffer on a stream that is idle, so that nothing has to drain;
   the computing stream waits for an event and copies on the device.
2. A worker thread brings results to the host (vLLM, TensorRT-LLM): it waits for an event, copies on a stream of its
   own and hands tokens over in a queue, while the next step is prepared.
3. A copy worker (SGLang) moves blocks of the KV cache out and in on its own stream, from memory that is pinned only
   where pinning works: under CC mode registration is refused, and engines go on with pageable memory.
"""

import ctypes
import queue
import threading

import torch

VOCABULARY, WIDTH, BATCH = 512, 256, 8


def _model():
    generator = torch.Generator().manual_seed(20250207)
    return [torch.randn(shape, generator=generator) * 0.1
            for shape in ((VOCABULARY, WIDTH), (WIDTH, WIDTH), (WIDTH, VOCABULARY))]


def _step(weights, tokens, state):
    embedding, inner, head = weights
    state.mul_(0.5).add_(embedding[tokens])
    return (torch.tanh(state @ inner) @ head).argmax(-1)


def reference(steps):
    """The same tokens without any GPU."""
    weights, state = _model(), torch.zeros(BATCH, WIDTH)
    tokens, made = torch.arange(BATCH), []
    for step in range(steps):
        tokens = (_step(weights, tokens, state) + step) % VOCABULARY
        made.append(tokens.tolist())
    return made


class ResultWorker:
    """Copies results to the host behind the step that makes them."""

    def __init__(self):
        self._asked, self.done = queue.Queue(), queue.Queue()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def ask(self, tensor):
        ready = torch.cuda.Event()
        ready.record()
        self._asked.put((tensor, ready))

    def close(self):
        self._asked.put(None)
        self._thread.join()

    def _work(self):
        stream = torch.cuda.Stream()
        host = torch.empty(BATCH, dtype=torch.int64, pin_memory=True)
        with torch.cuda.stream(stream):
            while (item := self._asked.get()) is not None:
                try:
                    item[1].synchronize()
                    host.copy_(item[0], non_blocking=True)
                    stream.synchronize()
                    self.done.put(host.clone())
                except RuntimeError as error:
                    self.done.put(error)


class BlockWorker:
    """Moves blocks between the device and the host, one order after the other."""

    def __init__(self, blocks, block_bytes):
        self._host = torch.empty(blocks, block_bytes, dtype=torch.uint8)
        torch.cuda.init()
        runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        self.registered = runtime.cudaHostRegister(
            ctypes.c_void_p(self._host.data_ptr()), ctypes.c_size_t(self._host.numel()), 0) == 0
        if not self.registered:
            runtime.cudaGetLastError()  # or PyTorch's next launch fails of it
        self._asked, self._done = queue.Queue(), queue.Queue()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def move(self, block, device, out):
        ready = torch.cuda.Event()
        ready.record()
        self._asked.put((block, device, out, ready))

    def wait(self):
        outcome = self._done.get()
        if isinstance(outcome, RuntimeError):
            raise outcome
        torch.cuda.current_stream().wait_event(outcome)

    def close(self):
        self._asked.put(None)
        self._thread.join()
        if self.registered:
            torch.cuda.cudart().cudaHostUnregister(self._host.data_ptr())

    def _work(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            while (item := self._asked.get()) is not None:
                block, device, out, ready = item
                try:
                    stream.wait_event(ready)
                    if out:
                        self._host[block].copy_(device, non_blocking=True)
                    else:
                        device.copy_(self._host[block], non_blocking=True)
                    moved = torch.cuda.Event()
                    moved.record()
                    self._done.put(moved)
                except RuntimeError as error:
                    self._done.put(error)


def _decode(weights, steps, blocks, block_bytes):
    state = torch.zeros(BATCH, WIDTH, device="cuda")
    tokens = torch.empty(BATCH, dtype=torch.int64, device="cuda")
    staging = torch.empty_like(tokens)
    idle = torch.cuda.Stream()
    caches = [torch.full((block_bytes,), i, dtype=torch.uint8, device="cuda") for i in range(blocks)]
    results, mover = ResultWorker(), BlockWorker(blocks, block_bytes)
    made, following = [], torch.arange(BATCH)
    try:
        for step in range(steps):
            with torch.cuda.stream(idle):
                idle.wait_stream(torch.cuda.current_stream())
                staging.copy_(following.pin_memory(), non_blocking=True)
                arrived = torch.cuda.Event()
                arrived.record()
            torch.cuda.current_stream().wait_event(arrived)
            tokens.copy_(staging)
            block = step % blocks
            mover.move(block, caches[block], out=True)
            results.ask((_step(weights, tokens, state) + step) % VOCABULARY)
            mover.wait()
            caches[block].zero_()
            mover.move(block, caches[block], out=False)
            following = results.done.get()
            if isinstance(following, RuntimeError):
                raise following
            made.append(following.tolist())
            mover.wait()
        torch.cuda.synchronize()
        for i, cache in enumerate(caches):
            if not bool((cache == i).all()):
                raise AssertionError(f"block {i} of the cache is not what went out")
    finally:
        results.close()
        mover.close()
    return made


def decoding(small: bool):
    weights = [one.cuda() for one in _model()]
    steps, blocks, block_bytes = (12, 4, 1 << 20) if small else (32, 6, 4 << 20)
    return f"PyTorch {torch.__version__}", lambda: _decode(weights, steps, blocks, block_bytes)
