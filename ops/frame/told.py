"""A frame as the real library's profiler tells of it: the arguments of the convolution or pool that made it."""

from device.cores import CoreRangeSet
from ops.frame.axis import FrameAxis
from ops.frame.frame import Frame


def sliding_window_text(frame: Frame, cores: CoreRangeSet, *, nhw_cores: int, channel_cores: int) -> str:
    """A frame in the words of a SlidingWindowConfig.

    A frame with zeros between or behind its inputs is told as that of a transposed convolution, whose padding is what
    its window reaches beyond the zeros ahead; any other as that of the convolution that it is.

    Args:
        frame: Images, zeros and windows.
        cores: All cores of the program.
        nhw_cores: Cores that split the rows.
    """
    rows, columns = frame.rows, frame.columns
    transposed = any(axis.insertion > 1 or axis.trailing for axis in (rows, columns))
    stride = (rows.insertion, columns.insertion) if transposed else (rows.step, columns.step)
    padding = tuple(_padding(axis, transposed=transposed) for axis in (rows, columns))
    fields = {
        "batch_size": frame.batch,
        "input_hw": _pair(rows.input_length, columns.input_length),
        "window_hw": _pair(rows.taps, columns.taps),
        "stride_hw": _pair(*stride),
        "padding": padding,
        "output_padding": (rows.trailing, columns.trailing),
        "dilation_hw": _pair(abs(rows.spacing), abs(columns.spacing)),
        "num_cores_nhw": nhw_cores,
        "num_cores_c": channel_cores,
        "core_range_set_": ranges_text(cores),
        "is_transpose": str(transposed).lower(),
    }
    return f"SlidingWindowConfig({', '.join(f'{name}={value}' for name, value in fields.items())})"


def ranges_text(cores: CoreRangeSet) -> str:
    """Cores as profiler and viewers spell them: {[(x=0,y=0) - (x=7,y=7)]}."""
    ranges = (f"[(x={one.start.x},y={one.start.y}) - (x={one.end.x},y={one.end.y})]" for one in cores.ranges)
    return f"{{{', '.join(ranges)}}}"


def _padding(axis: FrameAxis, *, transposed: bool) -> tuple[int, int]:
    if not transposed:
        return axis.before, axis.after
    return axis.reach - axis.before, axis.reach - axis.after


def _pair(first: int, second: int) -> str:
    return f"({first},{second})"
