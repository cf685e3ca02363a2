"""A simulator of ttnn's transposed convolution: the bits, the memory map and the cycles, without a card.

``import ttsim as ttnn`` and an ordinary script runs unchanged. Names are loaded when they are first asked for, so that
importing the package costs next to nothing; ``__init__.pyi`` says the same to type checkers.
"""

import sys as _sys
from importlib import import_module as _import_module

from ttsim import _siblings as _siblings  # first: it names a foreign `ops` or `device`

_NAMES_OF = {
    "device.cores": ("CoreCoord", "CoreGrid", "CoreRange", "CoreRangeSet"),
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
    "ttsim.functions.concatenation": ("concat",),
    "ttsim.functions.constraints": ("ExecutionStatus", "OpConstraints", "query_op_constraints"),
    "ttsim.functions.conv2d": ("conv2d",),
    "ttsim.functions.conv_transpose2d": ("conv_transpose2d",),
    "ttsim.functions.conversions": (
        "as_tensor",
        "deallocate",
        "from_device",
        "from_numpy",
        "from_torch",
        "is_tensor_storage_on_device",
        "reshape",
        "to_device",
        "to_dtype",
        "to_layout",
        "to_memory_config",
        "to_torch",
        "typecast",
    ),
    "ttsim.functions.elementwise": (
        "abs",
        "add",
        "elu",
        "exp",
        "gelu",
        "hardsigmoid",
        "hardswish",
        "leaky_relu",
        "log",
        "multiply",
        "relu",
        "relu6",
        "sigmoid",
        "silu",
        "sqrt",
        "square",
        "subtract",
        "tanh",
    ),
    "ttsim.functions.matmul": ("linear", "matmul"),
    "ttsim.functions.pooling": ("max_pool2d",),
    "ttsim.functions.preparation": ("prepare_conv_transpose2d_bias", "prepare_conv_transpose2d_weights"),
    "ttsim.functions.rearranging": ("pad", "permute", "transpose", "upsample"),
    "ttsim.functions.relaying": (
        "interleaved_to_sharded",
        "move",
        "reallocate",
        "reshard",
        "sharded_to_interleaved",
        "tilize",
        "tilize_with_val_padding",
        "tilize_with_zero_padding",
        "untilize",
        "untilize_with_unpadding",
    ),
    "ttsim.recording.memory_reports": ("MemoryView", "dump_device_memory_state", "get_memory_view"),
    "ttsim.recording.profiling": ("Profile", "estimate_cycles", "profile"),
    "ttsim.report.cycles.report": ("CycleReport",),
    "ttsim.runtime.device": (
        "Arch",
        "CloseDevice",
        "CreateDevice",
        "Device",
        "GetDefaultDevice",
        "GetNumAvailableDevices",
        "GetNumPCIeDevices",
        "GetPCIeDeviceID",
        "MeshDevice",
        "SetDefaultDevice",
        "close_device",
        "device_names",
        "manage_device",
        "open_device",
        "synchronize_device",
    ),
    "ttsim.runtime.storage": ("StorageType",),
    "ttsim.runtime.tensor": ("Tensor",),
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
    "ttsim.types.shapes": ("ROW_MAJOR_LAYOUT", "TILE_LAYOUT", "TILE_SIZE", "Shape"),
}  # every public name stands once, under the module that makes it
_MODULES = ("errors", "experimental", "graph", "onednn")  # modules of this package that are public names themselves
_HOME_OF = {name: home for home, names in _NAMES_OF.items() for name in names}

__all__ = sorted((*_HOME_OF, *_MODULES))


def __getattr__(name: str) -> object:
    """Loads a public name when it is first asked for, and keeps it."""
    if name in _MODULES:
        return _import_module(f"ttsim.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=_sys.modules[__name__])
    value = globals()[name] = getattr(_import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    """All names, loaded or not."""
    return sorted({*globals(), *__all__})
