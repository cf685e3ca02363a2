"""What the data movement operations compute, as frozen values; `meaning` says what they mean.

An operation with no outputs writes into its last input: a sharded copy is allocated before the program that fills it is
known to the real library, and a slice is written into a tensor that others share.
"""

from dataclasses import dataclass
from enum import Enum

from device.numbers.formats import DataFormat
from device.plan import DeviceOp


class Conversion(Enum):
    """The programs that put the same numbers in another place or another order of bytes; values are their names."""

    INTERLEAVED_TO_SHARDED = "InterleavedToSharded"
    SHARDED_TO_INTERLEAVED = "ShardedToInterleaved"
    RESHARD = "Reshard"
    MOVE = "Move"
    COPY = "Copy"
    PAD = "Pad"
    TILIZE = "Tilize"
    TILIZE_WITH_VAL_PADDING = "TilizeWithValPadding"
    UNTILIZE = "Untilize"
    UNTILIZE_CODEGEN = "UntilizeCodegen"
    UNTILIZE_WITH_UNPADDING = "UntilizeWithUnpadding"


@dataclass(frozen=True, slots=True)
class CopyTensor(DeviceOp):
    """The same numbers in another place or another order of bytes."""

    conversion: Conversion  # By which program


@dataclass(frozen=True, slots=True)
class Reshape(DeviceOp):
    """The same numbers in the same order under another shape."""

    shape: tuple[int, ...]  # Logical shape of the result


@dataclass(frozen=True, slots=True)
class Typecast(DeviceOp):
    """The same shape in another format."""

    source_format: DataFormat
    data_format: DataFormat


@dataclass(frozen=True, slots=True)
class FillPad(DeviceOp):
    """Padding elements of the last input become zero; its logical elements stay.

    A block float shares exponents between logical and padding elements, so padding must be harmless before a
    conversion.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A box cut out of an image tensor."""

    shape: tuple[int, int, int, int]  # [N, H, W, C] of the tensor it is cut from or written into
    begins: tuple[int, int, int, int]  # First index on each axis
    ends: tuple[int, int, int, int]  # One past the last index on each axis

    @property
    def window_shape(self) -> tuple[int, ...]:
        """Shape of the box."""
        return tuple(end - begin for begin, end in zip(self.begins, self.ends, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PadImage(DeviceOp):
    """Zeros around the images of a tensor [N, H, W, C]."""

    image: tuple[int, int, int, int]  # [N, H, W, C] of the input
    padding: tuple[int, int, int, int]  # Rows above and below, columns at the left and at the right


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldWindows(DeviceOp):
    """Windows side by side in a tensor [N, H, W, C] become channels [N, H / rows, W / columns, rows * columns * C]."""

    window: tuple[int, int]  # Rows and columns of a window
    image: tuple[int, int, int, int]  # [N, H, W, C]
    data_format: DataFormat  # Format of the result: block floats become bfloat16
    # Zeros above, below, at the left and at the right that the image counts and its array lacks, since a halo leaves
    # them to whoever reads its sticks
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class PaddedSlice(DeviceOp):
    """A window of the input becomes a tensor of its own."""

    window: Window


@dataclass(frozen=True, slots=True)
class SliceWrite(DeviceOp):
    """The first input is written into a window of the last one."""

    window: Window  # Which part of the last input
    source_width: int  # Columns of an image row of the first input; those beyond the window are dropped
