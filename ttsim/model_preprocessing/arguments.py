"""The arguments of the layers of a torch model, recorded by running the model once."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, cast

from ttsim.model_preprocessing.parameters import (
    Conv2dArgs,
    ConvTranspose2dArgs,
    DotDict,
    GroupNormArgs,
    MaxPool2dArgs,
    ModuleArgs,
    Parameters,
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
    """Runs a torch model once and returns the arguments of its layers.

    Args:
        model: The torch model.
        run_model: A function that calls the given model; None does not run it.
        device: The device entry in the arguments of convolutions.

    Returns:
        Arguments of convolutions, max pools and group norms, keyed by the last part of the module's name and nested as
        modules call each other: ``model.layers[0](x)`` gives key 0 of the model, because the list itself is not called.
        Every other module that ran has a dict of its submodules. A numeric name is a key both as str and as int. If
        ``run_model`` calls only one layer of the model, the arguments of that layer. None without ``run_model``.

    Raises:
        AttributeError: ``model`` is not a torch module.
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
    """The arguments of a module that starts to run; an empty dict for module types without recorded arguments."""
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
    """Adds ``ttnn_module_args``, the layer's arguments without the device, to the parameters of each layer.

    Args:
        parameters: Parameters of a model; modified in place.
        ttnn_module_args: The result of `infer_ttnn_module_args` for the same model.

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
