"""What the patch programs tell of themselves: how they were dealt to cores, and what their stages do."""

from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import Description, Detail, Ends
from ops.programs.matmul.model import matmul_facts
from ops.programs.patch_matmul.work import FillRows, PatchMatmul, PixelMatmul, SumSections

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


def describe_product(work: PatchMatmul | PixelMatmul, ends: Ends, spec: DeviceSpec) -> Description:
    """How a product of patches was planned."""
    bundles, passes = work.patches.bundles, len(work.slicing.passes)
    facts = (
        *matmul_facts(work.matmul),
        Detail(
            name="passes", value=passes, text="one pass" if passes == 1 else f"{passes} passes over slices of digits"
        ),
        Detail(name="bundles", value=bundles, text="one bundle" if bundles == 1 else f"{bundles} bundles of groups"),
    )
    return Description(facts=facts, stages=PRODUCTS, composed_of=COMPOSED)


def describe_rows(work: FillRows | SumSections, ends: Ends, spec: DeviceSpec) -> Description:
    """A program that writes rows."""
    facts: tuple[Detail, ...] = ()
    if isinstance(work, SumSections):
        facts = (Detail(name="sections", value=work.sections, text=f"sums of {work.sections} bands of cores"),)
    return Description(facts=facts, stages=ROWS, composed_of="sticks that are read and written as in movements")
