"""Calls that become several calls of ttnn: the parts, and that a user's own slices, calls and concat give the same."""

import numpy as np
import pytest

import ttsim as ttnn
from device.errors import ArgumentError
from ops.planners.conv.arguments import LOWERINGS, ConvCall, Lowering, Operand
from ops.planners.conv.split import parts_of

HIFI4 = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=True, packer_l1_acc=True
)


def opened(values="fast"):
    return ttnn.open_device(l1_small_size=32768, values=values)


def numbers(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).integers(-3, 4, shape).astype(np.float32)


def tensor(values):
    return ttnn.Tensor(values, ttnn.bfloat16)


def call(channels, groups=1, *, batch=1, size=(4, 5), kernel=(4, 4), stride=(2, 2), **more):
    return {
        "input_tensor": tensor(numbers(batch, *size, channels[0])),
        "weight_tensor": tensor(numbers(channels[0], channels[1] // groups, *kernel, seed=1)),
        "bias_tensor": tensor(numbers(1, 1, 1, channels[1], seed=2)),
        "in_channels": channels[0], "out_channels": channels[1], "batch_size": batch, "groups": groups,
        "input_height": size[0], "input_width": size[1], "kernel_size": kernel, "stride": stride, "padding": (1, 1),
        "compute_config": HIFI4, "dtype": ttnn.float32,
    } | more  # fmt: skip


def profiled(device, run):
    """Cycles and operations of some calls."""
    with ttnn.profile(device) as profile:
        run()
    report = profile.report()
    return report.cycles, [operation.name for operation in report.operations]


@pytest.mark.parametrize(
    ("lowering", "sizes", "parts"),
    [
        ("grouped", {"channels": (64, 64), "groups": 64}, [(0, 32, 0, 32, 32), (32, 64, 32, 64, 32)]),
        ("grouped", {"channels": (48, 48), "groups": 48}, [(0, 32, 0, 32, 32), (32, 48, 32, 48, 16)]),
        ("grouped", {"channels": (96, 24), "groups": 3}, [(0, 96, 0, 24, 3)]),
        ("grouped", {"channels": (128, 64), "groups": 2}, [(0, 64, 0, 32, 1), (64, 128, 32, 64, 1)]),
        ("grouped", {"channels": (32, 64), "groups": 1}, [(0, 32, 0, 64, 1)]),
    ],
)  # fmt: skip
def test_parts_of_groups_are_as_few_as_fill_tiles(lowering, sizes, parts):
    (ins, outs), groups = sizes["channels"], sizes["groups"]
    asked = ConvCall(
        rules=LOWERINGS[Lowering(lowering)], input=Operand(spec=None, on_host=True),
        weight=Operand(spec=None, on_host=True), in_channels=ins, out_channels=outs, groups=groups, batch_size=1,
        input_height=4, input_width=4, kernel_size=(2, 2),
    )  # fmt: skip
    found = parts_of(asked, 1)
    assert [(p.ins.start, p.ins.stop, p.outs.start, p.outs.stop, p.groups) for p in found] == parts


@pytest.mark.parametrize(
    ("channels", "groups", "more"),
    [
        ((64, 64), 64, {}),
        ((80, 80), 80, {"batch": 2}),
        ((128, 64), 2, {"kernel": (3, 3), "output_padding": (1, 1)}),
        ((64, 64), 64, {"size": (1, 20), "kernel": (1, 4), "stride": (1, 2), "padding": (0, 1), "bias_tensor": None}),
    ],
)
def test_groups_equal_the_definition_and_the_library(channels, groups, more):
    """Integers so small that every sum is exact."""
    arguments = call(channels, groups, **more)
    with opened() as device:
        whole = ttnn.conv_transpose2d(device=device, **arguments).to_numpy()
        split = ttnn.conv_transpose2d(device=device, lowering="grouped", **arguments).to_numpy()
    image, weight, bias = (arguments[f"{name}_tensor"] for name in ("input", "weight", "bias"))
    exact = reference(image.to_numpy(), weight.to_numpy(), None if bias is None else bias.to_numpy(), arguments)
    assert np.array_equal(split.ravel(), exact.ravel())
    assert np.array_equal(split, whole)


def reference(image, weight, bias, call):
    """The definition in float64: every input meets every tap of its group."""
    (batch, height, width, _), (_, wide, rows, columns) = image.shape, weight.shape
    (down, across), groups = call["stride"], call["groups"]
    full = np.zeros((batch, (height - 1) * down + rows + 9, (width - 1) * across + columns + 9, groups, wide))
    grouped, taps = image.reshape(batch, height, width, groups, -1), weight.reshape(groups, -1, wide, rows, columns)
    for row, column in np.ndindex(rows, columns):
        met = np.einsum("bhwgi,gio->bhwgo", grouped, taps[..., row, column], dtype=np.float64)
        full[:, row : row + height * down : down, column : column + width * across : across][:, :height, :width] += met
    (top, left), (below, right) = call["padding"], call.get("output_padding", (0, 0))
    ends = (height - 1) * down - top + rows + below, (width - 1) * across - left + columns + right
    outputs = full[:, top : ends[0], left : ends[1]].reshape(batch, ends[0] - top, ends[1] - left, -1)
    return outputs if bias is None else outputs + bias


def test_weights_of_groups_take_a_share_of_the_memory():
    """64 groups of a channel: two matrices of a tile's width each in place of one of two."""
    uploaded = {}
    for lowering in ("zero_insertion", "grouped"):
        with opened("off") as device, ttnn.profile(device) as profile:
            ttnn.conv_transpose2d(device=device, lowering=lowering, **call((64, 64), 64))
            (ran,) = profile.calls
        steps = [step for step in ran.plan.steps if getattr(step, "source", None) == "weight"]
        uploaded[lowering] = [step.buffer.size_bytes for step in steps]
    tile = 32 * 32 * 2
    assert uploaded == {"zero_insertion": [16 * 2 * 2 * tile], "grouped": [16 * tile, 16 * tile]}


def by_hand(device, arguments, axis, parts):
    """The calls of ttnn that the lowering makes, made by a user."""
    image = ttnn.to_device(arguments["input_tensor"], device)
    outputs = []
    for images, ins, outs in parts:
        weight, bias = arguments["weight_tensor"].to_numpy(), arguments["bias_tensor"].to_numpy()
        ends = [images[-1] + 1, *image.shape[1:3], ins[-1] + 1]
        part = ttnn.slice(image, [images[0], 0, 0, ins[0]], ends)
        own = {
            "input_tensor": part, "in_channels": len(ins), "out_channels": len(outs), "batch_size": len(images),
            "groups": arguments["groups"] * len(ins) // arguments["in_channels"],
            "weight_tensor": tensor(weight[ins]), "bias_tensor": tensor(bias[..., outs]),
        }  # fmt: skip
        outputs.append(ttnn.conv_transpose2d(device=device, **arguments | own))
    return ttnn.concat(outputs, axis)


def test_groups_take_what_slices_calls_and_concat_take():
    arguments = call((64, 64), 64)
    halves = [(range(1), range(at, at + 32), range(at, at + 32)) for at in (0, 32)]
    with opened("off") as device:
        own = profiled(device, lambda: ttnn.conv_transpose2d(device=device, lowering="grouped", **arguments))
        user = profiled(device, lambda: by_hand(device, arguments, 3, halves))
    assert own == user


def test_a_batch_that_the_library_cannot_slice_runs_as_a_few_calls():
    """The library's slices of 512 images overflow L1; no fewer than four parts of the batch fit."""
    arguments = call((64, 64), batch=512, size=(8, 8))
    quarters = [(range(at, at + 128), range(64), range(64)) for at in range(0, 512, 128)]
    with opened("off") as device:
        with pytest.raises(ttnn.CircularBufferError):
            ttnn.conv_transpose2d(device=device, **arguments)
        own = profiled(device, lambda: ttnn.conv_transpose2d(device=device, lowering="samples", **arguments))
        user = profiled(device, lambda: by_hand(device, arguments, 2, quarters))
    assert own == user


def test_one_part_is_the_librarys_own_call():
    arguments = call((32, 32))
    plans = {}
    with opened("off") as device:
        for lowering in ("zero_insertion", "grouped", "samples"):
            with ttnn.profile(device) as profile:
                ttnn.conv_transpose2d(device=device, lowering=lowering, **arguments)
            plans[lowering] = profile.calls[0].plan
    assert plans["grouped"] == plans["samples"] == plans["zero_insertion"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"return_weights_and_bias": True}, "return_weights_and_bias is not known"),
        ({"dram_slice_config": ttnn.Conv2dL1FullSliceConfig}, "dram_slice_config is not known"),
        ({"memory_config": ttnn.L1_MEMORY_CONFIG}, "memory_config is not known"),
        ({"conv_config": ttnn.Conv2dConfig(deallocate_activation=True)}, "deallocate_activation is not known"),
    ],
)
def test_what_no_part_can_have_is_refused(changes, text):
    with opened("off") as device, pytest.raises(ArgumentError, match=f'lowering="grouped": .*{text}'):
        ttnn.conv_transpose2d(device=device, lowering="grouped", **call((64, 64), 64) | changes)


def test_inputs_that_are_not_in_dram_are_refused():
    arguments = call((64, 64), 64)
    with opened("off") as device:
        arguments["input_tensor"] = ttnn.to_device(arguments["input_tensor"], device, ttnn.L1_MEMORY_CONFIG)
        with pytest.raises(ArgumentError, match="input_tensor must lie on the host or interleaved in DRAM"):
            ttnn.conv_transpose2d(device=device, lowering="grouped", **arguments)
