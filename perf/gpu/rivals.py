#!/usr/bin/env python3
"""PyTorch's and FBGEMM's lookups and sparse updates beside perf_gpu's, on the same GPU: rows a second.

usage: perf/gpu/rivals.py [--gibibytes 4] [--of PERF_GPU_JSON] [--json FILE] [--cpu]

The cases are perf_gpu's: a table of --gibibytes of float32, rows of 64 and 128, 65,536 uniform ids a call of eight sets
by turns, 20 calls between two events, 30 times, the median. What a first call leaves behind is compared in float64
before anything is timed. A rival's push begins where ours does: ids and a gradient of one row each lie in the GPU's
memory. What cannot be imported is left out, and said. --cpu tries the script where there is no GPU: what it then
prints are no figures of anybody. Exit: 0, 1 a wrong answer, 3 no PyTorch or no GPU.
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
LOOKED_AT = 1000  # ids of a push whose rows are compared

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gibibytes", type=float, default=4)
parser.add_argument("--of", type=pathlib.Path)
parser.add_argument("--json", type=pathlib.Path)
parser.add_argument("--cpu", action="store_true")
options = parser.parse_args()

try:
    import torch
except ImportError as error:
    print(f"rivals.py: {error}; no rival was measured", file=sys.stderr)
    sys.exit(3)
if not options.cpu and not torch.cuda.is_available():
    print("rivals.py: PyTorch finds no GPU; no rival was measured", file=sys.stderr)
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


def rows_a_second(call):
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
        # By turns, as what is looked up, so that they come from memory.
        self.gradients = [torch.rand(IDS, dim, generator=random, device=GPU) / 64 for _ in range(SETS)]
        self.kept = [None] * SETS

    @staticmethod
    def values_of(places):
        return (places % 4093).float() / 4096

    def fresh(self):
        return self.values_of(torch.arange(self.rows * self.dim, device=GPU)).view(self.rows, self.dim)

    def pushed_rightly(self, before, after, adam):
        """`before` and `after`: rows of the first LOOKED_AT ids of set 0."""
        ids = self.ids[0]
        unique, place = torch.unique(ids, return_inverse=True)
        sums = torch.zeros(len(unique), self.dim, device=GPU, dtype=torch.float64)
        sums.index_add_(0, place, self.gradients[0].double())
        sums = sums[place[:LOOKED_AT]]
        wanted = before.double() - first_step(sums, adam)
        return bool(((after.double() - wanted).abs() < 1e-4 * (1 + sums.abs())).all())

    def torch_lookup(self):
        table = self.fresh()
        outs = [torch.empty(IDS, self.dim, device=GPU) for _ in range(SETS)]

        def embedding(i):
            self.kept[i] = torch.nn.functional.embedding(self.ids[i], table)

        wanted = self.values_of(self.ids[0][:, None] * self.dim + torch.arange(self.dim, device=GPU))
        right = torch.equal(torch.nn.functional.embedding(self.ids[0], table), wanted)
        yield "lookup", "torch embedding", right, embedding
        torch.index_select(table, 0, self.ids[0], out=outs[0])
        yield "lookup", "torch index_select, out", torch.equal(outs[0], wanted), lambda i: torch.index_select(table, 0, self.ids[i], out=outs[i])

    def torch_push(self, adam):
        table = self.fresh().requires_grad_()
        if adam:
            optimizer = torch.optim.SparseAdam([table], lr=ADAM_RATE, eps=EPSILON)
        else:
            optimizer = torch.optim.SGD([table], lr=SGD_RATE)

        def call(i):
            table.grad = torch.sparse_coo_tensor(self.ids[i][None], self.gradients[i], table.shape, check_invariants=False)
            optimizer.step()

        looked_at = self.ids[0][:LOOKED_AT]
        before = table.detach()[looked_at].clone()
        call(0)
        right = self.pushed_rightly(before, table.detach()[looked_at], adam)
        yield PUSH[adam], f"torch {type(optimizer).__name__}, sparse", right, call
        if not adam:
            with torch.no_grad():
                plain = self.fresh()
                plain.index_add_(0, self.ids[0], self.gradients[0], alpha=-SGD_RATE)
                right = self.pushed_rightly(before, plain[looked_at], adam)
                yield PUSH[adam], "torch index_add_", right, lambda i: plain.index_add_(0, self.ids[i], self.gradients[i], alpha=-SGD_RATE)

    def fbgemm(self, adam):
        """Its way back includes the update, and needs a way forward."""
        bags = SplitTableBatchedEmbeddingBagsCodegen(
            [(self.rows, self.dim, EmbeddingLocation.DEVICE, ComputeDevice.CUDA)], pooling_mode=PoolingMode.NONE,
            optimizer=EmbOptimType.ADAM if adam else EmbOptimType.EXACT_SGD, eps=EPSILON,
            learning_rate=ADAM_RATE if adam else SGD_RATE, device=GPU)
        with torch.no_grad():
            bags.weights_dev.copy_(self.fresh().view(-1))
        offsets = torch.arange(IDS + 1, device=GPU)
        weights = bags.weights_dev.detach().view(self.rows, self.dim)
        looked_at = self.ids[0][:LOOKED_AT]
        before = weights[looked_at].clone()
        found = bags(self.ids[0], offsets)
        right = torch.equal(found[:LOOKED_AT], before)

        def forward(i):
            with torch.no_grad():
                self.kept[i] = bags(self.ids[i], offsets)

        if not adam:
            yield "lookup", "fbgemm table-batched", right, forward
        found.backward(self.gradients[0])
        right = right and self.pushed_rightly(before, weights[looked_at], adam)
        yield PUSH[adam], "fbgemm table-batched, with lookup", right, lambda i: bags(self.ids[i], offsets).backward(self.gradients[i])

    def cases(self):
        """(what, rival, whether its answer is right, a call); one table at a time."""
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
    print(f"# FBGEMM is left out: {NO_FBGEMM}")
print(f"{'case':<34}{'rival':<34}{'M rows/s':>10}{'ours':>10}{'times':>8}  answer")
results = []
for dim in (64, 128):
    for what, rival, right, call in Bench(dim).cases():
        name = f"{what}, {dim} floats, uniform"
        rate = rows_a_second(call)
        mine = ours.get(name)
        against = f"{mine * 1e-6:10.0f}{mine / rate:8.2f}" if mine else f"{'-':>10}{'-':>8}"
        print(f"{name:<34}{rival:<34}{rate * 1e-6:10.0f}{against}  {'verified' if right else 'WRONG'}", flush=True)
        results.append({"case": name, "rival": rival, "rows_s": rate, "ours": mine, "verified": right})
if options.json:
    options.json.write_text(json.dumps(results, indent=1))
sys.exit(not all(one["verified"] for one in results))
