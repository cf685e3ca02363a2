"""Sums of the products of K blocks, with trips through the packer between blocks, and the final output."""

from collections.abc import Iterable
from typing import TypeAlias

from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.formats import Array, DataFormat
from device.numbers.vector_unit import VectorUnitMode
from device.spec.device_spec import DeviceSpec
from ops.programs.eltwise.functions import apply_activation

Activation: TypeAlias = tuple[str, tuple[float, ...]]  # its name in lower case and its parameters


def sum_blocks(
    blocks: Iterable[tuple[Array, Array, tuple[int, ...]] | None],
    count: int,
    arithmetic: Arithmetic,
    mode: MatrixUnitMode,
    partials: DataFormat,
    *,
    accumulates: bool,
    has_bias: bool,
    reloads_whole: bool = False,
) -> Array | None:
    """The sum of ``count`` blocks with trips through the packer between them (docs/reference/values.md, Partial sums).

    A block is activations, weights and the halves present of each K tile; None is a block without products, which
    leaves partial sums unchanged: a second trip through the packer changes nothing. With a bias the last block also
    makes the trip. ``reloads_whole`` reloads partial sums without truncation. The result is Dst before bias, activation
    and final pack, float32 [rows, columns]; None if it is zero.
    """
    fp32_dest, packed, dst = mode.fp32_dest, None, None
    for number, block in enumerate(blocks, 1):
        final = number == count and not has_bias
        dst = None
        if packed is not None and (final or not accumulates):
            dst = packed if reloads_whole else arithmetic.unpack(packed, partials, fp32_dest=fp32_dest)
        if block is None:
            continue
        activations, weights, half_counts = block
        dst = arithmetic.product(activations, weights, dst, mode=mode, half_counts=half_counts)
        if not final:
            repacked = arithmetic.pack(dst, partials, fp32_dest=fp32_dest)
            adds = packed is not None and accumulates
            packed = arithmetic.accumulate_l1(packed, repacked, partials) if packed is not None and adds else repacked
    return dst if packed is None or not has_bias else arithmetic.unpack(packed, partials, fp32_dest=fp32_dest)


def finish(
    dst: Array,
    bias: Array | None,
    activation: Activation | None,
    out_format: DataFormat,
    arithmetic: Arithmetic,
    spec: DeviceSpec,
    *,
    fp32_dest: bool,
    trip: DataFormat | None = None,
) -> Array:
    """Bias, activation and the final pack, after another trip through the format ``trip`` if one is given."""
    if bias is not None:
        dst = arithmetic.add_bias(dst, bias, fp32_dest=fp32_dest)
    relu = activation is not None and activation[0] == "relu"
    if activation is not None and not relu:
        mode = VectorUnitMode(fp32_dest=fp32_dest, reciprocal_table=spec.compute.reciprocal_table)
        dst = apply_activation(dst, *activation, mode=mode)
    if trip is not None:
        dst = arithmetic.unpack(arithmetic.pack(dst, trip, fp32_dest=fp32_dest), trip, fp32_dest=fp32_dest)
    return arithmetic.pack(dst, out_format, fp32_dest=fp32_dest, relu=relu)
