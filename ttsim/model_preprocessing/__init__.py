"""ttnn.model_preprocessing: parameters of torch models as tensors. torch is loaded when it is first needed."""

from collections.abc import Callable, Mapping
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
    """What a layer of a model was called with, for a function of ttnn that stands for it."""


class Conv2dArgs(ModuleArgs):
    """Of a Conv2d."""


class ConvTranspose2dArgs(ModuleArgs):
    """Of a ConvTranspose2d."""


class MaxPool2dArgs(ModuleArgs):
    """Of a MaxPool2d."""


class GroupNormArgs(ModuleArgs):
    """Of a GroupNorm."""


class ParameterDict(DotDict):
    """Parameters by name, which can be nested: ``parameters.encoder[0].weight``; printed with shapes for values."""

    def __repr__(self) -> str:
        """One line for each parameter."""
        return _drawn(self)


class ParameterList(list[Any]):
    """Parameters of a list of modules; printed as a ParameterDict."""

    def __contains__(self, index: object) -> bool:
        """Whether there is an item of this number, as in ttnn."""
        return isinstance(index, int) and index < len(self)

    def __repr__(self) -> str:
        """One line for each parameter."""
        return _drawn(self)


Parameters: TypeAlias = ParameterDict | ParameterList
T = TypeVar("T")


def make_parameter_dict(dictionary: Mapping[Any, Any]) -> ParameterDict:
    """A dict, and those in it, as ParameterDicts; what layers were called with stays as it is."""
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


def fold_batch_norm2d_into_conv2d(conv: Any, bn: Any) -> tuple[TorchTensor, TorchTensor]:
    """Weight and bias of a convolution that does what a torch Conv2d and the BatchNorm2d after it do, in evaluation.

    Raises ArgumentError for a batch norm that keeps no statistics.
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
        convert_to_ttnn: Says of a module and its name whether its own parameters become tensors of ttsim.
        custom_preprocessor: Gives the parameters of a module and its name in its own way; nothing for the default.
        name: Of the module in the whole model.
        ttnn_module_args: What it was called with; None if that is not known.

    Raises:
        ArgumentError: The preprocessor takes other arguments.
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
    """The parameters of a Linear, LayerNorm or Embedding as ttnn's functions take them; none of other modules."""
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
    """The parameters with all tensors of ttsim on a device; dicts and lists are changed."""
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
    """The parameters of a torch model, and what its layers are called with.

    Args:
        model_name: Names a file of the real library's cache, as ``version`` does; nothing is cached here.
        initialize_model: Makes the model; without it, an ArgumentError is raised.
        convert_to_ttnn: Says of a module and its name whether its own parameters become tensors; None for all.
        custom_preprocessor: Gives the parameters of a module and its name in its own way.
        device: Where tensors go; None for the host.
        prefix: What the names of modules begin with.
        run_model: Runs the model once, so that layers get ``ttnn_module_args``.
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
) -> Parameters:
    """The parameters of a torch model; the arguments are those of `preprocess_model`."""
    return preprocess_model(**locals())


CONVOLUTION = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")
FIELDS: dict[str, tuple[type[ModuleArgs], tuple[str, ...]]] = {
    "Conv2d": (Conv2dArgs, CONVOLUTION),
    "ConvTranspose2d": (ConvTranspose2dArgs, (*CONVOLUTION, "output_padding")),
    "MaxPool2d": (MaxPool2dArgs, ("kernel_size", "stride", "padding", "dilation")),
    "GroupNorm": (GroupNormArgs, ("num_groups", "num_channels", "eps", "affine")),
}


def infer_ttnn_module_args(*, model: Any, run_model: Callable[[Any], Any] | None, device: Any) -> DotDict | None:
    """Runs a torch model once and notes what its layers are called with.

    Args:
        run_model: Calls the model that it is given; None for nothing at all.
        device: Put among what convolutions are called with.

    Returns:
        By names of modules, nested as they are, for convolutions, max pools and group norms; an empty dict for every
        other layer that ran. A number is a key as text and as a number. None without ``run_model``.
    """
    if run_model is None:
        return None
    torch, args_by_module = import_module("torch"), dict[str, DotDict]()
    hooks = [
        module.register_forward_pre_hook(partial(_note, args_by_module, name, device))
        for name, module in model.named_modules()
        if name
    ]
    try:
        with torch.no_grad():
            run_model(model)
    finally:
        for hook in hooks:
            hook.remove()
    root = DotDict()
    for path, noted in args_by_module.items():
        *outer, last = path.split(".")
        place = root
        for part in outer:
            place = _child(place, part, DotDict())
        _child(place, last, noted)
    return root


def _note(args_by_module: dict[str, DotDict], name: str, device: Any, module: Any, inputs: tuple[Any, ...]) -> None:
    """Before a module runs: notes its arguments by its name."""
    torch_kinds = [base.__name__ for base in type(module).__mro__ if base.__module__.startswith("torch.nn.")]
    kind = next((kind for kind in torch_kinds if kind in FIELDS), None)
    args_by_module[name] = DotDict()
    if kind is None or not inputs:
        return
    args, fields = FIELDS[kind]
    shape = tuple(inputs[0].shape)
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
    args_by_module[name] = args(noted | {"dtype": DataType.BFLOAT16})


def _child(place: DotDict, name: str, usual: DotDict) -> DotDict:
    """The child under a name, which is also a number where it looks like one; the usual one if there is none."""
    child: DotDict = place.setdefault(name, usual)
    if name.isdigit():
        place[int(name)] = child
    return child


def merge_ttnn_module_args_into_parameters(parameters: Any, ttnn_module_args: Any) -> Parameters:
    """Adds to the parameters of each layer, as ``ttnn_module_args``, what it was called with, but for its device.

    ``parameters`` are changed and returned; the arguments are those of `infer_ttnn_module_args` for the same model.
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
