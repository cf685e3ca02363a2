"""Parameters of single torch modules in the form that functions of ttnn accept."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from device.errors import ArgumentError
from device.memory.memory_config import Layout
from ttsim.api.conversions import from_torch
from ttsim.model_preprocessing.parameters import ParameterDict
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.of_torch import TorchTensor
from ttsim.runtime.types.tensors import DataType


def preprocess_linear_weight(
    weight: Any, *, dtype: DataType, layout: Layout = Layout.TILE, weights_mesh_mapper: Any = None
) -> Tensor:
    """The weight of a torch Linear, transposed for `linear`.

    Args:
        weight: [out, in], a torch tensor.
        dtype: Data type of the result.
        layout: Layout of the result.
        weights_mesh_mapper: Accepted as in ttnn; there is one device.

    Returns:
        [in, out], on the host.

    Raises:
        AttributeError: ``weight`` is not a torch tensor.
        ArgumentTypeError: Another argument is of the wrong type.

    Examples:
        >>> import torch
        >>> ttnn.model_preprocessing.preprocess_linear_weight(torch.zeros(8, 4), dtype=ttnn.bfloat16).shape
        Shape([4, 8])
    """
    return from_torch(weight.T.contiguous(), dtype, layout=layout, mesh_mapper=weights_mesh_mapper)


def preprocess_linear_bias(
    bias: Any, *, dtype: DataType, layout: Layout = Layout.TILE, weights_mesh_mapper: Any = None
) -> Tensor:
    """The bias of a torch Linear, as one row for `linear`.

    Args:
        bias: [out], a torch tensor.
        dtype: Data type of the result.
        layout: Layout of the result.
        weights_mesh_mapper: Accepted as in ttnn; there is one device.

    Returns:
        [1, out], on the host.

    Raises:
        AttributeError: ``bias`` is not a tensor.
        ArgumentTypeError: Another argument is of the wrong type.

    Examples:
        >>> import torch
        >>> ttnn.model_preprocessing.preprocess_linear_bias(torch.zeros(8), dtype=ttnn.bfloat16).shape
        Shape([1, 8])
    """
    return from_torch(bias.reshape((1, -1)), dtype, layout=layout, mesh_mapper=weights_mesh_mapper)


def preprocess_layernorm_parameter(parameter: Any, *, dtype: DataType, layout: Layout = Layout.TILE) -> Tensor:
    """A parameter of a torch LayerNorm, as one row.

    Args:
        parameter: [sides], a torch tensor.
        dtype: Data type of the result.
        layout: Layout of the result.

    Returns:
        [1, sides], on the host.

    Raises:
        AttributeError: ``parameter`` is not a tensor.
        ArgumentTypeError: Another argument is of the wrong type.

    Examples:
        >>> import torch
        >>> ttnn.model_preprocessing.preprocess_layernorm_parameter(torch.ones(8), dtype=ttnn.bfloat16).shape
        Shape([1, 8])
    """
    return from_torch(parameter.reshape((1, -1)), dtype, layout=layout)


def preprocess_embedding_weight(weight: Any, *, dtype: DataType) -> Tensor:
    """The weight of a torch Embedding.

    Args:
        weight: [rows, columns], a torch tensor.
        dtype: Data type of the result.

    Returns:
        [rows, columns], on the host.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> import torch
        >>> ttnn.model_preprocessing.preprocess_embedding_weight(torch.zeros(8, 4), dtype=ttnn.bfloat16).shape
        Shape([8, 4])
    """
    return from_torch(weight, dtype)


def fold_batch_norm2d_into_conv2d(conv: Any, bn: Any) -> tuple[TorchTensor, TorchTensor]:
    """Weight and bias of a convolution equal to a torch Conv2d followed by a BatchNorm2d, in evaluation mode.

    Args:
        conv: The Conv2d.
        bn: The BatchNorm2d.

    Returns:
        The weight and the bias, as torch tensors.

    Raises:
        AttributeError: An argument is another module.
        ArgumentError: The batch norm keeps no statistics.

    Examples:
        >>> import torch
        >>> conv, norm = torch.nn.Conv2d(4, 8, 3), torch.nn.BatchNorm2d(8)
        >>> weight, bias = ttnn.model_preprocessing.fold_batch_norm2d_into_conv2d(conv, norm)
        >>> tuple(weight.shape), tuple(bias.shape)
        ((8, 4, 3, 3), (8,))
    """
    if not bn.track_running_stats:
        raise ArgumentError("BatchNorm2d must have track_running_stats=True to be folded into Conv2d")
    gain = bn.weight / import_module("torch").sqrt(bn.running_var + bn.eps)
    before = 0 if conv.bias is None else conv.bias
    return conv.weight * gain[:, None, None, None], (before - bn.running_mean) * gain + bn.bias


def default_preprocessor(model: Any, name: str, ttnn_module_args: Any) -> ParameterDict:
    """The parameters of a torch Linear, LayerNorm or Embedding in the form that functions of ttnn accept.

    Args:
        model: The torch module.
        name: Name of the module; not used.
        ttnn_module_args: The arguments of the module; not used.

    Returns:
        The parameters by name; an empty ParameterDict for other modules.

    Examples:
        >>> import torch
        >>> list(ttnn.model_preprocessing.default_preprocessor(torch.nn.Linear(4, 8), "", None))
        ['weight', 'bias']
    """
    nn, dtype = import_module("torch").nn, DataType.BFLOAT16
    preprocessors: dict[Any, dict[str, Callable[..., Tensor]]] = {
        nn.Linear: {"weight": preprocess_linear_weight, "bias": preprocess_linear_bias},
        nn.LayerNorm: dict.fromkeys(("weight", "bias"), preprocess_layernorm_parameter),
        nn.Embedding: {"weight": preprocess_embedding_weight},
    }
    functions = next((functions for kind, functions in preprocessors.items() if isinstance(model, kind)), {})
    own = {key: getattr(model, key) for key in functions}
    return ParameterDict({key: functions[key](value, dtype=dtype) for key, value in own.items() if value is not None})
