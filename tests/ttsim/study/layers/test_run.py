"""Layers as calls: their inputs, configs, exact outputs, and what running them reports."""

import math

import ml_dtypes
import numpy as np
import pytest

import ttsim as ttnn
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.spec.device_spec import load_spec
from ttsim.runtime.types.configs import (
    Conv2dConfig,
    Conv2dDRAMSliceWidth,
    Conv2dL1FullSliceConfig,
    MathFidelity,
    PaddingMode,
    UnaryOpType,
)
from ttsim.runtime.types.layer import Layer
from ttsim.runtime.types.tensors import DataType
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import (
    ACTIVATIONS,
    Settings,
    call,
    compute_config,
    conv_config,
    exact_output,
    geometry_of,
    layouts_of,
    make_inputs,
    place,
    run_layer,
    slice_config,
    summary_of,
)

SPEC = load_spec("wormhole_n150")
OFF = Settings(spec=SPEC, values="off", suggestions=False)
TINY = {"in_channels": 6, "out_channels": 4, "input_height": 3, "input_width": 5}


def small(**fields):
    sizes = {"in_channels": 32, "out_channels": 16, "input_height": 6, "input_width": 5, "stride": (2, 2)}
    return Layer(**{**sizes, **fields})


def test_inputs_follow_the_seed_and_the_precision():
    layer = Layer(**TINY, batch_size=2, groups=2, kernel_size=(3, 2), seed=7)
    inputs = make_inputs(layer)
    for values in (inputs, make_inputs(layer, values=False)):
        assert [value.shape for value in values] == [(2, 3, 5, 6), (6, 2, 3, 2), (1, 1, 1, 4)]
    assert all(np.array_equal(a, b) for a, b in zip(inputs, make_inputs(layer), strict=True))
    assert not np.array_equal(inputs.x, make_inputs(Layer(**TINY, batch_size=2, seed=8)).x)
    full = make_inputs(Layer(**TINY, input_dtype="float32", weights_dtype="float32", bias=False))
    rounded = [np.array_equal(x, x.astype(ml_dtypes.bfloat16).astype(np.float32)) for x in (inputs.x, full.x, full.w)]
    assert rounded == [True, False, False]
    assert full.b is None
    assert np.std(make_inputs(Layer(**{**TINY, "in_channels": 600})).w) == pytest.approx(1 / math.sqrt(2400), rel=0.02)


@pytest.mark.parametrize(("sides", "axes"), [((1, 2), [(1, 1), (2, 2)]), ((0, 1, 2, 3), [(0, 1), (2, 3)])])
def test_padding_of_two_and_of_four(sides, axes):
    geometry = geometry_of(Layer(**TINY, kernel_size=(4, 4), padding=sides))
    assert [(axis.pad_before, axis.pad_after) for axis in geometry.axes] == axes


@pytest.mark.parametrize("bias", [True, False])
def test_exact_output_is_the_definition(bias):
    layer = Layer(**TINY, batch_size=2, kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), bias=bias)
    inputs, geometry = make_inputs(layer), geometry_of(layer)
    rows, cols = geometry.axes
    expected = np.zeros((2, *geometry.output_shape, 4)) + (0 if inputs.b is None else inputs.b.reshape(-1))
    for y, x, i, j in np.ndindex(3, 5, *layer.kernel_size):
        u = y * rows.stride + i * rows.dilation - rows.pad_before
        v = x * cols.stride + j * cols.dilation - cols.pad_before
        if 0 <= u < rows.output_size and 0 <= v < cols.output_size:
            expected[:, u, v] += inputs.x[:, y, x].astype(np.float64) @ inputs.w[:, :, i, j]
    np.testing.assert_allclose(exact_output(layer, inputs), expected, rtol=1e-12, atol=1e-12)


def test_activations():
    sigmoid = 1 / (1 + math.exp(-2))
    at_two = {"relu": 2, "relu6": 2, "sigmoid": sigmoid, "silu": 2 * sigmoid, "gelu": 1.954499736, "tanh": math.tanh(2)}
    for name, value in at_two.items():
        assert ACTIVATIONS[name](np.array([2.0])) == pytest.approx(value)
    layer = Layer(**TINY, config={"activation": "ReLU"})
    linear = exact_output(Layer(**TINY), make_inputs(layer))
    np.testing.assert_array_equal(exact_output(layer, make_inputs(layer)), np.maximum(linear, 0))
    assert ACTIVATIONS["relu6"](np.array([-1.0, 7.0])).tolist() == [0, 6]


def test_what_has_no_definition_here_is_none():
    for config in ({"padding_mode": "Replicate"}, {"activation": "xielu"}):
        layer = Layer(**TINY, config=config)
        assert exact_output(layer, make_inputs(layer)) is None
    result = run_layer(small(config={"padding_mode": "Replicate"}), Settings(spec=SPEC))
    assert (result.error, result.summary.accuracy) == (None, None)


def test_names_become_members():
    assert (conv_config(small()), compute_config(small(), "any"), slice_config(small())) == (None, None, None)
    given = {
        "weights_dtype": "bfloat8_b",
        "activation": "relu",
        "shard_layout": "HEIGHT_SHARDED",
        "output_layout": "ROW_MAJOR",
        "padding_mode": "Replicate",
        "act_block_h_override": 64,
        "enable_act_double_buffer": True,
    }
    config = conv_config(small(config=given))
    assert config.activation.op_type is UnaryOpType.RELU
    members = [DataType.BFLOAT8_B, TensorMemoryLayout.HEIGHT_SHARDED, Layout.ROW_MAJOR, PaddingMode.Replicate, 64, True]
    assert [getattr(config, name) for name in given if name != "activation"] == members
    compute = compute_config(small(compute={"math_fidelity": "lofi", "fp32_dest_acc_en": True}), "any")
    assert (compute.math_fidelity, compute.fp32_dest_acc_en) == (MathFidelity.LoFi, True)
    for layer in read_layers(DEFAULT_LAYERS):
        assert conv_config(layer).weights_dtype is DataType.BFLOAT8_B
        assert compute_config(layer, "any").math_fidelity is MathFidelity.LoFi
    assert slice_config(small(slice="l1_full")) is Conv2dL1FullSliceConfig
    slices = slice_config(small(slice="w:4"))
    assert (slices.slice_type, slices.num_slices) == (Conv2dDRAMSliceWidth, 4)


