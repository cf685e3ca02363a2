"""Parameters of torch models as tensors, together with the arguments of their layers."""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any, TypeVar, cast

from device.errors import ArgumentError
from ttsim.api.conversions import from_torch, to_device
from ttsim.model_preprocessing.arguments import infer_ttnn_module_args, merge_ttnn_module_args_into_parameters
from ttsim.model_preprocessing.parameters import ParameterDict, ParameterList, Parameters, make_parameter_dict
from ttsim.model_preprocessing.weights import default_preprocessor
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.docs import described
from ttsim.runtime.types.tensors import DataType

T = TypeVar("T")
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


def convert_torch_model_to_ttnn_model(
    model: Any, *, convert_to_ttnn: Choice, custom_preprocessor: Preprocessor | None, name: str, ttnn_module_args: Any
) -> Parameters:
    """The parameters of a torch module and of its submodules.

    Args:
        model: The torch module.
        convert_to_ttnn: A function of a module and its name: whether its own parameters become tensors of ttsim.
        custom_preprocessor: A function of a module and its name that returns the module's parameters, or an empty
            result for the default; None for the default everywhere.
        name: Name of the module in the whole model.
        ttnn_module_args: The arguments of the layers from `infer_ttnn_module_args`; None if unknown.

    Returns:
        Nested ParameterDicts and ParameterLists.

    Raises:
        AttributeError: ``model`` is not a torch module.
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


def _own_parameters(model: Any, *, converts: bool) -> dict[str, Any]:
    """The module's own parameters; a Linear that is not converted also gets transposed weights."""
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
        parameters: A ParameterDict, ParameterList or tensor; dicts and lists are modified in place.
        device: The device.

    Returns:
        The same dict or list, or the tensor on the device.

    Raises:
        ArgumentTypeError: ``device`` is not a device.
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
    """The parameters of a torch model, together with the arguments of its layers.

    Args:
        model_name: A name for the real library's cache; nothing is cached here.
        version: A version for the real library's cache; nothing is cached here.
        initialize_model: A function that returns the torch model; required.
        convert_to_ttnn: A function of a module and its name: whether its own parameters become tensors; None for all.
        custom_preprocessor: A function of a module and its name that returns the module's parameters, or an empty
            result for the default.
        device: The device that holds the tensors; None for the host.
        prefix: Prefix of the names of modules.
        run_model: A function that runs the given model once, which adds ``ttnn_module_args`` to layers.
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
