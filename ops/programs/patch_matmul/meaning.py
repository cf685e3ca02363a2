"""What the works of the patch programs mean, and those of the host around them."""

from collections.abc import Sequence
from typing import Final

from device.numbers.formats import Array
from ops.op_model import OpModel, ValuesContext, cycles_of_work, given, values_of_first
from ops.programs.patch_matmul import cycles, values
from ops.programs.patch_matmul.account import describe_product, describe_rows
from ops.programs.patch_matmul.host_values import prepare_bias, prepare_sticks, prepare_taps
from ops.programs.patch_matmul.host_work import PrepareBias, PrepareSticks, PrepareTaps
from ops.programs.patch_matmul.work import FillRows, PatchMatmul, PixelMatmul, SumSections


def _patch_matmul(work: PatchMatmul, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    """Inputs are the image, the weights, the bias if there is one, and the result that it writes into."""
    *operands, target = inputs
    image, weights, *bias = map(given, operands)
    return values.patch_matmul(work, image, weights, bias[0] if bias else None, target, reading)


def _pixel_matmul(work: PixelMatmul, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    """Inputs are the image whose channels become rows and the one whose patches become columns."""
    image, other = map(given, inputs)
    return values.pixel_matmul(work, image, other, reading)


def _filled_rows(work: FillRows, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    """Inputs are the bias, if there is one, and the result that it writes into."""
    *bias, target = inputs
    return values.fill_rows(work, given(bias[0]) if bias else None, target)


def _fidelity_phases(work: PatchMatmul | PixelMatmul) -> int:
    return work.matmul.fidelity_phases


OP_MODELS: Final = (
    OpModel(
        work=PatchMatmul,
        values=_patch_matmul,
        cycles=cycles_of_work(cycles.patch_matmul_cycles),
        fidelity_phases=_fidelity_phases,
        account=describe_product,
    ),
    OpModel(
        work=PixelMatmul,
        values=_pixel_matmul,
        cycles=cycles_of_work(cycles.pixel_matmul_cycles),
        fidelity_phases=_fidelity_phases,
        account=describe_product,
    ),
    OpModel(
        work=FillRows,
        values=_filled_rows,
        cycles=cycles_of_work(cycles.fill_rows_cycles),
        account=describe_rows,
    ),
    OpModel(
        work=SumSections,
        values=values_of_first(values.sum_sections),
        cycles=cycles_of_work(cycles.sum_sections_cycles),
        account=describe_rows,
    ),
    OpModel(work=PrepareSticks, values=values_of_first(prepare_sticks)),
    OpModel(work=PrepareTaps, values=values_of_first(prepare_taps)),
    OpModel(work=PrepareBias, values=values_of_first(prepare_bias)),
)
