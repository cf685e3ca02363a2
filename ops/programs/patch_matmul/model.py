"""The models of the patch programs, and of the host's work around them."""

from types import MappingProxyType
from typing import Any, Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import Description, Detail, Ends, OpModel, ValuesOf, cycles_of_work, values_of_first
from ops.programs.matmul.model import COMMON_STAGES, matmul_facts
from ops.programs.patch_matmul import cycles, values
from ops.programs.patch_matmul.op import (
    FillRows,
    PatchMatmul,
    PixelMatmul,
    PrepareBias,
    PrepareSticks,
    PrepareTaps,
    SumSections,
)

PRODUCTS: Final = MappingProxyType(
    {
        **COMMON_STAGES,
        Stage.READER: "sticks of patches are gathered from DRAM, zeros filled from L1",
        Stage.ACT_MULTICAST: "gathered blocks are sent on to the cores that share them",
        Stage.TILIZE: "gathered sticks become tiles",
        Stage.UNTILIZE: "tiles of the result become rows",
        Stage.WRITER: "rows of the result are written to DRAM",
    }
)
ROWS: Final = MappingProxyType(
    {
        Stage.READER: "rows of all bands are read from DRAM",
        Stage.MATH: "they are added up",
        Stage.WRITER: "rows of the result are written to DRAM",
        Stage.DRAM: "DRAM delivers or takes what all cores move",
    }
)
MOVED: Final = "sticks that are read and written as in movements"
COMPOSED: Final = f"the blocks of a matmul, {MOVED}, tilizing as in a convolution and untilizing as in a halo"


def describe_product(op: PatchMatmul | PixelMatmul, ends: Ends, spec: DeviceSpec) -> Description:
    """How a product of patches was planned."""
    bundles, passes = op.patches.bundles, len(op.slicing.passes)
    facts = (
        *matmul_facts(op.matmul),
        Detail("passes", passes, "one pass" if passes == 1 else f"{passes} passes over slices of digits"),
        Detail("bundles", bundles, "one bundle" if bundles == 1 else f"{bundles} bundles of groups"),
    )
    return Description(facts=facts, stages=PRODUCTS, composed_of=COMPOSED)


def describe_rows(op: FillRows | SumSections, ends: Ends, spec: DeviceSpec) -> Description:
    """A program that writes rows."""
    sections = op.sections if isinstance(op, SumSections) else 0
    facts = (Detail("sections", sections, f"sums of {sections} bands of cores"),) if sections else ()
    return Description(facts=facts, stages=ROWS, composed_of=MOVED)


def _product(op: type[Any], multiplied: ValuesOf[Any]) -> OpModel[Any]:
    return OpModel(
        op=op,
        values=multiplied,
        cycles=cycles_of_work(cycles.product_cycles),
        fidelity_phases=lambda op: op.matmul.fidelity_phases,
        describe=describe_product,
    )


OP_MODELS: Final = (
    _product(PatchMatmul, values.patch_matmul),
    _product(PixelMatmul, values.pixel_matmul),
    OpModel(
        op=FillRows, values=values.fill_rows, cycles=cycles_of_work(cycles.fill_rows_cycles), describe=describe_rows
    ),
    OpModel(
        op=SumSections,
        values=values_of_first(values.sum_sections),
        cycles=cycles_of_work(cycles.sum_sections_cycles),
        describe=describe_rows,
    ),
    OpModel(op=PrepareSticks, values=values_of_first(values.prepare_sticks)),
    OpModel(op=PrepareTaps, values=values_of_first(values.prepare_taps)),
    OpModel(op=PrepareBias, values=values_of_first(values.prepare_bias)),
)
