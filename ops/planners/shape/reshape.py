"""Plans that reshape a tensor. Rules: ttnn 0.81.1 (data_movement/reshape_view), compared with recorded plans."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from math import prod

from device.cores import CoreRangeSet
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig, TensorMemoryLayout
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.pad import fill_padding
from ops.planners.to_config import placed
from ops.programs.buffer_shapes import rows_follow, shard_counts
from ops.programs.data_movement.conversions import copied
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.placement import dealing_refusal, refuse_other_width, viewed
from ops.programs.data_movement.reshape import RowMover, is_ragged, is_view, resharded_place, without_shards

Shape = tuple[int, ...]

RANK = 4
OTHER_VOLUME = "Attempting to reshape between two shapes with different volumes"
TOO_SMALL = "MeshBuffer must be large enough to hold the tensor."  # of a view
NOTHING = "Tensor volume is 0, but shape's volume is not"  # of a tensor that another volume is asked of


def plan_reshape(
    source: TensorSpec,
    shape: Shape,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    filler: float | None = None,
    cores: CoreRangeSet | None = None,
) -> Plan:
    """Plan the tensor "input" in another shape: a view of its buffer if its pages stay, or the result of a program.

    ``filler`` is the number in the padding of tiles; None if it does not matter. ``cores`` are the cores that a program
    may use; None for all.
    """
    if prod(shape) != source.volume:
        raise DeviceError(
            f"{OTHER_VOLUME if source.volume else NOTHING}\n"
            f"shape: a tensor of {source.volume} elements does not take the shape {list(shape)}"
        )
    write = partial(reshaped_by, shape=shape, place=place, filler=filler, name="output", cores=cores)
    return plan_of(source, spec, write, attempts=True)


def plan_other_volume(source: TensorSpec, shape: Shape, spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" under a shape of another volume, as ttnn.reshape does it: a view of its buffer.

    Raises:
        DeviceError: Neither rows nor whole tiles of the tensor keep their width, or the buffer is too small.
    """
    tiles = source.layout is Layout.TILE and not any(side % TILE for side in (1, *shape)[-2:])
    if not is_view(source, shape) and not (tiles and source.padded_shape[-1] == shape[-1]):
        raise DeviceError(f"{OTHER_VOLUME}\nshape: a tensor of {list(source.shape)} does not take {list(shape)}")
    result = viewed(source, shape, spec)
    if prod(result.padded_shape) > prod(source.padded_shape):
        raise DeviceError(f"{TOO_SMALL}\nshape: a tensor of {list(source.shape)} does not hold {list(shape)}")

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        builder.leave_out_values(
            f"reshape: {list(shape)} shows or hides padding of a tensor of {list(source.shape)}, whose numbers ttsim "
            "does not simulate; use slice or pad"
        )
        return PlanTensor(tensor.name, result)

    return plan_of(source, spec, write)


