"""The only place that touches torch, which is optional: loaded when a torch tensor is asked for, never before."""

import sys
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from device.numbers.formats import Array


def is_torch(data: object) -> bool:
    """Whether ``data`` is a torch tensor; does not load torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.Tensor)


def numpy_from_torch(tensor: Any) -> Array:
    """The values of a torch tensor; bfloat16 stays bfloat16."""
    torch = import_module("torch")
    host = tensor.detach().cpu().contiguous()
    if host.dtype == torch.bfloat16:
        return np.asarray(host.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(host.numpy())


def torch_from_numpy(values: Array, format_name: str) -> Any:
    """A torch tensor of values.

    Args:
        values: float32 or integers.
        format_name: "bfloat16" makes a bfloat16 tensor; other floats stay float32.

    Raises:
        ImportError: torch is not installed.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise ImportError("to_torch needs torch; install ttsim[torch], or use to_numpy()") from error
    if values.dtype.kind == "u" and values.dtype.itemsize > 1:
        values = values.astype(np.int64)
    tensor = torch.from_numpy(values)
    return tensor.to(torch.bfloat16) if format_name == "bfloat16" else tensor
