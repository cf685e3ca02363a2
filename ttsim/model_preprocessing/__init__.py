"""ttnn.model_preprocessing: parameters of torch models as tensors. torch is loaded when it is first needed."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, TypeAlias, TypeVar, cast

from device.errors import ArgumentError
from device.memory.memory_config import Layout
from ttsim.api.conversions import from_torch, to_device
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.configs import MathFidelity
from ttsim.runtime.types.docs import described
from ttsim.runtime.types.of_torch import TorchTensor
from ttsim.runtime.types.signatures import public
from ttsim.runtime.types.tensors import DataType

__all__ = [
    *("Conv2dArgs", "ConvTranspose2dArgs", "GroupNormArgs", "MaxPool2dArgs", "ModuleArgs"),
    *("ParameterDict", "ParameterList", "convert_torch_model_to_ttnn_model", "default_preprocessor"),
    *("fold_batch_norm2d_into_conv2d", "infer_ttnn_module_args", "make_parameter_dict"),
    *("merge_ttnn_module_args_into_parameters", "move_to_device", "preprocess_embedding_weight"),
    *("preprocess_layernorm_parameter", "preprocess_linear_bias", "preprocess_linear_weight"),
    *("preprocess_model", "preprocess_model_parameters"),
]
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


class DotDict(dict[Any, Any]):
    """A dict whose items are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        """The item of this name; raises AttributeError where there is none."""
        try:
            return self[name]
        except KeyError:
            known = ", ".join(map(str, self))
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {known}") from None


class ModuleArgs(DotDict):
    """What a layer of a model was called with, for a function of ttnn that replaces the layer; items are attributes.

    Examples:
        >>> ttnn.model_preprocessing.ModuleArgs(stride=2).stride
        2
    """


class Conv2dArgs(ModuleArgs):
    """What a Conv2d was called with.

    Examples:
        >>> ttnn.model_preprocessing.Conv2dArgs(in_channels=4).in_channels
        4
    """


class ConvTranspose2dArgs(ModuleArgs):
    """What a ConvTranspose2d was called with.

    Examples:
        >>> ttnn.model_preprocessing.ConvTranspose2dArgs(in_channels=4).in_channels
        4
    """


class MaxPool2dArgs(ModuleArgs):
    """What a MaxPool2d was called with.

    Examples:
        >>> ttnn.model_preprocessing.MaxPool2dArgs(kernel_size=2).kernel_size
        2
    """


class GroupNormArgs(ModuleArgs):
    """What a GroupNorm was called with.

    Examples:
        >>> ttnn.model_preprocessing.GroupNormArgs(num_groups=2).num_groups
        2
    """


class ParameterDict(DotDict):
    """Parameters by name, which can be nested: ``parameters.encoder[0].weight``; printed with shapes for values.

    Examples:
        >>> ttnn.model_preprocessing.ParameterDict(weight=ttnn.zeros((2, 4)))
        {
          weight: ttnn.Tensor(shape=Shape([2, 4]), layout=Layout.ROW_MAJOR, dtype=DataType.BFLOAT16)
        }
    """

    def __repr__(self) -> str:
        """One line for each parameter."""
        return _drawn(self)


class ParameterList(list[Any]):
    """Parameters of a list of modules; printed as a ParameterDict.

    Examples:
        >>> 0 in ttnn.model_preprocessing.ParameterList(["first"])
        True
    """

    def __contains__(self, index: object) -> bool:
        """Whether there is an item of this number, as in ttnn."""
        return isinstance(index, int) and index < len(self)

    def __repr__(self) -> str:
        """One line for each parameter."""
        return _drawn(self)


Parameters: TypeAlias = ParameterDict | ParameterList
T = TypeVar("T")


def make_parameter_dict(dictionary: Mapping[Any, Any]) -> ParameterDict:
    """A dict, and the dicts in it, as ParameterDicts; a ModuleArgs stays as it is.

    Args:
        dictionary: Values by name.

    Returns:
        The nested ParameterDict.

    Raises:
        AttributeError: The argument is no mapping.

    Examples:
        >>> ttnn.model_preprocessing.make_parameter_dict({"conv": {"weight": 1}}).conv.weight
        1
    """
    if isinstance(dictionary, ParameterDict):
        return dictionary
    nested = {key for key, value in dictionary.items() if isinstance(value, dict) and not isinstance(value, ModuleArgs)}
    return ParameterDict(
        {key: make_parameter_dict(value) if key in nested else value for key, value in dictionary.items()}
    )