def plan_view(source: TensorSpec, shape: Shape, spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" under another shape with rows of the same length, of its volume, in the same buffer."""
    refusal = _view_refusal(source, shape)
    if refusal is not None:
        raise DeviceError(f"{refusal}\nview: ttnn.reshape moves elements")
    return plan_of(source, spec, lambda builder, tensor: PlanTensor(tensor.name, viewed(source, shape, spec)))


def _view_refusal(source: TensorSpec, shape: Shape) -> str | None:
    """The library's error text for a view that would change the order of elements; None if it does not."""
    (lines, columns), (new_lines, new_columns) = ((1, 1, *sides)[-2:] for sides in (source.shape, shape))
    if columns != new_columns:
        return (
            "The last dimension can not change in view, attempting to change last dimension from "
            f"{columns} to {new_columns}, use reshape instead"
        )
    if source.layout is Layout.TILE and lines != new_lines and (lines % TILE or new_lines % TILE):
        return f"Invalid second last dims for TILED reshape, from {lines} to {new_lines}, use reshape instead"
    return None


def plan_memory_view(source: TensorSpec, shape: Shape, spec: DeviceSpec) -> Plan:
    """Plan a view of the memory of the tensor "input" with another shape of the same volume.

    Values are unknown if the order of elements changes.

    Raises:
        DeviceError: Shards have only parts of rows, or the buffer is too small for the shape.
    """
    shards, columns = source.memory_config.shard_spec, source.padded_shape[-1]
    if shards is not None and shards.shape[1] != columns != shape[-1]:
        refuse_other_width(source.padded_shape, shape, shards)
    result = viewed(source, shape, spec)  # refuses shards that do not hold it
    if prod(result.padded_shape) > prod(source.padded_shape):
        raise DeviceError(f"{TOO_SMALL}\nshape: ttnn.reshape moves elements")

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        if _view_refusal(source, shape) is not None:
            builder.leave_out_values(
                f"experimental.view: {list(source.shape)} in {source.layout.name} layout seen as {list(shape)} brings "
                "elements into another order, which ttsim does not simulate; use ttnn.reshape"
            )
        return PlanTensor(tensor.name, result)

    return plan_of(source, spec, write)


def reshaped_by(
    builder: PlanBuilder,
    source: PlanTensor,
    shape: Shape,
    place: MemoryConfig | None,
    filler: float | None,
    name: str,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """The tensor in another shape of its volume; arguments as in `plan_reshape`."""
    current = source.spec.memory_config
    where = current if place is None else place
    if not source.spec.volume:  # stays where it is
        return PlanTensor(source.name, source.spec.changed(shape=shape, padded_shape=None))
    if shape == source.spec.shape == source.spec.padded_shape:
        return placed(builder, source, where, name)
    same_memory = where.is_sharded() is current.is_sharded() and where.buffer_type is current.buffer_type
    if same_memory and is_view(source.spec, shape):
        return PlanTensor(source.name, viewed(source.spec, shape, builder.device_spec))
    refused = "Sharded" if where.is_sharded() or current.is_sharded() else "Block-float"
    if cores is not None and (refused == "Sharded" or source.spec.data_format.is_block):
        raise DeviceError(
            f"{refused} reshape does not support sub core grid specification\nsub_core_grids: leave it out"
        )
    moved = _Reshape(builder, source, shape, where, name, cores, explicit=place is not None, filler=filler).moved()
    tensor, shards = moved.spec, moved.spec.memory_config.shard_spec
    if shards is not None and tensor.layout is Layout.TILE and len(shape) == 1 and shape[0] % TILE:
        columns = tensor.padded_shape[-1]  # the last step is a view of the tensor with three axes
        if shards.shape[1] != columns:
            refuse_other_width((1, TILE, columns), shape, shards)
    return moved


def plan_squeeze(source: TensorSpec, gone: Collection[int], spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" without axes of length 1; errors as in `plan_reshape`.

    Rows keep the padding of their shards as long as they stay rows of a matrix.
    """
    shape, padded = (
        tuple(side for axis, side in enumerate(sides) if axis not in gone)
        for sides in (source.shape, source.padded_shape)
    )
    if source.layout is Layout.TILE or len(shape) < 2 or len(source.shape) - 1 in gone:
        return plan_reshape(source, shape, spec)
    return _plan_view(source, shape, padded, spec)


def plan_unsqueeze_to_4d(source: TensorSpec, spec: DeviceSpec) -> Plan:
    """Plan a view of the tensor "input" with four axes; the buffer keeps its padding for any shards."""
    more, padding = [1] * (RANK - len(source.shape)), [1] * (RANK - len(source.padded_shape))
    return _plan_view(source, (*more, *source.shape), (*padding, *source.padded_shape), spec)


def _plan_view(source: TensorSpec, shape: Shape, padded: Shape, spec: DeviceSpec) -> Plan:
    tensor_spec = source.changed(shape=shape, padded_shape=padded)
    return plan_of(source, spec, lambda _, tensor: tensor._replace(spec=tensor_spec))


class _Reshape(RowMover):
    """A reshape with a memory and a fill value for the padding, by programs that check their rows."""

    def __init__(
        self,
        builder: PlanBuilder,
        source: PlanTensor,
        shape: Shape,
        where: MemoryConfig,
        name: str,
        cores: CoreRangeSet | None,
        *,
        explicit: bool,
        filler: float | None,
    ) -> None:
        """Prepares a reshape; ``explicit`` means that the caller gave ``where``, not the source's memory."""
        self.explicit, self.filler = explicit and source.spec.layout is Layout.TILE, filler
        super().__init__(builder, source, shape, where, name, cores)

    def sharded_place(self, flat: TensorSpec) -> MemoryConfig:
        """The caller's memory, or shards like the source's; the caller's BLOCK shards stay if they fit."""
        where = self.where
        if where.shard_spec is None:
            shards = self.source.spec.memory_config.shard_spec
            if shards is None:
                raise DeviceError(
                    "ttnn.reshape: sharded output memory_config (layout="
                    f"TensorMemoryLayout::{where.memory_layout.name}) was supplied without a shard_spec, and no "
                    "input_shard_spec is available (input is likely interleaved). Either provide a shard_spec on "
                    "memory_config or omit memory_config to inherit it from the input tensor.\n"
                    "memory_config: give it a ShardSpec"
                )
            return resharded_place(flat, replace(where, shard_spec=shards))
        if self.explicit and where.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
            (down, across), (rows, columns) = shard_counts(where.memory_layout, where.shard_spec), flat.matrix
            high, wide = where.shard_spec.shape
            whole_tiles = not any(side % TILE for side in (high, wide))
            if whole_tiles and down * high >= rows and across * wide >= columns:
                return where
        return resharded_place(flat, where)

    def gathered(self) -> PlanTensor:
        """The source without shards; raises DeviceError for rows of shards that end between aligned addresses."""
        spec, alignment = self.source.spec, self.builder.device_spec.l1.alignment_bytes
        if spec.layout is Layout.ROW_MAJOR and not rows_follow(spec, spec.shards.shape[1], self.builder.device_spec):
            raise DeviceError(
                f"Shard page size must be aligned to {alignment}B for L1 Tensor\n"
                "input_tensor: its shards have rows of other lengths; give wider shards, or interleaved memory"
            )
        result = spec.changed(memory_config=without_shards(spec.memory_config))
        return copied(self.builder, Conversion.SHARDED_TO_INTERLEAVED, self.source, result, f"{self.name}.gathered")

    def dealt(self, tensor: PlanTensor) -> PlanTensor:
        """A tensor in the shards of the result; raises DeviceError as `gathered`."""
        refused = dealing_refusal(tensor.spec, self.place, self.builder.device_spec)
        if refused is not None:
            raise DeviceError(refused)
        result = tensor.spec.changed(memory_config=self.place)
        return copied(self.builder, Conversion.INTERLEAVED_TO_SHARDED, tensor, result, self.name)

    def filled(self, tensor: PlanTensor) -> PlanTensor:
        """Tiles with the filler in their padding."""
        return fill_padding(self.builder, tensor, self.filler or 0.0, tensor.name)

    def filled_tiles(self, tensor: PlanTensor) -> PlanTensor:
        """Tiles that are not block floats, with the filler in their padding if given."""
        if self.filler is None or not is_ragged(self.shape):
            return tensor
        if self.place.is_sharded():
            raise NotSimulatedError("reshape: pad_value of a result in shards is not simulated; leave it out")
        return self.filled(tensor)
