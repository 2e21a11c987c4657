# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch computes on the emulated GPU: operators of every kind against the CPU's, in stream order, captured, with
# gradients, at random. Run by run.sh.
import unittest

import torch
import torch.nn.functional as F

torch.manual_seed(20250126)
A, B = torch.randn(33, 65), torch.randn(65, 17)
BATCH = torch.randn(3, 9, 16)
IMAGE = torch.randn(2, 3, 12, 12)
WHOLE = torch.randint(-50, 50, (40,))

OPERATORS = {
    "element by element": lambda d: torch.sin(A.to(d)) * 2 + A.to(d).abs().sqrt(),
    "a number of the host": lambda d: A.to(d) * torch.tensor(3.0),
    "other types": lambda d: A.to(d).half().add(1).bfloat16().mul(2).double().to(torch.int16),
    "matrix product": lambda d: A.to(d) @ B.to(d),
    "half-precision product": lambda d: (A.to(d).half() @ B.to(d).half()).float(),
    "bfloat16 product": lambda d: (A.to(d).bfloat16() @ B.to(d).bfloat16()).float(),
    "of transposed": lambda d: B.to(d).t() @ A.to(d).t(),
    "batched product": lambda d: torch.bmm(BATCH.to(d), BATCH.to(d).transpose(1, 2)),
    "linear": lambda d: F.linear(BATCH.to(d), A[:16, :16].to(d), A[0, :16].to(d)),
    "sums": lambda d: torch.cat([A.to(d).sum(0), A.to(d).mean(1), A.to(d).std().view(1)]),
    "largest": lambda d: A.to(d).max(dim=1),
    "sort": lambda d: A.to(d).sort(dim=0, descending=True),
    "softmax": lambda d: F.log_softmax(A.to(d), -1),
    "layer norm": lambda d: F.layer_norm(BATCH.to(d), (16,)),
    "attention": lambda d: F.scaled_dot_product_attention(*[BATCH.to(d)] * 3, is_causal=True),
    "embedding": lambda d: F.embedding(WHOLE.abs().to(d), torch.arange(150.0).view(50, 3).to(d)),
    "index": lambda d: A.to(d)[WHOLE.abs().to(d) % 33, 3:9],
    "index put": lambda d: A.to(d).index_put((torch.tensor([1, 5], device=d),), torch.zeros((), device=d)),
    "where": lambda d: torch.where(A.to(d) > 0, A.to(d), torch.zeros((), device=d)),
    "nonzero": lambda d: (A.to(d) > 1).nonzero(),
    "masked select": lambda d: A.to(d)[A.to(d) > 1],
    "unique": lambda d: WHOLE.to(d).unique(return_counts=True),
    "cat and split": lambda d: torch.cat(A.to(d).split(5)[::-1]),
    "gather and scatter": lambda d: torch.zeros(50, device=d).scatter_add(0, WHOLE.abs().to(d) % 50, A[:, 0].to(d).repeat(2)[:40]),
    "cumulative": lambda d: A.to(d).cumsum(1),
    "triangles": lambda d: torch.tril(A.to(d)) + torch.triu(A.to(d), 2),
    "made there": lambda d: torch.cat([torch.arange(7, device=d), torch.full((3,), 9, device=d)]),
    "convolution": lambda d: F.conv2d(IMAGE.to(d), torch.ones(4, 3, 3, 3, device=d), padding=1),
    "pooling": lambda d: F.max_pool2d(IMAGE.to(d), 2),
    "out=": lambda d: torch.add(A.to(d), 1, out=torch.empty(0, device=d)),
    "in place on a view": lambda d: A.to(d).t()[2:5].mul_(3).contiguous(),
    "strided copies": lambda d: A.to(d).t().contiguous().view(-1)[::3].clone(),
    "solve": lambda d: torch.linalg.solve(A[:16, :16].to(d), B[:16, :4].to(d)),
    "nothing": lambda d: torch.empty(0, 5, device=d) @ torch.ones(5, 2, device=d),
}


def flat(result):
    return [one.cpu() for one in (result if isinstance(result, tuple) else (result,))]


class Operators(unittest.TestCase):
    def test_each_is_what_the_cpu_says(self):
        for name, operator in OPERATORS.items():
            with self.subTest(name):
                for got, expected in zip(flat(operator("cuda")), flat(operator("cpu")), strict=True):
                    self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
                    torch.testing.assert_close(got, expected, equal_nan=True)

    def test_numbers_come_back(self):
        self.assertEqual((A.cuda() > 0).sum().item(), (A > 0).sum().item())
        self.assertTrue(torch.equal(A.cuda(), A.cuda()))
        self.assertTrue(bool((A.cuda() == A.cuda()).all()))

    def test_gradients(self):
        losses = {}
        for device in ("cpu", "cuda"):
            torch.manual_seed(1)
            model = torch.nn.Sequential(torch.nn.Linear(65, 32), torch.nn.GELU(), torch.nn.LayerNorm(32),
                                        torch.nn.Linear(32, 5)).to(device)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
            losses[device] = []
            for _ in range(5):
                loss = F.cross_entropy(model(A.to(device)), (torch.arange(33) % 5).to(device))
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                losses[device].append(loss.item())
        self.assertLess(losses["cuda"][-1], losses["cuda"][0])
        torch.testing.assert_close(losses["cuda"], losses["cpu"])

    def test_a_wrong_call_is_its_callers_error(self):
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
            A.cuda() @ A.cuda()
        self.assertEqual(A.cuda().sum().shape, ())


class Order(unittest.TestCase):
    def test_work_follows_its_stream(self):
        side = torch.cuda.Stream()
        source = torch.empty(1 << 20, pin_memory=True)
        for step in range(8):
            source.fill_(step)
            with torch.cuda.stream(side):
                there = source.to("cuda", non_blocking=True) * 2 + 1
            torch.cuda.current_stream().wait_stream(side)
            there.record_stream(torch.cuda.current_stream())
            self.assertEqual(there.sum().item() / there.numel(), 2 * step + 1)
            side.synchronize()

    def test_a_captured_step_computes_with_what_is_there(self):
        x, weight = torch.zeros(4, 8, device="cuda"), torch.randn(8, 8, device="cuda")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.relu(x @ weight)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = torch.relu(x @ weight)
        for _ in range(3):
            value = torch.randn(4, 8)
            x.copy_(value)
            graph.replay()
            torch.testing.assert_close(out.cpu(), torch.relu(value @ weight.cpu()))


class Random(unittest.TestCase):
    def test_a_seed_gives_the_same_numbers_and_leaves_the_cpus_alone(self):
        torch.manual_seed(5)
        cpu = torch.rand(4)
        torch.manual_seed(5)
        first = torch.randn(1000, device="cuda"), torch.rand(1000, device="cuda")
        dropped = F.dropout(torch.ones(1000, device="cuda"), 0.25)
        self.assertTrue(torch.equal(torch.rand(4), cpu))
        torch.manual_seed(5)
        second = torch.randn(1000, device="cuda"), torch.rand(1000, device="cuda")
        for one, other in zip(first, second):
            self.assertTrue(torch.equal(one, other))
        self.assertFalse(torch.equal(first[1], torch.rand(1000, device="cuda")))
        self.assertLess(abs(first[0].mean().item()), 0.2)
        self.assertTrue(600 < (dropped != 0).sum().item() < 900)


if __name__ == "__main__":
    unittest.main()
