"""Order of allocations and releases, as the real library (0.81.1) shows them in a graph capture."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Allocate, Free, Operation, Relocate
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.planners.conv import dram_path, matmul_path
from ops.programs.data_movement import placement, slice as slicing
from ops.programs.data_movement.slice import SliceWrite, Window
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

WORMHOLE = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def spelled(steps):
    """Steps as words: +x allocates x, -x frees it, ^x moves it; operations by name, then what they allocate."""
    words = []
    for step in steps:
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
    return TensorSpec(shape, data_format, layout, config)


def told(function, given, *arguments, **options):
    """What a function makes of the tensor "x" and some arguments, and its steps as words."""
    builder = PlanBuilder(WORMHOLE, {"x": given})
    result = function(builder, builder.tensor("x"), *arguments, **options)
    return result, spelled(builder.steps)


@pytest.mark.parametrize(
    ("shape", "layout", "on_host", "steps", "adopted"),
    [
        ((1, 1, 64, 16), ROWS, False, "", ""),
        ((1, 1, 64, 16), ROWS, True, "+x.uploaded", "-x.uploaded"),
        ((1, 1, 64, 16), TILES, False, "ReshapeView +x.image +x.image.map", "-x.image"),
        ((1, 1, 64, 16), TILES, True, "+x.uploaded ReshapeView +x.image +x.image.map -x.uploaded", "-x.image"),
        ((1, 8, 8, 16), TILES, True, "+x.uploaded", "-x.uploaded"),
    ],
)
def test_the_input_becomes_an_image_in_dram(shape, layout, on_host, steps, adopted):
    builder = PlanBuilder(WORMHOLE, {"x": source(shape, layout)})
    image = dram_path.dram_image(builder, builder.tensor("x"), (1, 8, 8, 16), on_host=on_host)
    assert spelled(builder.steps) == steps
    assert image.spec.shape == (1, 8, 8, 16)
    builder.free_adopted()
    assert spelled(builder.steps) == f"{steps} {adopted}".strip()


@pytest.mark.parametrize(("on_host", "steps"), [(False, ""), (True, "+x.uploaded")])
def test_an_image_of_fewer_rows_is_the_first_rows_of_the_tensor(on_host, steps):
    builder = PlanBuilder(WORMHOLE, {"x": source((1, 1, 70, 16))})
    image = dram_path.dram_image(builder, builder.tensor("x"), (1, 8, 8, 16), on_host=on_host)
    assert (image.spec.shape, spelled(builder.steps)) == ((1, 8, 8, 16), steps)
    builder.free_adopted()
    assert spelled(builder.steps) == f"{steps} {steps.replace('+', '-')}".strip()


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
    config = in_box(HEIGHT, (32, 64), 2)
    result, words = told(placement.sharded_input, given, config, "s", deallocate=deallocate)
    assert words == steps
    assert (result.name, result.spec.memory_config) == ("s", config)


def test_an_input_that_lies_right_is_used_as_it_is():
    config = in_box(HEIGHT, (32, 64), 2)
    given = source((1, 1, 64, 64), config=config)
    result, words = told(placement.sharded_input, given, None, "s", deallocate=True)
    assert (result.name, words) == ("x", "")


def test_other_shards_are_dealt_anew_or_by_way_of_dram():
    before, after = in_box(HEIGHT, (32, 64), 2), in_box(BLOCK, (32, 32), 2, 2)
    given = source((1, 1, 64, 64), config=before)

    def words(tensor, config, *, deallocate=False):
        return told(placement.sharded_input, tensor, config, "s", deallocate=deallocate)[1]

    assert words(given, after) == "+s ShardedToInterleaved +s.interleaved InterleavedToSharded -s.interleaved"
    assert words(given, after, deallocate=True).endswith("InterleavedToSharded -s.interleaved -x ^s")
    assert words(given, in_box(BLOCK, (32, 64), 1, 2)) == "+s Reshard"
    assert words(source((1, 1, 64, 64), TILES, before), after) == "+s Reshard"


def test_padding_rows_fill_the_last_shard():
    # 98 rows on six cores of 32: the buffer has four whole shards, and the other cores hold nothing.
    copy, _ = told(placement.to_shards, source((1, 1, 98, 24)), in_box(HEIGHT, (32, 24), 6), "s")
    assert copy.spec.padded_shape == (1, 1, 128, 24)


@pytest.mark.parametrize(
    ("spec", "config", "steps", "padded"),
    [
        (TensorSpec((1, 7, 7, 64), BFLOAT16, ROWS), in_box(HEIGHT, (32, 64), 3), "+s", 96),
        (TensorSpec((1, 1, 49, 64), BFLOAT16, TILES), in_box(HEIGHT, (32, 64), 3), "+s", 64),
        (TensorSpec((1, 7, 7, 64), BFLOAT16, ROWS), in_box(WIDTH, (49, 32), 2), "+s", 49),
        (TensorSpec((1, 8, 8, 64), BFLOAT16, ROWS), in_box(BLOCK, (32, 32), 2, 2), "+s", 64),
        (
            TensorSpec((1, 7, 7, 64), BFLOAT16, ROWS),
            in_box(BLOCK, (32, 32), 2, 3),
            "+s.unpadded Pad +s -s.unpadded",
            96,
        ),
        (
            TensorSpec((1, 7, 7, 20), BFLOAT16, ROWS),
            in_box(BLOCK, (32, 8), 3, 3),
            "+s +x.rows InterleavedToSharded -x.rows",
            64,
        ),
    ],
)
def test_a_host_tensor_on_the_l1_path(spec, config, steps, padded):
    result, words = told(placement.uploaded_rows, spec, config, config, "s")
    assert words == steps
    assert (result.name, result.spec.padded_shape[-2]) == ("s", padded)


@pytest.mark.parametrize(
    ("given", "scheme", "shard", "deallocate", "before", "after"),
    [
        (source((1, 1, 64, 64)), HEIGHT, False, False, "", "Tilize +t"),
        (source((1, 1, 50, 64)), HEIGHT, False, False, "", "TilizeWithValPadding +t"),
        (source((1, 1, 64, 64)), HEIGHT, True, False, "+s InterleavedToSharded", "Tilize +t -s"),
        (
            source((1, 1, 64, 64)),
            BLOCK,
            True,
            False,
            "Tilize +s.tiles +s InterleavedToSharded -s.tiles",
            "",
        ),
        (
            source((1, 1, 64, 64), config=L1_MEMORY_CONFIG),
            BLOCK,
            True,
            True,
            "Tilize +s.tiles -x ^s.tiles +s InterleavedToSharded -s.tiles ^s",
            "",
        ),
        (source((1, 1, 64, 64), config=L1_MEMORY_CONFIG), HEIGHT, False, True, "", "Tilize +t -x"),
        (source((1, 1, 64, 64), TILES), HEIGHT, False, False, "", ""),
        (source((1, 1, 64, 64), TILES, L1_MEMORY_CONFIG), HEIGHT, False, True, "", ""),
    ],
)
def test_a_matmul_takes_tiles(given, scheme, shard, deallocate, before, after):
    config = in_box(scheme, (32, 64), 1, 2) if scheme is BLOCK else in_box(scheme, (32, 64), 2)
    builder = PlanBuilder(WORMHOLE, {"x": given})
    first = matmul_path.matmul_input(builder, builder.tensor("x"), config, "s", deallocate=deallocate, shard=shard)
    assert spelled(builder.steps) == before
    consumed = first.name != "x" or (deallocate and first.in_l1)
    second = matmul_path.matmul_tiles(builder, first, "t", consumed=consumed)
    assert spelled(builder.steps) == f"{before} {after}".strip()
    assert second.spec.layout is TILES


def test_a_matmul_input_on_the_host():
    # Channels that do not fill the shards are sharded even where the library chose the layout itself.
    config = in_box(BLOCK, (32, 32), 2, 2)
    spec = TensorSpec((1, 7, 7, 50), FLOAT32, ROWS)
    result, words = told(placement.uploaded_rows, spec, config, DRAM_MEMORY_CONFIG, "s")
    assert words == "+s +x.rows InterleavedToSharded -x.rows"
    assert result.spec.memory_config == config
    spec = TensorSpec((1, 8, 8, 64), FLOAT32, ROWS)
    whole, words = told(placement.uploaded_rows, spec, config, DRAM_MEMORY_CONFIG, "s")
    assert (words, whole.spec.memory_config) == ("+s", DRAM_MEMORY_CONFIG)


def test_the_result_goes_where_it_is_wanted():
    def placed(tensor, config):
        return told(placement.to_config, tensor, config, "y")[1]

    result = source((1, 1, 64, 64), TILES, in_box(HEIGHT, (32, 64), 2))
    assert told(dram_path.dram_output, result, "y")[1] == "ShardedToInterleaved +y -x"
    assert placed(result, L1_MEMORY_CONFIG) == "ShardedToInterleaved +y -x"
    assert placed(result, in_box(HEIGHT, (64, 64), 1)) == "Reshard +y -x"
    assert placed(result, result.memory_config) == ""
    rows = source((1, 1, 64, 64), ROWS, in_box(BLOCK, (32, 32), 2, 2))
    by_way = "ShardedToInterleaved +y.interleaved InterleavedToSharded +y -y.interleaved -x"
    assert placed(rows, in_box(HEIGHT, (32, 64), 2)) == by_way
    in_dram = source((1, 1, 64, 64), TILES)
    assert placed(in_dram, L1_MEMORY_CONFIG) == "Copy +y -x"
    assert placed(in_dram, in_box(HEIGHT, (32, 64), 2)) == "InterleavedToSharded +y -x"


@pytest.mark.parametrize(
    ("scheme", "layout", "data_format", "steps"),
    [
        (HEIGHT, TILES, BFLOAT16, "SliceWrite -x"),
        (HEIGHT, ROWS, BFLOAT16, "Untilize +w.rows -x SliceWrite -w.rows"),
        (
            WIDTH,
            ROWS,
            BFLOAT16,
            "ShardedToInterleaved +w.interleaved -x UntilizeCodegen +w.rows -w.interleaved SliceWrite -w.rows",
        ),
        (
            WIDTH,
            ROWS,
            FLOAT32,
            "ShardedToInterleaved +w.interleaved -x UntilizeWithUnpadding +w.rows -w.interleaved SliceWrite -w.rows",
        ),
    ],
)
def test_a_slice_is_written_back(scheme, layout, data_format, steps):
    config = in_box(scheme, (32, 32), 2) if scheme is HEIGHT else in_box(scheme, (64, 32), 1)
    result = source((1, 1, 64, 20), TILES, config, data_format)
    builder = PlanBuilder(WORMHOLE, {"x": result, "y": TensorSpec((1, 4, 32, 20), data_format, layout)})
    write = SliceWrite(Window(shape=(1, 4, 32, 20), begins=(0, 2, 0, 0), ends=(1, 4, 32, 20)), 32)
    slicing.write_slice(builder, builder.tensor("x"), builder.tensor("y"), write, "w")
    assert spelled(builder.steps) == steps


def test_a_slice_comes_as_rows():
    image = source((1, 4, 10, 20), TILES, data_format=BFLOAT8_B)
    window = Window(shape=(1, 4, 10, 20), begins=(0, 1, 0, 0), ends=(1, 3, 10, 20))
    result, words = told(slicing.sliced_input, image, window, in_box(HEIGHT, (32, 24), 1), "s")
    assert words == "PaddedSlice +s"
    assert (result.spec.data_format, result.spec.layout) == (BFLOAT16, ROWS)
    assert result.spec.padded_shape == (1, 1, 20, 24)
    wide, _ = told(slicing.sliced_input, image, window, in_box(WIDTH, (32, 32), 1), "s")
    assert wide.spec.padded_shape == (1, 1, 32, 32)


def test_an_assembled_image_becomes_rows():
    image = source((1, 6, 20, 32), TILES)
    assert told(dram_path.image_output, image, "y")[1] == "ReshapeView +y +y.map -x"
    assert told(dram_path.image_output, source((1, 6, 32, 32), TILES), "y")[1] == ""
