"""reshape_on_device: views, the program that moves tiles or rows, the host, and the errors of ttnn 0.81.1."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import buffers, operations, put, refusal

# A tensor, a shape, and the circular buffer of the program; None for a view
RESHAPED = [
    ("2x3x64x64 tile", (1, 1, -1, 64), None),
    ("2x3x64x64 tile height/64x64/6", (1, 6, 64, 64), None),
    ("2x3x64x50 rows", (1, 1, -1, 50), None),
    ("2x3x64x64 tile", (1, 3, 64, 128), 2 * 2048),
    ("2x3x64x50 tile", (1, 1, -1, 50), 2 * 2048),
    ("2x3x64x64 rows", (1, 1, 192, 128), 3 * 256),  # 192 rows on 64 cores
    ("2x3x64x64 rows", (1, 1, 768, 32), 6 * 128),  # the longer rows are shared
]


@pytest.mark.parametrize(("words", "shape", "held"), RESHAPED)
def test_rows_are_seen_or_moved(device, words, shape, held):
    x = put(device, words)
    assert buffers(lambda: ttnn.reshape_on_device(x, *shape)) == [(held, 0)] * (held is not None)
    assert operations(lambda: ttnn.reshape_on_device(x, *shape)) == ["Reshape"] * (held is not None)
    y = ttnn.reshape_on_device(x, *shape)
    assert (y.buffer_address() == x.buffer_address()) == (held is None)
    assert np.array_equal(y.to_numpy(), x.to_numpy().reshape(shape))


def test_rows_of_odd_lengths_go_by_way_of_the_host(device):
    x = put(device, "2x3x64x50 rows")
    assert operations(lambda: ttnn.reshape_on_device(x, 1, 1, -1, 100)) == []
    y = ttnn.reshape_on_device(x, 1, 1, -1, 100, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert y.memory_config() == ttnn.L1_MEMORY_CONFIG
    assert np.array_equal(y.to_numpy(), x.to_numpy().reshape(1, 1, -1, 100))


REFUSED = [
    ("96x64 tile", (1, 1, 96, 64), "Device: ShapeBase[] index out of range. 3 not in [-4, 2)"),
    ("2x3x64x64 tile", (1, -1, -1, 64), "Device: Shape cannot have more than 1 elements that is set to -1! Shape used: "
     "(1,-1,-1,64,)"),
    ("2x3x64x64 tile", (1, 1, -1, 100), "Device: Invalid arguments to reshape"),
    ("2x3x64x64 tile bfloat8_b", (1, 1, -1, 128), "Device: Input tensor dtype must be BFLOAT16 or FLOAT32 but got "
     "DataType::BFLOAT8_B"),
    ("2x3x64x50 rows float32", (1, 1, -1, 100), "Device: Input tensor dtype must be BFLOAT16 for this reshape "
     "operation but got DataType::FLOAT32"),
    ("4x1x16x214 tile", (64, 1, 1, 214), "Device: Tile reshape requires the input and output to have the same "
     "tile-padded physical volume, but got input 28672 and output 458752. Reshapes that change the tile padding"),
    ("1x1x251x288 tile", (1, 251, 1, 288), "Device: MeshBuffer must be large enough to hold the tensor."),
    ("2x3x50x64 tile", (1, 1, -1, 64), "NotSimulated: reshape_on_device: the padding of tiles shows"),
    ("1x1x64x24 rows", (1, 1, 96, 16), "Device: Last dimension of the old shape (48) should be divisible by the last"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "shape", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, words, shape, text):
    x = put(device, words)
    assert refusal(lambda: ttnn.reshape_on_device(x, *shape)).startswith(text)


@pytest.mark.parametrize(
    ("words", "sizes"),
    [("", [4096, 64]), ("l1", [4096]), ("float32", [8192])],
)
def test_lines_of_faces_are_aligned_where_their_memory_asks_for_more(words, sizes):
    """Recorded on Blackhole, whose DRAM aligns to 64 bytes: a line of 16 elements of bfloat16 has 32."""
    with ttnn.open_device(spec="blackhole_p150", values="off") as device:
        x = put(device, f"1x32x64x64 tile {words}")
        assert buffers(lambda: ttnn.reshape_on_device(x, 1, 32, 32, 128)) == [(size, 0) for size in sizes]
