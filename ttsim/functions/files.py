"""Tensors in files, under ttnn's names, in a format of ttsim: values of numpy with data type and layout beside them."""

import json
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from device.errors import ArgumentError
from device.memory.memory_config import Layout
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
        ArgumentError: It is no such file; those of the real library are another format.
    """
    require_type_or_none("load_tensor", Device, device=device)
    try:
        with Path(file_name).open("rb") as file, np.load(file, allow_pickle=False) as read:
            values, kind = read["values"], json.loads(str(read["kind"]))
        dtype, layout = DataType[kind["dtype"]], Layout[kind["layout"]]
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, BadZipFile):
        raise ArgumentError(f"load_tensor: {file_name} is no file of ttsim.dump_tensor; write it anew") from None
    return Tensor(values, dtype, device, layout)
