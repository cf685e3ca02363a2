"""The system that devices are opened on, one card of one chip, and meshes of its device, under ttnn's names.

Functions without a device use the default device, or else the open device that was opened last, or else the device that
the environment names. Mappers and composers say how a tensor is spread over the devices of a mesh and brought together
again; over one device both leave the tensor as it is. Anything that needs a second device is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from device.cores import PlainEnum
from device.errors import ArgumentError
from device.spec.device_spec import DeviceSpec, catalog_names
from ops.sensitivity.changes import load_spec
from ttsim.runtime.device import Arch, Device, MeshCoordinate, MeshShape, close_device, open_device, open_devices
from ttsim.runtime.session import current, remember
from ttsim.runtime.settings import default_spec
from ttsim.runtime.types.call import require_type, require_type_or_none
from ttsim.runtime.types.docs import described


class ClusterType(PlainEnum):
    """Kinds of systems, with ttnn's names and numbers.

    Examples:
        >>> ttnn.ClusterType.N150.value
        1
    """

    INVALID, N150, N300, T3K, GALAXY, TG, P100, P150, P150_X2, P150_X4 = range(10)
    SIMULATOR_WORMHOLE_B0, SIMULATOR_BLACKHOLE, N300_2x2, P150_X8, P300 = range(10, 15)
    SIMULATOR_QUASAR, BLACKHOLE_GALAXY, P300_X2, CUSTOM = range(15, 19)


def SetDefaultDevice(device: Device | None) -> None:  # noqa: N802 - ttnn's name
    """Sets the device that `GetDefaultDevice` returns.

    Args:
        device: The device; None for no default device.

    Raises:
        ArgumentTypeError: The argument is no device.

    Examples:
        >>> ttnn.SetDefaultDevice(device)
        >>> ttnn.GetDefaultDevice() is device
        True
        >>> ttnn.SetDefaultDevice(None)
    """
    require_type_or_none("SetDefaultDevice", Device, device=device)
    remember(replace(current(), default_device=device))


def GetDefaultDevice() -> Device | None:  # noqa: N802 - ttnn's name
    """The device that `SetDefaultDevice` set.

    Returns:
        The device, or None.

    Examples:
        >>> ttnn.GetDefaultDevice() is None
        True
    """
    device = current().default_device
    return device if isinstance(device, Device) else None


def system_spec() -> DeviceSpec:
    """What the system's devices are made of: the default device, the last open one, or the one of the environment."""
    if (default := GetDefaultDevice()) is not None and not default.machine.closed:
        return default.spec
    devices = open_devices()
    return devices[-1].spec if devices else load_spec(default_spec())


def get_arch_name() -> str:
    """The architecture of the system's device: the default device, else the last opened, else that of the environment.

    Returns:
        The device's family, for example "wormhole_b0", as in ``device.arch()``.

    Raises:
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> ttnn.get_arch_name()
        'wormhole_b0'
    """
    return system_spec().family


def get_cluster_type() -> ClusterType:
    """The kind of system that the device's file names.

    Returns:
        A ClusterType; CUSTOM if ttnn does not know the kind.

    Raises:
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> ttnn.cluster.get_cluster_type()
        ClusterType.N150
    """
    return ClusterType.__members__.get(system_spec().cluster, ClusterType.CUSTOM)


def GetNumPCIeDevices() -> int:  # noqa: N802 - ttnn's name
    """The number of devices of the system.

    Returns:
        1.

    Examples:
        >>> ttnn.GetNumPCIeDevices(), ttnn.GetNumAvailableDevices(), ttnn.get_num_devices()
        (1, 1, 1)
    """
    return 1


GetNumAvailableDevices = GetNumPCIeDevices
get_num_devices = GetNumPCIeDevices


def get_device_ids() -> list[int]:
    """The numbers of all devices of the system.

    Returns:
        [0].

    Examples:
        >>> ttnn.get_device_ids(), ttnn.get_pcie_device_ids()
        ([0], [0])
    """
    return [0]


get_pcie_device_ids = get_device_ids


def GetPCIeDeviceID(device_id: int) -> int:  # noqa: N802 - ttnn's name
    """The number of a device on the PCIe bus.

    Args:
        device_id: Number of the device.

    Returns:
        The same number, unchecked.

    Examples:
        >>> ttnn.GetPCIeDeviceID(0)
        0
    """
    return device_id


def synchronize_device(device: Device, cq_id: int | None = None, sub_device_ids: object = ()) -> None:
    """Waits for all calls on a device; they have finished already when they return.

    Args:
        device: The device.
        cq_id: Accepted as in ttnn; there is one queue.
        sub_device_ids: Accepted as in ttnn; there are no sub-devices.

    Raises:
        ArgumentTypeError: ``device`` is no device.

    Examples:
        >>> ttnn.synchronize_device(device)
    """
    require_type("synchronize_device", Device, device=device)


def ReadDeviceProfiler(device: Device) -> None:  # noqa: N802 - ttnn's name
    """Does nothing: the device keeps no profiler data; `profile` gives the cycles of calls.

    Args:
        device: The device.

    Raises:
        ArgumentTypeError: The argument is no device.

    Examples:
        >>> ttnn.ReadDeviceProfiler(device)
    """
    require_type("ReadDeviceProfiler", Device, device=device)


