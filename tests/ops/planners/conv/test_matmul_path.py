"""1x1 convolutions as a matmul: which operations run on which tensors (ttnn 0.81.1 without kernels, 8x8 cores)."""

from dataclasses import replace

import numpy as np
import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.matrix_unit.arithmetic import EXACT
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, quantize
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.values import run_values
from ops.planners.conv.plan import plan_convolution
from ops.programs.conv2d.partition import BLOCK, HEIGHT
from tests.build import operand, sized_call

SPEC = load_spec("wormhole_n150")
FREE = 1360544


def call(memory=DRAM_MEMORY_CONFIG, layout=Layout.ROW_MAJOR, *, host=False, bias=True, channels=64, out=32, **config):
    place = None if host else memory
    return sized_call((8, 8), (channels, out), (1, 1), place=place, layout=layout, with_bias=bias, **config)


def plan(a):
    return plan_convolution(a, SPEC, free_l1_bytes=FREE)


SCHEMES: list[TensorMemoryLayout | None] = [None, HEIGHT, BLOCK]


def computed(a, rows):
    """Numbers that a plan makes of so many random rows, and the products of these rows with the bias added."""
    rng = np.random.default_rng(1)
    x = rng.integers(-1, 2, (1, 1, rows, a.in_channels)).astype(np.float32)
    w = rng.integers(-1, 2, (a.in_channels, a.out_channels, 1, 1)).astype(np.float32)
    b = rng.integers(-9, 10, (1, 1, 1, a.out_channels)).astype(np.float32)
    arrays = {name: quantize(values, BFLOAT16) for name, values in {"input": x, "weight": w, "bias": b}.items()}
    result = plan(a)
    got = run_values(result, arrays, ValuesContext(spec=SPEC, arithmetic=EXACT))[result.results["output"]]
    return got.astype(np.float32).reshape(-1, a.out_channels), x[0, 0] @ w[:, :, 0, 0] + b[0, 0], b[0, 0]


@pytest.mark.parametrize("memory", [DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, None], ids=["dram", "l1", "host"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("layout", Layout)
def test_numbers_do_not_depend_on_the_way(memory, scheme, layout):
    a = call(memory or DRAM_MEMORY_CONFIG, layout, host=memory is None, shard_layout=scheme, activation=("relu", ()))
    got, want, _ = computed(replace(a, compute_config=None), 64)
    np.testing.assert_array_equal(got, np.maximum(want, 0))


@pytest.mark.parametrize(
    ("size", "channels", "scheme", "rows"), [((28, 22), (128, 128), None, 672), ((15, 20), (64, 96), BLOCK, 320)]
)
def test_rows_that_a_pad_adds_are_rows_of_the_output(size, channels, scheme, rows):
    """Rows of a host tensor get zeros, for whole shards on rows of cores; the bias is added to all."""
    a = sized_call(size, channels, (1, 1), place=None, with_bias=True, shard_layout=scheme)
    given = size[0] * size[1]
    got, want, bias = computed(a, given)
    assert plan(a).tensors["output"].shape == (1, 1, rows, channels[1])
    np.testing.assert_array_equal(got, np.concatenate([want, np.repeat(bias, rows - given, axis=0)]))


@pytest.mark.parametrize("scheme", [None, HEIGHT])
@pytest.mark.parametrize("layout", Layout)
def test_the_output_has_the_rows_of_the_tensor(scheme, layout):
    """100 rows, of which the call says 300: on ten cores of 32 rows, the first four of them hold all."""
    given = operand(1, 1, 100, 64, place=DRAM_MEMORY_CONFIG, layout=layout)
    a = sized_call((15, 20), (64, 32), (1, 1), with_bias=True, shard_layout=scheme, input=given)
    got, want, _ = computed(a, 100)
    assert plan(a).tensors["output"].shape == (1, 1, 100, 32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("scheme", "end", "cores"),
    [(HEIGHT, (4, 1), "{[0-0 - 1-0]}"), (HEIGHT, (0, 4), "{[0-0 - 0-1]}"), (BLOCK, (1, 4), "{[0-0 - 1-1]}")],
)
def test_the_output_lies_on_cores_that_hold_some_of_it(scheme, end, cores):
    """64 rows are two tiles."""
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(*end))])
    result = plan(
        call(L1_MEMORY_CONFIG, Layout.TILE, out=64, shard_layout=scheme, override_sharding_config=True, core_grid=grid)
    )
    shards = result.tensors[result.results["output"]].memory_config.shard_spec
    assert shards is not None
    assert str(shards.grid) == cores
