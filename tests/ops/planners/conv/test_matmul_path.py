"""1x1 convolutions as a matmul: which operations run on which tensors (ttnn 0.81.1 without kernels, 8x8 cores)."""

from dataclasses import replace

import numpy as np
import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.machine import Machine
from device.matrix_unit.arithmetic import EXACT
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, quantize
from device.plan import Free, Operation
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.planners.conv.arguments import ConvConfig
from ops.planners.conv.plan import plan_convolution
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH
from tests.build import operand, sized_call
from tests.shards import box, in_box

SPEC = load_spec("wormhole_n150")
FREE = 1360544


def call(memory=DRAM_MEMORY_CONFIG, layout=Layout.ROW_MAJOR, *, host=False, bias=True, channels=64, out=32, **config):
    more = {name: config.pop(name) for name in ("memory_config", "output_padding") if name in config}
    more["conv_config"] = ConvConfig(**config)
    place = None if host else memory
    return sized_call((8, 8), (channels, out), (1, 1), place=place, layout=layout, with_bias=bias, **more)


def plan(a):
    return plan_convolution(a, SPEC, free_l1_bytes=FREE)


def story(a):
    """Operations and releases, in order."""
    told = []
    for step in plan(a).steps:
        if isinstance(step, Operation):
            told.append(step.name.removesuffix("DeviceOperation"))
        elif isinstance(step, Free):
            told.append(f"free {step.tensor}")
    return told


def test_from_dram_bias_is_fused_and_activations_are_not():
    told = story(call(activation=("relu", ())))
    assert told[:4] == ["Tilize", "Matmul", "Unary", "free output"]
    assert len(told) == 5
    assert told[4].startswith("free input.")


def test_from_l1_the_bias_is_added_afterwards():
    told = story(call(L1_MEMORY_CONFIG, activation=("gelu", ())))
    assert told[:6] == ["Tilize", "Matmul", "BinaryNg", "free output", "Unary", "free output.biased"]
    assert "BinaryNg" not in story(call(L1_MEMORY_CONFIG, bias=False))


def test_sharded_programs_fuse_both():
    assert "Unary" not in story(call(L1_MEMORY_CONFIG, shard_layout=BLOCK, activation=("gelu", ())))
    step = next(
        s
        for s in plan(call(shard_layout=HEIGHT, activation=("relu", ()))).steps
        if isinstance(s, Operation) and s.name.startswith("Matmul")
    )
    assert step.op.activation == ("relu", ())
    assert len(step.inputs) == 3


@pytest.mark.parametrize("deallocate", [False, True])
def test_a_consumed_input_is_freed_before_the_output_is_placed(deallocate):
    memory = in_box(HEIGHT, (32, 64), 2)
    told = story(call(memory, Layout.TILE, deallocate_activation=deallocate, memory_config=DRAM_MEMORY_CONFIG))
    freed = ["free input"] if deallocate else []
    assert told == ["Matmul", *freed, "ShardedToInterleaved", "free output"]


def test_output_padding_leaves_the_tensor_as_it_is():
    """The real library returns larger dims than the tensor has."""
    assert plan(call(output_padding=(1, 1))).tensors["output"].shape == (1, 1, 64, 32)


def refusal(a):
    device = Machine(SPEC, l1_small_bytes=32768)
    inputs = {"input": device.allocate(a.input.spec.buffer(SPEC))}
    with pytest.raises(DeviceError) as caught:
        run_memory(plan(a), device, inputs)
    assert len(device.memory.live()) == 1
    return str(caught.value).split("\n")[0]


def test_refusals_in_the_words_of_the_real_library():
    wide = in_box(WIDTH, (64, 32), 2)
    text = "MatmulMultiCoreReuseMultiCastProgramConfig: Unsupported memory layout TensorMemoryLayout::WIDTH_SHARDED."
    assert refusal(call(wide, Layout.TILE)) == text
    text = "Unsupported UnaryOpType for fused activation: UnaryOpType::LEAKY_RELU"
    assert refusal(call(L1_MEMORY_CONFIG, shard_layout=BLOCK, activation=("leaky_relu", (0.1,)))) == text
    grid = box(4, 2)
    asked = call(L1_MEMORY_CONFIG, out=64, shard_layout=BLOCK, override_sharding_config=True, core_grid=grid)
    assert refusal(asked) == "K dimension in tiles must match between input A (2) and input B (4)"


