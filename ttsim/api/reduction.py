"""ttnn's functions that reduce axes of a tensor: sum, mean, max, min, std, var."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan, prod
from typing import Any, ClassVar

from device.cores import CoreRangeSet
from device.errors import shown
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.deviation import DeviationArguments, plan_deviation
from ops.planners.reduction import ReduceArguments, axes_of_reduction, plan_reduction, require_reducible
from ops.programs.reduction.reduce import Reduction
from ttsim.api.creation import full
from ttsim.api.device_calls import converted, required_device
from ttsim.api.shape import reshape
from ttsim.api.without_elements import is_empty, reduced
from ttsim.runtime.calls import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Call, function_of, param, wrong
from ttsim.runtime.types.configs import WormholeComputeKernelConfig


def dims_of(owner: str, dim: object) -> tuple[int, ...]:
    """The axes of an argument; empty for None. Raises ArgumentTypeError for an axis that is not an integer."""
    several = isinstance(dim, Sequence) and not isinstance(dim, str)
    dims: list[Any] = list(dim) if several else [] if dim is None else [dim]  # type: ignore[call-overload]
    for number in dims:
        if not isinstance(number, int) or isinstance(number, bool):
            raise wrong(owner, f"dim must be an integer or several, not {shown(dim)}")
    return tuple(dims)


def compute_fields(config: WormholeComputeKernelConfig | None) -> dict[str, Any]:
    """Fidelity and width of Dst of a compute config; empty for the library's default."""
    if config is None:
        return {}
    chosen = config.argument()
    return {
        "fidelity_phases": chosen.fidelity_phases, "fp32_dest": chosen.fp32_dest, "dst_full_sync": chosen.dst_full_sync
    }  # fmt: skip


class AlongAxes(Call):
    """Parameters of all reductions."""

    input_tensor: Tensor = param("A tensor on the device.", kw_only=False)
    dim: object = param(
        "The axis, or several; negative numbers count from the last, None takes all.", default=None, kw_only=False
    )
    keepdim: bool = param("Keep reduced axes with length 1.", default=False, kw_only=False)
    memory_config: MemoryConfig | None = param("Memory of the result; None for that of the tensor.", default=None)
    compute_kernel_config: WormholeComputeKernelConfig | None = param("None for HiFi4 and a 32-bit Dst.", default=None)
    scalar: float = param("Factor of every result.", default=1.0)
    correction: object = param("Accepted as in ttnn, where it has no effect.", default=None)
    sub_core_grids: CoreRangeSet | None = param("Cores that may be used; None for all.", default=None)


class Reducing(AlongAxes):
    """Parameters of sum, mean, max and min."""

    fast_and_approximate_mode: bool = param(
        "Reduce float32 on the matrix unit, which truncates it to TF32, instead of the vector unit.", default=False
    )

    _reduction: ClassVar[Reduction]
    _mean: ClassVar[bool] = False
    output_layout: Layout | None = None  # A parameter of sums alone

    def run(self) -> Tensor:
        """Reduces the tensor."""
        tensor, name = self.input_tensor, self._name
        dims = dims_of(name, self.dim)
        required_device(name, tensor)
        call = ReduceArguments(
            name=name,
            reduction=self._reduction,
            axes=(),
            keeps=self.keepdim,
            mean=self._mean,
            scalar=self.scalar,
            place=self.memory_config,
            layout=self.output_layout,
            fast=self.fast_and_approximate_mode,
            cores=self.sub_core_grids,
            **compute_fields(self.compute_kernel_config),
        )
        require_reducible(tensor.spec.data_format, call)
        axes = axes_of_reduction(dims, len(tensor.shape))
        if is_empty(tensor):
            value = (nan if self._mean else 0.0) if self._reduction is Reduction.SUM else None
            place, layout = self.memory_config, self.output_layout
            return reduced(tensor, axes, place, keeps=self.keepdim, value=value, layout=layout, fills=True)
        return converted(name, plan_reduction, tensor, replace(call, axes=axes))


_PARAMETERS = (
    "input_tensor dim keepdim memory_config compute_kernel_config scalar correction sub_core_grids "
    "fast_and_approximate_mode"
)


