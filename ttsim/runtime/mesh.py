"""Mappers, which distribute a tensor over the devices of a mesh, and composers, which join the parts, on the host.

Every device has one part of a tensor, in row-major order of the mesh; all parts have the same shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Final, TypeAlias

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.numbers.formats import Array
from ttsim.runtime.device import Device, MeshShape
from ttsim.runtime.types.call import require_type, require_type_or_none, required_integer


@dataclass(frozen=True, slots=True)
class PlacementReplicate:
    """Replicates a tensor along an axis of the mesh.

    Examples:
        >>> ttnn.PlacementReplicate()
        PlacementReplicate()
    """

    def __repr__(self) -> str:
        return "PlacementReplicate()"


@dataclass(frozen=True, slots=True)
class PlacementShard:
    """Splits the tensor's axis ``dim`` over the devices along an axis of the mesh.

    Examples:
        >>> ttnn.PlacementShard(0).dim
        0
    """

    dim: int

    def __post_init__(self) -> None:
        required_integer("PlacementShard", "dim", self.dim)

    def __repr__(self) -> str:
        return f"PlacementShard({self.dim})"


Placement: TypeAlias = PlacementReplicate | PlacementShard


class MeshMapperConfig:
    """The placement of a tensor along each axis of a mesh.

    Args:
        placements: A placement for each axis of the mesh; or give ``row_dim`` and ``col_dim``, the tensor's axes that
            are split over rows and columns of devices (None replicates).
        mesh_shape_override: Another shape for the devices of the mesh; None for the shape of the mesh.

    Examples:
        >>> ttnn.MeshMapperConfig([ttnn.PlacementReplicate(), ttnn.PlacementShard(0)]).placements
        (PlacementReplicate(), PlacementShard(0))
    """

    __slots__ = ("mesh_shape_override", "placements")

    def __init__(
        self,
        placements: Sequence[Placement] | None = None,
        mesh_shape_override: MeshShape | None = None,
        *,
        row_dim: int | None = None,
        col_dim: int | None = None,
    ) -> None:
        given = [_placement(row_dim), _placement(col_dim)] if placements is None else placements
        if not isinstance(given, Sequence) or not all(isinstance(item, Placement) for item in given):
            raise ArgumentTypeError(
                f"MeshMapperConfig: placements must be PlacementShard and PlacementReplicate, not {shown(given)}"
            )
        require_type_or_none("MeshMapperConfig", MeshShape, mesh_shape_override=mesh_shape_override)
        self.placements, self.mesh_shape_override = tuple(given), mesh_shape_override


def _placement(dim: int | None) -> Placement:
    return PlacementReplicate() if dim is None else PlacementShard(dim)


class MeshComposerConfig:
    """The tensor's axis along which the parts of each axis of a mesh are joined.

    Args:
        dims: An axis of the tensor for each axis of the mesh.
        mesh_shape_override: Another shape for the devices of the mesh; None for the shape of the mesh.

    Examples:
        >>> ttnn.MeshComposerConfig([0, 1]).dims
        (0, 1)
    """

    __slots__ = ("dims", "mesh_shape_override")

    def __init__(self, dims: Sequence[int], mesh_shape_override: MeshShape | None = None) -> None:
        if not isinstance(dims, Sequence):
            raise ArgumentTypeError(f"MeshComposerConfig: dims must be a sequence of integers, not {shown(dims)}")
        self.dims = tuple(required_integer("MeshComposerConfig", "dims", dim) for dim in dims)
        require_type_or_none("MeshComposerConfig", MeshShape, mesh_shape_override=mesh_shape_override)
        self.mesh_shape_override = mesh_shape_override


def _counted(device: Device, override: MeshShape | None, axes: int, what: str) -> tuple[int, ...]:
    """The shape of a mesh or its override; raises an error for another number of axes or another size."""
    shape = device.shape if override is None else override
    if shape.mesh_size() > device.get_num_devices():
        raise DeviceError(
            f"The size of the supplied mesh shape {shape} does not match the device shape size {device.shape}\n"
            "mesh_shape_override: give the shape of the mesh"
        )
    if shape.dims() != axes:
        raise DeviceError(
            f"The number of dimensions in the mesh shape {shape} does not match the number of {what} in the config\n"
            f"{what}: give one for each of the {shape.dims()} axes of the mesh"
        )
    if shape.mesh_size() < device.get_num_devices():
        raise NotSimulatedError(
            f"a tensor on {shape.mesh_size()} of {device.get_num_devices()} devices is not simulated"
        )
    return tuple(shape)


class TensorToMesh:
    """A mapper, which distributes a host tensor over the devices of a mesh; `create_mesh_mapper` creates one.

    Examples:
        >>> mapper = ttnn.create_mesh_mapper(device, ttnn.MeshMapperConfig(row_dim=0))
        >>> ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16, mesh_mapper=mapper).shape
        Shape([2, 2])
    """

    __slots__ = ("_placements", "_shape")

    def __init__(self, device: Device, config: MeshMapperConfig) -> None:
        self._shape = _counted(device, config.mesh_shape_override, len(config.placements), "placements")
        self._placements = config.placements

    def parts(self, values: Array) -> list[Array]:
        """The part of each device, in order; raises DeviceError if the shapes of parts differ."""
        cuts = [
            [whole] * count if isinstance(placement, PlacementReplicate) else _chunks(values, placement.dim, count)
            for placement, count, whole in zip(
                self._placements, self._shape, [tuple(map(slice, values.shape))] * len(self._shape), strict=True
            )
        ]
        return [
            values[tuple(map(_overlap, *place))] if len(place) > 1 else values[place[0]] for place in product(*cuts)
        ]


def _chunks(values: Array, dim: int, count: int) -> list[tuple[slice, ...]]:
    """``count`` pieces of the same length along an axis, as indices of the array."""
    if not -values.ndim <= dim < values.ndim:
        raise ArgumentError(f"mesh_mapper: dim {dim} is no axis of a tensor of shape {list(values.shape)}")
    axis, length = dim % values.ndim, values.shape[dim]
    size = ceil(length / count)
    if size and ceil(length / size) < count:
        raise NotSimulatedError(
            f"mesh_mapper: {length} elements of axis {dim} give {ceil(length / size)} parts for {count} devices, and "
            "devices without a part are not simulated; give a multiple of the devices"
        )
    if length % count:
        one, other = (
            [*values.shape[:axis], side, *values.shape[axis + 1 :]] for side in (size, length - size * (count - 1))
        )
        raise DeviceError(
            f"Shard shape mismatch: expected Shape({one}) but got Shape({other})\n"
            f"mesh_mapper: axis {dim} of length {length} is no multiple of {count} devices"
        )
    whole = tuple(map(slice, values.shape))
    return [(*whole[:axis], slice(size * at, size * (at + 1)), *whole[axis + 1 :]) for at in range(count)]


def _overlap(*slices: slice) -> slice:
    """The intersection of slices of one axis, which several axes of a mesh may split."""
    return slice(max(cut.start or 0 for cut in slices), min(cut.stop for cut in slices))


class MeshToTensor:
    """A composer, which joins the parts of all devices on the host; `create_mesh_composer` creates one.

    Examples:
        >>> composer = ttnn.create_mesh_composer(device, ttnn.MeshComposerConfig([0, 1]))
        >>> ttnn.to_torch(ttnn.ones((1, 2), device=device), mesh_composer=composer).tolist()
        [[1.0, 1.0]]
    """

    __slots__ = ("_dims", "_shape")

    def __init__(self, device: Device, config: MeshComposerConfig) -> None:
        self._shape = _counted(device, config.mesh_shape_override, len(config.dims), "dimensions")
        self._dims = config.dims

    def whole(self, parts: Sequence[Array]) -> Array:
        """All parts as one array; raises DeviceError unless there is one part for each device."""
        if len(parts) == 1:
            return parts[0]
        if len(parts) != int(np.prod(self._shape)):
            raise DeviceError(
                f"ND composition requires the number of tensors {len(parts)} to match the mesh shape "
                f"{MeshShape(*self._shape)}\nmesh_composer: give a composer of the tensor's mesh"
            )
        joined = list(parts)
        for dim, count in zip(reversed(self._dims), reversed(self._shape), strict=True):
            if not -joined[0].ndim <= dim < joined[0].ndim:
                raise ArgumentError(f"mesh_composer: dim {dim} is no axis of parts of shape {list(joined[0].shape)}")
            joined = [np.concatenate(joined[at : at + count], dim) for at in range(0, len(joined), count)]
        return joined[0]


CppTensorToMesh: Final = TensorToMesh
CppMeshToTensor: Final = MeshToTensor


def create_mesh_mapper(mesh_device: Device, config: MeshMapperConfig) -> TensorToMesh:
    """A mapper that distributes tensors over a mesh.

    Args:
        mesh_device: The mesh.
        config: The placement along each axis of the mesh.

    Returns:
        The mapper, for ``from_torch(mesh_mapper=...)`` and `distribute_tensor`.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: The config has other axes than the mesh, or more devices.
        NotSimulatedError: The config has fewer devices than the mesh.

    Examples:
        >>> mapper = ttnn.create_mesh_mapper(device, ttnn.MeshMapperConfig(row_dim=0))
        >>> ttnn.distribute_tensor(ttnn.ones((2, 4)), mapper).shape
        Shape([2, 4])
    """
    require_type("create_mesh_mapper", Device, mesh_device=mesh_device)
    require_type("create_mesh_mapper", MeshMapperConfig, config=config)
    return TensorToMesh(mesh_device, config)


def create_mesh_composer(mesh_device: Device, config: MeshComposerConfig) -> MeshToTensor:
    """A composer that joins the parts of a tensor.

    Args:
        mesh_device: The mesh.
        config: The tensor's axis for each axis of the mesh.

    Returns:
        The composer, for ``to_torch(mesh_composer=...)`` and `aggregate_tensor`.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: The config has other axes than the mesh, or more devices.
        NotSimulatedError: The config has fewer devices than the mesh.

    Examples:
        >>> composer = ttnn.create_mesh_composer(device, ttnn.MeshComposerConfig([0, 1]))
        >>> ttnn.aggregate_tensor(ttnn.ones((2, 4), device=device), composer).shape
        Shape([2, 4])
    """
    require_type("create_mesh_composer", Device, mesh_device=mesh_device)
    require_type("create_mesh_composer", MeshComposerConfig, config=config)
    return MeshToTensor(mesh_device, config)


def _in_a_row(function: str, mesh_device: Device) -> MeshShape:
    require_type(function, Device, mesh_device=mesh_device)
    return MeshShape([mesh_device.get_num_devices()])


def replicate_tensor_to_mesh_mapper(mesh_device: Device) -> TensorToMesh:
    """A mapper that copies a tensor to every device.

    Args:
        mesh_device: The mesh.

    Returns:
        The mapper.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> mapper = ttnn.replicate_tensor_to_mesh_mapper(device)
        >>> ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16, mesh_mapper=mapper).shape
        Shape([2, 2])
    """
    shape = _in_a_row("replicate_tensor_to_mesh_mapper", mesh_device)
    return TensorToMesh(mesh_device, MeshMapperConfig([PlacementReplicate()], shape))


def shard_tensor_to_mesh_mapper(mesh_device: Device, dim: int) -> TensorToMesh:
    """A mapper that splits one axis of a tensor over all devices.

    Args:
        mesh_device: The mesh.
        dim: The axis.

    Returns:
        The mapper.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> mapper = ttnn.shard_tensor_to_mesh_mapper(device, dim=0)
        >>> ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16, mesh_mapper=mapper).shape
        Shape([2, 2])
    """
    shape = _in_a_row("shard_tensor_to_mesh_mapper", mesh_device)
    return TensorToMesh(mesh_device, MeshMapperConfig([PlacementShard(dim)], shape))


def concat_mesh_to_tensor_composer(mesh_device: Device, dim: int) -> MeshToTensor:
    """A composer that joins the parts of all devices along one axis.

    Args:
        mesh_device: The mesh.
        dim: The axis.

    Returns:
        The composer.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> composer = ttnn.concat_mesh_to_tensor_composer(device, dim=0)
        >>> ttnn.to_torch(ttnn.ones((1, 2), device=device), mesh_composer=composer).tolist()
        [[1.0, 1.0]]
    """
    shape = _in_a_row("concat_mesh_to_tensor_composer", mesh_device)
    return MeshToTensor(mesh_device, MeshComposerConfig([dim], shape))


ReplicateTensorToMesh: Final = replicate_tensor_to_mesh_mapper
ShardTensorToMesh: Final = shard_tensor_to_mesh_mapper
ConcatMeshToTensor: Final = concat_mesh_to_tensor_composer


def _two(function: str, **pairs: object) -> None:
    for name, pair in pairs.items():
        if not isinstance(pair, Sequence | MeshShape) or len(pair) != 2:
            raise ArgumentTypeError(f"{function}: {name} must be two values, not {shown(pair)}")


def ShardTensor2dMesh(  # noqa: N802 - ttnn's name
    mesh_device: Device, mesh_shape: Sequence[int], dims: Sequence[int | None]
) -> TensorToMesh:
    """A mapper that splits one axis of a tensor over rows of devices, and another axis over columns.

    Args:
        mesh_device: The mesh.
        mesh_shape: Rows and columns of the mesh.
        dims: The axis for rows and the axis for columns; None replicates.

    Returns:
        The mapper.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: The shape has more devices than the mesh.
        NotSimulatedError: The shape has fewer devices than the mesh.

    Examples:
        >>> mapper = ttnn.ShardTensor2dMesh(device, (1, 1), (None, 0))
        >>> ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16, mesh_mapper=mapper).shape
        Shape([2, 2])
    """
    require_type("ShardTensor2dMesh", Device, mesh_device=mesh_device)
    _two("ShardTensor2dMesh", mesh_shape=mesh_shape, dims=dims)
    return TensorToMesh(mesh_device, MeshMapperConfig([*map(_placement, dims)], MeshShape(*mesh_shape)))


def ConcatMesh2dToTensor(  # noqa: N802 - ttnn's name
    mesh_device: Device, mesh_shape: Sequence[int], dims: Sequence[int]
) -> MeshToTensor:
    """A composer that joins the parts of rows of devices along one axis, and of columns along another axis.

    Args:
        mesh_device: The mesh.
        mesh_shape: Rows and columns of the mesh.
        dims: The axis for rows and the axis for columns.

    Returns:
        The composer.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: The shape has more devices than the mesh.
        NotSimulatedError: The shape has fewer devices than the mesh.

    Examples:
        >>> composer = ttnn.ConcatMesh2dToTensor(device, (1, 1), (0, 1))
        >>> ttnn.to_torch(ttnn.ones((1, 2), device=device), mesh_composer=composer).tolist()
        [[1.0, 1.0]]
    """
    require_type("ConcatMesh2dToTensor", Device, mesh_device=mesh_device)
    _two("ConcatMesh2dToTensor", mesh_shape=mesh_shape, dims=dims)
    return MeshToTensor(mesh_device, MeshComposerConfig(dims, MeshShape(*mesh_shape)))
