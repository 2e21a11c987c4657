# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch moves tensors: every kind of copy its users make, each byte compared. Random bytes come from the CPU's
# generator with a fixed seed, so that nothing here needs device code except what PyTorch itself launches to capture.
# Run by run.sh on the emulated GPU; with two GPUs peer copies are made too.
import ctypes
import os
import sys
import threading
import unittest

import torch

SIZES = [0, 1, 3, 4, 255, 4095, 4096, 4097, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (5 << 20) + 13]
RUNTIME = f"libcudart.so.{torch.version.cuda.split('.')[0]}"
GPUS = int(os.environ.get("ENGINES_GPUS", "1"))


def random_bytes(count, pinned=False):
    made = torch.empty(count, dtype=torch.uint8, pin_memory=pinned)
    return made.random_(0, 256)


class Devices(unittest.TestCase):
    def test_finds_the_devices(self):
        self.assertTrue(torch.cuda.is_available())
        self.assertEqual(torch.cuda.device_count(), GPUS)
        self.assertEqual(torch.cuda.get_device_capability(), (12, 0))
        self.assertGreater(torch.cuda.get_device_properties(0).total_memory, 1 << 28)
        free, total = torch.cuda.mem_get_info()
        self.assertTrue(0 < free <= total)
        self.assertIn("120", "".join(torch.cuda.get_arch_list()))

    def test_nvml_knows_the_same_devices(self):
        self.assertEqual(torch.cuda.device_count(), torch.cuda._device_count_nvml())
        uuids = {str(torch.cuda.get_device_properties(i).uuid) for i in range(GPUS)}
        self.assertEqual(len(uuids), GPUS)
        for i in range(GPUS):
            self.assertGreater(torch.cuda.clock_rate(i), 0)
            self.assertGreaterEqual(torch.cuda.device_memory_used(i), 0)
            with self.assertRaises(Exception):  # a GPU without that part
                torch.cuda.temperature(i)


