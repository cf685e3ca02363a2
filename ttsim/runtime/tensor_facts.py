"""What a tensor says of itself under ttnn's names: of its spec, its buffer, and single values."""

from dataclasses import replace
from math import prod
from typing import Any

from device.errors import DeviceError
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import Layout
from device.numbers.formats import Array
from ttsim.runtime.session import current, remember
from ttsim.types.dtypes import DataType
from ttsim.types.shapes import Tile


class TensorFacts:
    """The part of a tensor that only reads; ``Tensor`` gives it spec, buffer and values."""

    __slots__ = ("_id",)

    spec: TensorSpec
    _id: int

    @property
    def buffer(self) -> Buffer:
        """The buffer of a device tensor."""
        raise NotImplementedError

    def to_numpy(self) -> Array:
        """A copy of the values."""
        raise NotImplementedError

    @property
    def tensor_id(self) -> int:
        """A number that no other tensor of this thread has; tensors are numbered when they are first asked for it."""
        if not hasattr(self, "_id"):
            self._id = current().tensors
            remember(replace(current(), tensors=self._id + 1))
        return self._id

    @property
    def tile(self) -> Tile:
        """Its tiles: 32 x 32, as all are here."""
        return Tile()

    def get_tile(self) -> Tile:
        """``tile`` under its older name."""
        return self.tile

    def get_dtype(self) -> DataType:
        """``dtype`` under its older name."""
        return DataType.of(self.spec.data_format)

    def get_layout(self) -> Layout:
        """``layout`` under its older name."""
        return self.spec.layout

    def is_sharded(self) -> bool:
        """Whether its pages are dealt shard by shard."""
        return self.spec.memory_config.is_sharded()

    def volume(self) -> int:
        """Elements of the padded shape."""
        return prod(self.spec.padded_shape)

    def logical_volume(self) -> int:
        """Elements of the logical shape."""
        return self.spec.volume

    def element_size(self) -> int:
        """Bytes of an element; 1 for block floats."""
        return self.spec.data_format.element_bytes or 1

    def buffer_page_size(self) -> int:
        """Bytes of a page of its buffer; raises DeviceError for a host tensor or a deallocated one."""
        return self.buffer.spec.page_bytes

    def buffer_num_pages(self) -> int:
        """Pages of its buffer; raises as `buffer_page_size`."""
        return self.buffer.spec.size_bytes // self.buffer.spec.page_bytes

    def buffer_aligned_page_size(self) -> int:
        """Bytes from one page to the next; raises as `buffer_page_size`."""
        spec = self.buffer.spec
        return aligned_page_bytes(spec.page_bytes, spec.buffer_type, self.buffer.device_spec)

    def to_list(self) -> list[Any]:
        """The values as nested lists.

        Raises:
            DeviceError: It was deallocated, or its device computes no values.
        """
        nested: list[Any] = self.to_numpy().tolist()
        return nested

    def item(self) -> float:
        """The only value of a tensor with one element.

        Raises:
            DeviceError: It has more, or none; the first line is the real library's.
        """
        if self.spec.volume != 1:
            raise DeviceError(
                f"tensor.item() requires tensor to have exactly one element, but got {self.spec.volume} elements\n"
                "item: use to_list()"
            )
        value: float = self.to_numpy().item()
        return value
