"""How far the fast reading of values lies from the exact one.

usage: python -m tools.distance [--json] [--calls N]

One transposed convolution (16x16x64 -> 32 channels, kernel 3x3, stride 2) for every output format, width of Dst and
fidelity, on the same random numbers: the largest difference in units in the last place of the output format, taken at
the larger of the value and the output's deviation (under the shared exponent, for block floats), the share of elements
that differ, and the correlation.

With --calls, N random transposed convolutions of each format and width of Dst instead: the largest difference as a
share of a call's largest value, and, once more with infinities and NaN in the input, the calls whose non-finite outputs
differ.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import ttsim as ttnn
from device.numbers.formats import GROUP, Array, DataFormat
from tools.command import run_tool
from ttsim.runtime.settings import Values

READINGS: tuple[Values, Values] = ("exact", "fast")
SIZE, IN_CHANNELS, OUT_CHANNELS, KERNEL = 16, 64, 32, 3


class Distance(NamedTuple):
    """One row of the table."""

    output: str
    dst: int
    fidelity: str
    max_ulp: float  # Largest difference in units in the last place
    differing: float  # Share of elements that differ
    pcc: float  # Correlation of the two readings


class Spread(NamedTuple):
    """One row of the table of random calls."""

    output: str
    dst: int
    calls: int  # How many
    largest: float  # Largest difference as a share of the largest value of its call
    usual: float  # The same in the median call
    other_specials: int  # Calls with infinities and NaN in the input whose outputs are not the same ones


class Call(NamedTuple):
    """A random call: what `ttnn.conv_transpose2d` is given, and numbers.

    Attributes:
        image: [1, 1, pixels, channels].
        weights: [channels, out channels, kernel, kernel].
        sizes: Arguments.
        fidelity: Of the products.
    """

    image: Array
    weights: Array
    sizes: dict[str, Any]
    fidelity: ttnn.MathFidelity


def random_call(seed: int, *, special: bool) -> Call:
    """A call of a few thousand outputs; special ones have an infinity, its negative and a NaN in the image."""
    rng = np.random.default_rng(seed)
    height, width, kernel = (int(rng.integers(low, high)) for low, high in ((4, 13), (4, 13), (1, 5)))
    channels, outputs = int(rng.choice([16, 32, 64, 128])), int(rng.choice([16, 32, 64]))
    image = rng.standard_normal((1, 1, height * width, channels), np.float32)
    if special:
        image.reshape(-1)[rng.choice(image.size, 3, replace=False)] = np.inf, -np.inf, np.nan
    scale = 1 / np.sqrt(channels * kernel * kernel)
    weights = (rng.standard_normal((channels, outputs, kernel, kernel)) * scale).astype(np.float32)
    sizes = {
        "in_channels": channels, "out_channels": outputs, "batch_size": 1, "input_height": height,
        "input_width": width, "kernel_size": (kernel, kernel), "stride": (int(rng.integers(1, 3)),) * 2,
    }  # fmt: skip
    fidelities = (
        ttnn.MathFidelity.LoFi,
        ttnn.MathFidelity.HiFi2,
        ttnn.MathFidelity.HiFi3,
        ttnn.MathFidelity.HiFi4,
    )
    return Call(image, weights, sizes, fidelities[seed % len(fidelities)])


def output_of(call: Call, values: Values, dtype: ttnn.DataType, *, fp32_dest: bool) -> Array:
    """The output of a random call."""
    in_dtype = ttnn.float32 if dtype == ttnn.float32 else ttnn.bfloat16
    with ttnn.open_device(l1_small_size=32768, values=values) as device:
        out = ttnn.conv_transpose2d(
            input_tensor=ttnn.Tensor(call.image, in_dtype).to(device, ttnn.DRAM_MEMORY_CONFIG),
            weight_tensor=ttnn.Tensor(call.weights, in_dtype),
            device=device,
            dtype=dtype,
            compute_config=ttnn.init_device_compute_kernel_config(
                device.arch(), math_fidelity=call.fidelity, fp32_dest_acc_en=fp32_dest
            ),
            **call.sizes,
        )
        return np.asarray(out.to_numpy(), np.float32)


def spreads(calls: int) -> Iterator[Spread]:
    """All rows of the table of random calls."""
    for dtype in (ttnn.bfloat16, ttnn.bfloat8_b, ttnn.float32):
        for fp32_dest in (False, True):
            shares, others = [], 0
            for seed in range(calls):
                exact, fast = (
                    output_of(random_call(seed, special=False), values, dtype, fp32_dest=fp32_dest)
                    for values in READINGS
                )
                shares.append(float(np.abs(exact - fast).max() / np.abs(exact).max()))
                exact, fast = (
                    output_of(random_call(seed, special=True), values, dtype, fp32_dest=fp32_dest)
                    for values in READINGS
                )
                finite = np.isfinite(exact) | np.isfinite(fast)
                others += not np.array_equal(
                    np.where(finite, 0, exact), np.where(finite, 0, fast)
                ) or not np.array_equal(np.isfinite(exact), np.isfinite(fast))
            yield Spread(
                output=dtype.format.name,
                dst=32 if fp32_dest else 16,
                calls=calls,
                largest=max(shares),
                usual=float(np.median(shares)),
                other_specials=others,
            )


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


def _print_spreads(rows: list[Spread], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([row._asdict() for row in rows], indent=1))
        return
    table = Table(title="fast against exact, share of a call's largest value")
    table.add_column("output")
    for heading in ("Dst bits", "calls", "largest", "usual", "other specials"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.output, str(row.dst), str(row.calls), f"{row.largest:.2%}", f"{row.usual:.2%}", str(row.other_specials)
        )
    Console().print(table)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="tools.distance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--calls", type=int, default=0, metavar="N", help="N random calls of each kind instead")
    options = parser.parse_args()
    as_json = options.json
    if options.calls > 0:
        _print_spreads(list(spreads(options.calls)), as_json=as_json)
        return
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
