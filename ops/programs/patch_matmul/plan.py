"""Plans of the patch programs: block sizes, circular buffers, operations.

Blocks and most circular buffers are those of a matmul between interleaved tensors. Additional buffers: gathered rows
before they are tilized, and rows of the result after they are untilized.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout
from device.numbers.formats import FLOAT32, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import BUFFERING, buffer, paged_buffer, tile_buffer
from ops.programs.matmul.buffers import matmul_circular_buffers, program_cores
from ops.programs.matmul.choice import blocked_config, buffers_bytes, interleaved_config
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram
from ops.programs.patch_matmul.op import FillRows, Patches, PatchMatmul, PixelMatmul, Slicing, SumSections

DEPTHS: Final = (4, 2, 1)  # K tiles of a block, as tried: deeper ones need fewer handshakes
MATMUL_SHARE: Final = (2, 5)  # of L1; the buffers added here take less than another two fifths
LEAST_K_TILES: Final = 8  # of a band: fewer are not worth a sum of their own


def gathering_config(problem: MatmulProblem, grid: GridSpec, *, l1_bytes: int, rows: bool) -> MatmulConfig:
    """The program config of a patch program, whose Dst is 32 bits wide and whose buffers fit `l1_bytes`.

    With `rows` the first operand is gathered; otherwise the second.
    """
    gathered = problem.m_tiles if rows else problem.n_tiles
    if 2 * gathered < grid.cores:
        return interleaved_config(problem, grid, in_dram=True, l1_bytes=l1_bytes)
    share = div_up(gathered, grid.cores)
    per_core = (share, problem.n_tiles) if rows else (problem.m_tiles, share)
    # As much as fits of the side that is not gathered, so that it is read once.
    heights, widths = ([part for part in range(side, 0, -1) if side % part == 0] for side in per_core)
    sides = [(h, w) for w in widths for h in heights] if rows else [(h, w) for h in heights for w in widths]
    depths = [depth for depth in DEPTHS if problem.k_tiles % depth == 0]
    blocks = ((height, width, depth) for height, width in sides for depth in depths)
    block = next((block for block in blocks if buffers_bytes(problem, *block) < l1_bytes), (1, 1, 1))
    program = MatmulProgram.MCAST_IN1 if rows else MatmulProgram.MCAST_IN0
    return blocked_config(problem, grid, program, block, per_core)


def rows_spec(rows: int, columns: int, data_format: DataFormat) -> TensorSpec:
    """A tensor of rows in DRAM: one row for every position of an image, or a bias."""
    return TensorSpec((rows, columns), data_format, Layout.ROW_MAJOR)


def weights_spec(patches: Patches, out_channels: int, slicing: Slicing) -> TensorSpec:
    """Prepared weights: parts and bundles concatenated along the rows."""
    rows = patches.bundles * slicing.in1_slices * patches.column_tiles * TILE
    return TensorSpec((rows, out_channels // patches.bundles), slicing.part_format, Layout.TILE)


def transposed_spec(op: PixelMatmul) -> TensorSpec:
    """An image as a matrix of channels and positions, parts in sequence."""
    bundles = op.patches.bundles
    rows = bundles * div_up(op.channels // bundles, TILE) * TILE
    return TensorSpec((rows, op.patches.rows * op.slicing.in0_slices), op.slicing.part_format, Layout.TILE)


def sections_spec(op: PixelMatmul) -> TensorSpec:
    """The sums of all bands, concatenated by rows: channels of the first image by taps and channels of the second."""
    columns = op.patches.tap_count * op.patches.channels // op.patches.bundles
    return rows_spec(op.sections * op.channels, columns, op.out_format if op.sections == 1 else FLOAT32)


def patch_matmul_work(
    patches: Patches, *, out_channels: int, slicing: Slicing, spec: DeviceSpec, **result: Any
) -> PatchMatmul:
    """The work of one patch matmul of at least one tap, with its blocks; ``result`` are the other fields of the op."""
    columns, rows = out_channels // patches.bundles, div_up(patches.rows, TILE)
    matmul = _matmul(slicing, rows, patches.column_tiles, div_up(columns, TILE), columns, spec)
    return PatchMatmul(patches=patches, out_channels=out_channels, slicing=slicing, matmul=matmul, **result)


def pixel_matmul_work(
    patches: Patches, *, channels: int, slicing: Slicing, out_format: DataFormat, spec: DeviceSpec
) -> PixelMatmul:
    """The work of one pixel matmul, with its blocks; `channels` are the channels of the first image."""
    m_tiles, n_tiles = div_up(channels // patches.bundles, TILE), patches.column_tiles
    k_tiles = div_up(patches.rows, TILE)
    bands = spec.grid.rows // div_up(n_tiles, spec.grid.cols)
    sections = max(1, min(bands, k_tiles // LEAST_K_TILES))
    columns, rows = patches.tap_count * patches.tap_columns, spec.grid.rows // sections
    return PixelMatmul(
        patches=patches,
        channels=channels,
        sections=sections,
        slicing=slicing,
        matmul=_matmul(slicing, m_tiles, div_up(k_tiles, sections), n_tiles, columns, spec, rows=rows),
        out_format=out_format,
    )


def _matmul(
    slicing: Slicing, m_tiles: int, k_tiles: int, n_tiles: int, columns: int, spec: DeviceSpec, *, rows: int = 0
) -> MatmulOp:
    """The matmul of one bundle, with all passes along K; ``rows`` are the grid rows of a band that gathers columns."""
    problem = MatmulProblem(
        m_tiles=m_tiles,
        k_tiles=k_tiles * len(slicing.passes),
        n_tiles=n_tiles,
        in_format=slicing.part_format,
        weight_format=slicing.part_format,
        out_format=FLOAT32,
        bias=False,
        fp32_dest=True,
        packer_l1_acc=False,
    )
    grid, (share, of) = replace(spec.grid, rows=rows) if rows else spec.grid, MATMUL_SHARE
    config = gathering_config(problem, grid, l1_bytes=spec.l1.usable_bytes * share // of, rows=not rows)
    return MatmulOp(problem=problem, config=config, fidelity_phases=slicing.fidelity_phases, out_channels=columns)


def run_patch_matmul(builder: PlanBuilder, op: PatchMatmul, inputs: Sequence[PlanTensor], output: PlanTensor) -> None:
    """One program that writes into its result; the inputs are the image, the weights and, if any, the bias."""
    width, bias_bytes = op.matmul.config.out_block_w, FLOAT32.storage.itemsize * TILE
    cores = program_cores(op.matmul, DRAM_MEMORY_CONFIG)
    buffers = _product_buffers(op, op.matmul.config.in0_block_w, op.out_format, inputs[0].name, output.name, cores)
    if op.bias:
        buffers += (paged_buffer("bias", width, bias_bytes, FLOAT32, cores),)
    builder.run("PatchMatmulDeviceOperation", op, [*inputs, output], buffers=buffers, key=("patch matmul", op))


def run_fill_rows(builder: PlanBuilder, op: FillRows, inputs: Sequence[PlanTensor], output: PlanTensor) -> None:
    """One program that writes the bias, its only input, or zeros into its result."""
    grid, stick_bytes = builder.device_spec.grid, op.out_channels * op.out_format.storage.itemsize
    stick = buffer("stick", stick_bytes, op.out_format, first_cores(grid.cores, grid.cols, grid.rows))
    builder.run("FullDeviceOperation", op, [*inputs, output], buffers=(stick,), key=("fill rows", op))


def run_pixel_matmul(builder: PlanBuilder, op: PixelMatmul, inputs: Sequence[PlanTensor], output: str) -> PlanTensor:
    """The programs of a sum over all positions of two images: one, or two if bands have separate sums."""
    matmul, grid = op.matmul, builder.device_spec.grid
    cores, sums_spec = program_cores(matmul, DRAM_MEMORY_CONFIG), sections_spec(op)
    if op.sections > 1:
        box = cores.bounding_box()
        cores = first_cores(box.cols * box.rows * op.sections, box.cols, grid.rows)
    sums = builder.run(
        "PixelMatmulDeviceOperation",
        op,
        inputs,
        PlanTensor(output if op.sections == 1 else f"{output}.sections", sums_spec),
        _product_buffers(op, matmul.config.out_block_w, sums_spec.data_format, inputs[0].name, output, cores),
        key=("pixel matmul", op),
    )
    if op.sections == 1:
        return sums
    rows, columns = op.channels, sums_spec.shape[1]
    added = SumSections(sections=op.sections, rows=rows, columns=columns, out_format=op.out_format)
    cores = first_cores(min(rows, grid.cores), grid.cols, grid.rows)
    tiles = BUFFERING * min(div_up(columns, TILE), builder.device_spec.compute.dst_tiles)
    return builder.run(
        "ReduceDeviceOperation",
        added,
        [sums],
        PlanTensor(output, rows_spec(rows, columns, op.out_format)),
        (tile_buffer("in0", tiles, FLOAT32, cores), tile_buffer("out", tiles, op.out_format, cores)),
        key=("sum sections", added, sums_spec),
    )


def _product_buffers(
    op: PatchMatmul | PixelMatmul,
    patch_tiles: int,
    out_format: DataFormat,
    source: str,
    output: str,
    cores: CoreRangeSet,
) -> tuple[CircularBuffer, ...]:
    """The buffers of a matmul on some cores, and of gathered and finished row-major rows of one tile height."""
    first, second, result = (PlanTensor(name, rows_spec(1, 1, out_format)) for name in (source, "weights", output))
    buffers = matmul_circular_buffers(op.matmul, first, second, result)
    return (
        *(buffer._replace(cores=cores) for buffer in buffers),
        tile_buffer("patches", BUFFERING * patch_tiles, op.slicing.part_format, cores),
        tile_buffer("rows", BUFFERING * op.matmul.config.out_block_w, out_format, cores),
    )
