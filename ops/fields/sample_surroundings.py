"""Programs around a convolution: pools, sums, joined and turned tensors, each by its own planner."""

from collections.abc import Callable, Iterator
from functools import partial

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.concatenation.plan import plan_concat
from ops.calls.creation.rand import plan_rand
from ops.calls.elementwise.binary import plan_binary
from ops.calls.elementwise.binary_arguments import BinaryArguments
from ops.calls.pooling.arguments import PoolArguments
from ops.calls.pooling.plan import plan_max_pool2d
from ops.calls.rearranging.folding import plan_fold
from ops.calls.rearranging.padding import plan_pad
from ops.calls.rearranging.plan import (
    plan_convert_to_chw,
    plan_convert_to_hwc,
)
from ops.calls.rearranging.slicing import plan_slice
from ops.calls.rearranging.turning import plan_permute
from ops.calls.relaying.layouts import plan_tilize
from ops.calls.upsampling.plan import plan_upsample
from ops.programs.eltwise.binary import BinaryOperation

ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def surroundings() -> Iterator[tuple[str, Callable[[DeviceSpec], Plan], dict[str, TensorSpec]]]:
    """Each call by its name: how it is planned, and its tensors."""
    tiles, rows = _tensor((1, 1, 256, 64), TILES), _tensor((1, 16, 16, 32), ROWS)
    pool = PoolArguments(
        source=_tensor((1, 1, 256, 32), ROWS),
        batch=1,
        image=(16, 16),
        channels=32,
        kernel=(2, 2),
        stride=(2, 2),
        padding=(0, 0, 0, 0),
        dilation=(1, 1),
    )
    yield "max_pool2d", partial(plan_max_pool2d, pool), {"input": pool.source}
    added = BinaryArguments(operation=BinaryOperation.ADD, left=tiles, right=tiles)
    yield "add", partial(plan_binary, added), {"input": tiles, "input_b": tiles}
    yield "concat", partial(plan_concat, (rows, rows), 3), {"input_0": rows, "input_1": rows}
    yield "permute", partial(plan_permute, rows, (0, 3, 1, 2)), {"input": rows}
    yield "pad", partial(plan_pad, rows, ((0, 0), (1, 1), (1, 1), (0, 0)), 0.0), {"input": rows}
    ragged = _tensor((1, 1, 256, 40), TILES)
    yield "pad tiles", partial(plan_pad, ragged, ((0, 0), (0, 0), (0, 0), (0, 24)), 0.0), {"input": ragged}
    yield "slice", partial(plan_slice, rows, (0, 0, 0, 0), (1, 8, 16, 32), None), {"input": rows}
    yield "fold", partial(plan_fold, rows, (2, 2), ((0, 0), (0, 0), (0, 0))), {"input": rows}
    yield "upsample", partial(plan_upsample, rows, (2, 2)), {"input": rows}
    wide = _sharded((1, 1, 16, 256), TensorMemoryLayout.WIDTH_SHARDED, (16, 64))
    yield "convert_to_hwc", partial(plan_convert_to_hwc, wide), {"input": wide}
    high = _sharded((1, 1, 256, 16), TensorMemoryLayout.HEIGHT_SHARDED, (64, 16))
    yield "convert_to_chw", partial(plan_convert_to_chw, high), {"input": high}
    sticks = _tensor((1, 1, 256, 64), ROWS)
    yield "tilize", partial(plan_tilize, sticks), {"input": sticks}
    drawn = _tensor((1, 1, 256, 64), TILES)
    yield "rand", partial(plan_rand, drawn, low=0.0, high=1.0, seed=0), {}


def _tensor(shape: tuple[int, ...], layout: Layout) -> TensorSpec:
    return TensorSpec(shape, BFLOAT16, layout, DRAM_MEMORY_CONFIG)


def _sharded(shape: tuple[int, ...], scheme: TensorMemoryLayout, shard: tuple[int, int]) -> TensorSpec:
    """Rows on four cores."""
    place = MemoryConfig(scheme, BufferType.L1, ShardSpec(first_cores(4, 2, 2), shard))
    return TensorSpec(shape, BFLOAT16, ROWS, place)
