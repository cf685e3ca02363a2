"""The real library's spelling of tensors, memory configs and cores, as far as viewers read them."""

import re
from typing import Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig
from ops.window import ranges_text
from ttsim.report.formatting import printable

CORE: Final = re.compile(r"(\d+)-(\d+)")
GENERATED: Final = "Codegen"  # in names such as UntilizeCodegenDeviceOperation


def operation_name(name: str) -> str:
    """The name that viewers know; an operation with generated kernels has the name of the usual operation."""
    return printable(name.replace(GENERATED, ""))


def shape_text(spec: TensorSpec) -> str:
    """The logical shape."""
    return f"Shape({list(spec.shape)})"


def dtype_text(spec: TensorSpec) -> str:
    """The data type: BFLOAT16, BFLOAT8_B ..."""
    return spec.data_format.name.upper()


def place_text(config: MemoryConfig) -> str:
    """A buffer type and its memory layout: L1_HEIGHT_SHARDED."""
    return f"{config.buffer_type.name}_{config.memory_layout.name}"


def memory_config_text(config: MemoryConfig) -> str:
    """A memory config; its shards have the ``halo`` that viewers look for."""
    shards = config.shard_spec
    dealt = "std::nullopt"
    if shards is not None:
        dealt = (
            f"ShardSpec(grid={ranges_text(shards.grid)},shape={{{shards.shape[0]}, {shards.shape[1]}}},"
            f"orientation=ShardOrientation::{shards.orientation.name},halo=0)"
        )
    return (
        f"MemoryConfig(memory_layout=TensorMemoryLayout::{config.memory_layout.name},"
        f"buffer_type=BufferType::{config.buffer_type.name},shard_spec={dealt},nd_shard_spec=std::nullopt,"
        "created_with_nd_shard_spec=0)"
    )


def viewer_ranges(cores: str) -> str:
    """The cores {[0-0 - 7-7]} of a capture with named coordinates."""
    return CORE.sub(r"(x=\1,y=\2)", cores)
