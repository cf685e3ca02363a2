"""Order of allocations and releases, as the real library (0.81.1) shows them in a graph capture."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Allocate, Free, Operation, Relocate
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.planners.conv import matmul_path
from ops.planners.conv.plan import dram_image, dram_output, image_output
from ops.programs.data_movement.placement import to_config, to_shards, uploaded_rows
from ops.programs.data_movement.reshape import rows_in_shards
from ops.programs.data_movement.slice import SliceWrite, Window, sliced_input, write_slice
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

WORMHOLE = load_spec("wormhole_n150")
ROWS, TILES, L1, DRAM = Layout.ROW_MAJOR, Layout.TILE, L1_MEMORY_CONFIG, DRAM_MEMORY_CONFIG
HIGH, FOUR = in_box(HEIGHT, (32, 64), 2), in_box(BLOCK, (32, 32), 2, 2)


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
                words += [f"+{result.tensor}" for result in (*outputs, *resident)]
    return " ".join(words)


def source(shape, layout=ROWS, config=DRAM, data_format=BFLOAT16):
    return TensorSpec(shape, data_format, layout, config)


def told(function, given, *arguments, **options):
    """What a function makes of the tensor "x" and some arguments, and its steps as words."""
    builder = PlanBuilder(WORMHOLE, {"x": given})
    result = function(builder, builder.tensor("x"), *arguments, **options)
    return result, spelled(builder.steps)


@pytest.mark.parametrize(
    ("given", "on_host", "steps", "adopted"),
    [
        (source((1, 1, 64, 16)), False, "", ""),
        (source((1, 1, 64, 16)), True, "+x.uploaded", "-x.uploaded"),
        (source((1, 1, 64, 16), TILES), False, "ReshapeView +x.image +x.image.map", "-x.image"),
        (
            source((1, 1, 64, 16), TILES),
            True,
            "+x.uploaded ReshapeView +x.image +x.image.map -x.uploaded",
            "-x.image",
        ),
        (source((1, 8, 8, 16), TILES), True, "+x.uploaded", "-x.uploaded"),
        (source((1, 1, 70, 16)), False, "", ""),  # an image of fewer rows is the first rows of the tensor
        (source((1, 1, 70, 16)), True, "+x.uploaded", "-x.uploaded"),
    ],
)
def test_the_input_becomes_an_image_in_dram(given, on_host, steps, adopted):
    builder = PlanBuilder(WORMHOLE, {"x": given})
    image = dram_image(builder, builder.tensor("x"), (1, 8, 8, 16), on_host=on_host)
    assert (image.spec.shape, spelled(builder.steps)) == ((1, 8, 8, 16), steps)
    builder.free_adopted()
    assert spelled(builder.steps) == f"{steps} {adopted}".strip()


SQUARE, IMAGE = (1, 1, 64, 64), (1, 8, 8, 64)
BY_DRAM = "+s ShardedToInterleaved +s.interleaved InterleavedToSharded -s.interleaved"
# fmt: off
SHARDED = [
    (source(SQUARE), HIGH, False, "+s InterleavedToSharded"),
    (source(SQUARE), HIGH, True, "+s InterleavedToSharded"),
    (source(SQUARE, config=L1), HIGH, False, "+s InterleavedToSharded"),
    (source(SQUARE, config=L1), HIGH, True, "+s InterleavedToSharded -x ^s"),
    (source(IMAGE, TILES), HIGH, False, "ReshapeView +s.rows +s.rows.map +s InterleavedToSharded -s.rows"),
    (source(IMAGE, TILES, L1), HIGH, True, "ReshapeView +s.rows +s.rows.map +s InterleavedToSharded -s.rows ^s"),
    (source(IMAGE, TILES, data_format=BFLOAT8_B), HIGH, False,
     "Typecast +s.rows.bfloat16 ReshapeView +s.rows.moved +s.rows.moved.map Typecast +s.rows -s.rows.moved "
     "-s.rows.bfloat16 +s InterleavedToSharded -s.rows"),
    (source(SQUARE, config=HIGH), None, True, ""),  # it lies right
    (source(SQUARE, config=HIGH), FOUR, False, BY_DRAM),
    (source(SQUARE, config=HIGH), FOUR, True, f"{BY_DRAM} -x ^s"),
    (source(SQUARE, config=HIGH), in_box(BLOCK, (32, 64), 1, 2), False, "+s Reshard"),
    (source(SQUARE, TILES, HIGH), FOUR, False, "+s Reshard"),
]
# fmt: on


@pytest.mark.parametrize(("given", "config", "deallocate", "steps"), SHARDED)
def test_the_input_is_sharded(given, config, deallocate, steps):
    result, words = told(rows_in_shards, given, config, "s", deallocate=deallocate)
    assert words == steps
    wanted = ("x", given.memory_config) if config is None else ("s", config)
    assert (result.name, result.spec.memory_config) == wanted


def test_padding_rows_fill_the_last_shard():
    # 98 rows on six cores of 32: the buffer has four whole shards, and the other cores hold nothing.
    copy, _ = told(to_shards, source((1, 1, 98, 24)), in_box(HEIGHT, (32, 24), 6), "s")
    assert copy.spec.padded_shape == (1, 1, 128, 24)


SEVEN = (1, 7, 7, 64)
PADDED = "+s.unpadded Pad +s -s.unpadded"
BY_ROWS = "+s +x.rows InterleavedToSharded -x.rows"


@pytest.mark.parametrize(
    ("spec", "config", "plain", "steps", "padded"),
    [
        (source(SEVEN), in_box(HEIGHT, (32, 64), 3), None, "+s", 96),
        (source((1, 1, 49, 64), TILES), in_box(HEIGHT, (32, 64), 3), None, "+s", 64),
        (source(SEVEN), in_box(WIDTH, (49, 32), 2), None, "+s", 49),
        (source(IMAGE), FOUR, None, "+s", 64),
        (source(SEVEN), in_box(BLOCK, (32, 32), 2, 3), None, PADDED, 96),
        (source((1, 7, 7, 20)), in_box(BLOCK, (32, 8), 3, 3), None, BY_ROWS, 64),
        # of a matmul; channels that do not fill shards are sharded even where the library chose the layout itself
        (source((1, 7, 7, 50), data_format=FLOAT32), FOUR, DRAM, BY_ROWS, 64),
        (source(IMAGE, data_format=FLOAT32), FOUR, DRAM, "+s", 64),
    ],
)
def test_a_host_tensor_is_uploaded(spec, config, plain, steps, padded):
    result, words = told(uploaded_rows, spec, config, plain or config, "s")
    assert (result.name, words, result.spec.padded_shape[-2]) == ("s", steps, padded)
    assert result.spec.memory_config == (plain if plain and steps == "+s" else config)


# fmt: off
TILED = [
    (source(SQUARE), HEIGHT, False, False, "", "Tilize +t"),
    (source((1, 1, 50, 64)), HEIGHT, False, False, "", "TilizeWithValPadding +t"),
    (source(SQUARE), HEIGHT, True, False, "+s InterleavedToSharded", "Tilize +t -s"),
    (source(SQUARE), BLOCK, True, False, "Tilize +s.tiles +s InterleavedToSharded -s.tiles", ""),
    (source(SQUARE, config=L1), BLOCK, True, True,
     "Tilize +s.tiles -x ^s.tiles +s InterleavedToSharded -s.tiles ^s", ""),
    (source(SQUARE, config=L1), HEIGHT, False, True, "", "Tilize +t -x"),
    (source(SQUARE, TILES), HEIGHT, False, False, "", ""),
    (source(SQUARE, TILES, L1), HEIGHT, False, True, "", ""),
]
# fmt: on


@pytest.mark.parametrize(("given", "scheme", "shard", "deallocate", "before", "after"), TILED)
def test_a_matmul_takes_tiles(given, scheme, shard, deallocate, before, after):
    config = in_box(scheme, (32, 64), 1, 2) if scheme is BLOCK else in_box(scheme, (32, 64), 2)
    builder = PlanBuilder(WORMHOLE, {"x": given})
    first = matmul_path.matmul_input(builder, builder.tensor("x"), config, "s", deallocate=deallocate, shard=shard)
    assert spelled(builder.steps) == before
    consumed = first.name != "x" or (deallocate and first.in_l1)
    second = matmul_path.matmul_tiles(builder, first, "t", consumed=consumed)
    assert spelled(builder.steps) == f"{before} {after}".strip()
    assert second.spec.layout is TILES


BY_WAY = "ShardedToInterleaved +y.interleaved InterleavedToSharded +y -y.interleaved -x"


@pytest.mark.parametrize(
    ("given", "config", "steps"),
    [
        (source(SQUARE, TILES, HIGH), L1, "ShardedToInterleaved +y -x"),
        (source(SQUARE, TILES, HIGH), in_box(HEIGHT, (64, 64), 1), "Reshard +y -x"),
        (source(SQUARE, TILES, HIGH), HIGH, ""),
        (source(SQUARE, ROWS, FOUR), HIGH, BY_WAY),
        (source(SQUARE, TILES), L1, "Copy +y -x"),
        (source(SQUARE, TILES), HIGH, "InterleavedToSharded +y -x"),
    ],
)
def test_the_result_goes_where_it_is_wanted(given, config, steps):
    assert told(to_config, given, config, "y")[1] == steps


def test_the_output_of_slices_is_put_together_in_dram():
    assert told(dram_output, source(SQUARE, TILES, HIGH), "y")[1] == "ShardedToInterleaved +y -x"
    assert told(image_output, source((1, 6, 20, 32), TILES), "y")[1] == "ReshapeView +y +y.map -x"
    assert told(image_output, source((1, 6, 32, 32), TILES), "y")[1] == ""


TO_ROWS = "ShardedToInterleaved +w.interleaved -x {} +w.rows -w.interleaved SliceWrite -w.rows".format


@pytest.mark.parametrize(
    ("scheme", "layout", "data_format", "steps"),
    [
        (HEIGHT, TILES, BFLOAT16, "SliceWrite -x"),
        (HEIGHT, ROWS, BFLOAT16, "Untilize +w.rows -x SliceWrite -w.rows"),
        (WIDTH, ROWS, BFLOAT16, TO_ROWS("UntilizeCodegen")),
        (WIDTH, ROWS, FLOAT32, TO_ROWS("UntilizeWithUnpadding")),
    ],
)
def test_a_slice_is_written_back(scheme, layout, data_format, steps):
    config = in_box(scheme, (32, 32), 2) if scheme is HEIGHT else in_box(scheme, (64, 32), 1)
    result = source((1, 1, 64, 20), TILES, config, data_format)
    builder = PlanBuilder(WORMHOLE, {"x": result, "y": TensorSpec((1, 4, 32, 20), data_format, layout)})
    write = SliceWrite(Window(shape=(1, 4, 32, 20), begins=(0, 2, 0, 0), ends=(1, 4, 32, 20)), 32)
    write_slice(builder, builder.tensor("x"), builder.tensor("y"), write, "w")
    assert spelled(builder.steps) == steps


@pytest.mark.parametrize(("place", "rows"), [(in_box(HEIGHT, (32, 24), 1), 20), (in_box(WIDTH, (32, 32), 1), 32)])
def test_a_slice_comes_as_rows(place, rows):
    image = source((1, 4, 10, 20), TILES, data_format=BFLOAT8_B)
    window = Window(shape=(1, 4, 10, 20), begins=(0, 1, 0, 0), ends=(1, 3, 10, 20))
    result, words = told(sliced_input, image, window, place, "s")
    assert words == "PaddedSlice +s"
    assert (result.spec.data_format, result.spec.layout) == (BFLOAT16, ROWS)
    assert result.spec.padded_shape[-2] == rows
