"""Halos that tests share: of a square image, and drawn ones."""

from typing import Any

from hypothesis import strategies as st

from device.cores import first_cores
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT16
from ops.programs.halo.plan import BLOCK, HEIGHT, WIDTH, HaloArguments, HaloPlan, plan_halo
from ops.programs.halo.transfers import stick_ranges
from ops.window import PaddedInput, convolution_axis, transposed_axis
from tests.ops.window.drawn_frames import frames


def halo_plan(
    *, size: int = 24, row_cores: int = 20, width: int = 64, stride: int = 1, transposed: bool = False, **changes: Any
) -> HaloPlan:
    """A 3x3 halo with a border of one on a grid of 5 columns; BLOCK and WIDTH split channels among 5 cores.

    Args:
        size: Pixels of a side of the image.
        row_cores: Cores that split the rows.
        width: Channels of a shard.
        changes: Other fields of `HaloArguments`.
    """
    result, more = (transposed_axis, {"output_padding": 0}) if transposed else (convolution_axis, {})
    axis = result(input_length=size, kernel=3, stride=stride, padding=(1, 1), dilation=1, **more)
    frame, scheme = PaddedInput(batch=1, rows=axis, columns=axis), changes.get("scheme", HEIGHT)
    nhw = 1 if scheme is WIDTH else row_cores
    fields: dict[str, Any] = {
        "frame": frame,
        "scheme": scheme,
        "orientation": ShardOrientation.ROW_MAJOR,
        "cores": first_cores({HEIGHT: row_cores, BLOCK: 5 * row_cores, WIDTH: 5}[scheme], 5, 10),
        "nhw_cores": nhw,
        "channel_cores": 1 if scheme is HEIGHT else 5,
        "input_rows": -(-size * size // nhw // 32) * 32,
        "output_rows": -(-frame.outputs // nhw),
        "shard_width": width,
        "data_format": BFLOAT16,
        "stick_alignment_bytes": 16,
        "tiled": False,
    }
    return plan_halo(HaloArguments(**fields | changes), input_tensor="x", output_tensor="halo")


@st.composite
def halos(draw, *, replicates=True):
    """A frame, sticks of an input shard, and what each core needs."""
    frame, input_rows = draw(frames(replicates=replicates)), draw(st.integers(1, 80))
    cores = max(-(-frame.data // input_rows), draw(st.integers(1, 20)))
    return frame, input_rows, stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)
