"""Where the input of a call is put, and what its weights are padded for."""

from dataclasses import replace

import pytest

from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvConfig
from ops.planners.conv.operands import partition_call
from tests.build import L1_FULL, operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("scheme", "layout", "shape", "shards"),
    [
        (HEIGHT, Layout.ROW_MAJOR, (1, 1, 600, 9), (320, 16)),  # 640 rows on two cores
        (BLOCK, Layout.ROW_MAJOR, (4, 35, 6, 6), (448, 8)),  # 896 rows on two rows of cores
        (WIDTH, Layout.ROW_MAJOR, (3, 20, 7, 33), (420, 64)),  # all rows as they are; 64 channels in tiles
        (WIDTH, Layout.TILE, (3, 20, 7, 33), (448, 64)),
    ],
)
@pytest.mark.parametrize("on_host", [False, True], ids=["device", "host"])
def test_shards_hold_the_rows_and_channels_of_the_tensor(scheme, layout, shape, shards, on_host):
    """Whatever the call says: 36 rows of 8 channels, whose 64 outputs lie on two cores."""
    call = sized_call((6, 6), (8, 32), conv_config=ConvConfig(shard_layout=scheme), slice_config=L1_FULL)
    given = replace(operand(*shape, place=DRAM_MEMORY_CONFIG, layout=layout), on_host=on_host)
    held = partition_call(replace(call, input=given), SPEC).input_memory
    assert (held.memory_layout, held.shard_spec.shape) == (scheme, shards)


def test_weights_are_padded_for_the_width_that_a_shard_has():
    """8 channels of a call fill 16 where the tensor has 9, and 32 in shards of 32 that stay where they are."""
    call = sized_call((6, 6), (8, 32), conv_config=ConvConfig(shard_layout=HEIGHT), slice_config=L1_FULL)
    assert partition_call(call, SPEC).layout.shards.in_channels == 8
    more = replace(call, input=operand(1, 1, 36, 9, place=DRAM_MEMORY_CONFIG))
    assert partition_call(more, SPEC).layout.shards.in_channels == 16
    chosen = partition_call(call, SPEC).layout.config
    place = in_box(HEIGHT, (32, 32), chosen.cores.num_cores())
    config = ConvConfig(shard_layout=HEIGHT, reshard_if_not_optimal=True)
    stays = partition_call(replace(call, input=operand(1, 1, 36, 32, place=place), conv_config=config), SPEC)
    assert not stays.reshards
    assert stays.layout.shards.in_channels == 32
