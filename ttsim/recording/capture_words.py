"""What a capture prints of tensors and of the arguments of operations, in the real library's words.

A device, which it prints as an address in the memory of the host, is <MeshDevice> here, so that equal calls give equal
captures, and whether a place was given to a tensor that goes there is left open. A tensor's layout is told without its
alignment. Of what an operation was told, it prints a structure of its own by the order of its fields; here they are
those that its profiler prints, by name, as far as the operation's program knows them.
"""

import json
from collections.abc import Iterable, Mapping

from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout
from device.plan import MadeTensor

MESH_ID = 1  # the real library numbers the first mesh so
DEVICE_ID = 0  # and the first device of it
FACE = TILE // 2
DEVICE = "<MeshDevice>"


def host_params(spec: TensorSpec, number: int) -> dict[str, object]:
    """The parameters of the node of a tensor on the host."""
    element_bytes = spec.data_format.element_bytes or 1  # as the real library counts block floats
    return {
        "dtype": _dtype(spec),
        "layout": f"Layout::{spec.layout.name}",
        "shape": shape_text(spec),
        "size": spec.volume * element_bytes,
        "storage_type": "HOST",
        "tensor_id": number,
    }


def device_params(made: MadeTensor, buffer: Mapping[str, object]) -> dict[str, object]:
    """The parameters of the node of a tensor on the device, in the buffer of a node."""
    where = {"address": made.address, "device_id": DEVICE_ID, "mesh_device_id": MESH_ID}
    return {
        **host_params(made.spec, made.number),
        "address": made.address,
        "buffer_type": buffer["buffer_type"],
        "device_id": buffer["device_id"],
        "device_tensors": json.dumps([where], separators=(",", ":")),
        "memory_config": str(made.spec.memory_config),
        "storage_type": "DEVICE",
    }


def buffer_params(buffer: BufferSpec) -> dict[str, object]:
    """What every node about a buffer says."""
    kind = buffer.buffer_type
    return {
        "buffer_type": kind.value,
        "device_id": MESH_ID,
        "layout": buffer.memory_layout.name,
        "size": buffer.size_bytes,
        "type": "DRAM" if kind is BufferType.DRAM else "L1",
    }


def tensor_text(spec: TensorSpec, *, storage: str) -> str:
    """A tensor as an argument; its storage is DeviceStorage or HostStorage."""
    config = "RowMajorPageConfig()"
    if spec.layout is Layout.TILE:
        config = f"TilePageConfig(tile=Tile(tile_shape={{{TILE}, {TILE}}},face_shape={{{FACE}, {FACE}}},num_faces=4))"
    return (
        f"Tensor(storage={storage}(),tensor_spec=TensorSpec(logical_shape={shape_text(spec)},tensor_layout="
        f"TensorLayout(dtype={_dtype(spec)},page_config=PageConfig(config={config}),"
        f"memory_config={spec.memory_config})))"
    )


def operation_arguments(attributes: Iterable[tuple[str, str]], read: Iterable[TensorSpec]) -> list[str]:
    """The two arguments of a device operation: what it was told, and the tensors that it reads."""
    told = ", ".join(f"{name}={value}" for name, value in attributes)
    tensors = ", ".join(tensor_text(one, storage="DeviceStorage") for one in read)
    return [f"operation_attributes_t({told})", f"{{{tensors}}}"]


def made_arguments(spec: TensorSpec) -> list[str]:
    """The arguments of the function that makes a tensor on the device."""
    return [shape_text(spec), _dtype(spec), f"Layout::{spec.layout.name}", DEVICE, str(spec.memory_config)]


def sent_arguments(host: TensorSpec) -> list[str]:
    """The arguments of the function that brings a tensor to the device."""
    return [tensor_text(host, storage="HostStorage"), DEVICE, "<optional>"]


def fetched_arguments(on_device: TensorSpec) -> list[str]:
    """The arguments of the function that brings a tensor from the device: itself, and that it waits."""
    return [tensor_text(on_device, storage="DeviceStorage"), "1"]


def shape_text(spec: TensorSpec) -> str:
    """The logical shape."""
    return f"Shape({list(spec.shape)})"


def _dtype(spec: TensorSpec) -> str:
    return f"DataType::{spec.data_format.name.upper()}"
