"""How far the fast reading of values lies from the exact one.

usage: python -m tools.distance [--calls N]

One transposed convolution (16x16x64 -> 32 channels, kernel 3x3, stride 2) for every output format, width of Dst and
fidelity, on the same random numbers: the largest difference in units in the last place of the output format, taken at
the larger of the value and the output's deviation (under the shared exponent, for block floats), the share of elements
that differ, and the correlation.

With --calls, N random transposed convolutions of each format and width of Dst instead: the largest difference as a
share of a call's largest value, and, once more with infinities and NaN in the input, the calls whose non-finite outputs
differ.
"""

import sys
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from rich.console import Console

import ttsim as ttnn
from device.numbers.formats import GROUP, Array, DataFormat
from tools.command import run_tool, tool_parser
from tools.validate.report import table

DTYPES: Final = (ttnn.bfloat16, ttnn.bfloat8_b, ttnn.float32)
FIDELITIES: Final = tuple(ttnn.MathFidelity[name] for name in ("LoFi", "HiFi2", "HiFi3", "HiFi4"))
SIZE, IN_CHANNELS, OUT_CHANNELS, KERNEL = 16, 64, 32, 3


COLUMNS: Final = {
    "output": "{}",
    "Dst bits": "{}",
    "fidelity": "{}",
    "max ulp": "{:.3g}",  # largest difference in units in the last place
    "differing": "{:.1%}",  # share of elements that differ
    "PCC": "{:.7f}",  # correlation of the two readings
    "calls": "{}",
    "largest": "{:.2%}",  # largest difference as a share of the largest value of its call
    "usual": "{:.2%}",  # the same in the median call
    "other specials": "{}",  # calls with infinities and NaN in the input whose outputs are not the same ones
}  # heading -> format
Row = dict[str, Any]


class Call(NamedTuple):
    """The input and weights of a call of `ttnn.conv_transpose2d`, and its other arguments."""

    image: Array
    weights: Array
    sizes: Mapping[str, Any]

    def readings(self, dtype: ttnn.DataType, fidelity: ttnn.MathFidelity, *, fp32_dest: bool) -> list[Array]:
        """The output as float32, exact and fast."""
        in_dtype, outputs = ttnn.float32 if dtype == ttnn.float32 else ttnn.bfloat16, []
        for values in ("exact", "fast"):
            with ttnn.open_device(l1_small_size=32768, values=values) as device:
                config = ttnn.init_device_compute_kernel_config(
                    device.arch(), math_fidelity=fidelity, fp32_dest_acc_en=fp32_dest
                )
                output = ttnn.conv_transpose2d(
                    input_tensor=ttnn.Tensor(self.image, in_dtype).to(device, ttnn.DRAM_MEMORY_CONFIG),
                    weight_tensor=ttnn.Tensor(self.weights, in_dtype),
                    device=device,
                    dtype=dtype,
                    compute_config=config,
                    **self.sizes,
                )
                outputs.append(np.asarray(output.to_numpy(), np.float32))
        return outputs


def call_of(image: Array, weights: Array, size: tuple[int, int], stride: int, **more: Any) -> Call:
    """A call for one image."""
    channels, outputs, *kernel = weights.shape
    sizes = {"in_channels": channels, "out_channels": outputs, "input_height": size[0], "input_width": size[1]}
    return Call(image, weights, {**sizes, "batch_size": 1, "kernel_size": kernel, "stride": (stride, stride), **more})


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
    return call_of(image, weights, (height, width), int(rng.integers(1, 3)))


def spreads(calls: int) -> Iterator[Row]:
    """All rows of the table of random calls."""
    for dtype, fp32_dest in product(DTYPES, (False, True)):
        shares, others = [], 0
        for seed in range(calls):
            fidelity = FIDELITIES[seed % len(FIDELITIES)]
            exact, fast = random_call(seed, special=False).readings(dtype, fidelity, fp32_dest=fp32_dest)
            shares.append(float(np.abs(exact - fast).max() / np.abs(exact).max()))
            pair = random_call(seed, special=True).readings(dtype, fidelity, fp32_dest=fp32_dest)
            specials = [np.where(np.isfinite(output), 0, output) for output in pair]
            others += not np.array_equal(specials[0], specials[1])
        figures = {"calls": calls, "largest": max(shares), "usual": float(np.median(shares)), "other specials": others}
        yield {"output": dtype.format.name, "Dst bits": 32 if fp32_dest else 16, **figures}


def units_in_the_last_place(values: Array, fmt: DataFormat) -> Array:
    """What the last place of each value is worth; values below the deviation of all count as that large."""
    magnitudes = np.maximum(np.abs(values), values.std())
    if fmt.is_block:
        groups = magnitudes.reshape(-1, GROUP).max(axis=1, keepdims=True)
        magnitudes = np.broadcast_to(groups, (groups.shape[0], GROUP)).reshape(values.shape)
        return np.asarray(np.exp2(np.floor(np.log2(magnitudes)) + 1 - fmt.mantissa_bits))
    return np.asarray(np.exp2(np.floor(np.log2(magnitudes)) - fmt.mantissa_bits))


def distances() -> Iterator[Row]:
    """All rows of the table."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, SIZE, SIZE, IN_CHANNELS), np.float32)
    w = rng.standard_normal((IN_CHANNELS, OUT_CHANNELS, KERNEL, KERNEL), np.float32) / 24
    call = call_of(x, w, (SIZE, SIZE), 2, padding=(1, 1), output_padding=(1, 1))
    for dtype, fp32_dest, fidelity in product(DTYPES, (False, True), FIDELITIES):
        exact, fast = (
            output.reshape(-1, OUT_CHANNELS) for output in call.readings(dtype, fidelity, fp32_dest=fp32_dest)
        )
        ulps = np.abs(exact - fast) / units_in_the_last_place(exact, dtype.format)
        figures = {
            "max ulp": float(ulps.max()),
            "differing": float((exact != fast).mean()),
            "PCC": float(np.corrcoef(exact.ravel(), fast.ravel())[0, 1]),
        }
        yield {"output": dtype.format.name, "Dst bits": 32 if fp32_dest else 16, "fidelity": fidelity.name, **figures}


def main() -> None:
    """Print the table."""
    parser = tool_parser("tools.distance", __doc__)
    parser.add_argument("--calls", type=int, default=0, metavar="N", help="N random calls of each kind instead")
    calls = parser.parse_args().calls
    title, rows = "fast against exact", list(spreads(calls) if calls > 0 else distances())
    title, texts = (f"{title}, share of a call's largest value", 1) if calls > 0 else (title, 3)
    cells = [[COLUMNS[heading].format(value) for heading, value in row.items()] for row in rows]
    Console().print(table(title, list(rows[0])[:texts], list(rows[0])[texts:], cells))


if __name__ == "__main__":
    sys.exit(run_tool("tools.distance", main))