@pytest.mark.parametrize("memory", [L1_MEMORY_CONFIG, DRAM_MEMORY_CONFIG])
def test_a_kernel_in_tiles_counts_with_its_padding(memory):
    """The real library asks the tensor for its kernel: 32 x 32 of 64 channels."""
    made = call(memory)
    spec = replace(made.weight.spec, layout=Layout.TILE, padded_shape=(64, 32, 32, 32))
    tiled = replace(made, weight=replace(made.weight, spec=spec))
    matmul = next(s for s in plan(tiled).steps if isinstance(s, Operation) and s.name == "MatmulDeviceOperation")
    assert matmul.refused.startswith(
        "The width of the first tensor must be equal to the height of the second tensor. Mismatch: width=64 "
        "height=65536\n"
    )


def test_shards_that_do_not_suit_need_a_scheme():
    memory = in_box(HEIGHT, (32, 64), 2)
    with pytest.raises(DeviceError, match="but got TensorMemoryLayout::INTERLEAVED"):
        plan(call(memory, Layout.TILE, reshard_if_not_optimal=True))
    assert story(call(memory, Layout.TILE, reshard_if_not_optimal=True, shard_layout=BLOCK))[0] == "Reshard"


SCHEMES: list[TensorMemoryLayout | None] = [None, HEIGHT, BLOCK]


def computed(a, rows):
    """Numbers that a plan makes of so many random rows, and the products of these rows with the bias added."""
    rng = np.random.default_rng(1)
    x = rng.integers(-1, 2, (1, 1, rows, a.in_channels)).astype(np.float32)
    w = rng.integers(-1, 2, (a.in_channels, a.out_channels, 1, 1)).astype(np.float32)
    b = rng.integers(-9, 10, (1, 1, 1, a.out_channels)).astype(np.float32)
    arrays = {name: quantize(values, BFLOAT16) for name, values in {"input": x, "weight": w, "bias": b}.items()}
    made = plan(a)
    got = run_values(made, arrays, ValuesContext(spec=SPEC, arithmetic=EXACT))[made.results["output"]]
    return got.astype(np.float32).reshape(-1, a.out_channels), x[0, 0] @ w[:, :, 0, 0] + b[0, 0], b[0, 0]


