"""A call that came before is not planned again, and nobody can tell: events, reports and values are the same bytes."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np
import pytest

import ttsim
from ops.passes.caches import PlanCache
from ops.planners.conv import plan as conv_plan
from ops.planners.conv.arguments import ComputeConfig, ConvCall, ConvConfig, Folding, SliceConfig
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam

SIDE, CHANNELS, OUT = 8, 32, 32
LEAKY = (ttsim.Conv2dConfig(activation=UnaryWithParam(UnaryOpType.LEAKY_RELU, slope)) for slope in (0.0, -0.0, 0.5))
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("conv_transpose2d", {}),
    ("conv_transpose2d", {"mirror_kernel": False}),
    ("conv_transpose2d", {"return_weights_and_bias": True}),
    ("conv_transpose2d", {"lowering": "phase"}),
    ("conv_transpose2d", {"compute_config": ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.LoFi)}),
    *(("conv_transpose2d", {"conv_config": config}) for config in LEAKY),
    ("conv2d", {}),
    ("conv2d", {"groups": 2}),
    ("conv2d", {"stride": (1, 1)}),
    ("conv2d", {"kernel_size": (1, 1), "stride": (1, 1)}),
)


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


def made(device: ttsim.Device, function: str, changes: dict[str, Any], memory: Any) -> Any:
    """A call on tensors of its own; its slope is told by negative values."""
    rng = np.random.default_rng(0)
    kernel = changes.get("kernel_size", (2, 2))
    shape = (OUT, CHANNELS // changes.get("groups", 1), *kernel)
    x = ttsim.Tensor(rng.standard_normal((1, 1, SIDE * SIDE, CHANNELS), dtype=np.float32), ttsim.bfloat16)
    options = {"kernel_size": (2, 2), "stride": (2, 2), **changes}
    return getattr(ttsim, function)(
        input_tensor=x.to(device, memory),
        weight_tensor=ttsim.Tensor(rng.standard_normal(shape, dtype=np.float32), ttsim.bfloat16),
        device=device,
        in_channels=CHANNELS,
        out_channels=OUT,
        batch_size=1,
        input_height=SIDE,
        input_width=SIDE,
        **options,
    )


def opened() -> ttsim.Device:
    """A device that shares no plans, without values."""
    device = ttsim.open_device(l1_small_size=32768, values="off")
    device.plans = PlanCache()
    return device


def told(device: ttsim.Device, memory: Any) -> Iterator[str]:
    """All that is seen of every call, made three times: the last while an output of the second lies in memory."""
    events: list[Any] = []
    device.machine.recorders.append(events)
    for function, changes in CALLS:
        lying = None
        for _ in range(3):
            with ttsim.profile(device) as profile:
                result = made(device, function, changes, memory)
            output = result if isinstance(result, ttsim.Tensor) else result[0]
            yield repr(events)
            yield profile.report().to_json()
            yield output.cpu().to_numpy().tobytes().hex()
            events.clear()
            lying = output if lying is None else None
    assert lying is not None


@pytest.mark.parametrize("memory", [ttsim.L1_MEMORY_CONFIG, ttsim.DRAM_MEMORY_CONFIG], ids=["L1", "DRAM"])
def test_what_is_seen_of_calls_is_the_same_whether_plans_are_kept_or_not(memory: Any, planned: list[str]) -> None:
    def seen(kept: PlanCache) -> tuple[list[str], int]:
        with ttsim.open_device(l1_small_size=32768, values="fast") as device:
            device.plans = kept
            planned.clear()
            return list(told(device, memory)), len(planned)

    (with_plans, few), (without, all_of_them) = seen(PlanCache()), seen(PlanCache(0))
    assert with_plans == without
    assert all_of_them == 3 * len(CALLS)
    assert len(CALLS) <= few < all_of_them


def test_a_call_is_planned_once(planned: list[str]) -> None:
    with opened() as device:
        outputs = [made(device, "conv_transpose2d", {}, ttsim.L1_MEMORY_CONFIG) for _ in range(5)]
        assert len(planned) == 1
        assert len({output.buffer_address() for output in outputs}) == 5


def test_an_edited_config_is_another_call(planned: list[str]) -> None:
    config = ttsim.Conv2dConfig()
    with opened() as device:
        for rows in (0, 32, 0):
            config.act_block_h_override = rows
            with ttsim.profile(device) as profile:
                made(device, "conv_transpose2d", {"conv_config": config}, ttsim.L1_MEMORY_CONFIG)
            assert profile.calls[0].asked is not None
            assert profile.calls[0].asked.conv_config.act_block_h_override == rows
    assert len(planned) == 2


def test_slices_that_fit_the_free_memory_are_counted_again(planned: list[str]) -> None:
    with opened() as device:
        made(device, "conv_transpose2d", {}, ttsim.DRAM_MEMORY_CONFIG)
        ballast = ttsim.Tensor(np.zeros((1, 1, 64, 64), np.float32), ttsim.bfloat16).to(device, ttsim.L1_MEMORY_CONFIG)
        made(device, "conv_transpose2d", {}, ttsim.DRAM_MEMORY_CONFIG)
        ttsim.deallocate(ballast)
        made(device, "conv_transpose2d", {}, ttsim.DRAM_MEMORY_CONFIG)
    assert len(planned) == 2


def test_a_sweep_of_calls_keeps_a_bounded_number_of_plans() -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        device.plans = PlanCache(most_steps=25)
        for rows in (32, 64, 32, 0):
            config = ttsim.Conv2dConfig(act_block_h_override=rows)
            made(device, "conv_transpose2d", {"conv_config": config}, ttsim.L1_MEMORY_CONFIG)
            assert 0 < device.plans.steps <= 25


def test_no_argument_but_an_activation_has_fractions() -> None:
    """0.0 and -0.0 are equal and mean two things: `planned` tells them apart by the activation's words alone."""
    kinds = (ConvCall, ConvConfig, ComputeConfig, SliceConfig, Folding)
    fractions = {
        (kind.__name__, field.name)
        for kind in kinds
        for field in fields(kind)
        if "float" in str(get_type_hints(kind)[field.name])
    }
    assert fractions == {("ConvConfig", "activation")}


@pytest.mark.parametrize(
    ("function", "options"),
    [("conv2d", {"kernel_size": (9, 2)}), ("conv_transpose2d", {"stride": (1, 1), "padding": (5, 5)})],
)
def test_outputs_that_there_are_not_take_all_of_dram(function: str, options: dict[str, Any]) -> None:
    """The real library's line, then what is wrong in the call, and not what to free."""
    device = ttsim.open_device(strict=False)
    x = ttsim.Tensor(np.zeros((1, 1, SIDE * SIDE, CHANNELS), np.float32), ttsim.bfloat16).to(device)
    weight = ttsim.Tensor(np.zeros((OUT, CHANNELS, *options.get("kernel_size", (2, 2))), np.float32), ttsim.bfloat16)
    sizes = {"batch_size": 1, "input_height": SIDE, "input_width": SIDE, "kernel_size": (2, 2), "stride": (2, 2)}
    with pytest.raises(ttsim.ArgumentError, match=r"^Out of Memory: Not enough space to allocate \d+ B DRAM") as told:
        getattr(ttsim, function)(
            input_tensor=x,
            weight_tensor=weight,
            device=device,
            in_channels=CHANNELS,
            out_channels=OUT,
            **{**sizes, **options},
        )
    lines = str(told.value).splitlines()
    assert len(lines) == 2
    assert lines[1].startswith(f"{function}: there is no output of ")
