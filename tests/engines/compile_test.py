# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# torch.compile on the emulated GPU: kernels that Triton makes at run time carry their PTX, which is executed. Run by
# run.sh.
import unittest

import torch
import torch.nn.functional as F

torch.manual_seed(20250127)
X = torch.randn(24, 40)
FUNCTIONS = {
    "element by element": lambda x: torch.sin(x) * 2 + x.abs().sqrt(),
    "reductions": lambda x: torch.softmax(x, -1).sum(0) + x.amax(0),
    "normalisation": lambda x: F.gelu(F.layer_norm(x, (40,))),
    "strides and types": lambda x: (x.t() + 1).to(torch.bfloat16).contiguous(),
}


class Compiled(unittest.TestCase):
    def test_each_is_what_the_cpu_says(self):
        for name, function in FUNCTIONS.items():
            with self.subTest(name):
                got = torch.compile(function, dynamic=False)(X.cuda())
                torch.testing.assert_close(got.cpu(), function(X), atol=1e-5, rtol=1e-4)

    def test_it_was_triton(self):
        from torch._inductor.utils import run_and_get_code
        _, code = run_and_get_code(torch.compile(FUNCTIONS["element by element"]), X.cuda())
        self.assertIn("triton", "".join(code))


if __name__ == "__main__":
    unittest.main()
