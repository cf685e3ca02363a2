"""Other arithmetic for a convolution: what is faster at the price of precision, or not ttnn's, and how exact it is.

How exact is measured: a small image with the call's own channels, kernel and formats is computed bit for bit and held
against float64. Sums over K blocks differ a little with shards and blocks; that is not counted.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final

from device.errors import ArgumentError, shown
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, compute_config, output_format, weight_format
from ops.planners.conv.conv_transpose2d import CONV_TRANSPOSE2D_BY_PHASES
from ttsim.study.layers.run import Settings, accuracy_of, call as make_call, exact_output, make_inputs, place
from ttsim.types.configs import WormholeComputeKernelConfig
from ttsim.types.layer import Layer
from ttsim.types.tensors import DataType

ALLOWED: Final = ("math_fidelity", "fp32_dest_acc_en", "packer_l1_acc", "weights_dtype", "dtype", "lowering")
SHORT: Final = {"fidelity": ("math_fidelity",), "dtypes": ("weights_dtype", "dtype")}
SIDE: Final = 4  # rows and columns of the small image
OUTPUTS: Final = 32  # its output channels: as many as a tile has columns


def allowed(names: Collection[str]) -> frozenset[str]:
    """Fields that may change, from names and short names.

    Raises:
        ArgumentError: A name is unknown.
    """
    for name in names:
        if name not in ALLOWED and name not in SHORT:
            raise ArgumentError(f"tune: allow takes {', '.join((*ALLOWED, *SHORT))}, not {shown(name)}")
    return frozenset(one for name in names for one in SHORT.get(name, (name,)))


def arithmetics(call: ConvCall, allow: Collection[str]) -> Iterator[ConvCall]:
    """The call with every arithmetic that is allowed, the given one first.

    Raises:
        ArgumentError: Something is allowed of a convolution whose accuracy is not measured here.
    """
    if allow and not call.rules.transposed:
        raise ArgumentError(
            "tune: allow changes the arithmetic of conv_transpose2d alone, whose accuracy is measured; leave it out"
        )
    compute = compute_config(call)
    choices: dict[str, list[Any]] = {
        "math_fidelity": [compute.fidelity_phases, *range(compute.fidelity_phases - 1, 0, -1)],
        "fp32_dest_acc_en": [compute.fp32_dest, not compute.fp32_dest],
        "packer_l1_acc": [compute.packer_l1_acc, not compute.packer_l1_acc],
        "weights_dtype": _formats(weight_format(call)) if call.weight.on_host else [weight_format(call)],
        "dtype": _formats(output_format(call)),
        "lowering": [call.rules, CONV_TRANSPOSE2D_BY_PHASES] if not call.rules.by_phases else [call.rules],
    }
    values = product(*(choices[name] if name in allow else choices[name][:1] for name in ALLOWED))
    for number, (phases, fp32, l1_acc, weights, output, rules) in enumerate(values):
        if not number:
            yield call
            continue
        yield replace(
            call,
            rules=rules,
            compute_config=replace(compute, fidelity_phases=phases, fp32_dest=fp32, packer_l1_acc=l1_acc),
            conv_config=replace(call.conv_config, weights_format=weights),
            out_format=output,
        )


def _formats(given: Any) -> list[Any]:
    """A format, and those with fewer bits that a convolution takes."""
    return [given, *(one for one in (BFLOAT16, BFLOAT8_B) if one.element_bits < given.element_bits)]


def measured_error(call: ConvCall, spec: DeviceSpec) -> float:
    """Root mean squared error of a small image's output against float64, of its standard deviation."""
    layer = _small(call)
    settings = Settings(spec=spec, suggestions=False)
    inputs = make_inputs(layer)
    placed = place(layer, inputs, settings)
    placed.arguments["lowering"] = "phase" if call.rules.by_phases else "frame"
    with placed.device:
        found = accuracy_of(make_call(placed).output, exact_output(layer, inputs))
    if found is None:
        raise AssertionError("a small image has values")
    return found.rms_error / found.exact_std if found.exact_std else 0.0


def _small(call: ConvCall) -> Layer:
    """A layer with a small image; without padding, so that there are outputs."""
    compute = WormholeComputeKernelConfig.of(compute_config(call))
    given = {"BFLOAT16": "bfloat16", "FLOAT32": "float32", "BFLOAT8_B": "bfloat8_b"}
    weights = DataType.of(call.weight.spec.data_format).name
    return Layer(
        in_channels=call.in_channels,
        out_channels=min(call.out_channels, OUTPUTS) if call.groups == 1 else call.out_channels,
        input_height=min(call.input_height, SIDE),
        input_width=min(call.input_width, SIDE),
        kernel_size=call.kernel_size,
        stride=call.stride,
        dilation=call.dilation,
        groups=call.groups,
        bias=call.bias is not None,
        input_dtype=given[DataType.of(call.input.spec.data_format).name],
        input_layout="TILE" if call.input.spec.data_format.is_block else "ROW_MAJOR",
        weights_dtype="float32" if weights == "FLOAT32" else "bfloat16",
        dtype=given[DataType.of(output_format(call)).name],
        config={"weights_dtype": DataType.of(weight_format(call)).name},
        compute={
            "math_fidelity": compute.math_fidelity.name,
            "fp32_dest_acc_en": compute.fp32_dest_acc_en,
            "packer_l1_acc": compute.packer_l1_acc,
        },
    )