def is_wormhole_b0(device: Device | None = None) -> bool:
    """Whether a device is a Wormhole.

    Args:
        device: The device; None for that of the system, as in `get_arch_name`.

    Returns:
        True for the family wormhole_b0.

    Raises:
        ArgumentTypeError: The argument is no device.

    Examples:
        >>> ttnn.device.is_wormhole_b0(device)
        True
    """
    return _arch("is_wormhole_b0", device) is Arch.WORMHOLE_B0


def is_blackhole(device: Device | None = None) -> bool:
    """Whether a device is a Blackhole.

    Args:
        device: The device; None for that of the system, as in `get_arch_name`.

    Returns:
        True for the family blackhole.

    Raises:
        ArgumentTypeError: The argument is no device.

    Examples:
        >>> ttnn.device.is_blackhole(device)
        False
    """
    return _arch("is_blackhole", device) is Arch.BLACKHOLE


def _arch(function: str, device: Device | None) -> Arch:
    require_type_or_none(function, Device, device=device)
    return Arch.of(system_spec() if device is None else device.spec)


def device_names() -> tuple[str, ...]:
    """The names of the device catalog, which ``open_device(spec=...)`` accepts.

    Returns:
        The names in alphabetical order.

    Examples:
        >>> ttnn.device_names()
        ('blackhole_p100', 'blackhole_p150', 'wormhole_n150', 'wormhole_n300')
    """
    return catalog_names()


class DispatchCoreType(PlainEnum):
    """The kind of cores that dispatch programs, with ttnn's names; dispatch takes no core here.

    Examples:
        >>> ttnn.DispatchCoreType.WORKER.value
        0
    """

    WORKER, ETH = range(2)


class DispatchCoreAxis(PlainEnum):
    """The side of the grid where dispatch cores lie, with ttnn's names; dispatch takes no core here.

    Examples:
        >>> ttnn.DispatchCoreAxis.COL.value
        1
    """

    ROW, COL = range(2)


@dataclass(slots=True)
class DispatchCoreConfig:
    """The cores that dispatch programs; accepted as in ttnn and without effect, since all worker cores work.

    Examples:
        >>> config = ttnn.DispatchCoreConfig(ttnn.DispatchCoreType.WORKER)
        >>> ttnn.close_device(ttnn.open_device(dispatch_core_config=config))
    """

    type: DispatchCoreType | None = None
    axis: DispatchCoreAxis | None = None
    fabric_tensix_config: object = None


@described(like=open_device)
def open_mesh_device(
    mesh_shape: MeshShape | None = None,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    num_command_queues: int = 1,
    dispatch_core_config: object = None,
    offset: MeshCoordinate | None = None,
    physical_device_ids: Sequence[int] = (),
    worker_l1_size: int = 0,
) -> Device:
    """Opens a mesh of one device; larger meshes are not simulated.

    Args:
        mesh_shape: Rows and columns of the mesh; only MeshShape(1, 1), which None stands for.
        offset: Place of the mesh in the system; only (0, 0).
        physical_device_ids: Empty, or the number of the device.

    Returns:
        The open device.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The mesh has more than one device or begins elsewhere.
        SpecError: The environment variable TTSIM_DEVICE names an unknown device.

    Examples:
        >>> with ttnn.open_mesh_device(ttnn.MeshShape(1, 1)) as mesh:
        ...     mesh.get_num_devices()
        1
    """
    shape = MeshShape(1, 1) if mesh_shape is None else mesh_shape
    require_type("open_mesh_device", MeshShape, mesh_shape=shape)
    if shape.mesh_size() != 1 or len(physical_device_ids) > 1 or any(offset or ()):
        raise ArgumentError(
            f"open_mesh_device: ttsim simulates one device, not {shape} at {list(offset or (0, 0))}; open "
            "MeshShape(1, 1)"
        )
    return open_device(
        physical_device_ids[0] if physical_device_ids else 0,
        l1_small_size=l1_small_size,
        trace_region_size=trace_region_size,
        num_command_queues=num_command_queues,
        worker_l1_size=worker_l1_size,
    )


close_mesh_device = close_device


@dataclass(frozen=True, slots=True)
class ReplicateTensorToMesh:
    """A mapper that copies a tensor to every device, which keeps the tensor as it is on one device.

    Examples:
        >>> mapper = ttnn.ReplicateTensorToMesh(device)
        >>> ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16, mesh_mapper=mapper).shape
        Shape([2, 2])
    """

    mesh_device: Device


@dataclass(frozen=True, slots=True)
class ShardTensorToMesh:
    """A mapper that distributes a tensor along ``dim``, which keeps the tensor as it is on one device.

    Examples:
        >>> mapper = ttnn.ShardTensorToMesh(device, dim=0)
        >>> ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16, mesh_mapper=mapper).shape
        Shape([2, 2])
    """

    mesh_device: Device
    dim: int