class _Summing(Reducing):
    output_layout: Layout | None = param("Layout of the result; None for that of the program.", default=None)


def _reduction(
    name: str, sentence: str, reduction: Reduction, results: tuple[float, float], *, mean: bool = False
) -> Callable[..., Tensor]:
    sums = reduction is Reduction.SUM
    parent: Any = _Summing if sums else Reducing

    class Function(parent, name=name, parameters=_PARAMETERS + (" output_layout" if sums else "")):  # type: ignore[call-arg, misc]
        __doc__ = f"""{sentence} of all elements along one or more axes.

        bfloat16 and block floats are reduced by the matrix unit, float32 and integers by the vector unit. The numbers
        were never compared with recordings of the real kernels.

        Returns:
            A tensor without the reduced axes, or with length 1 in their place.

        Raises:
            DeviceError: There is no such axis, the tensor is on the host, or the library does not reduce its format.

        Examples:
            >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0], [3.0, 6.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
            >>> ttnn.{name}(tensor, dim=-1).to_list()
            [{results[0]}, {results[1]}]
        """
        _reduction = reduction
        _mean = mean

    return on_device(function_of(Function))


sum = _reduction("sum", "The sum", Reduction.SUM, (3.0, 9.0))
mean = _reduction("mean", "The mean", Reduction.SUM, (1.5, 4.5), mean=True)
max = _reduction("max", "The largest", Reduction.MAX, (2.0, 6.0))
min = _reduction("min", "The smallest", Reduction.MIN, (1.0, 3.0))


class Deviating(AlongAxes):
    """Parameters of std and var."""

    compute_kernel_config: WormholeComputeKernelConfig | None = param("None for a 32-bit Dst.", default=None)
    scalar: float = param("Factor of the tensor.", default=1.0)
    correction: bool = param("Divide by one less than the number of elements.", default=True)

    def run(self) -> Tensor:
        """Reduces the tensor; the result for single elements is created on the host."""
        tensor, name = self.input_tensor, self._name
        dims = dims_of(name, self.dim)
        device = required_device(name, tensor)
        axes = axes_of_reduction(dims, len(tensor.shape))
        if not tensor.shape or prod(tensor.shape[axis] for axis in axes) == 1:
            place = tensor.memory_config() if self.memory_config is None else self.memory_config
            made = full(tensor.shape, nan if self.correction else 0.0, tensor.dtype, Layout.TILE, device, place)
            shape = tuple(side for axis, side in enumerate(tensor.shape) if axis not in axes)
            return made if self.keepdim else reshape(made, shape)
        if is_empty(tensor):
            return reduced(tensor, axes, self.memory_config, keeps=self.keepdim, value=nan)
        config = self.compute_kernel_config
        call = DeviationArguments(
            name=name,
            axes=axes,
            keeps=self.keepdim,
            scalar=self.scalar,
            corrected=self.correction,
            place=self.memory_config,
            fp32_dest=config is None or config.fp32_dest_acc_en,
            cores=self.sub_core_grids,
        )
        return converted(name, plan_deviation, tensor, call)


def _deviation(name: str, sentence: str, results: tuple[float, float]) -> Callable[..., Tensor]:
    class Function(Deviating, name=name, parameters=_PARAMETERS.rpartition(" ")[0]):
        __doc__ = f"""{sentence} of all elements along one or more axes.

        The vector unit updates mean and variance in float32. The numbers were never compared with recordings of the
        real kernels.

        Returns:
            A tensor in TILE layout without the reduced axes, or with length 1 in their place.

        Raises:
            DeviceError: There is no such axis, the tensor is on the host, or the library does not reduce its format.

        Examples:
            >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0], [3.0, 5.0]]), ttnn.float32, device, ttnn.TILE_LAYOUT)
            >>> ttnn.{name}(tensor, dim=-1, correction=False).to_list()
            [{results[0]}, {results[1]}]
        """

    return on_device(function_of(Function))


std = _deviation("std", "The standard deviation", (0.5, 1.0))
var = _deviation("var", "The variance", (0.25, 1.0))
