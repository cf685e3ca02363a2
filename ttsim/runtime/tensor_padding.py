"""Padding of tensors on the host, under ttnn's names."""

from collections.abc import Sequence
from typing import Any

from device.errors import DeviceError, shown
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.memory.tiles import TILE
from device.numbers.integers import round_up


class TensorPadding:
    """What a tensor on the host does with the padding of its last two axes."""

    __slots__ = ()

    spec: TensorSpec

    def device(self) -> object:
        """The device it lives on, if any."""
        raise NotImplementedError

    def values(self) -> Any:
        """Its values."""
        raise NotImplementedError

    def pad_to_tile(self, pad_value: float) -> Any:
        """The same tensor with its last two axes filled up to whole tiles; one axis counts as a row.

        Args:
            pad_value: What padding would hold; it never reaches a result here.

        Raises:
            DeviceError: It is on a device.
        """
        self._require_host("pad_to_tile")
        spec = self.spec
        *outer, height, width = spec.shape if len(spec.shape) > 1 else (1, *spec.shape)
        filled = (*outer, round_up(height, TILE), round_up(width, TILE))
        made = TensorSpec(spec.shape, spec.data_format, spec.layout, spec.memory_config, filled)
        return type(self).of_host(self.values(), made)  # type: ignore[attr-defined]

    def unpad_from_tile(self, output_tensor_shape: Sequence[int]) -> Any:
        """The top left part of a tensor in rows, as large as a tensor is that was filled up to this one's tiles.

        Args:
            output_tensor_shape: Of the part; equal to this shape but for the last two axes.

        Raises:
            DeviceError: It is on a device or in tiles, or the part is not one that fills the same tiles.
        """
        self._require_host("unpad_from_tile")
        spec = self.spec
        if spec.layout is not Layout.ROW_MAJOR:
            raise DeviceError(
                "Tensor layout must be ROW_MAJOR for unpadding\nunpad_from_tile: use to(ROW_MAJOR_LAYOUT)"
            )
        wanted = tuple(int(side) for side in output_tensor_shape)
        wanted = (1,) * (len(spec.shape) - len(wanted)) + wanted
        if wanted[:-2] != spec.shape[:-2]:
            raise DeviceError(
                "Input shape must match output shape apart from last 2 dims\n"
                f"unpad_from_tile: {shown(wanted)} differs from {list(spec.shape)} in another axis"
            )
        ends = zip(wanted[-2:], spec.shape[-2:], spec.padded_shape[-2:], strict=True)
        if any(part > held or round_up(part, TILE) < filled for part, held, filled in ends):
            raise DeviceError(
                "Last 2 dims of output must be within range to have been padded to input\n"
                f"unpad_from_tile: {shown(wanted)} does not fill the tiles of {list(spec.shape)}"
            )
        part = self.values()[..., : wanted[-2], : wanted[-1]].copy()
        return type(self).of_host(part, TensorSpec(wanted, spec.data_format, spec.layout))  # type: ignore[attr-defined]

    def _require_host(self, name: str) -> None:
        if self.device() is not None:
            raise DeviceError(f"Tensor must be on host for {name} conversion\n{name}: use .cpu() first")
