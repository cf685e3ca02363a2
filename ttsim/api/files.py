"""Tensors in files, under ttnn's names, in a format of ttsim: values of numpy with data type and layout beside them."""

import json
import zlib
from math import prod
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from device.errors import ArgumentError
from device.memory.memory_config import Layout
from device.numbers.formats import Array
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.types.dtypes import DataType
from ttsim.types.signature import require_type, require_type_or_none


def dump_tensor(file_name: str | Path, tensor: Tensor) -> None:
    """Writes a tensor; its place on a device is not written.

    Args:
        file_name: The file; the name is taken as it is.
        tensor: The tensor.

    Raises:
        DeviceError: It was deallocated, or its device computes no values.
        OSError: The file cannot be written.
    """
    require_type("dump_tensor", Tensor, tensor=tensor)
    kind = json.dumps({"dtype": tensor.dtype.name, "layout": tensor.layout.name})
    with Path(file_name).open("wb") as file:
        np.savez(file, values=tensor.to_numpy(), kind=np.array(kind))


def load_tensor(file_name: str | Path, device: Device | None = None) -> Tensor:
    """A tensor that `dump_tensor` wrote.

    Args:
        file_name: The file.
        device: Where to put it, in DRAM; None for the host.

    Raises:
        OSError: The file cannot be read.
        ArgumentError: It is no such file, or shorter than the values that it claims to hold; files of the real library
            have another format.
    """
    require_type_or_none("load_tensor", Device, device=device)
    path = Path(file_name)
    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            values, kind = (_array(archive, name, path) for name in ("values", "kind"))
        told = json.loads(str(kind))
        dtype, layout = DataType[told["dtype"]], Layout[told["layout"]]
    except (ArgumentError, OSError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, BadZipFile, zlib.error):
        raise ArgumentError(f"load_tensor: {file_name} is no file of ttsim.dump_tensor; write it anew") from None
    return Tensor(values, dtype, device, layout)


def _array(archive: ZipFile, name: str, path: Path) -> Array:
    """An array of a file, for which no memory is taken before the file is known to be long enough."""
    with archive.open(f"{name}.npy") as member:
        wide = np.lib.format.read_magic(member) > (1, 0)
        read = np.lib.format.read_array_header_2_0 if wide else np.lib.format.read_array_header_1_0
        shape, _, dtype = read(member)
    needed, there = prod(shape) * dtype.itemsize, path.stat().st_size
    if needed > there:
        raise ArgumentError(
            f"load_tensor: {path} claims {name} of the shape {list(shape)}, {needed:,} bytes, and has {there:,}; "
            "write it anew"
        )
    with archive.open(f"{name}.npy") as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
