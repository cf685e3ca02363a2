"""The models of the patch programs, and of what the host does around them."""

from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import Description, Detail, Ends, OpModel, cycles_of_work, values_of_first
from ops.programs.matmul.model import matmul_facts
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
        Stage.READER: "sticks of patches are gathered from DRAM, zeros filled from L1",
        Stage.ACT_MULTICAST: "gathered blocks are sent on to the cores that share them",
        Stage.WEIGHT_READER: "the second operand is read from DRAM, tile by tile",
        Stage.WEIGHT_MULTICAST: "blocks of the second operand are sent on to the cores that share them",
        Stage.TILIZE: "gathered sticks become tiles",
        Stage.UNPACK: "tiles are brought to the matrix unit",
        Stage.PACK: "results are packed into L1",
        Stage.NETWORK: "transfers wait for others on the same links",
        Stage.UNTILIZE: "tiles of the result become rows",
        Stage.WRITER: "rows of the result are written to DRAM",
        Stage.DRAM: "DRAM delivers or takes what all cores move",
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
COMPOSED: Final = (
    "the blocks of a matmul, sticks that are read and written as in movements, tilizing as in a convolution and "
    "untilizing as in a halo"
)


def describe_product(op: PatchMatmul | PixelMatmul, ends: Ends, spec: DeviceSpec) -> Description:
    """How a product of patches was planned."""
    bundles, passes = op.patches.bundles, len(op.slicing.passes)
    facts = (
        *matmul_facts(op.matmul),
        Detail(
            name="passes", value=passes, text="one pass" if passes == 1 else f"{passes} passes over slices of digits"
        ),
        Detail(name="bundles", value=bundles, text="one bundle" if bundles == 1 else f"{bundles} bundles of groups"),
    )
    return Description(facts=facts, stages=PRODUCTS, composed_of=COMPOSED)


def describe_rows(op: FillRows | SumSections, ends: Ends, spec: DeviceSpec) -> Description:
    """A program that writes rows."""
    facts: tuple[Detail, ...] = ()
    if isinstance(op, SumSections):
        facts = (Detail(name="sections", value=op.sections, text=f"sums of {op.sections} bands of cores"),)
    return Description(facts=facts, stages=ROWS, composed_of="sticks that are read and written as in movements")


def _fidelity_phases(op: PatchMatmul | PixelMatmul) -> int:
    return op.matmul.fidelity_phases


OP_MODELS: Final = (
    OpModel(
        op=PatchMatmul,
        values=values.patch_matmul,
        cycles=cycles_of_work(cycles.product_cycles),
        fidelity_phases=_fidelity_phases,
        describe=describe_product,
    ),
    OpModel(
        op=PixelMatmul,
        values=values.pixel_matmul,
        cycles=cycles_of_work(cycles.product_cycles),
        fidelity_phases=_fidelity_phases,
        describe=describe_product,
    ),
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
