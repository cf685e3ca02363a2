"""A call that came before is not planned again, and nobody can tell: events, reports and values are the same bytes."""

from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np
import pytest

import ttsim
from ops.passes.caches import PlanCache
from ops.planners.conv import plan as conv_plan
from ops.planners.conv.arguments import ComputeConfig, ConvCall, ConvConfig, Folding, SliceConfig
from tests.build import place
from tests.ttsim.api.calls import conv
from ttsim.api.device_calls import require_left_out, required_device
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam

SIDE, CHANNELS = 8, 32
L1, DRAM = ttsim.L1_MEMORY_CONFIG, ttsim.DRAM_MEMORY_CONFIG
SHARDS = place("height/32x32/2")


def image(device: ttsim.Device, memory: Any = DRAM) -> ttsim.Tensor:
    values = np.random.default_rng(0).standard_normal((1, 1, SIDE * SIDE, CHANNELS), dtype=np.float32)
    return ttsim.Tensor(values, ttsim.bfloat16).to(device, memory)


def convolved(x: ttsim.Tensor, **changes: Any) -> Any:
    """A call of 2 x 2 at stride 2; the slope of its activation is told by negative values."""
    return conv(x.device(), (SIDE, SIDE), seed=1, input_tensor=x, **changes)


def pooled(x: ttsim.Tensor, **options: Any) -> ttsim.Tensor:
    sizes = {"batch_size": 1, "input_h": SIDE, "input_w": SIDE, "channels": CHANNELS}
    windows = {"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1], **options}
    return ttsim.max_pool2d(input_tensor=x, **sizes, **windows)


def leaky(slope: float) -> ttsim.Conv2dConfig:
    return ttsim.Conv2dConfig(activation=UnaryWithParam(UnaryOpType.LEAKY_RELU, slope))


LOFI = ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.LoFi)
CALLS = {
    "conv_transpose2d": convolved,
    "flipped": lambda x: convolved(x, mirror_kernel=False),
    "returned weights": lambda x: convolved(x, return_weights_and_bias=True)[0],
    "phase": lambda x: convolved(x, lowering="phase"),
    "low fidelity": lambda x: convolved(x, compute_config=LOFI),
    **{f"slope {slope}": lambda x, slope=slope: convolved(x, conv_config=leaky(slope)) for slope in (0.0, -0.0, 0.5)},
    "from L1": lambda x: convolved(ttsim.to_memory_config(x, L1)),
    "conv2d": lambda x: convolved(x, transposed=False),
    "groups": lambda x: convolved(x, transposed=False, groups=2),
    "overlapping windows": lambda x: convolved(x, transposed=False, stride=(1, 1)),
    "a matmul": lambda x: convolved(x, transposed=False, kernel=(1, 1), stride=(1, 1)),
    "pool": pooled,
    "pool, other stride": lambda x: pooled(x, stride=[1, 1]),
    "concat": lambda x: ttsim.concat([x, x], dim=3),
    "concat, other axis": lambda x: ttsim.concat([x, x], dim=2),
    "concat, other place": lambda x: ttsim.concat([x, x], dim=3, memory_config=L1),
    "to_layout": lambda x: ttsim.to_layout(x, ttsim.TILE_LAYOUT),
    "to_layout, other format": lambda x: ttsim.to_layout(x, ttsim.TILE_LAYOUT, ttsim.bfloat8_b),
    "tilize": lambda x: ttsim.tilize(x),
    "tilize on one core": lambda x: ttsim.tilize(x, use_multicore=False),
    "untilize": lambda x: ttsim.untilize(ttsim.tilize(x)),
    "typecast": lambda x: ttsim.typecast(ttsim.tilize(x), ttsim.float32),
    "shards and back": lambda x: ttsim.sharded_to_interleaved(ttsim.interleaved_to_sharded(x, SHARDS), L1),
    "move": lambda x: ttsim.move(ttsim.to_memory_config(x, L1)),
    "permute": lambda x: ttsim.permute(x, (0, 1, 3, 2)),
    "transpose": lambda x: ttsim.transpose(x, 2, 3),
    "padded": lambda x: ttsim.pad(x, ((0, 0), (0, 0), (0, 0), (0, 2)), 0.0),
    "padded with -0": lambda x: ttsim.pad(x, ((0, 0), (0, 0), (0, 0), (0, 2)), -0.0),
}


