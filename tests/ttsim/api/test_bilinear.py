"""upsample with mode "bilinear" as users call it: buffers, places, tiles with padding."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.ttsim.api.calls import buffers, put

# Calls of the real library: tensor, scale, bytes of the circular buffers of the halo and of the program
RECORDED = [
    ("1x8x8x64", 2, [128, 1792, 128, 128, 8, 8, 76, 76], [1792, 1024, 1024, 4096, 4096, 512]),
    ("1x5x7x64", 2, [128, 1920, 128, 128, 8, 8, 76, 64], [1920, 1024, 1024, 4096, 4096, 512]),
    ("1x28x28x64 height/98x64/8", 2, [12544, 19200, 128, 128, 16, 16, 32, 32], [19200, 1024, 1024, 4096, 4096, 50176]),
    ("1x32x32x64 tile height/32x64/32", 2, [4096, 13056, 128, 128, 8192, 8192, 12, 12, 40, 4],
     [13056, 1024, 1024, 4096, 4096, 16384]),
]  # fmt: skip


@pytest.mark.parametrize(("tensor", "scale", "halo", "program"), RECORDED)
def test_buffers_are_those_of_the_real_library(device, tensor, scale, halo, program):
    source = put(device, tensor)
    sizes = [size for size, _ in buffers(lambda: ttnn.upsample(source, scale, mode="bilinear"))]
    assert sizes[-len(halo + program) :] == halo + program


def test_the_result_goes_where_it_is_asked_for(device):
    pixels = np.float32([[0, 4], [8, 12]])[None, :, :, None].repeat(32, 3)
    source = ttnn.from_numpy(pixels, ttnn.bfloat16, device=device)
    result = ttnn.upsample(source, (1, 2), mode="bilinear", memory_config=place("dram"))
    assert result.memory_config() == place("dram")
    assert result.to_numpy()[0, :, :, 31].tolist() == [[0, 1, 3, 4], [8, 9, 11, 12]]


@pytest.mark.parametrize("layout", ["HEIGHT", "BLOCK"])
def test_a_place_for_shards_needs_shards_before_the_scheme_of_the_images_is_looked_at(device, layout):
    source = put(device, "1x8x8x64 block/8x64/1x8")
    where = ttnn.MemoryConfig(getattr(ttnn.TensorMemoryLayout, f"{layout}_SHARDED"), ttnn.BufferType.L1)
    with pytest.raises(ttnn.DeviceError, match=r"^bad optional access\n"):
        ttnn.upsample(source, 2, mode="bilinear", memory_config=where)