class Copies(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(20250117)

    def check(self, source, back):
        self.assertTrue(torch.equal(source.cpu(), back.cpu()))

    def test_there_and_back_of_every_size_and_kind_of_memory(self):
        for count in SIZES:
            for pinned in (False, True):
                for non_blocking in (False, True):
                    source = random_bytes(count, pinned)
                    self.assertEqual(source.is_pinned(), pinned and count > 0)
                    there = source.to("cuda", non_blocking=non_blocking)
                    back = torch.empty(count, dtype=torch.uint8, pin_memory=pinned)
                    back.copy_(there, non_blocking=non_blocking)
                    torch.cuda.synchronize()
                    self.check(source, back)

    def test_every_type(self):
        for dtype in (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                      torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn):
            source = random_bytes(16 * 1027) % 2 if dtype == torch.bool else random_bytes(16 * 1027)
            back = source.view(dtype).cuda().cpu()
            self.assertEqual(back.dtype, dtype)
            self.assertTrue(torch.equal(source, back.view(torch.uint8)))

    def test_parts_of_tensors(self):
        source = random_bytes(1 << 20, True)
        there = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        there.copy_(torch.zeros(1 << 20, dtype=torch.uint8))
        for begin, end in ((0, 1), (1, 17), (4095, 8193), (100_000, 999_999)):
            there[begin:end].copy_(source[begin:end], non_blocking=True)
        back = there.cpu()
        expected = torch.zeros(1 << 20, dtype=torch.uint8)
        for begin, end in ((0, 1), (1, 17), (4095, 8193), (100_000, 999_999)):
            expected[begin:end] = source[begin:end]
        self.check(expected, back)

    def test_a_host_tensor_with_strides(self):
        source = random_bytes(1024 * 769).view(1024, 769)
        self.check(source.t(), source.t().cuda())
        self.check(source[::2, 1::3], source[::2, 1::3].cuda())

    def test_on_the_device(self):
        source = random_bytes((3 << 20) + 7)
        there = source.cuda()
        self.check(source, there.clone())
        other = torch.empty_like(there)
        other.copy_(there)
        self.check(source, other)

    def test_zero(self):
        there = random_bytes(100_003).cuda().zero_()
        self.check(torch.zeros(100_003, dtype=torch.uint8), there)

    def test_a_pageable_source_may_change_when_the_call_returns(self):
        for _ in range(8):
            source = random_bytes(3 << 20)
            kept = source.clone()
            there = source.to("cuda", non_blocking=True)
            source.zero_()
            self.check(kept, there)

    def test_a_pinned_source_may_change_when_its_event_is_reached(self):
        source = torch.empty(3 << 20, dtype=torch.uint8, pin_memory=True)
        there = [torch.empty(3 << 20, dtype=torch.uint8, device="cuda") for _ in range(6)]
        kept = []
        for one in there:
            source.random_(0, 256)
            kept.append(source.clone())
            one.copy_(source, non_blocking=True)
            event = torch.cuda.Event()
            event.record()
            event.synchronize()
        for expected, one in zip(kept, there):
            self.check(expected, one)

    def test_the_same_weights_again_and_again(self):
        layers = [random_bytes(1 << 20, True) for _ in range(4)]
        buffers = [torch.empty(1 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
        stream = torch.cuda.Stream()
        for step in range(24):
            with torch.cuda.stream(stream):
                buffers[step % 2].copy_(layers[step % 4], non_blocking=True)
            stream.synchronize()
            self.check(layers[step % 4], buffers[step % 2])
            if step == 12:
                layers[2].random_(0, 256)  # what was sealed ahead of it is stale

    def test_memory_that_others_pinned(self):
        source = random_bytes(2 << 20)
        result = torch.cuda.cudart().cudaHostRegister(source.data_ptr(), source.numel(), 0)
        if int(result) != 0:  # CC mode refuses it, as on hardware
            self.assertEqual(os.environ.get("ENGINES_CC"), "on")
            self.assertEqual(int(result), 801)
            ctypes.CDLL(RUNTIME).cudaGetLastError()  # PyTorch would find it behind its next call
            return
        self.assertTrue(source.is_pinned())
        there = source.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        self.check(source, there)
        self.assertEqual(int(torch.cuda.cudart().cudaHostUnregister(source.data_ptr())), 0)


class Streams(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(20250118)

    def test_streams_wait_for_each_other(self):
        source = random_bytes(4 << 20, True)
        first, second = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
        back = torch.empty(4 << 20, dtype=torch.uint8, pin_memory=True)
        with torch.cuda.stream(first):
            there = source.to("cuda", non_blocking=True)
        second.wait_stream(first)
        with torch.cuda.stream(second):
            again = there.clone()
            there.record_stream(second)
            back.copy_(again, non_blocking=True)
        second.synchronize()
        self.assertTrue(second.query())
        self.assertTrue(torch.equal(source, back))

    def test_events_tell_time_and_order(self):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        source = random_bytes(1 << 20, True)
        begin.record()
        there = source.to("cuda", non_blocking=True)
        end.record()
        torch.cuda.current_stream().wait_event(end)
        end.synchronize()
        self.assertTrue(end.query())
        self.assertGreaterEqual(begin.elapsed_time(end), 0)
        self.assertTrue(torch.equal(source, there.cpu()))

    def test_a_freed_block_waits_for_the_stream_that_uses_it(self):
        side = torch.cuda.Stream()
        for _ in range(20):
            source = random_bytes(1 << 20, True)
            there = source.to("cuda", non_blocking=True)
            side.wait_stream(torch.cuda.current_stream())
            back = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
            with torch.cuda.stream(side):
                back.copy_(there, non_blocking=True)
            there.record_stream(side)
            del there
            random_bytes(1 << 20, True).to("cuda", non_blocking=True)  # would take its block
            side.synchronize()
            self.assertTrue(torch.equal(source, back))

    def test_threads(self):
        wrong = []

        def move(seed):
            generator = torch.Generator().manual_seed(seed)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(10):
                    source = torch.empty(300_001, dtype=torch.uint8, pin_memory=True)
                    source.random_(0, 256, generator=generator)
                    if not torch.equal(source, source.to("cuda", non_blocking=True).cpu()):
                        wrong.append(seed)

        threads = [threading.Thread(target=move, args=(seed,)) for seed in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(wrong, [])


class Graphs(unittest.TestCase):
    def test_captured_copies_move_what_is_there_at_replay(self):
        torch.manual_seed(20250119)
        source = random_bytes(1 << 20, True)
        there = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        back = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            there.copy_(source, non_blocking=True)
            second = there.clone()
            back.copy_(second, non_blocking=True)
        for _ in range(3):
            source.random_(0, 256)
            graph.replay()
            torch.cuda.synchronize()
            self.assertTrue(torch.equal(source, back))


class Memory(unittest.TestCase):
    def test_statistics_add_up(self):
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        held = torch.empty(10 << 20, dtype=torch.uint8, device="cuda")
        self.assertEqual(torch.cuda.memory_allocated() - before, 10 << 20)
        self.assertGreaterEqual(torch.cuda.memory_reserved(), torch.cuda.memory_allocated())
        if torch.cuda.get_allocator_backend() == "native":  # the other one counts bytes only
            self.assertGreater(torch.cuda.memory_stats()["allocation.all.allocated"], 0)
            self.assertTrue(torch.cuda.memory_snapshot())
        self.assertIn("Allocated memory", torch.cuda.memory_summary())
        del held
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_too_much_is_an_error_that_leaves_the_device_usable(self):
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        self.assertTrue(torch.equal(torch.arange(5), torch.arange(5).cuda().cpu()))

    def test_blocks_of_many_sizes(self):
        torch.manual_seed(20250120)
        held = []
        for i in range(60):
            source = random_bytes(int(torch.randint(1, 3 << 20, (1,))))
            held.append((source, source.cuda()))
            if i % 3 == 2:
                held.pop(int(torch.randint(0, len(held), (1,))))
        for source, there in held:
            self.assertTrue(torch.equal(source, there.cpu()))


@unittest.skipIf(GPUS < 2, "one GPU")
class Peers(unittest.TestCase):
    def test_between_devices(self):
        torch.manual_seed(20250121)
        for count in SIZES:
            source = random_bytes(count)
            first = source.to("cuda:0")
            second = first.to("cuda:1", non_blocking=True)
            self.assertEqual(second.device.index, 1)
            self.assertTrue(torch.equal(source, second.cpu()))
            first.copy_(second.to("cuda:0"))
            self.assertTrue(torch.equal(source, first.cpu()))

    def test_access_is_what_the_mode_allows(self):
        self.assertEqual(torch.cuda.can_device_access_peer(0, 1), os.environ.get("ENGINES_CC") == "off")

    def test_each_device_has_its_own(self):
        with torch.cuda.device(1):
            self.assertEqual(torch.arange(4).cuda().device.index, 1)
            self.assertEqual(torch.cuda.current_device(), 1)


if __name__ == "__main__":
    print(f"PyTorch {torch.__version__}, allocator {os.environ.get('PYTORCH_ALLOC_CONF', 'native')}", file=sys.stderr)
    unittest.main()