@dataclass(frozen=True, slots=True)
class ConcatMeshToTensor:
    """A composer that joins the parts of all devices along ``dim``; on one device there is one part.

    Examples:
        >>> ttnn.ConcatMeshToTensor(device, dim=0).dim
        0
    """

    mesh_device: Device
    dim: int
    mesh_shape_override: object = None


@dataclass(frozen=True, slots=True)
class ShardTensor2dMesh:
    """A mapper that distributes a tensor over rows and columns of devices; on one device it keeps the tensor.

    Examples:
        >>> ttnn.ShardTensor2dMesh(device, (1, 1), (0, 1)).dims
        (0, 1)
    """

    mesh_device: Device
    mesh_shape: object
    dims: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class ConcatMesh2dToTensor:
    """A composer that joins the parts of rows and columns of devices; on one device there is one part.

    Examples:
        >>> ttnn.ConcatMesh2dToTensor(device, (1, 1), (0, 1)).dims
        (0, 1)
    """

    mesh_device: Device
    mesh_shape: object
    dims: Sequence[int]


def replicate_tensor_to_mesh_mapper(mesh_device: Device) -> ReplicateTensorToMesh:
    """The mapper ReplicateTensorToMesh under its newer name.

    Args:
        mesh_device: The device.

    Returns:
        A mapper, which keeps a tensor as it is.

    Examples:
        >>> mapper = ttnn.replicate_tensor_to_mesh_mapper(device)
        >>> ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16, mesh_mapper=mapper).shape
        Shape([2, 2])
    """
    return ReplicateTensorToMesh(mesh_device)


def shard_tensor_to_mesh_mapper(mesh_device: Device, dim: int) -> ShardTensorToMesh:
    """The mapper ShardTensorToMesh under its newer name.

    Args:
        mesh_device: The device.
        dim: The axis that is distributed over devices.

    Returns:
        A mapper, which keeps a tensor as it is.

    Examples:
        >>> ttnn.shard_tensor_to_mesh_mapper(device, dim=0).dim
        0
    """
    return ShardTensorToMesh(mesh_device, dim)


def concat_mesh_to_tensor_composer(mesh_device: Device, dim: int) -> ConcatMeshToTensor:
    """The composer ConcatMeshToTensor under its newer name.

    Args:
        mesh_device: The device.
        dim: The axis along which the parts of devices are joined.

    Returns:
        A composer, which keeps a tensor as it is.

    Examples:
        >>> ttnn.concat_mesh_to_tensor_composer(device, dim=0).dim
        0
    """
    return ConcatMeshToTensor(mesh_device, dim)


class SystemMeshDescriptor:
    """The devices of the system.

    Examples:
        >>> ttnn.SystemMeshDescriptor().shape()
        MeshShape([1, 1])
    """

    def shape(self) -> MeshShape:
        """One row, one column."""
        return MeshShape(1, 1)


def using_distributed_env() -> bool:
    """Whether several processes drive devices together.

    Returns:
        False.

    Examples:
        >>> ttnn.using_distributed_env()
        False
    """
    return False


class FabricConfig(PlainEnum):
    """Links between devices, with ttnn's names; there are none, so only DISABLED can be set.

    Examples:
        >>> ttnn.FabricConfig.DISABLED.value
        0
    """

    DISABLED, FABRIC_1D_NEIGHBOR_EXCHANGE, FABRIC_1D, FABRIC_1D_RING, FABRIC_2D = range(5)
    FABRIC_2D_TORUS_X, FABRIC_2D_TORUS_Y, FABRIC_2D_TORUS_XY, CUSTOM = range(5, 9)


class FabricTensixConfig(PlainEnum):
    """Worker cores that serve links between devices, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricTensixConfig.DISABLED.value
        0
    """

    DISABLED, MUX = range(2)


class FabricReliabilityMode(PlainEnum):
    """How links between devices are established, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricReliabilityMode.RELAXED_INIT.value
        1
    """

    STRICT_INIT, RELAXED_INIT, DYNAMIC_RECONFIG = range(3)


class FabricUDMMode(PlainEnum):
    """Whether data moves over links by the fabric's own kernels, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricUDMMode.DISABLED.value
        0
    """

    DISABLED, ENABLED = range(2)


class FabricManagerMode(PlainEnum):
    """Who manages links between devices, with ttnn's names; there are no links.

    Examples:
        >>> ttnn.FabricManagerMode.DEFAULT.value
        3
    """

    ENABLED, INIT_FABRIC, TERMINATE_FABRIC, DEFAULT = range(4)


def set_fabric_config(config: FabricConfig, *settings: object) -> None:
    """Sets the links between devices; there are none, so only DISABLED can be set.

    Args:
        config: FabricConfig.DISABLED.
        settings: Accepted as in ttnn; there are no links.

    Raises:
        ArgumentTypeError: ``config`` is no FabricConfig.
        ArgumentError: ``config`` asks for links.

    Examples:
        >>> ttnn.set_fabric_config(ttnn.FabricConfig.DISABLED)
    """
    require_type("set_fabric_config", FabricConfig, config=config)
    if config is not FabricConfig.DISABLED:
        raise ArgumentError(f"set_fabric_config: ttsim simulates one device, which has no links; not {config}")
