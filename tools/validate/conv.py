"""Rows of conv.csv: one conv2d program each, with its shape, shard scheme and blocks.

What a row does not say is planned as the simulator plans it for a user (cores, shards, blocks, readers). Three things
are neither in the rows nor in a plan, and are read from their sources:

* Rows of the benchmark are row-major inputs, aligned to 8 channels: that gives the block sizes the rows have.
* ResNet-50 in tt-metal double buffers the weights of its 3x3 convolutions, and of its downsampling 1x1 convolutions
  of images narrower than 56 (models/demos/ttnn_resnet, ttnn_functional_resnet50); the benchmark's other models do not.
* Profiler rows are older than the fast tilize of Blackhole (`tools.validate.prediction`).
"""

import re
from functools import partial
from math import prod

from device.errors import TTSimError
from device.memory.memory_config import TILE, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import (
    BLOCK,
    HEIGHT,
    WIDTH,
    ConvOptions,
    ConvProblem,
    choose_cores,
    parallel_config,
    partition_conv,
    scheme_alignment,
)
from ops.programs.conv2d.walk import time_conv
from ops.programs.halo.cycles import halo_times, halo_traffic
from ops.programs.halo.model import halo_class
from ops.programs.halo.plan import HaloArguments, HaloPlan, plan_halo
from ops.window import PaddedInput, convolution_axis
from tools.validate.prediction import (
    EARLY_2025,
    FORMATS,
    OF_2025,
    PHASES,
    RUN_OF_EARLY_2025,
    LaterKernels,
    NotPredictedError,
    Prediction,
    Row,
    core_ranges,
    device_spec,
    measured_ns,
    numbers,
    run_of,
)

SCHEMES = {"HS": HEIGHT, "BS": BLOCK, "WS": WIDTH}
PADS = ("pad_t", "pad_b", "pad_l", "pad_r")
SHAPE = ("batch", "in_c", "out_c", "in_h", "in_w", "k_h", "k_w", "s_h", "s_w", *PADS)
RESNET_NARROW_IMAGE = 56
REUSE = ("activation_reuse=true", "act_reuse=on")
PROFILER = "measured (device profiler)"  # all such rows are of 2025


def predict_conv(row: Row) -> Prediction:
    """Predicts the kernel cycles of one row."""
    kernel = re.search(r"kernel=(\S+)", row["config"])
    if kernel is not None and kernel[1] != "main":
        raise NotPredictedError(f"kernel {kernel[1]} is a proposal, not the released one")
    if not all(row[name] for name in SHAPE):
        raise NotPredictedError("the row gives no full shape")
    spec = device_spec(row)
    if row["kind"] == PROFILER:
        spec = spec.replace(release=EARLY_2025 if RUN_OF_EARLY_2025 in run_of(row) else OF_2025)
    if prod(numbers(row, "batch in_h in_w in_c")) > spec.grid.cols * spec.grid.rows * spec.l1.bytes:
        raise NotPredictedError("the L1 of all cores is too small for the input, even at a byte for each number")
    try:
        op = _op(row, spec)
    except (TTSimError, StopIteration) as error:
        raise NotPredictedError(f"no plan: {error}") from error
    counted, layout = "target" not in row["kind"], op.layout
    size = f"{row['batch']}x{row['in_h']}x{row['in_w']}x{row['in_c']}->{row['out_c']}"
    pads = "p" + "".join(row[name] for name in PADS)
    formats = f"{row['dtype_in1']}->{row['dtype_out']}"
    options = f"bias={row['bias']} l1_acc={row['packer_l1_acc']} block={row['act_block_h_tiles'] or 'auto'}"
    return Prediction(
        row=row,
        spec=spec,
        program=op,
        measured_ns=measured_ns(row),
        cycles_on=partial(_conv_cycles, op),
        ends=("ncrisc_ns", "brisc_ns"),
        group=(*(() if counted else ("target, no measurement",)), row["device"], row["shard"], row["fidelity"]),
        architecture=row["arch"],
        configuration=(row["device"], row["shard"], row["fidelity"], size, _kernel(row), pads, formats, options),
        evidence=(f"Conv2d, {layout.scheme.name}", "shards"),
        counted=counted,
        remark="" if counted else row["kind"],
        fitted=counted,
        # What each core does: however images are cut, halves of one do not vouch for each other.
        fold=(layout.blocks, layout.shards.out_rows, layout.shards.out_width, op.problem.weight_format),
    )


def _conv_cycles(op: Conv2dOp, spec: DeviceSpec) -> tuple[float, ...]:
    timing = time_conv(op, spec)
    ends = (max(getattr(core, name).now.cycles for core in timing.cores) for name in ("reader", "second"))
    return timing.end.cycles, *ends


def _kernel(row: Row) -> str:
    return f"k{row['k_h']}x{row['k_w']}s{row['s_h']}d{row['d_h']}"


