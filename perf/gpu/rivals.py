#!/usr/bin/env python3
"""Measures lookups and sparse updates of PyTorch and FBGEMM, compared with perf_gpu, on the same GPU, in rows per second.

usage: perf/gpu/rivals.py [--gibibytes 4] [--of PERF_GPU_JSON] [--json FILE] [--cpu]

The cases are those of perf_gpu: a table of --gibibytes of float32, rows of 64 and 128, 65,536 uniform ids per call from
eight sets in turn, and the median of 30 measurements of 20 calls. The result of a first call is verified in float64
before anything is timed. A rival's push starts as Capstan's does: ids and one gradient row for each are in the GPU's
memory. Libraries that cannot be imported are skipped with a message. --cpu tests the script without a GPU; its rates are
meaningless. Exit code: 0, 1 for a wrong result, 3 without PyTorch or GPU.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

IDS, CALLS, REPEATS, SETS = 65536, 20, 30, 8
SGD_RATE, ADAM_RATE = 0.5, 0.01
EPSILON = 1e-8
PUSH = {False: "push sgd", True: "push adam"}
CHECKED_IDS = 1000  # number of ids of a push whose rows are verified

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gibibytes", type=float, default=4)
parser.add_argument("--of", type=pathlib.Path)
parser.add_argument("--json", type=pathlib.Path)
parser.add_argument("--cpu", action="store_true")
options = parser.parse_args()

try:
    import torch
except ImportError as error:
    print(f"rivals.py: {error}; no rival is measured", file=sys.stderr)
    sys.exit(3)
if not options.cpu and not torch.cuda.is_available():
    print("rivals.py: PyTorch finds no GPU; no rival is measured", file=sys.stderr)
    sys.exit(3)
try:
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen
    NO_FBGEMM = None
except (ImportError, OSError) as error:
    NO_FBGEMM = str(error)

GPU = torch.device("cpu" if options.cpu else "cuda:0")


def seconds_of(calls):
    if options.cpu:
        begin = time.perf_counter()
        calls()
        return time.perf_counter() - begin
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    calls()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def rows_per_second(call):
    def calls():
        for i in range(CALLS):
            call(i % SETS)

    times = [seconds_of(calls) for _ in range(3 + REPEATS)][3:]
    return IDS * CALLS / statistics.median(times)


def first_step(gradient, adam):
    if not adam:
        return SGD_RATE * gradient
    rate = ADAM_RATE * (1 - 0.999) ** 0.5 / (1 - 0.9)
    return rate * 0.1 * gradient / ((0.001 * gradient * gradient).sqrt() + EPSILON)


class Bench:
    def __init__(self, dim):
        self.dim = dim
        self.rows = int(options.gibibytes * 2**30) // (4 * dim)
        random = torch.Generator(GPU).manual_seed(1)
        self.ids = [torch.randint(self.rows, (IDS,), generator=random, device=GPU) for _ in range(SETS)]
        # Used in turn, like the ids, so that they are read from memory and not from a cache.
        self.gradients = [torch.rand(IDS, dim, generator=random, device=GPU) / 64 for _ in range(SETS)]
        self.outputs = [None] * SETS

    @staticmethod
    def values_of(positions):
        return (positions % 4093).float() / 4096

    def fresh(self):
        return self.values_of(torch.arange(self.rows * self.dim, device=GPU)).view(self.rows, self.dim)

    def push_is_correct(self, before, after, adam):
        """`before` and `after`: rows of the first CHECKED_IDS ids of set 0."""
        ids = self.ids[0]
        unique, position = torch.unique(ids, return_inverse=True)
        sums = torch.zeros(len(unique), self.dim, device=GPU, dtype=torch.float64)
        sums.index_add_(0, position, self.gradients[0].double())
        sums = sums[position[:CHECKED_IDS]]
        expected = before.double() - first_step(sums, adam)
        return bool(((after.double() - expected).abs() < 1e-4 * (1 + sums.abs())).all())

    def torch_lookup(self):
        table = self.fresh()
        outs = [torch.empty(IDS, self.dim, device=GPU) for _ in range(SETS)]

        def embedding(i):
            self.outputs[i] = torch.nn.functional.embedding(self.ids[i], table)

        expected = self.values_of(self.ids[0][:, None] * self.dim + torch.arange(self.dim, device=GPU))
        right = torch.equal(torch.nn.functional.embedding(self.ids[0], table), expected)
        yield "lookup", "torch embedding", right, embedding
        torch.index_select(table, 0, self.ids[0], out=outs[0])
        yield "lookup", "torch index_select, out", torch.equal(outs[0], expected), lambda i: torch.index_select(table, 0, self.ids[i], out=outs[i])

    def torch_push(self, adam):
        table = self.fresh().requires_grad_()
        if adam:
            optimizer = torch.optim.SparseAdam([table], lr=ADAM_RATE, eps=EPSILON)
        else:
            optimizer = torch.optim.SGD([table], lr=SGD_RATE)

        def call(i):
            table.grad = torch.sparse_coo_tensor(self.ids[i][None], self.gradients[i], table.shape, check_invariants=False)
            optimizer.step()

        checked_ids = self.ids[0][:CHECKED_IDS]
        before = table.detach()[checked_ids].clone()
        call(0)
        right = self.push_is_correct(before, table.detach()[checked_ids], adam)
        yield PUSH[adam], f"torch {type(optimizer).__name__}, sparse", right, call
        if not adam:
            with torch.no_grad():
                plain = self.fresh()
                plain.index_add_(0, self.ids[0], self.gradients[0], alpha=-SGD_RATE)
                right = self.push_is_correct(before, plain[checked_ids], adam)
                yield PUSH[adam], "torch index_add_", right, lambda i: plain.index_add_(0, self.ids[i], self.gradients[i], alpha=-SGD_RATE)

    def fbgemm(self, adam):
        """The backward pass of FBGEMM includes the update, and requires a forward pass."""
        bags = SplitTableBatchedEmbeddingBagsCodegen(
            [(self.rows, self.dim, EmbeddingLocation.DEVICE, ComputeDevice.CUDA)], pooling_mode=PoolingMode.NONE,
            optimizer=EmbOptimType.ADAM if adam else EmbOptimType.EXACT_SGD, eps=EPSILON,
            learning_rate=ADAM_RATE if adam else SGD_RATE, device=GPU)
        with torch.no_grad():
            bags.weights_dev.copy_(self.fresh().view(-1))
        offsets = torch.arange(IDS + 1, device=GPU)
        weights = bags.weights_dev.detach().view(self.rows, self.dim)
        checked_ids = self.ids[0][:CHECKED_IDS]
        before = weights[checked_ids].clone()
        found = bags(self.ids[0], offsets)
        right = torch.equal(found[:CHECKED_IDS], before)

        def forward(i):
            with torch.no_grad():
                self.outputs[i] = bags(self.ids[i], offsets)

        if not adam:
            yield "lookup", "fbgemm table-batched", right, forward
        found.backward(self.gradients[0])
        right = right and self.push_is_correct(before, weights[checked_ids], adam)
        yield PUSH[adam], "fbgemm table-batched, with lookup", right, lambda i: bags(self.ids[i], offsets).backward(self.gradients[i])

    def cases(self):
        """Yields (case, rival, correct, call); one table at a time."""
        yield from self.torch_lookup()
        for adam in (False, True):
            yield from self.torch_push(adam)
            if NO_FBGEMM is None:
                yield from self.fbgemm(adam)


ours = {}
if options.of:
    beside_cores = ", beside cores"
    ours = {one["case"].removesuffix(beside_cores): one["rows_s"] for one in json.loads(options.of.read_text()) if "rows_s" in one}
print(f"# {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, {options.gibibytes:g} GiB, {IDS} uniform ids a call")
if NO_FBGEMM is not None:
    print(f"# FBGEMM is skipped: {NO_FBGEMM}")
print(f"{'case':<34}{'rival':<34}{'M rows/s':>10}{'ours':>10}{'times':>8}  answer")
results = []
for dim in (64, 128):
    for what, rival, right, call in Bench(dim).cases():
        name = f"{what}, {dim} floats, uniform"
        rate = rows_per_second(call)
        mine = ours.get(name)
        against = f"{mine * 1e-6:10.0f}{mine / rate:8.2f}" if mine else f"{'-':>10}{'-':>8}"
        print(f"{name:<34}{rival:<34}{rate * 1e-6:10.0f}{against}  {'verified' if right else 'WRONG'}", flush=True)
        results.append({"case": name, "rival": rival, "rows_s": rate, "ours": mine, "verified": right})
if options.json:
    options.json.write_text(json.dumps(results, indent=1))
sys.exit(not all(one["verified"] for one in results))