def _drawn(parameters: Any, indent: str = "") -> str:
    """Parameters as text, nested ones further in."""
    inner = indent + "  "
    if isinstance(parameters, ParameterDict):
        lines, brackets = [f"{name}: {_drawn(value, inner)}" for name, value in parameters.items()], "{}"
    elif isinstance(parameters, ParameterList):
        lines, brackets = [_drawn(value, inner) for value in parameters], "[]"
    elif isinstance(parameters, ModuleArgs):
        lines, brackets = [f"{name}: {value}" for name, value in parameters.items()], "{}"
    elif isinstance(parameters, Tensor):
        return f"ttnn.Tensor(shape={parameters.shape}, layout={parameters.layout}, dtype={parameters.dtype})"
    elif hasattr(parameters, "shape") and hasattr(parameters, "dtype"):
        return f"torch.Tensor(shape={parameters.shape}, dtype={parameters.dtype})"
    else:
        return repr(parameters)
    body = ",\n".join(f"{inner}{line}" for line in lines)
    return f"{brackets[0]}\n{body}\n{indent}{brackets[1]}" if lines else brackets


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
        AttributeError: ``weight`` is no torch tensor.
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
        AttributeError: ``bias`` is no tensor.
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
        AttributeError: ``parameter`` is no tensor.
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
    """Weight and bias of one convolution that equals a torch Conv2d and the BatchNorm2d after it, in evaluation.

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


def convert_torch_model_to_ttnn_model(
    model: Any, *, convert_to_ttnn: Choice, custom_preprocessor: Preprocessor | None, name: str, ttnn_module_args: Any
) -> Parameters:
    """The parameters of a torch module and of the modules in it.

    Args:
        model: The torch module.
        convert_to_ttnn: A function of a module and its name: whether its own parameters become tensors of ttsim.
        custom_preprocessor: A function of a module and its name that returns the module's parameters, or nothing for
            the default; None for the default everywhere.
        name: Name of the module in the whole model.
        ttnn_module_args: What the layers were called with, from `infer_ttnn_module_args`; None if that is not known.

    Returns:
        Nested ParameterDicts and ParameterLists.

    Raises:
        AttributeError: ``model`` is no torch module.
        TypeError: A function cannot be called.
        ArgumentError: ``custom_preprocessor`` has other parameters.
        ImportError: torch is not installed.

    Examples:
        >>> import torch
        >>> parameters = ttnn.model_preprocessing.convert_torch_model_to_ttnn_model(
        ...     torch.nn.Linear(4, 8), convert_to_ttnn=lambda module, name: True, custom_preprocessor=None, name="",
        ...     ttnn_module_args=None)
        >>> parameters.weight.shape
        Shape([4, 8])
    """

    def converted(child: Any, key: object) -> Parameters:
        return convert_torch_model_to_ttnn_model(
            child,
            convert_to_ttnn=convert_to_ttnn,
            custom_preprocessor=custom_preprocessor,
            name=f"{name}.{key}" if name else str(key),
            ttnn_module_args=None if ttnn_module_args is None else ttnn_module_args.get(key),
        )

    if isinstance(model, import_module("torch").nn.ModuleList):
        return ParameterList(converted(child, index) for index, child in enumerate(model.children()))
    if custom_preprocessor is not None:
        extras = {"ttnn_module_args": ttnn_module_args, "convert_to_ttnn": convert_to_ttnn}
        wanted = {extra: extras[extra] for extra in _extras(custom_preprocessor)}
        if parameters := custom_preprocessor(model, name, **wanted):
            return make_parameter_dict(parameters)
    converts = convert_to_ttnn(model, name)
    if converts and (usual := default_preprocessor(model, name, ttnn_module_args)):
        return usual
    parameters = make_parameter_dict(_own_parameters(model, converts=converts))
    for child_name, child in model.named_children():
        key = int(child_name) if child_name.isdigit() else child_name
        if result := converted(child, key):
            parameters[key] = result
    return parameters


def default_preprocessor(model: Any, name: str, ttnn_module_args: Any) -> ParameterDict:
    """The parameters of a torch Linear, LayerNorm or Embedding as functions of ttnn take them.

    Args:
        model: The torch module.
        name: Name of the module; not used.
        ttnn_module_args: What the module was called with; not used.

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


def _own_parameters(model: Any, *, converts: bool) -> dict[str, Any]:
    """The parameters of a module itself; a Linear that stays torch's gets transposed weights as well."""
    own = dict(model.named_parameters(recurse=False))
    if converts:
        return {name: from_torch(tensor, DTYPES[str(tensor.dtype).rpartition(".")[2]]) for name, tensor in own.items()}
    if isinstance(model, import_module("torch").nn.Linear):
        own["weight"] = own["weight"].T.contiguous()
    return own


