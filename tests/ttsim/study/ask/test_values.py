"""Arguments as JSON: what is written is read again, and what stands for nothing is refused in words."""

import json

import pytest

import ttsim
from device.errors import ArgumentError, ArgumentTypeError
from tools.random_calls.operations import OPERATIONS
from ttsim.study.ask.values import arguments_of, json_of, operation, value_of

GRID = ttsim.CoreGrid(x=4, y=2)
ARGUMENTS = [
    (ttsim.bfloat16, "ttnn.bfloat16"),
    (ttsim.TILE_LAYOUT, "ttnn.Layout.TILE"),
    (ttsim.L1_MEMORY_CONFIG, "ttnn.L1_MEMORY_CONFIG"),
    (ttsim.MathFidelity.HiFi2, "ttnn.MathFidelity.HiFi2"),
    (ttsim.Conv2dL1FullSliceConfig, "ttnn.Conv2dL1FullSliceConfig"),
    (ttsim.CoreCoord(1, 2), {"ttnn.CoreCoord": {"x": 1, "y": 2}}),
    ([1, 2.5, None, True, "zeros"], [1, 2.5, None, True, "zeros"]),
    (
        ttsim.UnaryWithParam(ttsim.UnaryOpType.LEAKY_RELU, 0.5),
        {"ttnn.UnaryWithParam": ["ttnn.UnaryOpType.LEAKY_RELU", 0.5]},
    ),
    (ttsim.Conv2dConfig(act_block_h_override=64), {"ttnn.Conv2dConfig": {"act_block_h_override": 64}}),
    (
        ttsim.create_sharded_memory_config((1, 1, 256, 64), GRID, ttsim.ShardStrategy.HEIGHT),
        {
            "ttnn.MemoryConfig": {
                "memory_layout": "ttnn.TensorMemoryLayout.HEIGHT_SHARDED",
                "buffer_type": "ttnn.BufferType.L1",
                "shard_spec": {
                    "ttnn.ShardSpec": [
                        {"ttnn.CoreRangeSet": [[{"ttnn.CoreRange": {
                            "start": {"ttnn.CoreCoord": {"x": 0, "y": 0}}, "end": {"ttnn.CoreCoord": {"x": 3, "y": 1}},
                        }}]]},
                        [32, 64],
                        "ttnn.ShardOrientation.ROW_MAJOR",
                    ]
                },
            }
        },
    ),
    (ttsim.GeluVariant.Tanh, "ttnn.GeluVariant.Tanh"),
    (ttsim.TensorDescription((1, 2)), {"ttnn.TensorDescription": {"shape": [1, 2]}}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "written"), ARGUMENTS)
def test_an_argument_is_written_and_read(value, written):
    assert json_of(value) == written
    assert value_of(json.loads(json.dumps(written))) == value


def test_functions_that_make_configs_are_read():
    arguments = {"shape": [1, 1, 256, 64], "core_grid": {"ttnn.CoreGrid": {"x": 4, "y": 2}}}
    made = value_of({"ttnn.create_sharded_memory_config": {**arguments, "strategy": "ttnn.ShardStrategy.HEIGHT"}})
    assert made == ARGUMENTS[9][0]


def test_what_tt_metal_writes_is_read():
    memory = ARGUMENTS[9][0]
    spec = ttsim.TensorSpec((1, 1, 256, 64), ttsim.bfloat8_b, ttsim.TILE_LAYOUT, memory)
    layout = {"dtype": 3, "memory_config": json.loads(memory.to_json()), "page_config": {"config": {"index": 1}}}
    written = {"logical_shape": [1, 1, 256, 64], "tensor_layout": layout}
    assert value_of(written) == spec
    assert value_of({"tensor_spec": written, "storage": {"index": 1, "value": {}}}) == spec
    assert value_of({"ttnn.MemoryConfig": json.loads(memory.to_json())}) == value_of(layout["memory_config"]) == memory