def _op(row: Row, spec: DeviceSpec) -> Conv2dOp:
    """The convolution as planned; a benchmark row with a block height gives the resulting one in per_core_m_tiles."""
    problem = ConvProblem(
        frame=_frame(row),
        in_channels=int(row["in_c"]),
        out_channels=int(row["out_c"]),
        in_format=FORMATS[row["dtype_in0"]],
        weight_format=FORMATS[row["dtype_in1"]],
        out_format=FORMATS[row["dtype_out"]],
        row_major="TILE input" not in row["memory"],
        bias=row["bias"] == "true",
    )
    text, (size, width) = row["config"], numbers(row, "k_h in_w")
    flags = set(re.findall(r"(\w+)=true", text))
    height = row["act_block_h_tiles"] and row["per_core_m_tiles" if "kernel=" in text else "act_block_h_tiles"]
    both = "act+weights double buffer" in text
    resnet = "model=resnet50" in text and (size == 3 or (size == 1 and width < RESNET_NARROW_IMAGE))
    options = ConvOptions(
        act_block_h_override=int(height or 0) * TILE,
        untilize_out="untilize_out" in flags,
        act_double_buffer=both or "act_block_double_buffer" in text or "enable_act_double_buffer" in flags,
        weights_double_buffer=both or "enable_weights_double_buffer" in flags or resnet,
        activation_reuse=any(mark in text for mark in REUSE),
        full_inner_dim="full_inner_dim" in flags,
        force_split_reader=False if "enable_split_reader=false" in text else None,
        config_tensors_in_dram="config_tensors_in_dram" in flags,
        fp32_dest=row["fp32_acc"] == "1",
        packer_l1_acc=row["packer_l1_acc"] == "1",
    )
    scheme = SCHEMES[row["shard"]]
    alignment = scheme_alignment(problem, scheme)
    if row["cores_nhw"] and row["cores_c_in"]:
        nhw, channels = numbers(row, "cores_nhw cores_c_in")
        config = parallel_config(scheme, nhw, channels, ShardOrientation.ROW_MAJOR, spec.grid)
    else:
        config = choose_cores(problem, options, spec, scheme, alignment=alignment)
    layout = partition_conv(problem, options, spec, config, alignment=alignment)
    activation = ("relu", ()) if "RELU" in text else None
    return Conv2dOp.of(layout, fidelity_phases=PHASES[row["fidelity"]], activation=activation)


ALWAYS_IN_DRAM = "DeepLabV3+"  # a run whose convolutions keep config tensors in DRAM
NEEDED = ("in_h", "in_w", "k_h", "k_w", "pad_t", "cores_nhw", "c_per_shard", "grid", "config")


def predict_halo(row: Row) -> Prediction:
    """Predicts the kernel cycles of one row; raises NotPredictedError if it does not say enough to rebuild its halo."""
    shards = re.search(r"out shard (\d+)x(\d+)", row["config"])
    if shards is None or not all(row[name] for name in NEEDED):
        raise NotPredictedError("the row gives no shards, so that nobody knows who sends what")
    today = spec = device_spec(row)
    if RUN_OF_EARLY_2025 in run_of(row):
        spec = today.replace(release=EARLY_2025)
    frame, nhw_cores = _frame(row), int(row["cores_nhw"])
    whole = TILE if row["out_tiled"] == "true" else 1
    arguments = HaloArguments(
        frame=frame,
        scheme=TensorMemoryLayout[row["shard"]],
        orientation=ShardOrientation.ROW_MAJOR,
        cores=core_ranges(row["grid"]),
        nhw_cores=nhw_cores,
        channel_cores=int(row["cores_c"]),
        input_rows=int(shards[1]),
        output_rows=div_up(div_up(frame.outputs, whole), nhw_cores) * whole,
        shard_width=int(shards[2]),
        data_format=FORMATS[row["dtype_in0"]],
        stick_alignment_bytes=spec.l1.alignment_bytes,
        tiled=row["in_layout"] == "TILE",
        config_tensors_in_dram=row["config_tensors_in_dram"] == "true",
    )
    plan = plan_halo(arguments, input_tensor="input", output_tensor="halo")
    in_l1 = ALWAYS_IN_DRAM in row["notes"] and row["config_tensors_in_dram"] == "false"
    pool, traffic = row["out_tiled"] == "false" or in_l1, halo_traffic(plan, spec)

    def cycles_on(spec: DeviceSpec) -> tuple[float, ...]:
        times = halo_times(plan, traffic, spec, filled_by_stick=pool)
        return times.cycles, *times.ends.max(axis=1).tolist()

    pads = "p" + ",".join(row[name] for name in PADS)
    size = f"{row['in_h']}x{row['in_w']}x{row['in_c']}"
    return Prediction(
        row=row,
        spec=spec,
        program=plan,
        measured_ns=measured_ns(row),
        cycles_on=cycles_on,
        ends=("brisc_ns", "ncrisc_ns"),
        group=(row["device"], row["in_layout"].lower(), row["shard"]),
        architecture=row["arch"],
        configuration=(run_of(row), size, _kernel(row), pads, row["in_layout"], row["shard"]),
        evidence=(halo_class(arguments, spec), "shards"),
        later=_later_halo(plan, today, filled_by_stick=pool) if spec.release == EARLY_2025 else None,
        remark="non-zero padding" if pool else "",
    )


def _later_halo(plan: HaloPlan, today: DeviceSpec, *, filled_by_stick: bool) -> LaterKernels:
    """The same halo by the kernels of today."""
    kernels = halo_class(plan.arguments, today), "shards"

    def cycles() -> float:
        return halo_times(plan, halo_traffic(plan, today), today, filled_by_stick=filled_by_stick).cycles

    return LaterKernels(evidence=kernels, cycles=cycles, measured_release=EARLY_2025)


def _frame(row: Row) -> PaddedInput:
    """The padded input of a convolution, pool or halo."""
    rows, columns = (
        convolution_axis(
            input_length=int(row[f"in_{axis}"]),
            kernel=int(row[f"k_{axis}"]),
            stride=int(row[f"s_{axis}"]),
            padding=(int(row[f"pad_{before}"]), int(row[f"pad_{after}"])),
            dilation=int(row[f"d_{axis}"]),
        )
        for axis, before, after in (("h", "t", "b"), ("w", "l", "r"))
    )
    return PaddedInput(batch=int(row["batch"]), rows=rows, columns=columns)
