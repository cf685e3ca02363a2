"""ttnn.layer_norm and ttnn.rms_norm."""

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

import numpy as np

from device.cores import CoreRangeSet
from device.errors import DeviceError, OutOfMemoryError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from ops.planners.normalization.layer_norm import NormArguments, plan_norm
from ttsim.api.conversions import from_numpy
from ttsim.api.device_calls import cached_plan
from ttsim.api.eltwise import add, multiply
from ttsim.api.unary import rsqrt, square
from ttsim.runtime.calls import on_device
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.session import current
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Call, Integer, checked_as, function_of, param
from ttsim.runtime.types.configs import MathFidelity, WormholeComputeKernelConfig
from ttsim.runtime.types.norm_configs import LayerNormDefaultProgramConfig, LayerNormShardedMultiCoreProgramConfig
from ttsim.runtime.types.tensors import float32

HOST = "Device Operations expect device tensors as inputs"


class Norm(Call):
    """What layer_norm and rms_norm have in common."""

    input_tensor: Tensor = param(
        "[..., columns] on the device, bfloat16, float32 or bfloat8_b, in TILE layout; interleaved, or sharded by "
        "blocks or columns in L1.",
        kw_only=False,
    )
    epsilon: float = param("Added to the variance before its root is taken.", default=1e-12)
    weight: Tensor | None = param(
        "[1, columns] in TILE layout, or [1, 1, columns / 32, 32] in ROW_MAJOR layout; None for ones.", default=None
    )
    bias: Tensor | None = param("Of the weight's shape and layout; None for zeros.", default=None)
    residual_input_tensor: Tensor | None = param(
        "Of the input's shape and shards; added to the input first.", default=None
    )
    memory_config: MemoryConfig | None = param("Memory of the result; None for that of the input.", default=None)
    program_config: LayerNormDefaultProgramConfig | LayerNormShardedMultiCoreProgramConfig | None = param(
        "The program; None lets the call choose by the input's shards.", default=None
    )

    _rms: ClassVar[bool]
    compute_kernel_config: WormholeComputeKernelConfig | None = None
    recip_tensor: Tensor | None = None

    def run(self) -> Tensor:
        """Normalizes rows."""
        roles = {"input": self.input_tensor, "residual": self.residual_input_tensor, "weight": self.weight}
        others = {"bias": self.bias, "reciprocals": self.recip_tensor}
        tensors = {role: tensor for role, tensor in (roles | others).items() if tensor is not None}
        device = device_of(tensors)
        if self._rms and not self.input_tensor.shape and self.input_tensor.layout is Layout.TILE:
            with device.function(f"ttnn.{self._name}"):
                return self._of_a_number()
        specs = {role: tensor.spec for role, tensor in tensors.items()}
        config = (self.compute_kernel_config or default_compute_config(wide=not self._rms)).argument()
        call = NormArguments(
            rms=self._rms,
            source=specs["input"],
            residual=specs.get("residual"),
            weight=specs.get("weight"),
            bias=specs.get("bias"),
            reciprocals=specs.get("reciprocals"),
            epsilon=float(self.epsilon),
            place=self.memory_config,
            program=None if self.program_config is None else self.program_config.argument(),
            fidelity_phases=config.fidelity_phases,
            fp32_dest=config.fp32_dest,
            full_dst=config.dst_full_sync,
        )
        place = self.memory_config or call.source.memory_config
        result = None if place.is_sharded() else call.source.changed(memory_config=place)
        plan = cached_plan(plan_norm, device, call, l1_bytes=room_below(device, result))
        with device.function(f"ttnn.{self._name}"):
            return run(plan, tensors, device)["output"]

    def _of_a_number(self) -> Tensor:
        """RMS norm of a tensor of rank 0 by element-wise functions, as in ttnn: the mean square is the square.

        The functions were inferred from the programs that ttnn 0.81.1 plans and from its values.
        """
        place = self.memory_config or self.input_tensor.memory_config()
        square_ = square(self.input_tensor, memory_config=place)
        radicand = add(square_, float(self.epsilon), memory_config=place)
        reciprocal = rsqrt(radicand, memory_config=place)
        result = multiply(self.input_tensor, reciprocal, memory_config=place)
        del square_, radicand, reciprocal  # they lie there together
        if self.weight is not None:
            result = multiply(result, self.weight, memory_config=place)
        return result if self.bias is None else add(result, self.bias, memory_config=place)