def _extras(custom_preprocessor: Preprocessor) -> list[str]:
    """The parameters of a user's function besides model and name."""
    names = list(signature(custom_preprocessor).parameters)
    unknown = [name for name in names[2:] if name not in EXTRAS]
    if len(names) < 2:
        raise ArgumentError("Custom preprocessor must have at least two parameters: model and name")
    if unknown:
        raise ArgumentError(f"Unsupported parameter: {unknown[0]}\ncustom_preprocessor may take {', '.join(EXTRAS)}")
    return names[2:]


def move_to_device(parameters: T, device: Device) -> T:
    """Parameters with all tensors of ttsim on a device.

    Args:
        parameters: A ParameterDict, ParameterList or tensor; dicts and lists are changed in place.
        device: The device.

    Returns:
        The same dict or list, or the tensor on the device.

    Raises:
        ArgumentTypeError: ``device`` is no device.
        OutOfMemoryError: A tensor does not fit into the free DRAM.

    Examples:
        >>> parameters = ttnn.model_preprocessing.make_parameter_dict({"weight": ttnn.ones((32, 32))})
        >>> ttnn.model_preprocessing.move_to_device(parameters, device).weight.storage_type()
        StorageType.DEVICE
    """
    if isinstance(parameters, ParameterDict | ParameterList):
        for place in list(parameters) if isinstance(parameters, ParameterDict) else range(len(parameters)):
            parameters[place] = move_to_device(parameters[place], device)
        return parameters
    moved: Any = to_device(parameters, device) if isinstance(parameters, Tensor) else parameters
    return cast("T", moved)


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
) -> Parameters:
    """The parameters of a torch model, together with what its layers are called with.

    Args:
        model_name: A name for the real library's cache; nothing is cached here.
        version: A version for the real library's cache; nothing is cached here.
        initialize_model: A function that returns the torch model; required.
        convert_to_ttnn: A function of a module and its name: whether its own parameters become tensors; None for all.
        custom_preprocessor: A function of a module and its name that returns the module's parameters, or nothing for
            the default.
        device: The device that holds the tensors; None for the host.
        prefix: What the names of modules begin with.
        run_model: A function of the model that runs it once, so that layers get ``ttnn_module_args``.
        reader_patterns_cache: Accepted as in ttnn; nothing is cached here.

    Returns:
        Nested ParameterDicts and ParameterLists.

    Raises:
        TypeError: A function cannot be called.
        ArgumentError: ``initialize_model`` is missing, or ``custom_preprocessor`` has other parameters.
        OutOfMemoryError: A tensor does not fit into the free DRAM.

    Examples:
        >>> import torch
        >>> parameters = ttnn.model_preprocessing.preprocess_model(
        ...     initialize_model=lambda: torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3)),
        ...     run_model=lambda model: model(torch.zeros(1, 1, 8, 8)))
        >>> parameters[0].ttnn_module_args.kernel_size
        (3, 3)
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


@described(like=preprocess_model)
def preprocess_model_parameters(
    *,
    model_name: str | None = None,
    version: str | None = None,
    initialize_model: Callable[[], Any] | None = None,
    convert_to_ttnn: Choice | None = None,
    custom_preprocessor: Preprocessor | None = None,
    device: Device | None = None,
    prefix: str = "",
) -> Parameters:
    """The parameters of a torch model.

    Examples:
        >>> import torch
        >>> parameters = ttnn.model_preprocessing.preprocess_model_parameters(
        ...     initialize_model=lambda: torch.nn.Linear(4, 8), device=device)
        >>> parameters.weight.storage_type()
        StorageType.DEVICE
    """
    return preprocess_model(**locals())


CONVOLUTION = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")
FIELDS: dict[str, tuple[type[ModuleArgs], tuple[str, ...]]] = {
    "Conv2d": (Conv2dArgs, CONVOLUTION),
    "ConvTranspose2d": (ConvTranspose2dArgs, (*CONVOLUTION, "output_padding")),
    "MaxPool2d": (MaxPool2dArgs, ("kernel_size", "stride", "padding", "dilation")),
    "GroupNorm": (GroupNormArgs, ("num_groups", "num_channels", "eps", "affine")),
}


def infer_ttnn_module_args(*, model: Any, run_model: Callable[[Any], Any] | None, device: Any) -> DotDict | None:
    """Runs a torch model once and returns what its layers were called with.

    Args:
        model: The torch model.
        run_model: A function that calls the model it is given; None for no run.
        device: An entry of the arguments of convolutions.

    Returns:
        Arguments by the last part of a module's name, for convolutions, max pools and group norms, nested as modules
        call each other: ``model.layers[0](x)`` gives key 0 of the model, since the list itself is not called. A dict of
        its own modules for every other module that ran. A numeric name is a key as text and as number. Where
        ``run_model`` calls no model but one of its layers, the arguments of that layer. None without ``run_model``.

    Raises:
        AttributeError: ``model`` is no torch module.
        TypeError: ``run_model`` cannot be called.
        ImportError: torch is not installed.

    Examples:
        >>> import torch
        >>> args = ttnn.model_preprocessing.infer_ttnn_module_args(
        ...     model=torch.nn.Sequential(torch.nn.MaxPool2d(2)), device=None,
        ...     run_model=lambda model: model(torch.zeros(1, 4, 8, 8)))
        >>> args[0].input_height, args[0].kernel_size
        (8, 2)
    """
    if run_model is None:
        return None
    torch, root = import_module("torch"), DotDict()
    callers = [root]  # the arguments of the modules that are running, outermost first

    def enter(name: str, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        noted = _called_with(module, (*args, *kwargs.values()), device)
        name = name if len(callers) > 1 else ""  # the tracer names modules below the one that runs first
        callers[-1][name] = noted
        if name.isdigit():
            callers[-1][int(name)] = noted
        callers.append(noted)

    def leave(*_: Any) -> None:
        callers.pop()

    hooks = []
    for path, module in model.named_modules():
        entering = partial(enter, path.rpartition(".")[2])
        hooks.append(module.register_forward_pre_hook(entering, with_kwargs=True))
        hooks.append(module.register_forward_hook(leave))
    try:
        with torch.no_grad():
            run_model(model)
    finally:
        for hook in hooks:
            hook.remove()
    return cast("DotDict", root.get("", root))


def _called_with(module: Any, inputs: Sequence[Any], device: Any) -> DotDict:
    """The arguments of a module that begins to run; an empty dict for kinds of modules without arguments."""
    torch_kinds = [base.__name__ for base in type(module).__mro__ if base.__module__.startswith("torch.nn.")]
    kind = next((kind for kind in torch_kinds if kind in FIELDS), None)
    shape = next((tuple(value.shape) for value in inputs if hasattr(value, "shape")), None)
    if kind is None or shape is None:
        return DotDict()
    args, fields = FIELDS[kind]
    noted: dict[str, Any] = {field: getattr(module, field) for field in fields}
    noted["batch_size"] = shape[0]
    if args is MaxPool2dArgs:
        noted["input_channels"] = shape[1]
    noted |= {"input_height": shape[-2], "input_width": shape[-1]}
    if args in (Conv2dArgs, ConvTranspose2dArgs):
        noted |= {
            "math_fidelity": MathFidelity.HiFi4,
            "weights_dtype": DataType.BFLOAT16,
            "use_1d_systolic_array": True,
            "enable_auto_formatting": False,
            "conv_blocking_and_parallelization_config_override": {},
            "device": device,
        }
    return args(noted | {"dtype": DataType.BFLOAT16})


def merge_ttnn_module_args_into_parameters(parameters: Any, ttnn_module_args: Any) -> Parameters:
    """Adds to the parameters of each layer what it was called with, without the device, as ``ttnn_module_args``.

    Args:
        parameters: Parameters of a model, which are changed in place.
        ttnn_module_args: What `infer_ttnn_module_args` returned for the same model.

    Returns:
        The same parameters.

    Raises:
        TypeError: An argument has no items.

    Examples:
        >>> parameters = ttnn.model_preprocessing.make_parameter_dict({"pool": {}})
        >>> args = {"pool": ttnn.model_preprocessing.MaxPool2dArgs(kernel_size=2)}
        >>> merged = ttnn.model_preprocessing.merge_ttnn_module_args_into_parameters(parameters, args)
        >>> merged.pool.ttnn_module_args.kernel_size
        2
    """
    if isinstance(ttnn_module_args, ModuleArgs):
        ttnn_module_args.pop("device", None)
        parameters["ttnn_module_args"] = ttnn_module_args
        return cast("Parameters", parameters)
    keys = parameters if isinstance(parameters, dict) else range(len(parameters))
    for key in list(keys):
        if key in ttnn_module_args and isinstance(parameters[key], dict | list):
            merge_ttnn_module_args_into_parameters(parameters[key], ttnn_module_args[key])
    return cast("Parameters", parameters)


__dir__ = public(globals())
