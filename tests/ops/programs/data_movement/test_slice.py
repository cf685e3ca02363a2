"""Boxes cut out of tensors, and written into them."""

import numpy as np
import pytest

import ttsim
from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT8
from device.plan import Operation
from ops.builder import PlanBuilder, PlanTensor
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.programs.data_movement.slice import (
    Cut,
    Window,
    padded_slice_buffers,
    slice_buffers,
    slice_write_buffers,
    sliced_input,
)
from tests.shards import high

SPEC = load_spec("wormhole_n150")
L1 = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)


def tensor(name, shape, layout=Layout.ROW_MAJOR, place=L1):
    return PlanTensor(name, TensorSpec(shape, BFLOAT16, layout, place))


def box(shape, begins, ends, steps=(1, 1, 1, 1)):
    return Cut(shape=shape, begins=begins, ends=ends, steps=steps)


def sizes(*args):
    return [(one.size_bytes, one.cores.num_cores(), one.scratchpad) for one in slice_buffers(*args, SPEC)]


def test_rows_that_begin_between_aligned_addresses_take_more():
    """864 rows of 80 bytes: 14 of a core count as 32, all of 2,560 bytes at once; from byte 40 a row takes 96."""
    source, made = tensor("input", (2, 16, 64, 96)), tensor("output", (2, 12, 36, 40))
    apart = box((2, 16, 64, 96), (0, 0, 5, 20), (2, 12, 41, 60))
    assert sizes(apart, source, made) == [(2 * 32 * 96, 64, False), (4 * 4, 64, True)]
    aligned = box((2, 16, 64, 96), (0, 0, 5, 16), (2, 12, 41, 56))
    assert sizes(aligned, source, made)[0] == (2 * 32 * 80, 64, False)


def test_long_rows_are_read_in_parts():
    """16 rows of 206 bytes, each at a distance of 208: 16 such rows are the most of 32 that 4,096 bytes hold."""
    op = box((1, 1, 64, 128), (0, 0, 16, 24), (1, 1, 32, 127))
    assert sizes(op, tensor("input", op.shape), tensor("output", (1, 1, 16, 103)))[0] == (2 * 16 * 208, 16, False)


def test_steps_read_whole_rows():
    op = box((1, 8, 224, 64), (0, 0, 24, 0), (1, 8, 48, 16), (1, 1, 1, 2))
    made = tensor("output", (1, 8, 24, 8))
    assert sizes(op, tensor("input", op.shape), made) == [(2 * 128, 64, False)]


def test_tiles_pass_two_at_a_time():
    op = box((1, 5, 33, 47), (0, 0, 0, 0), (1, 5, 32, 47))
    source, made = (
        tensor(name, shape, Layout.TILE) for name, shape in (("input", op.shape), ("output", (1, 5, 32, 47)))
    )
    assert sizes(op, source, made) == [(2 * 2048, 10, False), (16, 10, True)]


def test_rows_are_cut_out_of_shards_where_they_lie():
    places = [high((rows, 32), 2) for rows in (120, 42)]
    op = box((3, 2, 40, 32), (0, 0, 8, 0), (3, 2, 22, 32))
    source, made = tensor("input", op.shape, place=places[0]), tensor("output", (3, 2, 14, 32), place=places[1])
    views = slice_buffers(op, source, made, SPEC)
    assert [(one.size_bytes, one.view_of) for one in views] == [(120 * 64, "input"), (42 * 64, "output")]


def test_the_box():
    array = np.arange(24.0).reshape(2, 3, 4)
    op = Cut(shape=(2, 3, 4), begins=(1, 0, 1), ends=(2, 3, 4), steps=(1, 2, 2))
    assert np.array_equal(op.moved(array), array[1:2, ::2, 1::2])


@pytest.mark.parametrize("layout", [Layout.ROW_MAJOR, Layout.TILE])
def test_a_box_takes_as_long_as_a_copy_of_it_and_says_so(layout):
    op = box((1, 8, 64, 64), (0, 0, 0, 0), (1, 2, 64, 64))
    source, made = tensor("input", op.shape, layout).spec, tensor("output", (1, 2, 64, 64), layout).spec
    context = CyclesContext(spec=SPEC, contention=True)
    part = op.cycles(Ends(read=source, written=made), context).cycles
    assert part == op.cycles(Ends(read=made, written=made), context).cycles
    description = op.describe(Ends(read=source, written=made), SPEC)
    assert not description.measured_as
    assert description.composed_of


HEIGHT, WIDTH = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


