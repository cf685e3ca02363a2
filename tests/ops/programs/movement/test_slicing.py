"""A slice's part of the input, as ttnn 0.81.1 brings it into L1."""

import numpy as np
import pytest

import ttsim
from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, UINT8
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.programs.movement.slicing import sliced_input
from ops.programs.movement.work import Window

SPEC = load_spec("wormhole_n150")
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