def test_a_core_grid_is_columns_by_rows_and_is_used():
    config = conv_config(small(config={"core_grid": "8x4"}))
    assert (str(config.core_grid), config.override_sharding_config) == ("{[0-0 - 7-3]}", True)
    unused = conv_config(small(config={"core_grid": "8x4", "override_sharding_config": False}))
    assert unused == Conv2dConfig(core_grid=config.core_grid)


GRID = r"^core_grid must be COLUMNSxROWS of at least 1x1, not .*; such as '8x4'$"
SLICE = r"^slice must be 'l1_full', 'H:n' or 'W:n' with n slices"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(({"config": {"core_grid": grid}}, GRID) for grid in ("0x4", "4x0", "8x4x1", "8 x 4", "٨x4", "9999x1", True)),
        *(({"slice": text}, SLICE) for text in ("H", "H:x", "X:2")),
        (
            {"compute": {"math_fidelity": "HiFi5"}},
            r"^math_fidelity must be one of LoFi, HiFi2, HiFi3, HiFi4, Invalid, not 'HiFi5'$",
        ),
        ({"config": {"activation": "relux"}}, r"^activation must be a name of UnaryOpType, not 'relux'$"),
        ({"config": {"shard_layot": "HEIGHT_SHARDED"}}, "did you mean 'shard_layout'"),
        ({"groups": 5}, r"^groups must divide in_channels and out_channels, not 5 with 32 and 16; 16 is"),
        ({"config": {"weights_dtype": "x"}}, "weights_dtype must be"),
        ({"dilation": (1 << 40, 1)}, "dilation"),
        ({"padding": (9, 9)}, "padding"),
    ],
)
def test_what_is_wrong_with_a_layer_is_its_result(fields, message):
    layer = small(**fields)
    result = run_layer(layer, OFF)
    assert (result.summary, result.reached) == (None, ())
    with pytest.raises((ValueError, TypeError), match=message):
        raise ValueError(result.error)


@pytest.mark.parametrize(
    "fields",
    [
        {"input_memory": "dram", "input_layout": "ROW_MAJOR", "input_4d": True},
        {"input_memory": "l1", "input_layout": "TILE"},
        {"input_memory": "host", "input_layout": "ROW_MAJOR"},
        {"mirror_kernel": False, "config": {"activation": "relu"}, "compute": {"math_fidelity": "HiFi4"}},
    ],
)
def test_outputs_are_accurate_wherever_the_input_lies(fields):
    result = run_layer(small(**fields), Settings(spec=SPEC))
    assert result.error is None
    assert result.summary.accuracy.pcc > 0.999
    assert (result.summary.output.height, result.summary.output.width) == (12, 10)
    assert len(result.summary.partitions) == 1


def test_a_layer_on_a_placed_device_step_by_step():
    layer = small(input_memory="l1")
    placed = place(layer, make_inputs(layer), Settings(spec=SPEC, values="off", cycles=False))
    (moved,) = placed.before
    assert placed.events == []
    called = call(placed)
    summary = summary_of(placed, called)
    assert (summary.accuracy, summary.cycles, called.profile.calls) == (None, None, [])
    assert [layout.scheme.name for layout in layouts_of(placed.events)] == [summary.partitions[0].scheme]
    assert summary.operations[0].buffers[0].address == moved.address
    placed.device.close()


@pytest.mark.parametrize("error", [ValueError, LookupError])
def test_an_internal_error_is_no_property_of_the_layer(monkeypatch, error):
    def broken(*_, **__):
        raise error("a mistake")

    monkeypatch.setattr("ttsim.study.layers.run.conv_transpose2d", broken)
    with pytest.raises(error, match="a mistake"):
        run_layer(small(), OFF)


def test_a_summary_has_equal_partitions_once_and_the_cycles_of_all_operations():
    summary = run_layer(small(input_height=64, input_width=64, padding=(1, 1), slice="H:4"), OFF).summary
    assert sum(partition.convolutions for partition in summary.partitions) == 4
    assert len(set(summary.partitions)) == len(summary.partitions) < 4
    (timed,) = summary.cycles.calls
    assert [operation.name for operation in timed.operations] == [operation.name for operation in summary.operations]
    assert (timed.untimed, summary.cycles.cycles > 0) == ((), True)


def test_the_script_of_a_layer_makes_the_same_call():
    layer = small(
        dtype="bfloat8_b",
        input_memory="l1",
        config={"weights_dtype": "bfloat8_b", "shard_layout": "HEIGHT_SHARDED", "output_layout": "TILE"},
        compute={"math_fidelity": "HiFi2"},
        slice="l1_full",
    )
    result = run_layer(layer, OFF)
    with ttnn.open_device(device_id=0, spec="wormhole_n150", values="off", l1_small_size=32768) as device:
        with ttnn.profile(device) as profile:
            names = {"device": device}
            exec(result.source, names)
        assert profile.report().cycles == result.summary.cycles.cycles
        assert names["output"].dtype == ttnn.bfloat8_b
