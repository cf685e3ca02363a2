"""The window of an adaptive pool: one window, stride and padding that give the requested number of outputs.

Output i of n covers the inputs from i * length // n (included) to ceil((i + 1) * length / n) (excluded). A single
window exists only if all windows are equal, except for shorter windows at the ends, which padding extends.
"""

from collections.abc import Iterator
from typing import NamedTuple

from device.errors import DeviceError
from device.numbers.formats import div_up


class AdaptiveWindow(NamedTuple):
    """The window, stride and padding for a pool."""

    kernel: tuple[int, int]  # Rows and columns
    stride: tuple[int, int]  # From one window to the next, down and across
    padding: tuple[int, int, int, int]  # Above, below, at the left and at the right


class _Axis(NamedTuple):
    kernel: int
    stride: int
    before: int = 0
    after: int = 0


def adaptive_window(image: tuple[int, int], outputs: tuple[int, int]) -> AdaptiveWindow:
    """The window for images [H, W] and an output size; raises DeviceError if there is none."""
    for name, count in zip(("height", "width"), outputs, strict=True):
        if not count:
            raise DeviceError(f"output_size: the {name} of the result must be above 0")
    patterns = [_pattern(length, count) for length, count in zip(image, outputs, strict=True)]
    axes = [_Axis(div_up(length, count), length // count) for length, count in zip(image, outputs, strict=True)]
    if any(len({end - begin for begin, end in pattern}) > 1 for pattern in patterns):
        axes = [_padded(pattern, axis) for pattern, axis in zip(patterns, axes, strict=True)]
    down, across = axes
    window = AdaptiveWindow(
        kernel=(down.kernel, across.kernel),
        stride=(down.stride, across.stride),
        padding=(down.before, down.after, across.before, across.after),
    )
    covers = all(map(_covers, axes, patterns, image))
    for text in _refusals(patterns, window, image, outputs, covers=covers):
        raise DeviceError(text)
    return window


def _pattern(length: int, count: int) -> list[tuple[int, int]]:
    """The first input (included) and the end (excluded) of every output."""
    return [(number * length // count, div_up((number + 1) * length, count)) for number in range(count)]


def _padded(pattern: list[tuple[int, int]], plain: _Axis) -> _Axis:
    """An axis whose windows all have the length of the second window; padding extends the first and the last."""
    if len(pattern) < 3:
        return plain
    first, middle, *_, last = (end - begin for begin, end in pattern)
    if first >= middle and last >= middle:
        return plain._replace(kernel=middle)
    return _Axis(middle, middle - 1, max(0, middle - first), max(0, middle - last))


def _covers(axis: _Axis, pattern: list[tuple[int, int]], length: int) -> bool:
    """Whether the windows of an axis advance and match a pattern."""
    if not axis.stride:
        return False
    begins = [number * axis.stride - axis.before for number in range(len(pattern))]
    return pattern == [(max(0, begin), min(length, begin + axis.kernel)) for begin in begins]


def _refusals(
    patterns: list[list[tuple[int, int]]],
    window: AdaptiveWindow,
    image: tuple[int, int],
    outputs: tuple[int, int],
    *,
    covers: bool,
) -> Iterator[str]:
    faults = ""
    for name, pattern in zip(("Height", "Width"), patterns, strict=True):
        lengths = [end - begin for begin, end in pattern]
        uneven = len(set(lengths[1:-1])) > 1
        wider = len(lengths) > 2 and max(lengths[0], lengths[-1]) > lengths[1]
        if uneven or wider:
            faults += f"{name} kernel pattern [{','.join(map(str, lengths))}] - "
            faults += "middle elements not uniform, " if uneven else ""
            faults += "border elements larger than middle (padding won't help), " if wider else ""
    if not covers:
        kernel, stride, padding = (",".join(map(str, numbers)) for numbers in window)
        faults += (
            f"Calculated pooling parameters (kernel=[{kernel}], stride=[{stride}], padding=[{padding}]) do not produce "
            "uniform pooling behavior, "
        )
    if faults:
        yield (
            f"Adaptive pooling configuration not supported. {faults}Correctable patterns require uniform middle "
            "kernels AND borders <= middle AND calculated pooling parameters must produce uniform behavior. "
            f"Input shape: ({image[0]},{image[1]}), Output shape: ({outputs[0]},{outputs[1]}).\n"
            "output_size: give sizes that divide those of the image"
        )
