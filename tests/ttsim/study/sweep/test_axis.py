import pytest

from device.errors import ArgumentError, ArgumentTypeError, SpecError
from ops.op_models import load_spec
from ttsim.study.space import Variant, axis, setting_of
from ttsim.types.layer import Layer

SPEC = load_spec("wormhole_n150")
GIVEN = Variant(Layer(in_channels=32, out_channels=16, input_height=6, input_width=5, config={"a": 1}))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("shard_layout", ("config", "shard_layout")),
        ("config.weights_dtype", ("config", "weights_dtype")),
        ("layer.weights_dtype", ("layer", "weights_dtype")),
        ("math_fidelity", ("compute", "math_fidelity")),
        ("dram.banks", ("device", "dram.banks")),
        ("device.clock_hz", ("device", "clock_hz")),
        ("grid", ("device", "grid")),
        ("lowering", ("lowering", "lowering")),
        ("slice", ("layer", "slice")),
    ],
)
def test_settings_by_their_names(name, found):
    assert setting_of(name, SPEC) == found


@pytest.mark.parametrize(
    ("name", "values", "error", "words"),
    [
        ("shard_layuot", ["x"], ArgumentError, "did you mean 'shard_layout'"),
        ("config.banks", ["x"], ArgumentError, "config has no field"),
        ("weights_dtype", ["x"], ArgumentError, "write layer.weights_dtype or config.weights_dtype"),
        ("shard_layout", [], ArgumentError, "needs a list of values"),
        ("shard_layout", "abc", ArgumentError, "needs a list of values"),
        ("act_block_h_override", [32, 32], ArgumentError, "a value twice"),
        ("force_split_reader", [1, True, True], ArgumentError, "a value twice"),
        ("shard_layout", ["DIAGONAL"], ArgumentError, "shard_layout must be one of"),
        ("enable_act_double_buffer", ["maybe"], ArgumentTypeError, "enable_act_double_buffer"),
        ("math_fidelity", [[1]], ArgumentError, "must be a plain value"),
        ("lowering", ["rows"], ArgumentError, "lowering must be frame or phase"),
        ("config.core_grid", ["8x0"], ArgumentError, "core_grid must be COLUMNSxROWS"),
        ("slice", ["D:2"], ArgumentError, "slice must be"),
        ("in_channels", [None], ArgumentError, "in_channels must be an integer"),
        ("dram.banks", ["2MiB"], SpecError, "dram.banks"),
    ],
)
def test_what_there_is_not_is_refused_at_once(name, values, error, words):
    with pytest.raises(error, match=words):
        axis(name, values, SPEC)


def test_a_core_grid_is_an_axis():
    made = axis("config.core_grid", [None, "8x4"], SPEC)
    assert [made.on(GIVEN, value).layer.config for value in made.values] == [{"a": 1}, {"a": 1, "core_grid": "8x4"}]


def test_values_on_a_layer():
    made = axis("act_block_h_override", [None, 32], SPEC)
    assert made.name == "config.act_block_h_override"
    assert made.on(GIVEN, 32).labels == {"config.act_block_h_override": 32}
    assert made.on(GIVEN, 32).layer.config == {"a": 1, "act_block_h_override": 32}
    assert made.on(made.on(GIVEN, 32), None).layer.config == {"a": 1}
    sizes = axis("kernel_size", [3, [2, 4]], SPEC)
    assert sizes.values == ((3, 3), (2, 4))
    assert sizes.on(GIVEN, (2, 4)).layer.kernel_size == (2, 4)
    assert axis("lowering", ["phase"], SPEC).on(GIVEN, "phase").lowering == "phase"
    assert axis("noc.worker_cols", [[1, 2, 3, 4, 6, 7, 8, 9]], SPEC).values == ("1,2,3,4,6,7,8,9",)
