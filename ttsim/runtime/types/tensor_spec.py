"""ttnn.TensorSpec: the description of a tensor with ttnn's arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

from device.errors import ArgumentTypeError, shown
from device.memory import layouts
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from ttsim.runtime.types.call import require_type, required_sides
from ttsim.runtime.types.tensors import DataType, Tile


class TensorSpec(layouts.TensorSpec):
    """Shape, data type, layout and memory of a tensor on a device: everything except its values.

    Args:
        shape: Logical shape.
        dtype: Data type.
        layout: Layout.
        place: Positional arguments ``buffer_type, tile`` or ``memory_layout, shard_spec, buffer_type, tile``, as in
            ttnn; or a MemoryConfig.
        named: The same as keywords: ``buffer_type`` (default: DRAM), ``memory_layout``, ``shard_spec``, ``tile`` (only
            32 x 32 is simulated), or ``memory_config``.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: Block floats in ROW_MAJOR layout, or shards that cannot hold the tensor.

    Examples:
        >>> spec = ttnn.TensorSpec((1, 1, 60, 128), ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.BufferType.L1)
        >>> spec.dtype, spec.padded_shape, spec.memory_config == ttnn.L1_MEMORY_CONFIG
        (DataType.BFLOAT16, (1, 1, 64, 128), True)
    """

    __slots__ = ()

    def __init__(self, shape: Sequence[int], dtype: DataType, layout: Layout, *place: object, **named: object) -> None:
        sides = required_sides("TensorSpec", shape)
        require_type("TensorSpec", DataType, dtype=dtype)
        require_type("TensorSpec", Layout, layout=layout)
        super().__init__(sides, dtype.format, layout, _memory(place, named))

    @classmethod
    def of(cls, spec: layouts.TensorSpec) -> "TensorSpec":
        """The ttnn.TensorSpec of a planner's TensorSpec."""
        result = cls.__new__(cls)
        layouts.TensorSpec.__init__(
            result, spec.shape, spec.data_format, spec.layout, spec.memory_config, spec.padded_shape, spec.alignment
        )
        return result

    def __eq__(self, other: object) -> bool:
        """Whether the other spec, of either class, describes the same tensor."""
        return isinstance(other, layouts.TensorSpec) and all(
            getattr(self, name) == getattr(other, name) for name in layouts.TensorSpec.__slots__
        )

    __hash__ = layouts.TensorSpec.__hash__

    @property
    def dtype(self) -> DataType:
        """The data type."""
        return DataType.of(self.data_format)

    @property
    def tile(self) -> Tile:
        """The tiles, always of 32 x 32 elements."""
        return Tile()


_NAMES = {
    BufferType: ("buffer_type", "tile"),
    TensorMemoryLayout: ("memory_layout", "shard_spec", "buffer_type", "tile"),
    MemoryConfig: ("memory_config", "tile"),
}  # of the arguments by position, by the type of the first
_TYPES = {
    "buffer_type": BufferType, "memory_layout": TensorMemoryLayout, "memory_config": MemoryConfig,
    "shard_spec": ShardSpec, "tile": Tile,
}  # fmt: skip


def _memory(place: Sequence[object], named: Mapping[str, object]) -> MemoryConfig:
    """The memory config of the arguments after the layout."""
    names = _NAMES.get(type(place[0]), ()) if place else ()
    given: dict[str, Any] = {**dict(zip(names, place, strict=False)), **named}
    if len(given) < len(place) + len(named) or not given.keys() <= _TYPES.keys():
        raise ArgumentTypeError(
            f"TensorSpec: behind the layout go buffer_type and tile, memory_layout, shard_spec, buffer_type and tile, "
            f"or memory_config, not {shown((*place, *named))}"
        )
    for name, value in given.items():
        if value is not None or name not in ("shard_spec", "tile"):
            require_type("TensorSpec", _TYPES[name], **{name: value})
    config = given.get("memory_config")
    if isinstance(config, MemoryConfig):
        return config
    memory_layout = given.get("memory_layout", TensorMemoryLayout.INTERLEAVED)
    return MemoryConfig(memory_layout, given.get("buffer_type", BufferType.DRAM), given.get("shard_spec"))
