"""ttnn.grid_sample, and the preparation of its grids."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, Array
from ops.planners.grid_sample import GridSampleArguments, plan_grid_sample
from ops.programs.grid_sample import CORNER_STEPS, PREPARED, corner_weights
from ttsim.api.device_calls import cached_plan, operation
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Kind, integers
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.tensors import DataType


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


Text = Annotated[str, Kind("str", _text)]
Shape4d = Annotated[Sequence[int], integers(*range(9))]


@operation
def grid_sample(
    input_tensor: Tensor,
    grid: Tensor,
    *,
    mode: Text = "bilinear",
    padding_mode: Text = "zeros",
    align_corners: bool = False,
    use_precomputed_grid: bool = False,
    batch_output_channels: bool = False,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Samples images at the points of a grid, with bilinear interpolation; points outside the images give zeros.

    Args:
        input_tensor: [N, H, W, C] on the device, bfloat16 or float32, in ROW_MAJOR layout; C is a multiple of 32.
        grid: [N, GH, GW, 2*K] on the device: K points (x, y) from -1 to 1. With ``use_precomputed_grid``, the result of
            `prepare_grid_sample_grid`: [N, GH, GW, 6*K], or [N, GH, GW, 2*K] for "nearest".
        mode: "bilinear", or "nearest" with a precomputed grid.
        padding_mode: "zeros".
        align_corners: -1 and 1 are the centers of the outer pixels instead of their edges.
        use_precomputed_grid: The grid holds pixels and weights.
        batch_output_channels: The K samples of a grid position extend the channels instead of the columns.
        memory_config: Memory of the result; None for that of the grid.
        compute_kernel_config: None for HiFi4 and a 16-bit Dst.

    Returns:
        [N, GH, GW*K, C], or [N, GH, GW, K*C] with ``batch_output_channels``.

    Examples:
        >>> image = ttnn.from_numpy(np.arange(4 * 32).reshape(1, 2, 2, 32), ttnn.bfloat16, device=device)
        >>> grid = ttnn.from_numpy(np.array([[[[-0.5, -0.5], [0, 0]]]]), ttnn.float32, device=device)
        >>> ttnn.grid_sample(image, grid).to_numpy()[0, 0, :, 0].tolist()
        [0.0, 48.0]
    """
    if mode not in ("bilinear", "nearest"):
        raise NotSimulatedError(f"grid_sample: ttsim does not simulate mode {mode!r}; 'bilinear' and 'nearest' work")
    for name, tensor in (("Input", input_tensor), ("Grid", grid)):
        require_allocated(tensor, first_line=f"{name} tensor must be allocated in buffer on device!")
        if tensor.device() is None:
            raise DeviceError(f"{name} tensor must be on device!\ngive it to the device with .to(device)")
    device = input_tensor.device()
    assert device is not None
    config = None if compute_kernel_config is None else compute_kernel_config.argument()
    chosen: dict[str, Any] = {}
    if config is not None:
        chosen = {"fidelity_phases": config.fidelity_phases, "fp32_dest": config.fp32_dest}
        chosen["full_sync"] = config.dst_full_sync
    call = GridSampleArguments(
        images=input_tensor.spec,
        grid=grid.spec,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
        prepared=use_precomputed_grid,
        batch_channels=batch_output_channels,
        place=memory_config,
        **chosen,
    )
    plan = cached_plan(plan_grid_sample, device, call)
    with device.function("ttnn.grid_sample"):
        return run(plan, {"input": input_tensor, "grid": grid}, device)["output"]


