"""capstan.torch: the same losses as with torch alone, tables and models on workers, and conversions."""
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import capstan as cs
import capstan.torch as cst

ROWS, DIM, BATCH, STEPS = 50, 8, 32, 30


class Dlrm(torch.nn.Module):
    """A small DLRM: two bags of categorical features, dense features, their interactions, one logit."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables
        self.bottom = torch.nn.Linear(3, DIM)
        self.top = torch.nn.Linear(DIM + 3, 1)

    def forward(self, dense, bags):
        vectors = torch.stack([self.bottom(dense).relu(), *self.tables(bags).values()], 1)
        products = vectors @ vectors.transpose(1, 2)
        pairs = products[:, [0, 0, 1], [1, 2, 2]]
        return self.top(torch.cat([vectors[:, 0], pairs], 1)).squeeze(1)


class PlainTables(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        bags = [torch.nn.EmbeddingBag.from_pretrained(w.clone(), mode="sum", freeze=False) for w in weights.values()]
        self.tables = torch.nn.ModuleList(bags)

    def forward(self, bags):
        return {name: table(*bag) for table, (name, bag) in zip(self.tables, bags.items())}


def batches(seed, count=STEPS):
    """Labels follow from hidden weights of the ids, so that the loss can fall."""
    random = np.random.default_rng(seed)
    hidden = np.random.default_rng(99).normal(size=ROWS)
    for _ in range(count):
        bags, score = {}, np.zeros(BATCH)
        for name in ("users", "items"):
            sizes = random.integers(1, 4, BATCH)
            ids = random.integers(0, ROWS, sizes.sum())
            score += np.bincount(np.repeat(np.arange(BATCH), sizes), hidden[ids], BATCH)
            bags[name] = (torch.from_numpy(ids), torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)[:-1]])))
        dense = torch.from_numpy(random.normal(size=(BATCH, 3)).astype(np.float32))
        yield dense, bags, torch.from_numpy((score > 0).astype(np.float32))


def loss_of(model, batch):
    dense, bags, labels = batch
    return torch.nn.functional.binary_cross_entropy_with_logits(model(dense, bags), labels)


def step(model, batch):
    model.pull()
    loss = loss_of(model, batch)
    loss.backward()
    model.push()
    return loss.item()


def start():
    torch.manual_seed(3)
    weights = {name: torch.randn(ROWS, DIM) * 0.3 for name in ("users", "items")}
    return weights, Dlrm(PlainTables(weights))


def remote(strategy, plain, weights, optimizer):
    with strategy.scope():
        tables = {n: cst.RemoteEmbedding.from_pretrained(w, name=n, optimizer=optimizer, mode="sum") for n, w in weights.items()}
        module = Dlrm(cst.EmbeddingCollection(tables))
        for part in ("bottom", "top"):
            getattr(module, part).load_state_dict(getattr(plain, part).state_dict())
        return cst.DistributedModel(module, optimizer=optimizer)


@pytest.mark.parametrize(
    "optimizer, of_torch",
    [
        (cs.optimizers.SGD(0.5), lambda parameters: torch.optim.SGD(parameters, 0.5)),
        (
            cs.optimizers.Adagrad(0.1, initial_accumulator_value=0.0, epsilon=1e-10),
            lambda parameters: torch.optim.Adagrad(parameters, 0.1),
        ),
    ],
    ids=["sgd", "adagrad"],
)
def test_one_step_at_a_time_has_the_losses_of_torch(strategy, coordinator, optimizer, of_torch):
    weights, plain = start()
    model = remote(strategy, plain, weights, optimizer)
    replica, torch_optimizer = model.on_workers(coordinator), of_torch(plain.parameters())
    for batch in batches(1):
        mine = coordinator.schedule(step, (replica, batch)).fetch()
        coordinator.join()
        torch_optimizer.zero_grad()
        loss = loss_of(plain, batch)
        loss.backward()
        torch_optimizer.step()
        assert mine == pytest.approx(loss.item(), abs=1e-4)
    np.testing.assert_allclose(model.state_dict()["top.weight"], plain.top.weight.detach(), atol=1e-4)


def test_two_workers_reach_the_loss_of_torch(strategy, coordinator):
    weights, plain = start()
    model = remote(strategy, plain, weights, cs.optimizers.SGD(0.5))
    replica, torch_optimizer = model.on_workers(coordinator), torch.optim.SGD(plain.parameters(), 0.5)
    for batch in batches(1, 300):
        coordinator.schedule(step, (replica, batch))
        torch_optimizer.zero_grad()
        loss_of(plain, batch).backward()
        torch_optimizer.step()
    coordinator.join()
    model.pull()
    with torch.no_grad():
        unseen = list(batches(2))
        mine, theirs, before = (np.mean([loss_of(m, b).item() for b in unseen]) for m in (model, plain, start()[1]))
    assert theirs < 0.8 * before and mine == pytest.approx(theirs, rel=0.15)


def test_embedding_without_bags(strategy, coordinator):
    with strategy.scope():
        table = cst.RemoteEmbedding(10, 4, name="t", optimizer=cs.optimizers.SGD(1.0), initializer=cs.initializers.ones())
    ids = torch.tensor([[1, 2], [2, 2]])
    out = table(ids)
    assert out.shape == (2, 2, 4) and out.requires_grad
    (out * torch.arange(4)).sum().backward()
    table.variable.flush()
    np.testing.assert_array_equal(table.variable.pull()[1], 1 - np.arange(4))
    np.testing.assert_array_equal(table.variable.pull()[2], 1 - 3 * np.arange(4))
    with torch.no_grad():
        assert not table(ids).requires_grad
    np.testing.assert_array_equal(table.to_embedding().weight.detach(), table.variable.pull())
    table.prefetch(ids)
    table.variable.assign(0)
    np.testing.assert_array_equal(table(ids)[0, 0].detach(), 1 - np.arange(4))  # the prefetched rows
    assert table(ids).abs().sum() == 0
    assert "10, 4" in repr(table)
    assert coordinator.schedule(lambda: table(ids).sum().item()).fetch() == 0


def test_embedding_of_a_dynamic_table(strategy, coordinator):
    with strategy.scope():
        table = cst.RemoteEmbedding(None, 4, name="t", optimizer=cs.optimizers.SGD(1.0), initializer=cs.initializers.ones())
    large = -(2**62)
    ids = torch.tensor([[7, large], [large, large]])
    out = table(ids)
    (out * torch.arange(4)).sum().backward()
    table.variable.flush()
    pushed = table.variable.lookup(np.array([7, large]))
    np.testing.assert_array_equal(pushed, [1 - np.arange(4), 1 - 3 * np.arange(4)])
    assert len(table.variable) == 2
    assert coordinator.schedule(lambda: table(torch.tensor([large])).sum().item()).fetch() == pushed[1].sum()


def test_bfloat16_tables(strategy):
    with strategy.scope():
        table = cst.RemoteEmbedding(10, 4, dtype="bfloat16", optimizer=cs.optimizers.SGD(1.0), initializer=cs.initializers.ones())
    out = table(torch.tensor([3]))
    assert out.dtype == torch.bfloat16
    out.sum().backward()
    table.variable.flush()
    assert table.variable[3].astype(np.float32).tolist() == [0, 0, 0, 0]


def test_state_dicts(strategy):
    weights, plain = start()
    model = remote(strategy, plain, weights, cs.optimizers.SGD(0.1))
    with torch.no_grad():
        plain.top.bias.fill_(5)
    model.load_state_dict(plain.state_dict(), strict=False)
    assert model.variables["top.bias"].pull() == 5
    assert sorted(model.state_dict()) == ["bottom.bias", "bottom.weight", "top.bias", "top.weight"]


def test_invalid_embeddings_are_rejected(strategy):
    with pytest.raises(cs.errors.InvalidArgumentError, match="mode"), strategy.scope():
        cst.RemoteEmbedding(10, 4, mode="max")
    with pytest.raises(cs.errors.FailedPreconditionError, match="scope"):
        cst.RemoteEmbedding(10, 4)
