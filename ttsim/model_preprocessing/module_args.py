"""What the layers of a torch model are called with, seen by running it once."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from ttsim.model_preprocessing.parameters import (
    Conv2dArgs,
    ConvTranspose2dArgs,
    DotDict,
    GroupNormArgs,
    MaxPool2dArgs,
    ModuleArgs,
)
from ttsim.runtime.types.configs import MathFidelity
from ttsim.runtime.types.tensors import DataType

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
        model: The torch module.
        run_model: Calls the model that it is given; None for nothing at all.
        device: Put among what convolutions are called with.

    Returns:
        By names of modules, nested as they are, for convolutions, max pools and group norms; an empty dict for every
        other layer that ran. A number is a key as text and as a number. None without ``run_model``.

    Raises:
        ImportError: torch is not installed.
    """
    if run_model is None:
        return None
    torch = import_module("torch")
    args_by_module: dict[str, Any] = {}
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
    return _nested(args_by_module)


def _note(args_by_module: dict[str, Any], name: str, device: Any, module: Any, inputs: tuple[Any, ...]) -> None:
    """Before a module runs: notes its arguments by its name."""
    kind = next((base for base in type(module).__mro__ if base.__name__ in FIELDS and _is_torch(base)), None)
    if kind is None or not inputs:
        args_by_module[name] = None
        return
    args, fields = FIELDS[kind.__name__]
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


def _is_torch(kind: type) -> bool:
    return kind.__module__.startswith("torch.nn.")


def _nested(args_by_module: dict[str, Any]) -> DotDict:
    """The notes as nested dicts, by the parts of the names."""
    root = DotDict()
    for path, noted in args_by_module.items():
        *outer, last = path.split(".")
        place = root
        for part in outer:
            place = _child(place, part)
        if noted is None:
            _child(place, last)
        else:
            _put(place, last, noted)
    return root


def _child(place: DotDict, name: str) -> DotDict:
    """The child under a name; a new one if there is none."""
    if name not in place:
        _put(place, name, DotDict())
    child: DotDict = place[name]
    return child


def _put(place: DotDict, name: str, value: DotDict) -> None:
    place[name] = value
    if name.isdigit():
        place[int(name)] = value


def merge_ttnn_module_args_into_parameters(parameters: Any, ttnn_module_args: Any) -> Any:
    """Adds to the parameters of each layer, as ``ttnn_module_args``, what it was called with, but for its device.

    Args:
        parameters: A ParameterDict or ParameterList; changed.
        ttnn_module_args: Of `infer_ttnn_module_args`, for the same model.

    Returns:
        The parameters.
    """
    if isinstance(ttnn_module_args, ModuleArgs):
        ttnn_module_args.pop("device", None)
        parameters["ttnn_module_args"] = ttnn_module_args
        return parameters
    keys = parameters if isinstance(parameters, dict) else range(len(parameters))
    for key in list(keys):
        if key in ttnn_module_args and isinstance(parameters[key], dict | list):
            merge_ttnn_module_args_into_parameters(parameters[key], ttnn_module_args[key])
    return parameters
