"""How far the fast reading of values lies from the exact one.

usage: python -m tools.distance [--json]

One transposed convolution (16x16x64 -> 32 channels, kernel 3x3, stride 2) for every output format, width of Dst and
fidelity, on the same random numbers: the largest difference in units in the last place of the output format, taken at
the larger of the value and the output's deviation (under the shared exponent, for block floats), the share of elements
that differ, and the correlation.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import ttsim as ttnn
from device.numbers.formats import GROUP, Array, DataFormat
from tools.command import run_tool
from ttsim.runtime.defaults import Values

SIZE, IN_CHANNELS, OUT_CHANNELS, KERNEL = 16, 64, 32, 3


class Distance(NamedTuple):
    """One row of the table.

    Attributes:
        output: Output format.
        dst: Bits of Dst.
        fidelity: Name of the fidelity.
        max_ulp: Largest difference in units in the last place.
        differing: Share of elements that differ.
        pcc: Correlation of the two readings.
    """

    output: str
    dst: int
    fidelity: str
    max_ulp: float
    differing: float
    pcc: float


def computed(values: Values, dtype: ttnn.DataType, fidelity: ttnn.MathFidelity, *, fp32_dest: bool) -> Array:
    """The output of the convolution, [pixels, channels] float32."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, SIZE, SIZE, IN_CHANNELS), np.float32)
    w = rng.standard_normal((IN_CHANNELS, OUT_CHANNELS, KERNEL, KERNEL), np.float32) / 24
    in_dtype = ttnn.float32 if dtype == ttnn.float32 else ttnn.bfloat16
    with ttnn.open_device(l1_small_size=32768, values=values) as device:
        out = ttnn.conv_transpose2d(
            input_tensor=ttnn.Tensor(x, in_dtype).to(device, ttnn.DRAM_MEMORY_CONFIG),
            weight_tensor=ttnn.Tensor(w, in_dtype),
            device=device,
            in_channels=IN_CHANNELS,
            out_channels=OUT_CHANNELS,
            batch_size=1,
            input_height=SIZE,
            input_width=SIZE,
            kernel_size=(KERNEL, KERNEL),
            stride=(2, 2),
            padding=(1, 1),
            output_padding=(1, 1),
            dtype=dtype,
            compute_config=ttnn.init_device_compute_kernel_config(
                device.arch(), math_fidelity=fidelity, fp32_dest_acc_en=fp32_dest
            ),
        )
        return np.asarray(out.to_numpy(), np.float32).reshape(-1, OUT_CHANNELS)


def units_in_the_last_place(values: Array, fmt: DataFormat) -> Array:
    """What the last place of each value is worth; values below the deviation of all count as that large."""
    magnitudes = np.maximum(np.abs(values), values.std())
    if fmt.is_block:
        groups = magnitudes.reshape(-1, GROUP).max(axis=1, keepdims=True)
        magnitudes = np.broadcast_to(groups, (groups.shape[0], GROUP)).reshape(values.shape)
        return np.asarray(np.exp2(np.floor(np.log2(magnitudes)) + 1 - fmt.mantissa_bits))
    return np.asarray(np.exp2(np.floor(np.log2(magnitudes)) - fmt.mantissa_bits))


def distances() -> Iterator[Distance]:
    """All rows of the table."""
    for dtype in (ttnn.bfloat16, ttnn.bfloat8_b, ttnn.float32):
        for fp32_dest in (False, True):
            for fidelity in (
                ttnn.MathFidelity.LoFi,
                ttnn.MathFidelity.HiFi2,
                ttnn.MathFidelity.HiFi3,
                ttnn.MathFidelity.HiFi4,
            ):
                exact = computed("exact", dtype, fidelity, fp32_dest=fp32_dest)
                fast = computed("fast", dtype, fidelity, fp32_dest=fp32_dest)
                ulps = np.abs(exact - fast) / units_in_the_last_place(exact, dtype.format)
                yield Distance(
                    output=dtype.format.name,
                    dst=32 if fp32_dest else 16,
                    fidelity=fidelity.name,
                    max_ulp=float(ulps.max()),
                    differing=float((exact != fast).mean()),
                    pcc=float(np.corrcoef(exact.ravel(), fast.ravel())[0, 1]),
                )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="tools.distance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    as_json = parser.parse_args().json
    rows = list(distances())
    if as_json:
        print(json.dumps([row._asdict() for row in rows], indent=1))
        return
    table = Table(title="fast against exact")
    for heading in ("output", "Dst bits", "fidelity"):
        table.add_column(heading)
    for heading in ("max ulp", "differing", "PCC"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.output, str(row.dst), row.fidelity, f"{row.max_ulp:.3g}", f"{row.differing:.1%}", f"{row.pcc:.7f}"
        )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(run_tool("tools.distance", main))
