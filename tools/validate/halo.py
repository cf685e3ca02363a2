"""Rows of halo.csv: one halo program each, rebuilt stick by stick from its window and its shards.

What a row does not say is read from its sources:

* The rows of a core's output shard are those of the convolution behind, cut at tiles. A pool (`out_tiled` false) cuts
  anywhere, and a maximum pool fills its padding stick by stick, since that is not zero.
* The DeepLabV3+ run keeps the config tensors of all its convolutions in DRAM; a halo there that keeps them in L1 is
  that of a pool, which has no such setting.
"""

import re
from dataclasses import dataclass

from device.memory.memory_config import TILE, ShardOrientation, TensorMemoryLayout
from device.numbers.block_floats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ops.programs.halo.cycles import HaloTimes, halo_times
from ops.programs.halo.plan import HaloArguments, HaloPlan, plan_halo
from ops.programs.halo.traffic import HaloTraffic, halo_traffic
from ops.window import PaddedInput, convolution_axis
from tools.validate.conv import measured_ns
from tools.validate.devices import FORMATS, core_ranges, device_spec
from tools.validate.prediction import NotPredictedError, Prediction, Row

ALWAYS_IN_DRAM = "DeepLabV3+"  # a run whose convolutions keep config tensors in DRAM
NEEDED = ("in_h", "in_w", "k_h", "k_w", "pad_t", "cores_nhw", "c_per_shard", "grid", "config")


@dataclass(frozen=True, slots=True)
class HaloRow:
    """A row, understood."""

    spec: DeviceSpec  # The device it was measured on
    plan: HaloPlan
    traffic: HaloTraffic  # What its cores have to do
    filled_by_stick: bool  # Its padding is not zero


def predict_halo(row: Row) -> Prediction:
    """Predict the kernel cycles of one row.

    Raises:
        NotPredictedError: The row does not say enough to rebuild its halo.
    """
    halo = read_halo_row(row)
    return Prediction(
        row=row,
        measured_ns=measured_ns(row),
        predict_ns=lambda: nanoseconds(halo_cycles_of(halo, halo.spec), halo.spec.clock_hz),
        group=(row["device"], row["in_layout"].lower(), row["shard"]),
        architecture=row["arch"],
        configuration=halo_configuration(row),
        remark="non-zero padding" if halo.filled_by_stick else "",
    )


def halo_cycles_of(halo: HaloRow, spec: DeviceSpec) -> float:
    """Cycles of a row's halo on a device."""
    return halo_times_of(halo, spec).cycles


def halo_times_of(halo: HaloRow, spec: DeviceSpec) -> HaloTimes:
    """When its processors are done there."""
    return halo_times(halo.plan, halo.traffic, spec, filled_by_stick=halo.filled_by_stick)


def halo_configuration(row: Row) -> tuple[str, ...]:
    """What tells configurations apart, in short."""
    pads = "p" + ",".join(row[name] for name in ("pad_t", "pad_b", "pad_l", "pad_r"))
    kernel = f"k{row['k_h']}x{row['k_w']}s{row['s_h']}d{row['d_h']}"
    run = row["source_path"].rpartition("/")[2].removesuffix(".csv")
    return (run, f"{row['in_h']}x{row['in_w']}x{row['in_c']}", kernel, pads, row["in_layout"], row["shard"])


def read_halo_row(row: Row) -> HaloRow:
    """The device and the program of a row.

    Raises:
        NotPredictedError: As of `predict_halo`.
    """
    shards = re.search(r"out shard (\d+)x(\d+)", row["config"])
    if shards is None or not all(row[name] for name in NEEDED):
        raise NotPredictedError("the row gives no shards, so that nobody knows who sends what")
    spec = device_spec(row)
    scheme, frame = TensorMemoryLayout[row["shard"]], _frame(row)
    nhw_cores = int(row["cores_nhw"])
    pool = _is_pool(row)
    whole = TILE if row["out_tiled"] == "true" else 1
    output_rows = div_up(div_up(frame.outputs, whole), nhw_cores) * whole
    arguments = HaloArguments(
        frame=frame,
        scheme=scheme,
        orientation=ShardOrientation.ROW_MAJOR,
        cores=core_ranges(row["grid"]),
        nhw_cores=nhw_cores,
        channel_cores=int(row["cores_c"]),
        input_rows=int(shards[1]),
        output_rows=output_rows,
        shard_width=int(shards[2]),
        data_format=FORMATS[row["dtype_in0"]],
        stick_alignment_bytes=spec.l1.alignment_bytes,
        tiled=row["in_layout"] == "TILE",
        config_tensors_in_dram=row["config_tensors_in_dram"] == "true",
    )
    plan = plan_halo(arguments, input_tensor="input", output_tensor="halo")
    return HaloRow(spec, plan, halo_traffic(plan, spec), filled_by_stick=pool)


def _is_pool(row: Row) -> bool:
    if row["out_tiled"] == "false":
        return True
    return ALWAYS_IN_DRAM in row["notes"] and row["config_tensors_in_dram"] == "false"


def _frame(row: Row) -> PaddedInput:
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
