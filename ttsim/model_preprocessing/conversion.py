"""Turning the parameters of a torch model into tensors, by default or as a user's function says."""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

from device.errors import ArgumentError
from device.memory.memory_config import Layout
from ttsim.api.conversions import from_torch, to_device
from ttsim.model_preprocessing.module_args import infer_ttnn_module_args, merge_ttnn_module_args_into_parameters
from ttsim.model_preprocessing.parameters import ParameterDict, ParameterList, make_parameter_dict
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.tensors import DataType

Choice = Callable[[Any, str], bool]
Preprocessor = Callable[..., Any]
DTYPES = {
    "uint8": DataType.UINT8,
    "int16": DataType.UINT16,
    "int32": DataType.INT32,
    "int64": DataType.UINT32,
    "bfloat16": DataType.BFLOAT16,
    "float32": DataType.BFLOAT16,
    "float64": DataType.BFLOAT16,
}
EXTRAS = ("ttnn_module_args", "convert_to_ttnn")  # what a user's function may ask for besides model and name


def preprocess_linear_weight(
    weight: Any, *, dtype: DataType, layout: Layout = Layout.TILE, weights_mesh_mapper: Any = None
) -> Tensor:
    """The weight of a Linear, [out, in], as ttnn.linear takes it: [in, out]."""
    return from_torch(weight.T.contiguous(), dtype, layout=layout, mesh_mapper=weights_mesh_mapper)


def preprocess_linear_bias(
    bias: Any, *, dtype: DataType, layout: Layout = Layout.TILE, weights_mesh_mapper: Any = None
) -> Tensor:
    """The bias of a Linear, [out], as one row."""
    return from_torch(bias.reshape((1, -1)), dtype, layout=layout, mesh_mapper=weights_mesh_mapper)


def preprocess_layernorm_parameter(parameter: Any, *, dtype: DataType, layout: Layout = Layout.TILE) -> Tensor:
    """A parameter of a LayerNorm, as one row."""
    return from_torch(parameter.reshape((1, -1)), dtype, layout=layout)


def preprocess_embedding_weight(weight: Any, *, dtype: DataType) -> Tensor:
    """The weight of an Embedding."""
    return from_torch(weight, dtype)


def fold_batch_norm2d_into_conv2d(conv: Any, bn: Any) -> tuple[Any, Any]:
    """Weight and bias of a convolution that does what a convolution and the batch norm after it do.

    Args:
        conv: A torch Conv2d, weight [O, I, kernel height, kernel width].
        bn: A torch BatchNorm2d of O channels, in evaluation.

    Raises:
        ArgumentError: The batch norm keeps no statistics.
    """
    if not bn.track_running_stats:
        raise ArgumentError("BatchNorm2d must have track_running_stats=True to be folded into Conv2d")
    gain = bn.weight / import_module("torch").sqrt(bn.running_var + bn.eps)
    before = 0 if conv.bias is None else conv.bias
    return conv.weight * gain[:, None, None, None], (before - bn.running_mean) * gain + bn.bias


def convert_torch_model_to_ttnn_model(
    model: Any, *, convert_to_ttnn: Choice, custom_preprocessor: Preprocessor | None, name: str, ttnn_module_args: Any
) -> Any:
    """The parameters of a module and of the modules in it.

    Args:
        model: The torch module.
        convert_to_ttnn: Says of a module and its name whether its own parameters become tensors of ttsim.
        custom_preprocessor: Gives the parameters of a module and its name in its own way; nothing for the default.
        name: Of the module in the whole model.
        ttnn_module_args: What it was called with; None if that is not known.

    Raises:
        ArgumentError: The preprocessor takes other arguments.
    """
    nn = import_module("torch").nn
    options: dict[str, Any] = {"convert_to_ttnn": convert_to_ttnn, "custom_preprocessor": custom_preprocessor}
    if isinstance(model, nn.ModuleList):
        return ParameterList(
            convert_torch_model_to_ttnn_model(
                child,
                name=_inside(name, index),
                ttnn_module_args=None if ttnn_module_args is None else ttnn_module_args.get(index),
                **options,
            )
            for index, child in enumerate(model.children())
        )
    if custom_preprocessor is not None:
        extras = {"ttnn_module_args": ttnn_module_args, "convert_to_ttnn": convert_to_ttnn}
        parameters = custom_preprocessor(
            model, name, **{extra: extras[extra] for extra in _extras(custom_preprocessor)}
        )
        if parameters:
            return make_parameter_dict(parameters)
    converts = convert_to_ttnn(model, name)
    usual = default_preprocessor(model, name, ttnn_module_args) if converts else {}
    if usual:
        return make_parameter_dict(usual)
    parameters = make_parameter_dict(_own_parameters(model, converts=converts))
    for child_name, child in model.named_children():
        key = int(child_name) if child_name.isdigit() else child_name
        args = None if ttnn_module_args is None else ttnn_module_args.get(key)
        result = convert_torch_model_to_ttnn_model(child, name=_inside(name, key), ttnn_module_args=args, **options)
        if result:
            parameters[key] = result
    return parameters