@operation
def prepare_grid_sample_grid(
    grid: Tensor,
    input_shape: Shape4d,
    *,
    mode: Text = "bilinear",
    padding_mode: Text = "zeros",
    align_corners: bool = False,
    output_dtype: DataType | None = None,
) -> Tensor:
    """A precomputed grid: the pixel above and left of each point, and the weights of the four pixels around the point.

    Args:
        grid: [N, GH, GW, 2] on the host, float32: x and y, from -1 to 1.
        input_shape: Sides of the images, (N, H, W, C).
        mode: "bilinear", or "nearest", which stores the nearest pixel only.
        padding_mode: "zeros".
        align_corners: -1 and 1 are the centers of the outer pixels instead of their edges.
        output_dtype: ttnn.bfloat16, or None.

    Returns:
        [N, GH, GW, 6] on the host, or [N, GH, GW, 2] for "nearest": row and column as 16-bit integers stored in the
        bits of bfloat16, then the weights.

    Raises:
        DeviceError: The grid is not float32 on the host, or the padding mode or data type is not supported.

    Examples:
        >>> grid = ttnn.from_numpy(np.array([[[[0, 0]]]]), ttnn.float32)
        >>> ttnn.prepare_grid_sample_grid(grid, (1, 4, 4, 32)).to_numpy()[0, 0, 0, 2:].tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    _require_fit(grid, input_shape, padding_mode, output_dtype)
    points = grid.to_numpy().astype(np.float32).reshape(-1, 2)
    place = np.stack(
        [_place(points[:, 1 - axis], side, align_corners=align_corners) for axis, side in enumerate(input_shape[1:3])],
        axis=1,
    )
    shape = (*grid.spec.shape[:3], PREPARED["nearest" if mode == "nearest" else "bilinear"])
    if mode == "nearest":
        half = np.float32(0.5)
        nearest = np.trunc(place + np.copysign(half, place)) if align_corners else np.floor(place + half)
        values = np.where(_inside(nearest, input_shape)[:, None], _integers(nearest), np.int16(-1)).astype(np.int16)
    else:
        first = np.floor(place)
        weights = corner_weights(place - first)
        for number, step in enumerate(CORNER_STEPS):
            weights[~_inside(first + np.array(step), input_shape), number] = 0
        bits = weights.astype(BFLOAT16.storage).view(np.int16)
        values = np.concatenate([_integers(first), bits], axis=1)
    numbers = np.ascontiguousarray(values).view(BFLOAT16.storage).reshape(shape)
    return Tensor.of_host(numbers, TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR))


def _inside(pixels: Array, input_shape: Sequence[int]) -> Array:
    """Whether each pixel (row, column) lies inside an image, [points]."""
    return np.asarray(np.logical_and(pixels >= 0, pixels < np.array(input_shape[1:3])).all(axis=1))


def _place(coordinates: Array, side: int, *, align_corners: bool) -> Array:
    """Coordinates in pixels along an axis, as the real host computes them."""
    moved, half = coordinates + np.float32(1), np.float32(0.5)
    if align_corners:
        return np.asarray(moved * (np.float32(side - 1) * half))
    return np.asarray(moved * (np.float32(side) * half) - half)


def _integers(numbers: Array) -> Array:
    limits = np.iinfo(np.int16)
    return np.asarray(np.clip(np.nan_to_num(numbers), limits.min, limits.max), np.int16)


def _require_fit(grid: Tensor, input_shape: Sequence[int], padding_mode: str, output_dtype: DataType | None) -> None:
    """Raises DeviceError like the real library, with checks in the same order."""
    for unfit, text in (
        (grid.device() is not None, "Grid tensor must be on host\ngrid: bring it to the host with .cpu()"),
        (grid.layout is not Layout.ROW_MAJOR, "Grid tensor must be in row major layout\ngrid: use ttnn.to_layout"),
        (len(grid.shape) != 4, "Grid tensor must be 4D\ngrid: reshape it"),
        (
            tuple(grid.shape[-1:]) != (2,),
            "Grid tensor last dimension must be 2 (x, y coordinates)\ngrid: reshape it once it is prepared",
        ),
        (padding_mode != "zeros", "Currently only 'zeros' padding mode is supported\npadding_mode: leave it out"),
        (len(input_shape) != 4, "Input shape must have 4 dimensions [N, H, W, C]\ninput_shape: give four sides"),
        (
            output_dtype is not None and output_dtype.format != BFLOAT16,
            "Currently only BFLOAT16 is supported for the grid output dtype\noutput_dtype: leave it out",
        ),
        (grid.spec.data_format != FLOAT32, "Currently only float32 input grid is supported\ngrid: give float32"),
    ):
        if unfit:
            raise DeviceError(text)
    if not grid.is_allocated():
        raise ArgumentError("prepare_grid_sample_grid: the grid was deallocated")
