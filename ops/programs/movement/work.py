"""What the data movement operations compute, as frozen values; `meaning` says what they mean.

An operation with no outputs writes into its last input: a sharded copy is allocated before the program that fills it is
known to the real library, and a slice is written into a tensor that others share.
"""

from dataclasses import dataclass
from enum import Enum

from device.numbers.formats import DataFormat
from device.plan import Work


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
class Relayout(Work):
    """The same numbers in another place or another order of bytes.

    Attributes:
        conversion: By which program.
    """

    conversion: Conversion


@dataclass(frozen=True, slots=True)
class Reshape(Work):
    """The same numbers in the same order under another shape.

    Attributes:
        shape: Logical shape of the result.
    """

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Typecast(Work):
    """The same shape in another format.

    Attributes:
        source_format: Format of the source.
        data_format: Format of the result.
    """

    source_format: DataFormat
    data_format: DataFormat


@dataclass(frozen=True, slots=True)
class FillPad(Work):
    """Padding elements of the last input become zero; its logical elements stay.

    A block float shares exponents between logical and padding elements, so padding must be harmless before a
    conversion.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A box cut out of an image tensor.

    Attributes:
        shape: [N, H, W, C] of the tensor it is cut from or written into.
        begins: First index on each axis.
        ends: One past the last index on each axis.
    """

    shape: tuple[int, int, int, int]
    begins: tuple[int, int, int, int]
    ends: tuple[int, int, int, int]

    @property
    def window_shape(self) -> tuple[int, ...]:
        """Shape of the box."""
        return tuple(end - begin for begin, end in zip(self.begins, self.ends, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PadImage(Work):
    """Zeros around the images of a tensor [N, H, W, C].

    Attributes:
        image: [N, H, W, C] of the input.
        padding: Rows above and below, columns at the left and at the right.
    """

    image: tuple[int, int, int, int]
    padding: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldWindows(Work):
    """Windows side by side in a tensor [N, H, W, C] become channels [N, H / rows, W / columns, rows * columns * C].

    Attributes:
        window: Rows and columns of a window.
        image: [N, H, W, C].
        data_format: Format of the result: block floats become bfloat16.
        padding: Zeros above, below, at the left and at the right that the image counts and its array lacks, since a
            halo leaves them to whoever reads its sticks.
    """

    window: tuple[int, int]
    image: tuple[int, int, int, int]
    data_format: DataFormat
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class PaddedSlice(Work):
    """A window of the input becomes a tensor of its own.

    Attributes:
        window: Which part.
    """

    window: Window


@dataclass(frozen=True, slots=True)
class SliceWrite(Work):
    """The first input is written into a window of the last one.

    Attributes:
        window: Which part of the last input.
        source_width: Columns of an image row of the first input; those beyond the window are dropped.
    """

    window: Window
    source_width: int
