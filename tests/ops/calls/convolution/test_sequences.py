"""Order of allocations and releases, as the real library (0.81.1) shows them in a graph capture."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Allocate, Free, Operation, Relocate
from device.spec.device_spec import load_spec
from ops.calls.convolution import convolution_input, matmul_input
from ops.programs.movement import placement, slicing
from ops.programs.movement.staged import Staged
from ops.programs.movement.work import SliceWrite, Window

WORMHOLE = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def shards(scheme, shape, cols=1, rows=1):
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1))])
    return MemoryConfig(TensorMemoryLayout[f"{scheme}_SHARDED"], BufferType.L1, ShardSpec(cores, shape))


def spelled(staged):
    """Steps as words: +x allocates x, -x frees it, ^x moves it; operations by name, then what they allocate."""
    words = []
    for step in staged.steps:
        match step:
            case Allocate(tensor=tensor):
                words.append(f"+{tensor}")
            case Free(tensor=tensor):
                words.append(f"-{tensor}")
            case Relocate(tensor=tensor):
                words.append(f"^{tensor}")
            case Operation(name=name, outputs=outputs, resident=resident):
                words.append(name.removesuffix("DeviceOperation"))
                words += [f"+{made.tensor}" for made in (*outputs, *resident)]
    return " ".join(words)


def source(shape, layout=ROWS, config=DRAM_MEMORY_CONFIG, data_format=BFLOAT16):
    return Staged(name="x", spec=TensorSpec(shape, data_format, layout, config))


@pytest.mark.parametrize(
    ("shape", "layout", "on_host", "steps", "owned"),
    [
        ((1, 1, 64, 16), ROWS, False, "", ()),
        ((1, 1, 64, 16), ROWS, True, "+x.uploaded", ("x.uploaded",)),
        ((1, 1, 64, 16), TILES, False, "ReshapeView +x.image +x.image.map", ("x.image",)),
        ((1, 1, 64, 16), TILES, True, "+x.uploaded ReshapeView +x.image +x.image.map -x.uploaded", ("x.image",)),
        ((1, 8, 8, 16), TILES, True, "+x.uploaded", ("x.uploaded",)),
    ],
)
def test_the_input_becomes_an_image_in_dram(shape, layout, on_host, steps, owned):
    spec = TensorSpec(shape, BFLOAT16, layout)
    staged = convolution_input.dram_image("x", spec, (1, 8, 8, 16), WORMHOLE, on_host=on_host)
    assert spelled(staged) == steps
    assert staged.owned == owned
    assert staged.spec.shape == (1, 8, 8, 16)


def test_the_output_is_reserved_and_given_up():
    spec = TensorSpec((1, 17, 17, 32), BFLOAT16, TILES)
    assert spelled(convolution_input.reserved_output("y", spec, WORMHOLE, given_up=True)) == "+y -y"
    assert spelled(convolution_input.reserved_output("y", spec, WORMHOLE, given_up=False)) == "+y"


@pytest.mark.parametrize(
    ("given", "deallocate", "steps"),
    [
        (source((1, 1, 64, 64)), False, "+s InterleavedToSharded"),
        (source((1, 1, 64, 64)), True, "+s InterleavedToSharded"),
        (source((1, 1, 64, 64), config=L1_MEMORY_CONFIG), False, "+s InterleavedToSharded"),
        (source((1, 1, 64, 64), config=L1_MEMORY_CONFIG), True, "+s InterleavedToSharded -x ^s"),
        (source((1, 8, 8, 64), TILES), False, "ReshapeView +s.rows +s.rows.map +s InterleavedToSharded -s.rows"),
        (
            source((1, 8, 8, 64), TILES, L1_MEMORY_CONFIG),
            True,
            "ReshapeView +s.rows +s.rows.map +s InterleavedToSharded -s.rows ^s",
        ),
        (
            source((1, 8, 8, 64), TILES, data_format=BFLOAT8_B),
            False,
            "Typecast +s.rows.bfloat16 ReshapeView +s.rows.moved +s.rows.moved.map Typecast +s.rows -s.rows.moved "
            "-s.rows.bfloat16 +s InterleavedToSharded -s.rows",
        ),
    ],
)
def test_the_input_is_sharded(given, deallocate, steps):
    config = shards("HEIGHT", (32, 64), cols=2)
    staged = convolution_input.sharded_input(given, config, WORMHOLE, "s", deallocate=deallocate)
    assert spelled(staged) == steps
    assert staged.owned == ("s",)
    assert staged.spec.memory_config == config


def test_an_input_that_lies_right_is_used_as_it_is():
    config = shards("HEIGHT", (32, 64), cols=2)
    staged = convolution_input.sharded_input(
        source((1, 1, 64, 64), config=config), config, WORMHOLE, "s", deallocate=True
    )
    assert (staged.name, staged.steps, staged.owned) == ("x", (), ())


def test_other_shards_are_dealt_anew_or_by_way_of_dram():
    before, after = shards("HEIGHT", (32, 64), cols=2), shards("BLOCK", (32, 32), cols=2, rows=2)
    given = source((1, 1, 64, 64), config=before)
    by_way = convolution_input.sharded_input(given, after, WORMHOLE, "s", deallocate=False)
    assert spelled(by_way) == "+s ShardedToInterleaved +s.interleaved InterleavedToSharded -s.interleaved"
    freed = convolution_input.sharded_input(given, after, WORMHOLE, "s", deallocate=True)
    assert spelled(freed).endswith("InterleavedToSharded -s.interleaved -x ^s")
    same_width = convolution_input.sharded_input(
        given, shards("BLOCK", (32, 64), rows=2), WORMHOLE, "s", deallocate=False
    )
    assert spelled(same_width) == "+s Reshard"
    tiles = convolution_input.sharded_input(
        source((1, 1, 64, 64), TILES, before), after, WORMHOLE, "s", deallocate=False
    )
    assert spelled(tiles) == "+s Reshard"


def test_padding_rows_fill_the_last_shard():
    # 98 rows on six cores of 32: the buffer has four whole shards, and the other cores hold nothing.
    staged = placement.to_shards(source((1, 1, 98, 24)), shards("HEIGHT", (32, 24), cols=6), WORMHOLE, "s")
    assert staged.spec.padded_shape == (1, 1, 128, 24)


@pytest.mark.parametrize(
    ("spec", "config", "steps", "padded"),
    [
        (TensorSpec((1, 7, 7, 64), BFLOAT16, ROWS), shards("HEIGHT", (32, 64), cols=3), "+s", 96),
        (TensorSpec((1, 1, 49, 64), BFLOAT16, TILES), shards("HEIGHT", (32, 64), cols=3), "+s", 64),
        (TensorSpec((1, 7, 7, 64), BFLOAT16, ROWS), shards("WIDTH", (49, 32), cols=2), "+s", 49),
        (TensorSpec((1, 8, 8, 64), BFLOAT16, ROWS), shards("BLOCK", (32, 32), cols=2, rows=2), "+s", 64),
        (
            TensorSpec((1, 7, 7, 64), BFLOAT16, ROWS),
            shards("BLOCK", (32, 32), cols=2, rows=3),
            "+s.unpadded Pad +s -s.unpadded",
            96,
        ),
        (
            TensorSpec((1, 7, 7, 20), BFLOAT16, ROWS),
            shards("BLOCK", (32, 8), cols=3, rows=3),
            "+s +x.rows InterleavedToSharded -x.rows",
            64,
        ),
    ],
)
def test_a_host_tensor_on_the_l1_path(spec, config, steps, padded):
    staged = convolution_input.sharded_host_input("x", spec, config, WORMHOLE, "s")
    assert spelled(staged) == steps
    assert staged.spec.padded_shape[-2] == padded
    assert staged.owned == ("s",)


@pytest.mark.parametrize(
    ("given", "scheme", "shard", "deallocate", "before", "after", "owned"),
    [
        (source((1, 1, 64, 64)), "HEIGHT", False, False, "", "Tilize +t", ("t",)),
        (source((1, 1, 50, 64)), "HEIGHT", False, False, "", "TilizeWithValPadding +t", ("t",)),
        (source((1, 1, 64, 64)), "HEIGHT", True, False, "+s InterleavedToSharded", "Tilize +t -s", ("t",)),
        (
            source((1, 1, 64, 64)),
            "BLOCK",
            True,
            False,
            "Tilize +s.tiles +s InterleavedToSharded -s.tiles",
            "",
            ("s",),
        ),
        (
            source((1, 1, 64, 64), config=L1_MEMORY_CONFIG),
            "BLOCK",
            True,
            True,
            "Tilize +s.tiles -x ^s.tiles +s InterleavedToSharded -s.tiles ^s",
            "",
            ("s",),
        ),
        (source((1, 1, 64, 64), config=L1_MEMORY_CONFIG), "HEIGHT", False, True, "", "Tilize +t -x", ("t",)),
        (source((1, 1, 64, 64), TILES), "HEIGHT", False, False, "", "", ()),
        (source((1, 1, 64, 64), TILES, L1_MEMORY_CONFIG), "HEIGHT", False, True, "", "", ("x",)),
    ],
)
def test_a_matmul_takes_tiles(given, scheme, shard, deallocate, before, after, owned):
    config = shards(scheme, (32, 64), rows=2) if scheme == "BLOCK" else shards(scheme, (32, 64), cols=2)
    first = matmul_input.matmul_input(given, config, WORMHOLE, "s", deallocate=deallocate, shard=shard)
    assert spelled(first) == before
    second = matmul_input.matmul_tiles(first, WORMHOLE, "t", deallocate=deallocate)
    assert spelled(second) == after
    assert second.owned == owned
    assert second.spec.layout is TILES


def test_a_matmul_input_on_the_host():
    # Channels that do not fill the shards are sharded even where the library chose the layout itself.
    config = shards("BLOCK", (32, 32), cols=2, rows=2)
    spec = TensorSpec((1, 7, 7, 50), FLOAT32, ROWS)
    staged = matmul_input.matmul_host_input("x", spec, config, WORMHOLE, "s", shard=False)
    assert spelled(staged) == "+s +x.rows InterleavedToSharded -x.rows"
    assert staged.spec.memory_config == config
    whole = matmul_input.matmul_host_input(
        "x", TensorSpec((1, 8, 8, 64), FLOAT32, ROWS), config, WORMHOLE, "s", shard=False
    )
    assert (spelled(whole), whole.spec.memory_config) == ("+s", DRAM_MEMORY_CONFIG)


def test_the_result_goes_where_it_is_wanted():
    result = source((1, 1, 64, 64), TILES, shards("HEIGHT", (32, 64), cols=2))
    assert spelled(convolution_input.dram_output(result, WORMHOLE, "y")) == "ShardedToInterleaved +y -x"
    assert spelled(placement.to_config(result, L1_MEMORY_CONFIG, WORMHOLE, "y")) == "ShardedToInterleaved +y -x"
    assert spelled(placement.to_config(result, shards("HEIGHT", (64, 64)), WORMHOLE, "y")) == "Reshard +y -x"
    assert spelled(placement.to_config(result, result.spec.memory_config, WORMHOLE, "y")) == ""
    rows = source((1, 1, 64, 64), ROWS, shards("BLOCK", (32, 32), cols=2, rows=2))
    by_way = placement.to_config(rows, shards("HEIGHT", (32, 64), cols=2), WORMHOLE, "y")
    assert spelled(by_way) == "ShardedToInterleaved +y.interleaved InterleavedToSharded +y -y.interleaved -x"
    in_dram = source((1, 1, 64, 64), TILES)
    assert spelled(placement.to_config(in_dram, L1_MEMORY_CONFIG, WORMHOLE, "y")) == "Copy +y -x"
    spread = placement.to_config(in_dram, shards("HEIGHT", (32, 64), cols=2), WORMHOLE, "y")
    assert spelled(spread) == "InterleavedToSharded +y -x"


@pytest.mark.parametrize(
    ("scheme", "layout", "data_format", "steps"),
    [
        ("HEIGHT", TILES, BFLOAT16, "SliceWrite -x"),
        ("HEIGHT", ROWS, BFLOAT16, "Untilize +w.rows -x SliceWrite -w.rows"),
        (
            "WIDTH",
            ROWS,
            BFLOAT16,
            "ShardedToInterleaved +w.interleaved -x UntilizeCodegen +w.rows -w.interleaved SliceWrite -w.rows",
        ),
        (
            "WIDTH",
            ROWS,
            FLOAT32,
            "ShardedToInterleaved +w.interleaved -x UntilizeWithUnpadding +w.rows -w.interleaved SliceWrite -w.rows",
        ),
    ],
)
def test_a_slice_is_written_back(scheme, layout, data_format, steps):
    config = shards(scheme, (32, 32), cols=2) if scheme == "HEIGHT" else shards(scheme, (64, 32))
    result = source((1, 1, 64, 20), TILES, config, data_format)
    target = Staged(name="y", spec=TensorSpec((1, 4, 32, 20), data_format, layout))
    write = SliceWrite(Window(shape=(1, 4, 32, 20), begins=(0, 2, 0, 0), ends=(1, 4, 32, 20)), 32)
    assert spelled(slicing.written_slice(result, target, write, WORMHOLE, "w")) == steps


def test_a_slice_comes_as_rows():
    image = source((1, 4, 10, 20), TILES, data_format=BFLOAT8_B)
    window = Window(shape=(1, 4, 10, 20), begins=(0, 1, 0, 0), ends=(1, 3, 10, 20))
    staged = slicing.sliced_input(image, window, shards("HEIGHT", (32, 24)), WORMHOLE, "s")
    assert spelled(staged) == "PaddedSlice +s"
    assert (staged.spec.data_format, staged.spec.layout) == (BFLOAT16, ROWS)
    assert staged.spec.padded_shape == (1, 1, 20, 24)
    wide = slicing.sliced_input(image, window, shards("WIDTH", (32, 32)), WORMHOLE, "s")
    assert wide.spec.padded_shape == (1, 1, 32, 32)


def test_an_assembled_image_becomes_rows():
    image = source((1, 6, 20, 32), TILES)
    assert spelled(convolution_input.image_output(image, WORMHOLE, "y")) == "ReshapeView +y +y.map -x"
    assert spelled(convolution_input.image_output(source((1, 6, 32, 32), TILES), WORMHOLE, "y")) == ""
