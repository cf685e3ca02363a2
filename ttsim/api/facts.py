"""What ttnn's functions say of tensors and data types, without doing anything."""

from device.errors import ArgumentError
from ttsim.runtime.storage import StorageType
from ttsim.runtime.tensor import Tensor
from ttsim.types.dtypes import DataType
from ttsim.types.signature import checked_as

DEVICE_STORAGE_TYPE = StorageType.DEVICE


@checked_as("")
def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor lies in shards."""
    return tensor.is_sharded()


@checked_as("")
def has_storage_type_of(tensor: Tensor, storage_type: StorageType) -> bool:
    """Whether the values of a tensor are there: on the host, or on a device."""
    return tensor.storage_type() is storage_type


def has_tile_padding(tensor: Tensor, *, dim: int | None = None) -> bool:
    """Whether the last two axes of a tensor are padded, or the one that is given; a single axis never is."""
    sides, filled = tensor.shape, tensor.padded_shape
    if dim is not None:
        return sides[dim] != filled[dim]
    return len(sides) > 1 and tuple(sides[-2:]) != tuple(filled[-2:])


@checked_as("")
def tile_size(dtype: DataType) -> int:
    """Bytes of a tile of 32 x 32 elements."""
    return dtype.format.tile_bytes


@checked_as("")
def element_size(dtype: DataType) -> int:
    """Bytes of an element; raises ArgumentError for block floats, whose elements have no bytes of their own."""
    size = dtype.format.element_bytes
    if size is None:
        raise ArgumentError(f"datum for bfp2, bfp4, bfp8 is invalid\nelement_size: {dtype} has tiles: use tile_size")
    return size


@checked_as("")
def get_conv_output_dim(input: int, window: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> int:
    """Outputs of a convolution along one axis.

    Args:
        input: Pixels.
        window: Taps.
        stride: Pixels from one output to the next.
        pad: Zeros at each end.
        dilation: Pixels from one tap to the next.
    """
    return (input + 2 * pad - dilation * (window - 1) - 1) // stride + 1
