"""What the programs compute that put numbers in another order, and what they take.

Cycles are composed: pages of the source are waited for and those of the result written, as in measured copies.
"""

from dataclasses import dataclass

import numpy as np

from device.matrix_unit.packer import pack
from device.matrix_unit.typecast import typecast
from device.numbers.block_floats import round_up
from device.numbers.formats import GROUP, Array, DataFormat
from device.plan import DeviceOp


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(DeviceOp):
    """Axes in another order."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]  # The axis of the source that each axis of the result is
    # The block float that packs its groups anew, since they lie along other axes; None of other formats
    packed: DataFormat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsLast(DeviceOp):
    """[1, B, C, H*W] becomes [1, 1, B*H*W, channels] in another format, zeros behind the channels."""

    shape: tuple[int, ...]
    channels: int
    source_format: DataFormat
    data_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsFirst(DeviceOp):
    """[1, 1, H*W, C] becomes [1, 1, C, H*W] in another format."""

    shape: tuple[int, ...]
    source_format: DataFormat
    data_format: DataFormat


def permuted(work: Permute, values: Array) -> Array:
    """The axes in order; groups of a block float that ends between them are filled up with zeros."""
    turned = np.ascontiguousarray(values.reshape(work.shape).transpose(work.axes))
    if work.packed is None:
        return turned
    columns = turned.shape[-1]
    filled = np.zeros((*turned.shape[:-1], round_up(columns, GROUP)), np.float32)
    filled[..., :columns] = turned
    return pack(filled, work.packed, fp32_dest=False)[..., :columns].astype(work.packed.storage)


def channels_last(work: ChannelsLast, values: Array) -> Array:
    """Pixels of all images, channels last."""
    _, batch, channels, pixels = work.shape
    rows = values.reshape(batch, channels, pixels).transpose(0, 2, 1).reshape(1, 1, batch * pixels, channels)
    filled = np.pad(rows, ((0, 0), (0, 0), (0, 0), (0, work.channels - channels)))
    return typecast(filled, work.source_format, work.data_format)


def channels_first(work: ChannelsFirst, values: Array) -> Array:
    """Pixels last."""
    turned = np.ascontiguousarray(values.reshape(work.shape).swapaxes(-1, -2))
    return typecast(turned, work.source_format, work.data_format)
