"""A transposed convolution, whole layers of which the tests of recordings profile."""

from contextlib import suppress
from typing import Any

import numpy as np

import ttsim as ttnn


def opened(spec="wormhole_n150", **options):
    return ttnn.open_device(l1_small_size=32768, spec=spec, values="off", **options)


def tensor(device, *shape, memory=ttnn.DRAM_MEMORY_CONFIG, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT):
    return ttnn.Tensor(np.broadcast_to(np.float32(0), shape), dtype, layout=layout).to(device, memory)


def options(device, *, size=8, channels=(32, 16), memory=ttnn.L1_MEMORY_CONFIG, **changes) -> dict[str, Any]:
    """Keyword arguments for an image of a size."""
    ins, outs = channels
    return {
        "input_tensor": tensor(device, 1, 1, size * size, ins, memory=memory, layout=ttnn.ROW_MAJOR_LAYOUT),
        "weight_tensor": ttnn.Tensor(np.zeros((ins, outs, 2, 2), np.float32), ttnn.bfloat16),
        "in_channels": ins, "out_channels": outs, "batch_size": 1, "input_height": size, "input_width": size,
        "kernel_size": (2, 2), "stride": (2, 2),
    } | changes  # fmt: skip


def conv(device, **changes):
    return ttnn.conv_transpose2d(device=device, **options(device, **changes))


def recorded(profile: ttnn.Profile) -> None:
    """A convolution, a sum in L1, and a call that does not fit."""
    device = profile.device
    x, large = tensor(device, 1, 1, 64, 64, memory=ttnn.L1_MEMORY_CONFIG), tensor(device, 1, 1, 8192, 8192)
    conv(device, size=4, channels=(32, 32), memory=ttnn.DRAM_MEMORY_CONFIG)
    ttnn.add(ttnn.relu(x), x)
    with suppress(ttnn.OutOfMemoryError):
        ttnn.to_memory_config(large, ttnn.L1_MEMORY_CONFIG)