def test_tt_metal_leaves_fields_out():
    read = value_of({"logical_shape": [32, 64], "tensor_layout": {}})
    assert read == ttsim.TensorSpec((32, 64), ttsim.bfloat16, ttsim.TILE_LAYOUT)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("ttnn.bfloat17", "'ttnn.bfloat17' is no constant of ttnn, did you mean 'bfloat16'?"),
        ("ttnn.BufferType.L2", "'ttnn.BufferType.L2' is no constant of ttnn, did you mean 'L1'?"),
        ("ttnn.CONFIG", "'ttnn.CONFIG' is no constant of ttnn"),
        ("ttnn.open_device", "'ttnn.open_device' is no constant of ttnn"),
        ({"ttnn.open_device": {}}, "'ttnn.open_device' makes no argument of a call"),
        ({"ttnn.dump_tensor": ["file"]}, "'ttnn.dump_tensor' makes no argument of a call"),
        ({"ttnn.CoreCoord": 1}, "ttnn.CoreCoord takes an object of arguments by name or a list, not 1"),
        ({"x": 1}, "an object among arguments is {\"ttnn.NAME\": arguments} with the name of a class, not {'x': 1}"),
        ({"logical_shape": 3, "tensor_layout": 3}, "no description of a tensor as tt-metal writes it"),
        ({"logical_shape": [1], "tensor_layout": {"dtype": 99}}, "no description of a tensor as tt-metal writes it"),
    ],
)
def test_what_stands_for_no_argument_is_refused(written, words):
    with pytest.raises(ArgumentError) as refused:
        value_of(written)
    assert words in str(refused.value)


def test_wrong_arguments_of_a_class_are_refused():
    with pytest.raises(ArgumentTypeError, match=r"^ttnn\.CoreCoord: .*missing 1 required positional argument: 'y'$"):
        value_of({"ttnn.CoreCoord": [1]})
    with pytest.raises(ArgumentTypeError, match="there is no 'act_block'"):
        value_of({"ttnn.Conv2dConfig": {"act_block": 32}})
    with pytest.raises(ArgumentTypeError, match="no JSON stands for"):
        json_of(object())


@pytest.mark.parametrize(
    "name", ["concatenate_heads", "ttnn::transformer::concatenate_heads", "transformer.concatenate_heads"]
)
def test_operations_have_names_of_python_and_of_cpp(name):
    assert operation(name) is ttsim.transformer.concatenate_heads


@pytest.mark.parametrize("name", ["relu6", "to_layout", "conv_transpose2d", "experimental.nlp_create_qkv_heads"])
def test_operations_are_found(name):
    assert operation(name).__name__ == name.rpartition(".")[2]


@pytest.mark.parametrize(
    "name", ["dump_tensor", "open_device", "Tensor", "graph.begin", "a.b.c", "", "from_torch", "experimental"]
)
def test_other_functions_are_no_operations(name):
    with pytest.raises(ArgumentError, match="is no operation that ttsim plans"):
        operation(name)


def test_every_operation_that_is_fuzzed_can_be_asked_about():
    homes = {name: getattr(found, "__module__", "") for name in OPERATIONS if (found := in_ttsim(name)) is not None}
    planned = [name for name, home in homes.items() if home.startswith("ttsim.api.")]
    refused = [name for name in planned if asked_about(name) is None]
    assert sorted(refused) == [
        *("as_tensor", "begin_trace_capture", "command_queue", "deallocate"),
        *("dump_tensor", "from_numpy", "from_torch", "query_op_constraints"),
    ]  # fmt: skip
    assert len(planned) > 250


def in_ttsim(name):
    found = ttsim
    for part in name.split("."):
        found = getattr(found, part) if part in dir(found) else None
    return found


def asked_about(name):
    try:
        return operation(name)
    except ArgumentError:
        return None


def test_arguments_as_the_tuner_writes_them_are_read_again():
    text = (
        "conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat8_b, act_block_h_override=320, core_grid="
        "ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(11, 9))])), "
        "compute_config=ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.LoFi), lowering='phase'"
    )
    read = arguments_of(text)
    corners = ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(11, 9))
    config = read["conv_config"]
    assert (config.weights_dtype, config.act_block_h_override) == (ttsim.bfloat8_b, 320)
    assert config.core_grid == ttsim.CoreRangeSet([corners])
    assert read["compute_config"].math_fidelity is ttsim.MathFidelity.LoFi
    assert (list(read), read["lowering"]) == (["conv_config", "compute_config", "lowering"], "phase")
    assert arguments_of("") == {}


@pytest.mark.parametrize("text", ["3", "a=__import__('os')", "a=b", "a=open('x')", "a=1)(b=2", "a=f(1, b=2)", "**{}"])
def test_other_python_is_refused(text):
    with pytest.raises(ArgumentError):
        arguments_of(text)