@pytest.mark.parametrize("memory", [DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, None], ids=["dram", "l1", "host"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("layout", Layout)
def test_numbers_do_not_depend_on_the_way(memory, scheme, layout):
    a = call(memory or DRAM_MEMORY_CONFIG, layout, host=memory is None, shard_layout=scheme, activation=("relu", ()))
    got, want, _ = computed(replace(a, compute_config=None), 64)
    np.testing.assert_array_equal(got, np.maximum(want, 0))


def test_rows_that_a_pad_adds_are_rows_of_the_output():
    """616 rows of a host tensor get 56 of zeros, for whole shards on 8 rows of cores; the bias is added to all."""
    a = sized_call((28, 22), (128, 128), (1, 1), place=None, with_bias=True)
    got, want, bias = computed(a, 616)
    assert plan(a).tensors["output"].shape == (1, 1, 672, 128)
    np.testing.assert_array_equal(got, np.concatenate([want, np.repeat(bias, 56, axis=0)]))


@pytest.mark.parametrize("scheme", [None, HEIGHT])
@pytest.mark.parametrize("layout", Layout)
def test_the_output_has_the_rows_of_the_tensor(scheme, layout):
    """100 rows, of which the call says 300: on ten cores of 32 rows, the first four of them hold all."""
    given = operand(1, 1, 100, 64, place=DRAM_MEMORY_CONFIG, layout=layout)
    config = ConvConfig(shard_layout=scheme)
    a = replace(sized_call((15, 20), (64, 32), (1, 1), with_bias=True, conv_config=config), input=given)
    got, want, _ = computed(a, 100)
    assert plan(a).tensors["output"].shape == (1, 1, 100, 32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("scheme", "shape", "line"),
    [
        (None, (100, 40), "The width of the first tensor must be equal to the height of the second tensor. "),
        (HEIGHT, (100, 90), "The width of the first tensor must be equal to the height of the second tensor. "),
        (HEIGHT, (350, 64), "MatmulMultiCoreReuseMultiCast1DProgramConfig: number of M blocks ceil(M/per_core_M)=11 "),
        (
            BLOCK,
            (350, 64),
            "MatmulMultiCoreReuseMultiCastProgramConfig: Num output blocks along y (6) must be smaller ",
        ),
        (BLOCK, (100, 64), "MatmulMultiCoreReuseMultiCastProgramConfig: per_core_M (2) must equal shard_shape[0] / "),
    ],
)
def test_rows_and_channels_that_do_not_fit_the_call_s_blocks(scheme, shape, line):
    config = ConvConfig(shard_layout=scheme)
    a = sized_call((15, 20), (64, 32), (1, 1), with_bias=True, conv_config=config)
    a = replace(a, input=operand(1, 1, *shape, place=DRAM_MEMORY_CONFIG))
    (refused,) = [step.refused for step in plan(a).steps if isinstance(step, Operation) and step.refused]
    assert refused.startswith(line)
    assert "\ninput_tensor: " in refused


@pytest.mark.parametrize(
    ("scheme", "line"),
    [
        (
            HEIGHT,
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: output shard grid {[1-0 - 2-1]} must lie within extent 2-2",
        ),
        (
            BLOCK,
            "MatmulMultiCoreReuseMultiCastProgramConfig: output shard grid {[1-0 - 2-1]} must lie within extent 2-2",
        ),
    ],
)
def test_cores_of_shards_begin_at_the_corner(scheme, line):
    grid = CoreRangeSet([CoreRange(CoreCoord(1, 0), CoreCoord(2, 1))])
    a = call(L1_MEMORY_CONFIG, Layout.TILE, shard_layout=scheme, override_sharding_config=True, core_grid=grid)
    (refused,) = [step.refused for step in plan(a).steps if isinstance(step, Operation) and step.refused]
    assert refused.splitlines()[0] == line


def test_more_blocks_of_rows_than_the_box_of_the_input_s_cores_has():
    a = sized_call((15, 20), (64, 32), (1, 1), conv_config=ConvConfig(shard_layout=HEIGHT))
    a = replace(a, input=operand(1, 1, 600, 64, place=DRAM_MEMORY_CONFIG))
    with pytest.raises(DeviceError, match=r"^Target number of cores 19 is greater than total number of available core"):
        plan(a)


def test_rows_that_a_pad_adds_are_rows_of_a_sharded_output():
    """300 rows of a host tensor are padded for five rows of cores."""
    a = sized_call((15, 20), (64, 96), (1, 1), place=None, with_bias=True, conv_config=ConvConfig(shard_layout=BLOCK))
    got, want, bias = computed(a, 300)
    assert plan(a).tensors["output"].shape == (1, 1, 320, 96)
    np.testing.assert_array_equal(got, np.concatenate([want, np.repeat(bias, 20, axis=0)]))


@pytest.mark.parametrize(
    ("scheme", "end", "cores"),
    [
        (HEIGHT, (4, 1), "{[0-0 - 1-0]}"),
        (HEIGHT, (0, 4), "{[0-0 - 0-1]}"),
        (BLOCK, (1, 4), "{[0-0 - 1-1]}"),
    ],
)
def test_the_output_lies_on_cores_that_hold_some_of_it(scheme, end, cores):
    """64 rows are two tiles."""
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(*end))])
    made = plan(
        call(L1_MEMORY_CONFIG, Layout.TILE, out=64, shard_layout=scheme, override_sharding_config=True, core_grid=grid)
    )
    shards = made.tensors[made.results["output"]].memory_config.shard_spec
    assert shards is not None
    assert str(shards.grid) == cores


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (in_box(HEIGHT, (64, 64), 2), "MatmulMultiCoreReuseMultiCast1DProgramConfig: per_core_M (1) must equal"),
        (in_box(BLOCK, (64, 32), 2, 2), "MatmulMultiCoreReuseMultiCastProgramConfig: per_core_M (1) must equal"),
    ],
)
def test_shards_higher_than_the_rows_need_are_refused(memory, text):
    refused = [step.refused for step in plan(call(memory, Layout.TILE, out=64)).steps if isinstance(step, Operation)]
    assert refused[-1] is not None
    assert refused[-1].startswith(text)
