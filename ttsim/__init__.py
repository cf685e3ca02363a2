"""A simulator of ttnn's transposed convolution: the bits, the memory map and the cycles, without a card.

``import ttsim as ttnn`` and an ordinary script runs unchanged. Names are loaded when they are first asked for, so that
importing the package costs next to nothing; ``__init__.pyi`` says the same to type checkers.
"""

import sys as _sys
from importlib import import_module as _import_module

from ttsim import _siblings as _siblings  # first: it names a foreign `ops` or `device`

_NAMES_OF = {
    "device.cores": ("CoreCoord", "CoreGrid", "CoreRange", "CoreRangeSet"),
    "device.memory.layouts": ("TensorSpec",),
    "device.memory.memory_config": (
        "DRAM_MEMORY_CONFIG",
        "L1_BLOCK_SHARDED_MEMORY_CONFIG",
        "L1_HEIGHT_SHARDED_MEMORY_CONFIG",
        "L1_MEMORY_CONFIG",
        "L1_WIDTH_SHARDED_MEMORY_CONFIG",
        "BufferType",
        "Layout",
        "MemoryConfig",
        "ShardOrientation",
        "ShardSpec",
        "TensorMemoryLayout",
    ),
    "device.spec.device_spec": ("DeviceSpec",),
    "ops.meanings": ("load_spec",),
    "ttsim.errors": (
        "ArgumentError",
        "ArgumentTypeError",
        "CircularBufferError",
        "DeviceClosedError",
        "DeviceError",
        "MemoryAccessError",
        "OutOfMemoryError",
        "PoisonError",
        "SpecError",
        "TTSimError",
    ),
    "ttsim.functions.constraints": ("ExecutionStatus", "OpConstraints", "query_op_constraints"),
    "ttsim.functions.conv2d": ("conv2d",),
    "ttsim.functions.conv2d_preparation": ("prepare_conv_bias", "prepare_conv_weights"),
    "ttsim.functions.conv_transpose2d": ("conv_transpose2d",),
    "ttsim.functions.conversions": (
        "as_tensor",
        "deallocate",
        "from_device",
        "from_numpy",
        "from_torch",
        "get_memory_config",
        "is_tensor_storage_on_device",
        "reshape",
        "squeeze",
        "to_device",
        "to_dtype",
        "to_layout",
        "to_memory_config",
        "to_torch",
        "typecast",
        "unsqueeze",
        "unsqueeze_to_4D",
    ),
    "ttsim.functions.creation": (
        "arange",
        "empty",
        "empty_like",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "rand",
        "zeros",
        "zeros_like",
    ),
    "ttsim.functions.files": ("dump_tensor", "load_tensor"),
    "ttsim.functions.matmul": ("linear", "matmul"),
    "ttsim.functions.preparation": ("prepare_conv_transpose2d_bias", "prepare_conv_transpose2d_weights"),
    "ttsim.functions.tracing": (
        "begin_trace_capture",
        "end_trace_capture",
        "event_synchronize",
        "execute_trace",
        "record_event",
        "release_trace",
        "wait_for_event",
    ),
    "ttsim.recording.memory_reports": ("MemoryView", "dump_device_memory_state", "get_memory_view"),
    "ttsim.recording.profiling": ("Profile", "estimate_cycles", "profile"),
    "ttsim.report.cycles.report": ("CycleReport",),
    "ttsim.runtime.config": (
        "CONFIG",
        "CONFIG_OVERRIDES",
        "CONFIG_PATH",
        "Config",
        "load_config_from_dictionary",
        "load_config_from_json_file",
        "manage_config",
        "save_config_to_json_file",
    ),
    "ttsim.runtime.device": (
        "Arch",
        "CloseDevice",
        "CreateDevice",
        "Device",
        "MeshDevice",
        "close_device",
        "manage_device",
        "open_device",
    ),
    "ttsim.runtime.mesh": (
        "ConcatMesh2dToTensor",
        "ConcatMeshToTensor",
        "DispatchCoreAxis",
        "DispatchCoreConfig",
        "DispatchCoreType",
        "FabricConfig",
        "FabricManagerMode",
        "FabricReliabilityMode",
        "FabricTensixConfig",
        "FabricUDMMode",
        "ReplicateTensorToMesh",
        "ShardTensor2dMesh",
        "ShardTensorToMesh",
        "SystemMeshDescriptor",
        "close_mesh_device",
        "concat_mesh_to_tensor_composer",
        "open_mesh_device",
        "replicate_tensor_to_mesh_mapper",
        "set_fabric_config",
        "shard_tensor_to_mesh_mapper",
        "using_distributed_env",
    ),
    "ttsim.runtime.mesh_shape": ("MeshCoordinate", "MeshShape"),
    "ttsim.runtime.storage": ("StorageType",),
    "ttsim.runtime.system": (
        "ClusterType",
        "GetDefaultDevice",
        "GetNumAvailableDevices",
        "GetNumPCIeDevices",
        "GetPCIeDeviceID",
        "ReadDeviceProfiler",
        "SetDefaultDevice",
        "device_names",
        "get_arch_name",
        "get_device_ids",
        "get_num_devices",
        "get_pcie_device_ids",
        "is_blackhole",
        "is_wormhole_b0",
        "synchronize_device",
    ),
    "ttsim.runtime.tensor": ("Tensor",),
    "ttsim.runtime.tensor_copies": (
        "allocate_tensor_on_device",
        "allocate_tensor_on_host",
        "copy_device_to_host_tensor",
        "copy_host_to_device_tensor",
        "from_host_shards",
        "get_device_tensors",
    ),
    "ttsim.runtime.traces": ("MeshEvent", "MeshTraceId"),
    "ttsim.types.activations": ("UnaryOpType", "UnaryWithParam"),
    "ttsim.types.compute_config": (
        "BlackholeComputeKernelConfig",
        "DeviceComputeKernelConfig",
        "MathFidelity",
        "ThrottleLevel",
        "WormholeComputeKernelConfig",
        "init_device_compute_kernel_config",
    ),
    "ttsim.types.conv_config": (
        "Conv2dConfig",
        "Conv2dDRAMSliceHeight",
        "Conv2dDRAMSliceWidth",
        "Conv2dL1Full",
        "Conv2dL1FullSliceConfig",
        "Conv2dSliceConfig",
        "PaddingMode",
    ),
    "ttsim.types.description": ("TensorDescription",),
    "ttsim.types.dtypes": (
        "DataType",
        "bfloat4_b",
        "bfloat8_b",
        "bfloat16",
        "float32",
        "int32",
        "uint8",
        "uint16",
        "uint32",
    ),
    "ttsim.types.shapes": ("ROW_MAJOR_LAYOUT", "TILE_LAYOUT", "TILE_SIZE", "Shape", "Tile"),
    "ttsim.types.sharding": ("ShardStrategy", "create_sharded_memory_config", "num_cores_to_corerangeset"),
}  # every public name stands once, under the module that makes it
_MODULES = (
    "cluster",
    "database",
    "device",
    "errors",
    "experimental",
    "graph",
    "model_preprocessing",
    "onednn",
    "tracer",
)  # modules of this package that are public names themselves
_HOME_OF = {name: home for home, names in _NAMES_OF.items() for name in names}

__all__ = sorted((*_HOME_OF, *_MODULES))


def __getattr__(name: str) -> object:
    """Loads a public name when it is first asked for, and keeps it."""
    if name in _MODULES:
        return _import_module(f"ttsim.{name}")
    if name not in _HOME_OF:
        plain = f"module {__name__!r} has no attribute {name!r}"
        text = plain if name.startswith("_") else _import_module("ttsim.missing").refusal(name, __all__)
        raise AttributeError(text, name=name, obj=_sys.modules[__name__])
    value = globals()[name] = getattr(_import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    """All names, loaded or not."""
    return sorted({*globals(), *__all__})
