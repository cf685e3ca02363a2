"""The embedding program, as ttnn 0.81.1 planned it on an 8x8 Wormhole."""

import numpy as np
import pytest

import ttsim
from device.cores import first_cores
from device.errors import DeviceError
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
from device.numbers.formats import BFLOAT16, UINT32
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.attention.embedding import EmbeddingArguments, EmbeddingKind, plan_embedding

SPEC = load_spec("wormhole_n150")


def indices(*shape, layout=Layout.ROW_MAJOR, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, UINT32, layout, place)


def table(*shape, layout=Layout.ROW_MAJOR, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, BFLOAT16, layout, place)


def sizes(call, spec):
    """Bytes of the circular buffers of each device operation of a call."""
    steps = [step for step in plan_embedding(call, spec).steps if isinstance(step, Operation)]
    return {step.name: [buffer.size_bytes for buffer in step.circular_buffers] for step in steps}


@pytest.mark.parametrize(
    ("call", "programs"),
    [
        (EmbeddingArguments(indices=indices(2, 64), table=table(1000, 96)), {"Embeddings": [384, 256]}),
        (
            EmbeddingArguments(
                indices=indices(2, 60, place=L1_MEMORY_CONFIG), table=table(100, 33, place=L1_MEMORY_CONFIG)
            ),
            {"Embeddings": [160, 128]},
        ),
        (
            EmbeddingArguments(indices=indices(2, 64), table=table(1000, 96), layout=Layout.TILE),
            {"Embeddings": [12288, 12288, 128]},
        ),
        (
            EmbeddingArguments(
                indices=indices(2, 64), table=table(100, 64), layout=Layout.TILE, kind=EmbeddingKind.PADDED, pad_token=1
            ),
            {"Embeddings": [8192, 8192, 128, 128]},
        ),
        (
            EmbeddingArguments(indices=indices(1, 64), table=table(100, 16384), layout=Layout.TILE),
            {"Embeddings": [262144, 262144, 128]},
        ),
        (
            EmbeddingArguments(indices=indices(2, 60), table=table(100, 64, layout=Layout.TILE)),
            {"UntilizeWithUnpadding": [4096, 4096], "Embeddings": [256, 256], "TilizeWithValPadding": [4096, 4096]},
        ),
        (
            EmbeddingArguments(indices=indices(2, 64, layout=Layout.TILE), table=table(1000, 96), layout=Layout.TILE),
            {"Embeddings": [384, 4096], "Tilize": [6144, 6144]},
        ),
    ],
)
def test_programs_and_their_buffers(call, programs):
    assert sizes(call, SPEC) == {f"{name}DeviceOperation": bytes_ for name, bytes_ in programs.items()}


@pytest.mark.parametrize(
    ("device", "read", "place", "expected"),
    [
        ("wormhole_n150", indices(2, 60), L1_MEMORY_CONFIG, [192, 256, 96]),
        ("wormhole_n150", indices(2, 60, place=L1_MEMORY_CONFIG), DRAM_MEMORY_CONFIG, [160, 128, 96]),
        ("blackhole_p150", indices(2, 60), L1_MEMORY_CONFIG, [128, 512, 96]),
        ("blackhole_p150", indices(2, 60, place=L1_MEMORY_CONFIG), DRAM_MEMORY_CONFIG, [80, 128, 96]),
        ("blackhole_p150", indices(2, 60, layout=Layout.TILE), L1_MEMORY_CONFIG, [256, 4096, 96]),
        ("wormhole_n150", indices(2, 60, layout=Layout.TILE, place=L1_MEMORY_CONFIG), None, [160, 4096, 96]),
    ],
)
def test_rows_are_aligned_for_the_memory_of_the_indices_and_kept_rows_to_32_bytes(device, read, place, expected):
    call = EmbeddingArguments(indices=read, table=table(100, 33), place=place, kind=EmbeddingKind.PADDED, pad_token=0)
    assert sizes(call, load_spec(device)) == {"EmbeddingsDeviceOperation": expected}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (3, "staging buffer size 240 B must be divisible by its entry size 96 B"),
        (6, "sharded output: 6 rows of 96 B do not fit in the 480 B output shard"),
    ],
)
def test_shards_that_hold_parts_of_aligned_rows_are_refused(rows, text):
    cores = first_cores(4, 4, 1).merged()
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(cores, (rows, 33)))
    call = EmbeddingArguments(indices=indices(1, 4 * rows), table=table(10, 33), place=place)
    with pytest.raises(DeviceError, match=text):
        plan_embedding(call, SPEC)


def test_shards_that_hold_aligned_rows_of_indices_in_l1():
    cores = first_cores(4, 4, 1).merged()
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(cores, (3, 33)))
    in_l1 = EmbeddingArguments(indices=indices(1, 12, place=L1_MEMORY_CONFIG), table=table(10, 33), place=place)
    assert sizes(in_l1, SPEC) == {"EmbeddingsDeviceOperation": [128]}


@pytest.mark.parametrize("layout", [None, Layout.TILE])
def test_one_axis_of_indices_in_tiles_allocates_as_many_rows_for_each(layout):
    call = EmbeddingArguments(indices=indices(40, layout=Layout.TILE), table=table(10, 64), layout=layout)
    step = next(step for step in plan_embedding(call, SPEC).steps if isinstance(step, Operation))
    assert step.circular_buffers[0].cores.num_cores() == 50  # two faces of 16 rows each: 1600 rows
    with ttsim.open_device() as device:
        places = np.arange(40) % 10
        index = ttsim.Tensor(places, ttsim.uint32, device, ttsim.TILE_LAYOUT)
        numbers = ttsim.from_numpy(np.arange(10 * 64).reshape(10, 64) % 256, ttsim.bfloat16, device=device)
        result = ttsim.embedding(index, numbers, layout=layout)
        assert np.array_equal(result.to_numpy(), numbers.to_numpy()[places])


def test_tables_in_tiles_have_padding():
    with ttsim.open_device() as device:
        index = ttsim.from_numpy(np.array([[9, 0, 3]]), ttsim.uint32, device=device)
        numbers = np.arange(10 * 20, dtype=np.float32).reshape(10, 20)
        weight = ttsim.from_numpy(numbers, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)
        result = ttsim.embedding(index, weight, layout=ttsim.ROW_MAJOR_LAYOUT)
        assert np.array_equal(result.to_numpy()[0], weight.to_numpy()[[9, 0, 3]])


@pytest.mark.parametrize("layout", list(Layout))
def test_a_table_of_five_axes_is_refused(layout):
    call = EmbeddingArguments(indices=indices(2, 64), table=table(1, 1, 1, 7, 32, layout=layout))
    with pytest.raises(DeviceError, match=r"^Tensor rank is greater than 4"):
        plan_embedding(call, SPEC)
