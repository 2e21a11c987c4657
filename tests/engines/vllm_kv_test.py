# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# vLLM's own code that moves blocks of a KV cache to the host and back, on the emulated GPU: its worker for each of the
# ways it takes (the driver's batches, a Triton kernel that reads host memory, a region shared between processes that
# it registers where that is allowed) and its copy thread. Every byte is compared. Run by run.sh.
import os
import queue
import unittest
import unittest.mock
import uuid

import torch
from vllm.distributed.device_communicators.cuda_wrapper import CudaRTLibrary
from vllm.v1.kv_offload.base import (CanonicalKVCacheRef, CanonicalKVCaches, CanonicalKVCacheTensor, GPULoadStoreSpec)
from vllm.v1.kv_offload.cpu import host_register
from vllm.v1.kv_offload.cpu.common import CPULoadStoreSpec
from vllm.v1.kv_offload.cpu.gpu_worker import CPUOffloadingWorker
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.simple_kv_offload.copy_backend import DmaCopyBackend

LAYERS = 3
BLOCKS = 24
SMALL_PAGE = 16 << 10  # vLLM loads these by a kernel of its own
LARGE_PAGE = 64 << 10  # and these in one batch of the driver


def make_caches(page):
    generator = torch.Generator().manual_seed(20250209)
    return [torch.randint(-128, 128, (BLOCKS, page), dtype=torch.int8, generator=generator) for _ in range(LAYERS)]


def as_vllm_has_them(caches, page):
    return CanonicalKVCaches(
        tensors=[CanonicalKVCacheTensor(tensor=cache, page_size_bytes=page) for cache in caches],
        group_data_refs=[[CanonicalKVCacheRef(tensor_idx=i, page_size_bytes=page) for i in range(len(caches))]])


def on_device(blocks):
    return GPULoadStoreSpec(blocks, group_sizes=(len(blocks),), block_indices=(0,))


class Worker(unittest.TestCase):
    """vllm.v1.kv_offload: what the OffloadingConnector uses."""

    def move_out_and_in(self, page, region=None):
        host = make_caches(page)
        caches = [cache.cuda() for cache in host]
        worker = CPUOffloadingWorker(as_vllm_has_them(caches, page), 1, BLOCKS, mmap_region=region)
        pinned = region is not None and region.is_pinned
        kept = list(range(0, BLOCKS, 2)) + list(range(1, BLOCKS, 2))
        self.finish(worker, 1, worker.submit_store(1, on_device(list(range(BLOCKS))), CPULoadStoreSpec(kept)))
        for cache in caches:
            cache.copy_(torch.zeros_like(cache, device="cpu"))
        back = list(reversed(range(BLOCKS)))
        for job, expedited in ((2, False), (3, True)):
            half = slice((job - 2) * BLOCKS // 2, (job - 1) * BLOCKS // 2)
            source = CPULoadStoreSpec([kept[block] for block in back[half]])
            self.finish(worker, job, worker.submit_load(job, source, on_device(back[half]), expedited=expedited))
        for cache, expected in zip(caches, host, strict=True):
            self.assertTrue(torch.equal(cache.cpu(), expected))
        worker.shutdown()
        return pinned

    def finish(self, worker, job, submitted):
        self.assertTrue(submitted)
        worker.wait({job})
        self.assertEqual([(one.job_id, one.success) for one in worker.get_finished()], [(job, True)])

    def test_large_blocks(self):
        self.move_out_and_in(LARGE_PAGE)

    def test_small_blocks(self):
        self.move_out_and_in(SMALL_PAGE)

    def test_a_region_shared_between_processes(self):
        region = SharedOffloadRegion(str(uuid.uuid4()), BLOCKS, 0, LAYERS * LARGE_PAGE, LAYERS * LARGE_PAGE)
        # vLLM takes the first libcudart it finds mapped: NVIDIA's, which PyTorch opens and does not use. Ours has the
        # same name, which is how everybody else comes to it.
        ours = CudaRTLibrary(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        with unittest.mock.patch.object(host_register, "_get_cudart", lambda: ours):
            pinned = self.move_out_and_in(LARGE_PAGE, region)
        # Registration is refused in CC mode, and vLLM goes on with pageable memory, unless the runtime serves it.
        carried = os.environ.get("ENGINES_POLICY") in ("parallel", "sealane", "speculate")
        self.assertEqual(pinned, os.environ["ENGINES_CC"] == "off" or carried)


class Done(queue.SimpleQueue):
    """Takes what the thread reports, as the list it expects does."""

    append = queue.SimpleQueue.put


class CopyThread(unittest.TestCase):
    """vllm.v1.simple_kv_offload: what the SimpleCPUOffloadConnector uses."""

    def test_blocks_go_out_and_in(self):
        host = make_caches(LARGE_PAGE)
        caches = {str(i): cache.cuda() for i, cache in enumerate(host)}
        kept = {name: torch.zeros_like(cache, device="cpu").pin_memory() for name, cache in caches.items()}
        streams = torch.cuda.Stream(), torch.cuda.Stream()
        backend = DmaCopyBackend()
        backend.init(caches, kept, torch.device("cuda", 0), *streams)
        blocks, places = list(range(BLOCKS)), list(reversed(range(BLOCKS)))
        self.copy(backend, blocks, places, is_store=True)
        for cache in caches.values():
            cache.copy_(torch.zeros_like(cache, device="cpu"))
        self.copy(backend, places, blocks, is_store=False)
        backend.shutdown()
        for cache, expected in zip(caches.values(), host, strict=True):
            self.assertTrue(torch.equal(cache.cpu(), expected))

    def copy(self, backend, sources, destinations, is_store):
        ready, done = torch.cuda.Event(), Done()
        ready.record()
        backend.launch_copy(sources, destinations, is_store, 1, done, ready)
        _, event = done.get(timeout=120)
        event.synchronize()


if __name__ == "__main__":
    unittest.main()