def seen(device: ttsim.Device) -> list[tuple[str, str, str, bytes]]:
    """Of every call, made twice: events, report and values."""
    events: list[Any] = []
    device.machine.recorders.append(events)
    result = []
    for name, call in CALLS.items():
        for _ in range(2):
            x = image(device)
            with ttsim.profile(device) as profile:
                output = call(x)
            result.append((name, repr(events), profile.report().to_json(), output.cpu().to_numpy().tobytes()))
            events.clear()
    return result


def test_what_is_seen_is_the_same_whether_plans_are_kept_or_not() -> None:
    shared, several = PlanCache(), []
    for plans in (PlanCache(0), shared, shared):
        with ttsim.open_device(l1_small_size=32768, values="fast") as device:
            device.plans = plans
            several.append(seen(device))
    assert several[0] == several[1] == several[2]


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_kept(name: str) -> None:
    kept = PlanCache()
    steps = []
    for _ in range(2):
        with ttsim.open_device(l1_small_size=32768, values="off") as device:
            device.plans = kept
            CALLS[name](image(device))
        steps.append(kept.steps)
    assert 0 < steps[0] == steps[1]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions whose calls were planned, in order."""
    names: list[str] = []
    plan = conv_plan.plan_convolution

    def listened(call: Any, *arguments: Any, **options: Any) -> Any:
        names.append(call.rules.function)
        return plan(call, *arguments, **options)

    monkeypatch.setattr(conv_plan, "plan_convolution", listened)
    return names


@pytest.fixture
def off() -> Any:
    """A device that shares no plans, without values."""
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        device.plans = PlanCache()
        yield device


def test_an_edited_config_is_another_call(off: ttsim.Device, planned: list[str]) -> None:
    config, outputs = ttsim.Conv2dConfig(), []
    for rows in (0, 32, 0):
        config.act_block_h_override = rows
        with ttsim.profile(off) as profile:
            outputs.append(convolved(image(off, L1), conv_config=config))
        assert profile.calls[0].asked is not None
        assert profile.calls[0].asked.conv_config.act_block_h_override == rows
    assert len(planned) == 2
    assert len({output.buffer_address() for output in outputs}) == 3


def test_slices_that_fit_the_free_memory_are_counted_again(off: ttsim.Device, planned: list[str]) -> None:
    convolved(image(off))
    ballast = image(off, L1)
    convolved(image(off))
    ttsim.deallocate(ballast)
    convolved(image(off))
    assert len(planned) == 2


def test_a_sweep_of_calls_keeps_a_bounded_number_of_plans(off: ttsim.Device) -> None:
    off.plans = PlanCache(most_steps=25)
    for rows in (32, 64, 32, 0):
        convolved(image(off, L1), conv_config=ttsim.Conv2dConfig(act_block_h_override=rows))
        assert 0 < off.plans.steps <= 25


def test_no_argument_of_a_convolution_but_an_activation_has_fractions() -> None:
    """0.0 and -0.0 are equal and mean two things: the key of a plan holds the activation's words for that."""
    fractions = {
        (kind.__name__, field.name)
        for kind in (ConvCall, ConvConfig, ComputeConfig, SliceConfig, Folding)
        for field in fields(kind)
        if "float" in str(get_type_hints(kind)[field.name])
    }
    assert fractions == {("ConvConfig", "activation")}


@pytest.mark.parametrize(
    ("function", "options"),
    [("conv2d", {"transposed": False, "kernel": (9, 2)}), ("conv_transpose2d", {"stride": (1, 1), "padding": (5, 5)})],
)
def test_outputs_that_there_are_not_take_all_of_dram(function: str, options: dict[str, Any]) -> None:
    """The real library's line, then what is wrong in the call, and not what to free."""
    device = ttsim.open_device(strict=False)
    with pytest.raises(ttsim.ArgumentError, match=r"^Out of Memory: Not enough space to allocate \d+ B DRAM") as told:
        convolved(image(device), **options)
    _, ours = str(told.value).splitlines()
    assert ours.startswith(f"{function}: there is no output of ")


def test_what_is_left_out_or_says_no_is_no_request() -> None:
    require_left_out("f", first=None, second=False, third=(), fourth=[])
    for value in (0, True, "", (0,), np.zeros(0)):
        with pytest.raises(ttsim.ArgumentError, match=r"^f: other is not simulated; leave it out$"):
            require_left_out("f", none=None, other=value)
    with pytest.raises(ttsim.DeviceError, match=r"^Device Operations expect device tensors as inputs\nf: .*\.to\("):
        required_device("f", ttsim.Tensor([1.0]))
