"""ttnn.matmul and ttnn.linear."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from device.cores import CoreGrid
from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import no_such_axis
from device.memory.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.parts import GridSpec
from ops.planners.eltwise import plan_unary
from ops.planners.matmul.arguments import MatmulArguments
from ops.planners.matmul.plan import Leftovers, left_over, plan_expected, plan_matmul, require_blocks, require_output
from ops.planners.matmul.validation import misplaced, require_floats, shape_of_nothing, validate
from ops.programs.eltwise.refusals import BY_NAME
from ttsim.api.conversions import typecast
from ttsim.api.device_calls import format_of, require_left_out
from ttsim.api.eltwise import add, add_, multiply, multiply_
from ttsim.api.shape import reshape
from ttsim.api.without_elements import is_empty, made
from ttsim.runtime.calls import on_device
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Call, checked_as, function_of, param
from ttsim.runtime.types.configs import UnaryWithParam, WormholeComputeKernelConfig
from ttsim.runtime.types.matmul_configs import ProgramConfig
from ttsim.runtime.types.tensors import DataType


class Matmul(Call, name="matmul"):
    """The product of two matrices, or of each pair of two batches of matrices.

    Returns:
        [..., M, N], of the higher rank of the two tensors.

    Examples:
        >>> a = ttnn.full((32, 64), 0.5, layout=ttnn.TILE_LAYOUT, device=device)
        >>> b = ttnn.ones((64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> product = ttnn.matmul(a, b)
        >>> product.shape, product.to_numpy()[0, 0].item()
        (Shape([32, 32]), 32.0)
    """

    input_tensor_a: Tensor = param("[..., M, K] on the device, in TILE layout; or [K].", kw_only=False)
    input_tensor_b: Tensor = param(
        "[..., K, N] in TILE layout, with the same leading axes; or either operand is a single matrix, "
        "which is used with all matrices of the other; or [K].",
        kw_only=False,
    )
    transpose_a: bool = param("`input_tensor_a` is [..., K, M].", default=False)
    transpose_b: bool = param("`input_tensor_b` is [..., N, K].", default=False)
    memory_config: MemoryConfig | None = param(
        "Memory of the output; None for DRAM. Cores and shapes of shards follow from the program.", default=None
    )
    dtype: DataType | None = param("Data type of the output; None for that of the first tensor.", default=None)
    program_config: ProgramConfig | None = param(
        "How the product is split into cores and blocks; None lets the library choose.", default=None
    )
    activation: str | UnaryWithParam | None = param('Function applied to the output, such as "relu".', default=None)
    compute_kernel_config: WormholeComputeKernelConfig | None = param(
        "None for the library's default: HiFi2 with L1 accumulation; LoFi for two block floats; a 32-bit Dst for a "
        "float32 output.",
        default=None,
    )
    core_grid: CoreGrid | None = param(
        "Cores to use, without a program_config; None lets the library choose.", default=None
    )
    output_tile: object = param("Not simulated; None for tiles of 32x32.", default=None)
    optional_output_tensor: Tensor | None = param(
        "A tensor that receives the output and is returned; its data type and memory are the output's.", default=None
    )
    global_cb: object = param("Not simulated; of gather_in0 alone.", default=None)
    sub_device_id: object = param("Not simulated; None for the whole device.", default=None)
    prefetcher_pipes: object = param("Not simulated; empty for none.", default=())

    # Parameters of `Linear` alone
    bias: Tensor | None = None
    in0_column_offset: object = None

    def run(self) -> Tensor:
        """The product; a bias is added to each row before the activation."""
        unsimulated = ("output_tile", "global_cb", "sub_device_id", "in0_column_offset")
        require_left_out(self._name, **{name: getattr(self, name) for name in unsimulated})
        require_left_out(self._name, prefetcher_pipes=self.prefetcher_pipes or None)
        ranks = len(self.input_tensor_a.shape), len(self.input_tensor_b.shape)
        if 0 in ranks:
            raise ArgumentError(
                "ttnn.matmul: Both arguments to matmul need to be at least 1D, but got shapes "
                f"{self.input_tensor_a.shape} and {self.input_tensor_b.shape}\nreshape numbers to matrices"
            )
        if is_empty(self.input_tensor_a) or is_empty(self.input_tensor_b):
            return self._of_nothing()
        if 1 in ranks:
            return self._of_vectors()
        target = self.optional_output_tensor
        operands = {"input": self.input_tensor_a, "weight": self.input_tensor_b, "bias": self.bias, "target": target}
        tensors = {name: tensor for name, tensor in operands.items() if tensor is not None}
        for number, tensor in enumerate(tensors.values()):
            lost = "Input Tensor is not allocated" if number else "Operand to matmul must be on device"
            require_allocated(tensor, first_line=lost)
        device = _device(*tensors.values())
        config, fields = self.compute_kernel_config, ("fidelity_phases", "fp32_dest", "packer_l1_acc")
        chosen: dict[str, Any] = {} if config is None else {name: getattr(config.argument(), name) for name in fields}
        arguments = MatmulArguments(
            first=tensors["input"].spec,
            second=tensors["weight"].spec,
            bias=None if self.bias is None else self.bias.spec,
            out_format=format_of(self.dtype) or (None if target is None else target.spec.data_format),
            memory_config=self._place(),
            target=None if target is None else target.spec,
            activation=_activation(self.activation),
            transpose_a=self.transpose_a,
            transpose_b=self.transpose_b,
            program=None if self.program_config is None else self.program_config.argument(),
            core_grid=None if self.core_grid is None else GridSpec(cols=self.core_grid.x, rows=self.core_grid.y),
            **chosen,
        )
        room = device.machine.l1_room_bytes
        checks = (
            partial(check, arguments, device.spec, free_l1_bytes=room) for check in (require_output, require_blocks)
        )
        validate(arguments, *checks)
        if device.strict:
            require_floats(arguments)
        plan = plan_matmul(arguments, device.spec, free_l1_bytes=room)
        with device.function(f"ttnn.{self._name}"):
            results = run(plan, tensors, device, useful_flops=2 * arguments.multiply_adds)
            left = left_over(arguments, device.spec, free_l1_bytes=room)
            product = self._finished(results.pop("output"), arguments, device, left)
            for transposed in results.values():
                transposed.deallocate()
            return product

    def _place(self) -> MemoryConfig:
        """Where the output lies: that of the tensor that receives it counts unless another one than DRAM is given."""
        target = self.optional_output_tensor
        if target is not None and self.memory_config in (None, DRAM_MEMORY_CONFIG):
            return target.memory_config()
        return self.memory_config or DRAM_MEMORY_CONFIG

    def _of_nothing(self) -> Tensor:
        """The product if an operand has no elements: zeros from the host, plus a bias.

        As in the library, nothing else is checked or used: sides, activation, program config, output tensor.
        """
        first, second = self.input_tensor_a, self.input_tensor_b
        device = _device(first, second)
        sharded = first.memory_config().is_sharded() or second.memory_config().is_sharded()
        activation = _activation(self.activation)
        if sharded and activation is not None:
            raise ArgumentError(misplaced(activation[0]))
        sides = shape_of_nothing(
            _turned(first.shape, turned=self.transpose_a), _turned(second.shape, turned=self.transpose_b)
        )
        with device.function(f"ttnn.{self._name}"):
            product = made(first, sides, self.memory_config or DRAM_MEMORY_CONFIG, dtype=self.dtype)
            return product if self.bias is None else add(product, self.bias, memory_config=product.memory_config())

    def _of_vectors(self) -> Tensor:
        """The product of vectors, reshaped to a row or a column; the added axes are removed from the result.

        The matmul adds a bias of one row with the width of the product. Any other bias is added after the axes are
        removed, and the result has the higher of the two ranks.
        """
        first, second = self.input_tensor_a, self.input_tensor_b
        bias, vectors = self.bias, (len(first.shape) == 1, len(second.shape) == 1)
        columns = 1 if vectors[1] else second.shape[-2 if self.transpose_b else -1]
        within = bias is not None and tuple(bias.shape)[-1:] == (columns,) and bias.spec.volume == columns
        turned = (vectors[0] and self.transpose_a) or (vectors[1] and self.transpose_b)
        of_rows = bias is not None and not within and bias.shape[-1] == columns
        if turned or of_rows or self.optional_output_tensor is not None:
            raise NotSimulatedError(
                f"{self._name}: ttsim does not simulate vectors that are transposed, an optional_output_tensor, or a "
                "bias of several rows beside them; reshape them to matrices"
            )
        if vectors[0]:
            self.input_tensor_a = reshape(first, (1, *first.shape))
        if vectors[1]:
            self.input_tensor_b = reshape(second, (*second.shape, 1))
        activation, self.activation = _activation(self.activation), None
        self.bias = bias if within else None
        product = self.run()
        *most, rows, columns = product.shape
        sides = (*most, *(() if vectors[0] else (rows,)), *(() if vectors[1] else (columns,)))
        if within and bias is not None:
            sides = np.broadcast_shapes(sides, tuple(bias.shape))
        product = reshape(product, sides)
        if bias is not None and not within:
            product = add(product, bias, memory_config=product.memory_config())
        return product if activation is None else _activated(product, activation, _device(product))

    def _finished(self, product: Tensor, arguments: MatmulArguments, device: Device, lacks: Leftovers) -> Tensor:
        """Applies a bias and an activation that are separate operations to a product."""
        target = self.optional_output_tensor
        activation = _activation(self.activation)
        if lacks.bias and self.bias is not None and target is not None:
            add(product, self.bias, output_tensor=product)
        elif lacks.bias and self.bias is not None:
            bare, product = product, add(product, self.bias, memory_config=product.memory_config())
            bare.deallocate()
        if lacks.shaped:
            plan = plan_expected(arguments, product.spec, device.spec, turned=lacks.turned)
            product = product if plan is None else run(plan, {"input": product}, device)["output"]
        if target is not None:
            if lacks.activation and activation is not None:
                plan = plan_unary(product.spec, activation, device.spec, target=product.spec)
                run(plan, {"input": product, "target": product}, device)
            return target
        if lacks.activation and activation is not None:
            return _activated(product, activation, device)
        return product


class Linear(
    Matmul,
    name="linear",
    parameters="input_tensor_a input_tensor_b bias transpose_a transpose_b memory_config dtype program_config "
    "activation compute_kernel_config core_grid output_tile optional_output_tensor global_cb sub_device_id "
    "prefetcher_pipes in0_column_offset",
):
    """The product of `matmul` plus a bias row: ``input_tensor_a @ input_tensor_b + bias``.

    Returns:
        [..., M, N], of the higher rank of the two tensors.

    Examples:
        >>> a = ttnn.full((32, 64), 0.5, layout=ttnn.TILE_LAYOUT, device=device)
        >>> b, bias = (ttnn.ones((rows, 32), layout=ttnn.TILE_LAYOUT, device=device) for rows in (64, 1))
        >>> ttnn.linear(a, b, bias=bias).to_numpy()[0, 0].item()
        33.0
    """

    bias: Tensor | None = param(
        "[..., 1, N] on the device, in TILE layout; or [..., M, N], of whose 32 rows a matmul's program adds the first "
        "to all, as in ttnn.",
        default=None,
    )
    in0_column_offset: object = param("Not simulated; None for the first column.", default=None)


matmul = on_device(function_of(Matmul))
linear = on_device(function_of(Linear))


@on_device
@checked_as(name="addmm")
def addmm(
    input_tensor: Tensor,
    mat1_tensor: Tensor,
    mat2_tensor: Tensor,
    *,
    alpha: float | int = 1.0,
    beta: float | int = 1.0,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    program_config: ProgramConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    core_grid: CoreGrid | None = None,
    output_tile: object = None,
    optional_output_tensor: Tensor | None = None,
) -> Tensor:
    """``alpha * (mat1_tensor @ mat2_tensor) + beta * input_tensor``, as a matmul and element-wise operations.

    Args:
        input_tensor: [M, N] on the device, in TILE layout.
        mat1_tensor: [M, K].
        mat2_tensor: [K, N].
        alpha: Factor of the product, not 0.
        beta: Factor of ``input_tensor``; 0 leaves it out.
        memory_config: Memory of the output; None for DRAM.
        dtype: Data type of the output; None for that of ``mat1_tensor``.
        program_config: As in `matmul`.
        compute_kernel_config: As in `matmul`.
        core_grid: As in `matmul`.
        output_tile: Not simulated; None for tiles of 32x32.
        optional_output_tensor: A tensor that receives the result and is returned.

    Returns:
        [M, N].

    Raises:
        ArgumentTypeError: An argument has a wrong type.
        ArgumentError: The operation does not support the shapes, data types or a config.
        DeviceError: A tensor is not on the device, or memory is full.

    Examples:
        >>> c, a = (ttnn.ones((32, 32), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(2))
        >>> ttnn.addmm(c, a, a, alpha=0.5, beta=2.0).to_numpy()[0, 0].item()
        18.0
    """
    require_left_out("addmm", output_tile=output_tile)
    _require_addends(input_tensor, mat1_tensor, mat2_tensor, alpha, beta)
    product = matmul(
        mat1_tensor,
        mat2_tensor,
        memory_config=memory_config,
        dtype=dtype,
        program_config=program_config,
        compute_kernel_config=compute_kernel_config,
        core_grid=core_grid,
        optional_output_tensor=optional_output_tensor,
    )
    if alpha != 1:
        multiply_(product, alpha)
    if beta != 0:
        added = input_tensor if beta == 1 else multiply(input_tensor, beta, dtype=product.dtype)
        if added.dtype != product.dtype:
            added = typecast(added, product.dtype)
        add_(product, added)
        if added is not input_tensor:
            added.deallocate()
    return product


def _require_addends(added: Tensor, first: Tensor, second: Tensor, alpha: float, beta: float) -> None:
    """Checks the factors, shapes and data types of `addmm`."""
    if alpha == 0:
        raise ArgumentError("alpha parameter cannot be 0\nalpha: use multiply for a product without mat1_tensor")
    for axis, other in ((0, first), (1, second)) if beta != 0 else ():  # the library stops at the first that differs
        sides = []
        for shape in (added.shape, other.shape):
            if axis >= len(shape):
                raise ArgumentError(f"{no_such_axis(len(shape), axis)}\naddmm: give three tensors of two axes")
            sides.append(shape[axis])
        if sides[0] != sides[1]:
            raise ArgumentError(
                "input_tensor must have shape matching one of result of mat1_tensor @ mat2_tensor\n"
                f"input_tensor: its shape is {list(added.shape)}"
            )
    tensors = {"input_tensor": added} if beta != 0 else {}
    for name, tensor in (tensors | {"mat1_tensor": first, "mat2_tensor": second}).items():
        if tensor.spec.data_format not in (BFLOAT16, FLOAT32, BFLOAT8_B):
            raise ArgumentError(
                f"only ttnn.bfloat16, ttnn.float32 and ttnn.bfloat8_b types are supported for {name}\n"
                f"{name}: typecast it"
            )


def _device(first: Tensor, *others: Tensor) -> Device:
    device = first.device()
    if device is None or any(tensor.device() is None for tensor in others):
        raise DeviceError("Operand to matmul must be on device\ngive every tensor to the device with .to(device)")
    return device


def _turned(shape: Sequence[int], *, turned: bool) -> tuple[int, ...]:
    """The sides of a transposed operand; a vector is unchanged."""
    return (*shape[:-2], shape[-1], shape[-2]) if turned and len(shape) > 1 else tuple(shape)


def _activated(product: Tensor, activation: tuple[str, tuple[float, ...]], device: Device) -> Tensor:
    """Applies an activation to a product and releases the product."""
    result = run(plan_unary(product.spec, activation, device.spec), {"input": product}, device)["output"]
    product.deallocate()
    return result


def _activation(activation: str | UnaryWithParam | None) -> tuple[str, tuple[float, ...]] | None:
    if activation is None:
        return None
    if isinstance(activation, UnaryWithParam):
        return activation.op_type.name.lower(), activation.params
    if activation not in BY_NAME:
        raise ArgumentError(f"Unknown unary op: {activation}\nactivation: one of {', '.join(sorted(BY_NAME))}")
    return BY_NAME[activation]
