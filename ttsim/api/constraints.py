"""The memory that a call of conv_transpose2d would need, computed without a device."""

from collections.abc import Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.plan import Event, usage_per_core
from device.spec.device_spec import DeviceSpec
from ttsim.api.convolutions import conv_transpose2d
from ttsim.runtime.device import Device
from ttsim.runtime.queried import ExecutionStatus, l1_bytes_of, tensors_of
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, default_spec, default_strict
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import tensor_like
from ttsim.runtime.types.tensors import TensorDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class OpConstraints:
    """The memory that a call takes, in bytes of one core; the names are ttnn's.

    Attributes:
        status: Success; or Error, and then all figures are 0.
        cb_peak_size_per_core: Peak of circular buffers.
        l1_buffers_peak_per_core: Peak of L1 buffers, including the call's inputs and index tensors.
        peak_memory_usage_per_core: Peak of the sum of both.
        l1_output_buffer_per_core: Results in L1.
        output_tensor_specs: The spec of the output, then those of prepared weights and bias if they are returned.
        error_message: The error of the call; None for Success.

    Examples:
        >>> ttnn.OpConstraints(status=ttnn.ExecutionStatus.Success).error_message is None
        True
    """

    status: ExecutionStatus
    cb_peak_size_per_core: int = 0
    l1_buffers_peak_per_core: int = 0
    peak_memory_usage_per_core: int = 0
    l1_output_buffer_per_core: int = 0
    output_tensor_specs: tuple[TensorSpec, ...] | None = None
    error_message: str | None = None


def query_op_constraints(
    *,
    spec: str | Path | DeviceSpec | None = None,
    l1_small_size: int = USUAL_L1_SMALL_SIZE,
    strict: bool | None = None,
    **arguments: Any,
) -> OpConstraints:
    """The memory that a call of conv_transpose2d would take on an otherwise empty device; needs no open device.

    Unlike ttnn's query, this one allocates buffers: a call that does not fit has the status Error and its error text.

    Args:
        spec: The device, as in `open_device`.
        l1_small_size: Bytes of L1 reserved for index tensors, as in `open_device`.
        strict: Refuse calls that the real library computes wrongly, as in `open_device`.
        arguments: Arguments of conv_transpose2d without ``device``. A tensor may be a Tensor, of which only the spec
            is used, or a TensorDescription. The default of ``weight_tensor`` is raw bfloat16 weights on the host.

    Returns:
        Bytes of one core, and the specs of the results.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        SpecError: The device is unknown.

    Examples:
        >>> ttnn.query_op_constraints(
        ...     input_tensor=ttnn.TensorDescription((1, 1, 256, 64)), in_channels=64, out_channels=32, batch_size=1,
        ...     input_height=16, input_width=16, kernel_size=(2, 2), stride=(2, 2)).status
        ExecutionStatus.Success
    """
    device = Device(
        default_spec() if spec is None else spec,
        l1_small_size=l1_small_size,
        values="off",
        strict=default_strict() if strict is None else strict,
    )
    # In a context of its own, running captures do not see the scratch device.
    return Context().run(_query, device, arguments)


def _query(device: Device, arguments: Mapping[str, Any]) -> OpConstraints:
    events: list[Event] = []
    device.machine.recorders.append(events)
    call = dict(arguments)
    if "weight_tensor" not in call and {"in_channels", "out_channels", "kernel_size"} <= call.keys():
        with suppress(TypeError, ValueError):  # the call itself reports missing and wrong arguments
            outputs = call["out_channels"] // max(call.get("groups", 1), 1)
            call["weight_tensor"] = TensorDescription((call["in_channels"], outputs, *call["kernel_size"]))
    described = [name for name, value in call.items() if isinstance(value, Tensor | TensorDescription)]
    try:
        tensors = {name: tensor_like(call[name], device) for name in described}
        results = tensors_of(conv_transpose2d(**(call | tensors | {"device": device})))
    except (DeviceError, ArgumentError) as error:
        return OpConstraints(status=ExecutionStatus.Error, error_message=str(error))
    usage = usage_per_core(events)
    return OpConstraints(
        status=ExecutionStatus.Success,
        cb_peak_size_per_core=usage.peak_cb,
        l1_buffers_peak_per_core=usage.peak_l1,
        peak_memory_usage_per_core=usage.peak_total,
        l1_output_buffer_per_core=l1_bytes_of(results),
        output_tensor_specs=tuple(result.spec for result in results),
    )