@pytest.mark.parametrize(
    ("layout", "scheme", "channels", "shard", "rows", "program"),
    [
        (Layout.ROW_MAJOR, HEIGHT, 24, (32, 24), 2, "InterleavedToSharded"),
        (Layout.ROW_MAJOR, HEIGHT, 24, (32, 24), 1, "PaddedSlice"),  # not all rows of the image
        (Layout.ROW_MAJOR, HEIGHT, 20, (32, 24), 2, "PaddedSlice"),  # channels are padded
        (Layout.ROW_MAJOR, WIDTH, 32, (20, 32), 2, "InterleavedToSharded"),
        (Layout.ROW_MAJOR, WIDTH, 8, (20, 32), 2, "PaddedSlice"),
        (Layout.ROW_MAJOR, BLOCK, 8, (32, 8), 2, "InterleavedToSharded"),
        (Layout.TILE, HEIGHT, 32, (32, 32), 2, "PaddedSlice"),
    ],
)
def test_a_window_that_is_the_whole_image_is_dealt_to_shards_of_all_channels_as_any_tensor(
    layout: Layout, scheme: TensorMemoryLayout, channels: int, shard: tuple[int, int], rows: int, program: str
) -> None:
    shape = (5, 2, 2, channels)
    place = MemoryConfig(scheme, BufferType.L1, ShardSpec(first_cores(1, 8, 8), shard))
    builder = PlanBuilder(SPEC, {"image": TensorSpec(shape, BFLOAT16, layout)})
    window = Window(shape=shape, begins=(0, 0, 0, 0), ends=(5, rows, 2, channels))
    made = sliced_input(builder, builder.tensor("image"), window, place, "input")
    (step,) = builder.steps
    assert isinstance(step, Operation)
    assert step.name == f"{program}DeviceOperation"
    assert made.spec.shape == (1, 1, 10 * rows, channels)


@pytest.mark.parametrize(
    ("layout", "width", "refused"),
    [(Layout.ROW_MAJOR, 8, True), (Layout.ROW_MAJOR, 16, False), (Layout.TILE, 8, False)],
)
def test_rows_that_do_not_fill_what_l1_aligns_are_not_cut_out_of_rows(
    layout: Layout, width: int, refused: bool
) -> None:
    place = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(first_cores(1, 8, 8), (32, width)))
    builder = PlanBuilder(SPEC, {"image": TensorSpec((1, 4, 8, 2), UINT8, layout)})
    window = Window(shape=(1, 4, 8, 2), begins=(0, 0, 0, 0), ends=(1, 2, 8, 2))
    sliced_input(builder, builder.tensor("image"), window, place, "input")
    (step,) = builder.steps
    assert isinstance(step, Operation)
    line = "Output row size 8 must be aligned to the destination buffer BufferType::L1 alignment 16\n"
    assert (step.refused or "").startswith(line) is refused


def test_slices_that_read_the_whole_image_compute_what_one_piece_does() -> None:
    rng = np.random.default_rng(0)
    image, weight = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((1, 1, 12, 16), (16, 8, 2, 1)))
    outputs = []
    for slices in (ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight, num_slices=2), None):
        with ttsim.open_device(l1_small_size=32768) as device:
            made = ttsim.conv_transpose2d(
                input_tensor=ttsim.Tensor(image, ttsim.bfloat16).to(device),
                weight_tensor=ttsim.Tensor(weight, ttsim.bfloat16), device=device, in_channels=16, out_channels=8,
                batch_size=3, input_height=2, input_width=2, kernel_size=(2, 1), dram_slice_config=slices,
                conv_config=ttsim.Conv2dConfig(shard_layout=HEIGHT),
            )  # fmt: skip
            outputs.append(made.to_numpy().astype(float))
    assert outputs[0].tolist() == outputs[1].tolist()
    assert len(np.unique(outputs[0])) > 9


WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
TILE, ROWS = Layout.TILE, Layout.ROW_MAJOR
BLOCK_CIRCULAR_BUFFERS, HEIGHT_CIRCULAR_BUFFERS = TensorMemoryLayout.BLOCK_SHARDED, TensorMemoryLayout.HEIGHT_SHARDED
B16, B8, F32 = BFLOAT16, BFLOAT8_B, FLOAT32


