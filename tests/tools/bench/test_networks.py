"""A small network like the recorded ones: the simulator and torch compute the same, and passes are set beside torch."""

from types import SimpleNamespace

import numpy as np
import pytest

from device.spec.device_spec import load_spec
from tools.bench import networks
from tools.bench.networks import (
    AGAIN,
    FIRST,
    LEAST_CORRELATION,
    NEW,
    TORCH,
    Network,
    bench_networks,
    fresh_pass,
    host_tensors,
    one_pass,
    read_network,
    torch_pass,
)
from tools.validate.network_rows import NetworkStep
from tools.validate.network_run import device_of, operand_shapes
from ttsim.report.accuracy import measure

LAYER = {
    "op": "conv2d", "batch": "1", "k": "3", "s": "1", "pad": "1", "shard": "HS", "act_block_h": "", "act_dbuf": "0",
    "w_dbuf": "0", "activation": "relu", "out_layout": "TILE", "dtype_in1": "bfp8_b", "dtype_out": "bf16",
    "fidelity": "LoFi", "fp32_acc": "1", "packer_l1_acc": "1",
}  # fmt: skip
UP = {"op": "conv_transpose2d", "k": "2", "s": "2", "pad": "0", "activation": "none"}
LAST = {"k": "1", "pad": "0", "activation": "none"}


def step(layer: str, before: str, sizes: tuple[int, int, int] | None = None, **changes: str) -> NetworkStep:
    """A layer of so many input channels, output channels and rows; without them the end of the network."""
    flow = {
        "model": "vanilla_unet", "layer": layer, "before": before, "shard_seen": "", "reshard_if_not_optimal": "0",
        "deallocate_activation": "0", "dtype_out": "bf16",
    }  # fmt: skip
    if sizes is None:
        return NetworkStep(None, flow)
    ins, outs, side = map(str, sizes)
    return NetworkStep(
        {**LAYER, "layer": layer, "in_c": ins, "out_c": outs, "in_h": side, "in_w": side, **changes}, flow
    )


def network(*steps: NetworkStep) -> Network:
    rng = np.random.default_rng(1)
    operands = {
        one.row["layer"]: tuple(rng.standard_normal(of, dtype=np.float32) / 8 for of in operand_shapes(one.row))
        for one in steps
        if one.row is not None
    }
    return Network(steps=steps, image=rng.standard_normal((1, 3, 64, 64), dtype=np.float32), operands=operands)


FLAT = network(
    step("e1", "start_flat:8x8", (3, 32, 64)),
    step("e2", "save_pool:e1", (32, 32, 32)),
    step("up", "", (32, 32, 32), **UP),
    step("d1", "concat_saved:e1:rows", (64, 32, 64)),
    step("out", "", (32, 1, 64), **LAST),
    step("", "channels_first"),
)
SQUARE = network(
    step("e1", "start:8x8", (3, 32, 64), out_layout="ROW_MAJOR"),
    step("e2", "pool", (32, 32, 32), out_layout="ROW_MAJOR"),
    step("up", "", (32, 32, 32), **UP, out_layout="ROW_MAJOR"),
    step("d1", "concat:e1:8x8", (64, 32, 64), out_layout="TILE"),
    step("out", "", (32, 1, 64), **LAST),
    step("", "sigmoid"),
)


@pytest.mark.parametrize("small", [FLAT, SQUARE], ids=["flat", "square"])
def test_a_pass_gives_what_torch_gives(small):
    pytest.importorskip("torch")
    operands, wanted = host_tensors(small), torch_pass(small)().numpy()
    first = fresh_pass(small, operands)
    assert measure(first.reshape(-1), wanted.reshape(-1)).pcc > LEAST_CORRELATION
    with device_of(small.steps, load_spec("wormhole_n150"), "fast") as device:
        assert one_pass(small, device, operands).tobytes() == first.tobytes()
        left = device.machine.memory.live()
        assert one_pass(small, device, operands).tobytes() == first.tobytes()
        assert device.machine.memory.live() == left


def test_a_recorded_network_has_numbers_for_every_layer():
    read = read_network("vanilla_unet")
    assert read.image.shape == (1, 3, 480, 640)
    assert len(read.operands) == 23
    weights, bias = read.operands["d4.up"]
    assert (weights.shape, bias.shape) == ((512, 256, 2, 2), (1, 1, 1, 256))
    assert weights.std() == pytest.approx((2 / 512) ** 0.5, rel=0.01)
    assert read.operands["e1.conv1"][0].std() == pytest.approx((2 / 27) ** 0.5, rel=0.05)


@pytest.mark.parametrize("compared", [True, False])
def test_passes_are_set_beside_torch(monkeypatch, compared):
    output = np.arange(4.0)
    monkeypatch.setattr(networks, "NETWORKS", ("small",))
    monkeypatch.setattr(networks, "read_network", lambda model: FLAT)
    monkeypatch.setattr(networks, "torch", object() if compared else None)
    monkeypatch.setattr(networks, "torch_pass", lambda network: lambda: SimpleNamespace(numpy=lambda: output))
    for name in ("one_pass", "fresh_pass"):
        monkeypatch.setattr(networks, name, lambda *_, **__: output)
    figures = {figure.name: figure for figure in bench_networks(2)}
    assert {NEW, FIRST, AGAIN} <= set(figures)
    assert (TORCH in figures) is compared
    ratios = {name: figure for name, figure in figures.items() if figure.unit == "x"}
    assert set(ratios) == ({f"{name}, of torch" for name in (NEW, FIRST, AGAIN)} if compared else set())
    if compared:
        assert ratios[f"{AGAIN}, of torch"].value == pytest.approx(figures[AGAIN].value / figures[TORCH].value)
        assert all(figure.limit for figure in ratios.values())
        assert figures["1 - correlation with torch"].within


def test_a_network_that_computes_something_else_is_over_its_limit():
    wanted = np.linspace(-1, 1, 64)
    assert networks.disagreement("one", wanted.astype(np.float32), wanted).within
    assert not networks.disagreement("one", wanted[::-1].astype(np.float32), wanted).within
