"""The models of a conv2d program and of the preparation of its weights and bias."""

from functools import partial
from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import Description, Detail, Ends, OpModel, cycles_of_work, uncompared_fact, values_of_first
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, HEIGHT, ParallelConfig
from ops.programs.conv2d.values import convolved
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, prepare_bias, prepare_weights
from ops.programs.eltwise.functions import uncompared
from ops.window import sliding_window_text

STAGES: Final = MappingProxyType(
    {
        Stage.READER: "activations are gathered from the core's own L1",
        Stage.SECOND_READER: "the second processor gathers its half of the activations from the core's own L1",
        Stage.ACT_MULTICAST: "cores send their channels to all others that need them",
        Stage.WEIGHT_READER: "weights are read from DRAM, tile by tile",
        Stage.WEIGHT_MULTICAST: "weights are sent on to the cores that share them",
        Stage.DRAM: "the readers of weights share DRAM's bandwidth",
        Stage.TILIZE: "gathered rows become tiles",
        Stage.UNPACK: "tiles are brought to the matrix unit, partial sums fetched back",
        Stage.PACK: "results are packed into L1",
        Stage.BIAS: "the bias is added",
        Stage.UNTILIZE: "tiles of the result become rows",
    }
)


def describe_conv2d(op: Conv2dOp, ends: Ends, spec: DeviceSpec) -> Description:
    """How a convolution was planned."""
    return Description(
        facts=partial(_facts, op, spec),
        stages=STAGES,
        measured_as="convolution",
        attributes=partial(conv_attributes, op),
    )


def _facts(op: Conv2dOp, spec: DeviceSpec) -> tuple[Detail, ...]:
    layout, blocks, options = op.layout, op.layout.blocks, op.options
    act_block, subblock = (blocks.act_h_tiles, blocks.act_w_tiles), (blocks.subblock_h_tiles, blocks.subblock_w_tiles)
    part = (layout.shards.out_row_tiles, layout.shards.out_col_tiles)
    dst_tiles = spec.compute.dst_half_tiles(fp32_dest=options.fp32_dest)
    readers, passes = op.weight_readers, op.weight_passes
    resident = layout.scheme is HEIGHT and op.out_blocks > 1  # where another buffer is of no use
    text = uncompared([] if op.activation is None else [op.activation[0]], fp32_dest=options.fp32_dest)

    def cores(side: str, config: ParallelConfig) -> Detail:
        """Cores of one side: across the rows, and across the channels where they are split."""
        count, parts = config.cores.num_cores(), f"{config.nhw_cores} for rows, {config.channel_cores} for channels"
        shown = f" ({parts})" if config.scheme is BLOCK else ""
        return Detail(f"{side}_cores", count, f"{side} on {count} of {spec.grid.cores} cores{shown}")

    def counted(name: str, count: int, what: str) -> Detail:
        return Detail(name, count, f"{count} {what}{'' if count == 1 else 's'}")

    def either(name: str, value: bool, so: str, other: str) -> Detail:
        return Detail(name, value, so if value else other)

    def buffers(name: str, what: str, double: bool) -> Detail:
        return either(name, double, f"{what} double-buffered", f"{what} single-buffered")

    return (
        Detail("scheme", layout.scheme.name, layout.scheme.name),
        cores("input", layout.config),
        cores("output", layout.out_config),
        Detail("core_tiles", part, f"{part[0]}x{part[1]} output tiles a core"),
        Detail("act_block_tiles", act_block, f"activation blocks of {act_block[0]}x{act_block[1]} tiles"),
        counted("out_blocks", op.out_blocks, "output block"),
        Detail("subblock_tiles", subblock, f"sub-blocks of {subblock[0]}x{subblock[1]} (Dst holds {dst_tiles} tiles)"),
        counted("k_blocks", blocks.k_blocks, "K block"),
        either("split_reader", layout.split_reader, "two activation readers", "one activation reader"),
        buffers("act_double_buffer", "activations", options.act_double_buffer),
        Detail("weights_double_buffer", False, "all weights stay in L1")
        if resident
        else buffers("weights_double_buffer", "weights", options.weights_double_buffer),
        Detail("weight_readers", readers, f"weights read by {'one core' if readers == 1 else f'{readers} cores'}"),
        Detail(
            "weight_passes",
            passes,
            "each weight once" if passes == 1 else f"each weight {passes} times, once for every output block",
        ),
        either(
            "act_multicast",
            layout.multicasts_activations,
            "activations multicast",
            "no activations sent between cores",
        ),
        either("l1_accumulation", op.l1_accumulation, "partial sums added in L1", "partial sums fetched back"),
        *(() if text is None else (uncompared_fact(text),)),
    )


def conv_attributes(op: Conv2dOp) -> tuple[tuple[str, str], ...]:
    """Blocks, buffers, cores and windows, by the names of the real device operation's attributes."""
    layout, blocks, options = op.layout, op.layout.blocks, op.options
    config, out_config, box = layout.config, layout.out_config, layout.out_config.cores.bounding_box()

    def struct(name: str, **fields: object) -> str:
        return f"{name}({','.join(f'{key}={value}' for key, value in fields.items())})"

    block_config = struct(
        "Conv2dBlockConfig",
        act_block_h_ntiles=blocks.act_h_tiles,
        act_block_w_ntiles=blocks.act_w_tiles,
        out_subblock_h_ntiles=blocks.subblock_h_tiles,
        out_subblock_w_ntiles=blocks.subblock_w_tiles,
    )
    parallelization = struct(
        "Conv2dParallelizationConfig",
        grid_size=f"(x={box.cols},y={box.rows})",
        num_cores_nhw=config.nhw_cores,
        num_cores_c_in=config.channel_cores,
        num_cores_c_out=out_config.channel_cores,
        per_core_out_matrix_height_ntile=layout.shards.out_row_tiles,
        per_core_out_matrix_width_ntile=layout.shards.out_col_tiles,
    )
    window = sliding_window_text(
        op.problem.frame, config.cores, nhw_cores=config.nhw_cores, channel_cores=config.channel_cores
    )
    return (
        ("block_config", block_config),
        ("enable_act_double_buffer", str(options.act_double_buffer).lower()),
        ("enable_split_reader", str(layout.split_reader).lower()),
        ("enable_weights_double_buffer", str(options.weights_double_buffer).lower()),
        ("output_channels", str(op.problem.out_channels)),
        ("parallelization_config", parallelization),
        ("sliding_window_config", window),
    )


OP_MODELS: Final = (
    OpModel(
        op=Conv2dOp,
        values=convolved,
        cycles=cycles_of_work(conv_cycles),
        fidelity_phases=lambda op: op.fidelity_phases,
        describe=describe_conv2d,
    ),
    OpModel(
        op=PrepareWeights,
        values=values_of_first(lambda op, raw: prepare_weights(raw, op.layout).reshape(op.layout.padded_shape)),
    ),
    OpModel(
        op=PrepareBias,
        values=values_of_first(lambda op, raw: prepare_bias(raw, op.layout).reshape(op.layout.bias_padded_shape)),
    ),
)