def slice_of(spec, channels, data_format, layout, scheme, shard):
    """Sizes of the buffers of a program that cuts a slice out of an image, the view's in brackets."""
    rows, width = shard
    across = -(-channels // width)
    cores = first_cores(across, 13, 10)
    config = MemoryConfig(scheme, BufferType.L1, ShardSpec(cores, shard, ShardOrientation.ROW_MAJOR))
    image = PlanTensor("image", TensorSpec((1, 1, rows, channels), data_format, layout))
    padded = (1, 1, rows, across * width)
    out_format = B16 if data_format is B8 else data_format
    made = PlanTensor("slice", TensorSpec((1, 1, rows, channels), out_format, ROWS, config, padded))
    buffers = padded_slice_buffers(image, made, spec)
    assert all(one.cores == cores for one in buffers)
    assert all(one.view_of in (None, "slice") for one in buffers)
    return [one.size_bytes if one.view_of is None else [one.size_bytes] for one in buffers]


@pytest.mark.parametrize(
    ("spec", "channels", "data_format", "scheme", "shard", "sizes"),
    [
        (WORMHOLE, 181, F32, BLOCK_CIRCULAR_BUFFERS, (448, 24), [32768, 32768, [43008], 96]),
        (WORMHOLE, 96, F32, HEIGHT_CIRCULAR_BUFFERS, (96, 96), [49152, 49152, [36864], 384]),
        (WORMHOLE, 18, B16, BLOCK_CIRCULAR_BUFFERS, (288, 8), [8192, 8192, [4608], 16]),
        (WORMHOLE, 256, B8, BLOCK_CIRCULAR_BUFFERS, (32, 32), [4352, 8192, [2048], 64]),
        (WORMHOLE, 328, B8, BLOCK_CIRCULAR_BUFFERS, (96, 48), [8704, 16384, [9216], 96]),
        (WORMHOLE, 1888, B16, BLOCK_CIRCULAR_BUFFERS, (64, 240), [65536, 65536, [30720], 480]),
    ],
)
def test_a_slice_of_tiles(spec, channels, data_format, scheme, shard, sizes):
    assert slice_of(spec, channels, data_format, TILE, scheme, shard) == sizes


@pytest.mark.parametrize(
    ("spec", "channels", "data_format", "scheme", "shard", "sizes"),
    [
        (WORMHOLE, 64, F32, HEIGHT_CIRCULAR_BUFFERS, (128, 64), []),  # nothing but the view
        (WORMHOLE, 104, B16, BLOCK_CIRCULAR_BUFFERS, (352, 16), [[11264], 32]),
        (WORMHOLE, 8, B16, HEIGHT_CIRCULAR_BUFFERS, (192, 8), [[3072], 128]),
        (WORMHOLE, 160, B16, BLOCK_CIRCULAR_BUFFERS, (160, 24), [[7680], 48, 704]),
        (WORMHOLE, 280, B16, BLOCK_CIRCULAR_BUFFERS, (32, 40), [[2560], 1216]),
        (BLACKHOLE, 2, B16, HEIGHT_CIRCULAR_BUFFERS, (32, 8), [[512], 16, 256]),
        (BLACKHOLE, 272, F32, BLOCK_CIRCULAR_BUFFERS, (32, 24), [[3072], 96, 2304]),
        (BLACKHOLE, 64, F32, BLOCK_CIRCULAR_BUFFERS, (64, 8), [[2048], 640]),
    ],
)
def test_a_slice_of_rows(spec, channels, data_format, scheme, shard, sizes):
    assert slice_of(spec, channels, data_format, ROWS, scheme, shard) == sizes


@pytest.mark.parametrize(
    ("spec", "rows", "channels", "data_format", "size"),
    [
        (WORMHOLE, 456, 37, F32, 5120),  # 16 of 32 rows within 4096 bytes
        (BLACKHOLE, 304, 1258, B16, 5120),  # one
        (BLACKHOLE, 1530, 30, B16, 4096),
        (BLACKHOLE, 416, 48, B16, 8192),
        (BLACKHOLE, 240, 4, B16, 4096),
    ],
)
def test_writing_rows_of_interleaved_slices(spec, rows, channels, data_format, size):
    (buffer,) = slice_write_buffers(TensorSpec((1, 1, rows, channels), data_format, ROWS, L1_MEMORY_CONFIG), spec)
    assert (buffer.size_bytes, str(buffer.cores)) == (size, f"{{[0-0 - {spec.grid.cols - 1}-{spec.grid.rows - 1}]}}")


def test_writing_tiles_or_shards_shows_none():
    shards = ShardSpec(first_cores(2, 8, 8), (32, 32), ShardOrientation.ROW_MAJOR)
    config = MemoryConfig(HEIGHT_CIRCULAR_BUFFERS, BufferType.L1, shards)
    assert slice_write_buffers(TensorSpec((1, 1, 64, 32), B16, ROWS, config), WORMHOLE) == ()
    assert slice_write_buffers(TensorSpec((1, 1, 64, 32), B16, TILE, L1_MEMORY_CONFIG), WORMHOLE) == ()