def default_preprocessor(model: Any, name: str, ttnn_module_args: Any) -> ParameterDict:
    """The parameters of a Linear, LayerNorm or Embedding as ttnn's functions take them; none of other modules."""
    nn, result = import_module("torch").nn, {}
    if isinstance(model, nn.Linear):
        result["weight"] = preprocess_linear_weight(model.weight, dtype=DataType.BFLOAT16)
        if model.bias is not None:
            result["bias"] = preprocess_linear_bias(model.bias, dtype=DataType.BFLOAT16)
    elif isinstance(model, nn.LayerNorm):
        result["weight"] = preprocess_layernorm_parameter(model.weight, dtype=DataType.BFLOAT16)
        result["bias"] = preprocess_layernorm_parameter(model.bias, dtype=DataType.BFLOAT16)
    elif isinstance(model, nn.Embedding):
        result["weight"] = preprocess_embedding_weight(model.weight, dtype=DataType.BFLOAT16)
    return make_parameter_dict(result)


def _own_parameters(model: Any, *, converts: bool) -> dict[str, Any]:
    """The parameters of a module itself; a Linear that stays torch's gets transposed weights as well."""
    own = {name: parameter for name, parameter in model.named_parameters() if "." not in name}
    if converts:
        return {name: from_torch(tensor, DTYPES[str(tensor.dtype).rpartition(".")[2]]) for name, tensor in own.items()}
    if isinstance(model, import_module("torch").nn.Linear):
        own["weight"] = own["weight"].T.contiguous()
    return own


def _inside(name: str, child: object) -> str:
    return f"{name}.{child}" if name else str(child)


def _extras(custom_preprocessor: Preprocessor) -> list[str]:
    """The parameters of a user's function besides model and name."""
    names = list(signature(custom_preprocessor).parameters)
    unknown = [name for name in names[2:] if name not in EXTRAS]
    if len(names) < 2:
        raise ArgumentError("Custom preprocessor must have at least two parameters: model and name")
    if unknown:
        raise ArgumentError(f"Unsupported parameter: {unknown[0]}\ncustom_preprocessor may take {', '.join(EXTRAS)}")
    return names[2:]


def move_to_device(parameters: Any, device: Device) -> Any:
    """The parameters with all tensors of ttsim on a device; dicts and lists are changed."""
    if isinstance(parameters, ParameterDict | ParameterList):
        places = list(parameters) if isinstance(parameters, ParameterDict) else range(len(parameters))
        for place in places:
            parameters[place] = move_to_device(parameters[place], device)
        return parameters
    return to_device(parameters, device) if isinstance(parameters, Tensor) else parameters


def preprocess_model(
    *,
    model_name: str | None = None,
    version: str | None = None,
    initialize_model: Callable[[], Any] | None = None,
    convert_to_ttnn: Choice | None = None,
    custom_preprocessor: Preprocessor | None = None,
    device: Device | None = None,
    prefix: str = "",
    run_model: Callable[[Any], Any] | None = None,
    reader_patterns_cache: Any = None,
) -> Any:
    """The parameters of a torch model, and what its layers are called with.

    Args:
        model_name: Names a file of the real library's cache; nothing is cached here.
        version: Of that file.
        initialize_model: Makes the model.
        convert_to_ttnn: Says of a module and its name whether its own parameters become tensors; None for all.
        custom_preprocessor: Gives the parameters of a module and its name in its own way.
        device: Where tensors go; None for the host.
        prefix: What the names of modules begin with.
        run_model: Runs the model once, so that layers get ``ttnn_module_args``.

    Raises:
        ArgumentError: There is no ``initialize_model``, or a preprocessor takes other arguments.
    """
    if initialize_model is None:
        raise ArgumentError(
            f"Cached weights for the model {model_name} (version {version!r}) don't exist\n"
            "preprocess_model: nothing is cached; give initialize_model"
        )
    model = initialize_model()
    if model.training:
        model.eval()
    args = infer_ttnn_module_args(model=model, run_model=run_model, device=device)
    parameters = convert_torch_model_to_ttnn_model(
        model,
        convert_to_ttnn=convert_to_ttnn or (lambda module, name: True),
        custom_preprocessor=custom_preprocessor,
        name=prefix,
        ttnn_module_args=args,
    )
    if args is not None:
        merge_ttnn_module_args_into_parameters(parameters, args)
    return parameters if device is None else move_to_device(parameters, device)


def preprocess_model_parameters(
    *,
    model_name: str | None = None,
    version: str | None = None,
    initialize_model: Callable[[], Any] | None = None,
    convert_to_ttnn: Choice | None = None,
    custom_preprocessor: Preprocessor | None = None,
    device: Device | None = None,
    prefix: str = "",
) -> Any:
    """The parameters of a torch model; the arguments are those of `preprocess_model`."""
    return preprocess_model(
        model_name=model_name,
        version=version,
        initialize_model=initialize_model,
        convert_to_ttnn=convert_to_ttnn,
        custom_preprocessor=custom_preprocessor,
        device=device,
        prefix=prefix,
    )
