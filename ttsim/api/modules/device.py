"""ttnn.device: names of devices that scripts import from there."""

from ttsim.runtime.device import (
    DEFAULT_L1_SMALL_SIZE,
    DEFAULT_TRACE_REGION_SIZE,
    Arch,
    CloseDevice,
    CreateDevice,
    Device,
    close_device,
    manage_device,
    open_device,
)
from ttsim.runtime.mesh import DispatchCoreAxis, DispatchCoreConfig, DispatchCoreType
from ttsim.runtime.system import (
    GetDefaultDevice,
    GetNumAvailableDevices,
    GetNumPCIeDevices,
    GetPCIeDeviceID,
    ReadDeviceProfiler,
    SetDefaultDevice,
    get_arch_name,
    is_blackhole,
    is_wormhole_b0,
    synchronize_device,
)

__all__ = [
    "DEFAULT_L1_SMALL_SIZE",
    "DEFAULT_TRACE_REGION_SIZE",
    "Arch",
    "CloseDevice",
    "CreateDevice",
    "Device",
    "DispatchCoreAxis",
    "DispatchCoreConfig",
    "DispatchCoreType",
    "GetDefaultDevice",
    "GetNumAvailableDevices",
    "GetNumPCIeDevices",
    "GetPCIeDeviceID",
    "ReadDeviceProfiler",
    "SetDefaultDevice",
    "close_device",
    "get_arch_name",
    "is_blackhole",
    "is_wormhole_b0",
    "manage_device",
    "open_device",
    "synchronize_device",
]