def default_compute_config(*, wide: bool) -> WormholeComputeKernelConfig:
    """HiFi4, with a 32-bit Dst if asked for."""
    return WormholeComputeKernelConfig(
        math_fidelity=MathFidelity.HiFi4, math_approx_mode=not wide, fp32_dest_acc_en=wide
    )


def l1_bytes_of(device: Device) -> int:
    """Bytes of a core's L1 for tensors and circular buffers."""
    return device.spec.l1.usable_bytes - device.machine.l1_small_bytes


def room_below(device: Device, result: TensorSpec | None) -> int:
    """Free bytes of a core below its lowest L1 buffer after the result is allocated."""
    machine, allocator = device.machine, device.machine.allocator
    in_l1 = result is not None and result.volume and result.memory_config.buffer_type is BufferType.L1
    if result is not None and in_l1 and current().dispatch:
        allocator = allocator.copy()
        with suppress(OutOfMemoryError):  # the run says so
            allocator.allocate(result.buffer(device.spec))
    lowest = allocator.lowest_l1_address
    return machine.l1_room_bytes if lowest is None else lowest - device.spec.l1.base_bytes


def device_of(tensors: Mapping[str, Tensor]) -> Device:
    """The device of all tensors; raises DeviceError if a tensor is on the host or was deallocated."""
    for tensor in tensors.values():
        require_allocated(tensor, first_line="Tensor is not allocated")
        if tensor.device() is None:
            raise DeviceError(f"{HOST}\ngive every tensor to the device with .to(device)")
    device = next(iter(tensors.values())).device()
    assert device is not None
    return device


class LayerNorm(Norm, name="layer_norm"):
    """Layer normalization of rows: ``(x - mean) / sqrt(variance + epsilon) * weight + bias``.

    Its outputs were never compared with recordings of the real library.

    Returns:
        A tensor of the input's shape, data type and layout.

    Examples:
        >>> x = ttnn.from_numpy(np.array([[-1.0, 1.0] * 16]), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        >>> bias = ttnn.ones((1, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.layer_norm(x, epsilon=1e-5, bias=bias).to_list()[0][:2]
        [0.0, 2.0]
    """

    compute_kernel_config: WormholeComputeKernelConfig | None = param("None for HiFi4 with a 32-bit Dst.", default=None)
    recip_tensor: Tensor | None = param(
        "Table of 1 / 1, 1 / 2, ... in L1, for programs with `use_welford` that do not read rows twice: rows that do "
        "not fit, float32 with a residual, shards of float32.",
        default=None,
    )
    _rms = False


class RmsNorm(Norm, name="rms_norm"):
    """RMS normalization of rows: ``x / sqrt(mean(x * x) + epsilon) * weight + bias``.

    Its outputs were never compared with recordings of the real library.

    Returns:
        A tensor of the input's shape and data type.

    Examples:
        >>> x = ttnn.from_numpy(np.array([[-2.0, 2.0] * 16]), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.rms_norm(x, epsilon=1e-5).to_list()[0][:2]
        [-1.0, 1.0]
    """

    compute_kernel_config: WormholeComputeKernelConfig | None = param("None for HiFi4 with a 16-bit Dst.", default=None)
    _rms = True


@checked_as(prefix="")
def create_layer_norm_reciprocals(device: Device, core_range_set: CoreRangeSet, width: Integer) -> Tensor:
    """The table of reciprocals that some programs of layer_norm with ``use_welford`` read.

    Args:
        device: The device.
        core_range_set: The cores; each core holds the whole table.
        width: Number of reciprocals: the columns of the tensor, or of its shards.

    Returns:
        A float32 tensor [cores, width] of 1 / 1, 1 / 2, ..., HEIGHT_SHARDED in L1, in ROW_MAJOR layout.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: A core is not on the device, or ``width`` is 0.
        OutOfMemoryError: The table does not fit into the free part of L1.

    Examples:
        >>> cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])
        >>> ttnn.create_layer_norm_reciprocals(device, cores, 4).to_list()[1]
        [1.0, 0.5, 0.3333333432674408, 0.25]
    """
    shards = ShardSpec(core_range_set, (1, width), ShardOrientation.ROW_MAJOR)
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    table = np.tile(np.float32(1) / np.arange(1, width + 1, dtype=np.float32), (core_range_set.num_cores(), 1))
    return from_numpy(table, float32, layout=Layout.ROW_MAJOR, device=device, memory_config=place)


layer_norm = on_device(function_of(LayerNorm))
rms_norm = on_device(function_of(RmsNorm))
