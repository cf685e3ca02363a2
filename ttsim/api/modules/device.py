"""ttnn.device: names of devices that scripts import from there."""

from ttsim.runtime.device import (
    DEFAULT_L1_SMALL_SIZE as DEFAULT_L1_SMALL_SIZE,
    DEFAULT_TRACE_REGION_SIZE as DEFAULT_TRACE_REGION_SIZE,
    Arch as Arch,
    CloseDevice as CloseDevice,
    CreateDevice as CreateDevice,
    Device as Device,
    close_device as close_device,
    manage_device as manage_device,
    open_device as open_device,
)
from ttsim.runtime.system import (
    DispatchCoreAxis as DispatchCoreAxis,
    DispatchCoreConfig as DispatchCoreConfig,
    DispatchCoreType as DispatchCoreType,
    GetDefaultDevice as GetDefaultDevice,
    GetNumAvailableDevices as GetNumAvailableDevices,
    GetNumPCIeDevices as GetNumPCIeDevices,
    GetPCIeDeviceID as GetPCIeDeviceID,
    ReadDeviceProfiler as ReadDeviceProfiler,
    SetDefaultDevice as SetDefaultDevice,
    get_arch_name as get_arch_name,
    is_blackhole as is_blackhole,
    is_wormhole_b0 as is_wormhole_b0,
    synchronize_device as synchronize_device,
)
