"""What must hold of every call on a strict device: right values, documented errors, and a device as it was before."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

import ttsim
from device.memory.memory_config import TILE, BufferType
from device.numbers.formats import Array
from ops.reference import conv_transpose_channels_last, plan_geometry
from tools.fuzz.calls import PLACES, SCHEMES, Call, arguments, operands, pasteable, run

LARGEST_ERROR = {"bfloat4_b": 0.5, "bfloat8_b": 0.12}  # relative L2 by the coarsest format of a call; else:
USUAL_ERROR = 0.08
LEAST_CORRELATION = 0.95  # of each row of an image that is not as good as zero
MEMORIES = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)

Outcome = Literal["right", "refused", "does not fit", "fault"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a call."""

    outcome: Outcome  # "fault" where something does not hold
    text: str  # The error, or what does not hold
    seconds: float  # What the call took


def judge(call: Call, *, values: Literal["exact", "fast"] = "fast") -> Verdict:
    """Makes a call on a strict device of its own, and says what came of it."""
    device = ttsim.open_device(l1_small_size=32768, spec=call.device, values=values)
    begun = time.perf_counter()
    outcome: Outcome = "right"
    text = ""
    try:
        output = run(call, device)
        got = output.cpu().to_numpy().astype(np.float64)
        text = "; ".join(_wrong_values(call, got))
        del output
    except (ttsim.OutOfMemoryError, ttsim.CircularBufferError) as error:
        outcome, text = "does not fit", str(error)
    except ttsim.TTSimError as error:
        outcome, text = "refused", str(error)
    except Exception as error:
        outcome, text = "fault", f"undocumented {type(error).__name__}: {error}"
    seconds = time.perf_counter() - begun
    if outcome == "right" and text:
        outcome = "fault"
    device.clear_program_cache()
    left = [(one.name, one.spec.buffer_type.name) for one in device.machine.memory.live()]
    if left:
        outcome, text = "fault", f"buffers are left: {left[:3]}"
    ttsim.close_device(device)
    return Verdict(outcome, text, seconds)


def truth(call: Call) -> Array | None:
    """float64 [N, OH, OW, O] by the definition; None for padding that repeats the image, which it does not know."""
    if call.config.get("padding_mode"):
        return None
    image, weights, bias = (one.astype(np.float64) for one in operands(call))
    sizes = call.sizes
    row = bias.reshape(-1) if call.bias else None
    if call.function == "conv2d":
        return _convolved(call, image, weights, row)
    geometry = plan_geometry(
        image.shape[1:3],
        sizes["kernel_size"],
        stride=sizes["stride"],
        pad_before=sizes["padding"],
        pad_after=sizes["padding"],
        output_padding=sizes.get("output_padding", (0, 0)),
        dilation=sizes["dilation"],
    )
    return conv_transpose_channels_last(image, weights, geometry, bias=row, groups=sizes["groups"])


def _convolved(call: Call, image: Array, weights: Array, bias: Array | None) -> Array:
    """The definition of conv2d, one tap at a time."""
    sizes = call.sizes
    (down, across), (step_y, step_x), (apart_y, apart_x) = sizes["padding"], sizes["stride"], sizes["dilation"]
    padded = np.pad(image, ((0, 0), (down, down), (across, across), (0, 0)))
    rows, columns = sizes["kernel_size"]
    height = (padded.shape[1] - apart_y * (rows - 1) - 1) // step_y + 1
    width = (padded.shape[2] - apart_x * (columns - 1) - 1) // step_x + 1
    groups = sizes["groups"]
    result = np.zeros((len(image), height, width, groups, sizes["out_channels"] // groups))
    parted = weights.reshape(groups, -1, *weights.shape[1:])
    for tap_y in range(rows):
        for tap_x in range(columns):
            seen = padded[
                :,
                tap_y * apart_y : tap_y * apart_y + (height - 1) * step_y + 1 : step_y,
                tap_x * apart_x : tap_x * apart_x + (width - 1) * step_x + 1 : step_x,
            ].reshape(len(image), height, width, groups, -1)
            result += np.einsum("nhwgc,goc->nhwgo", seen, parted[..., tap_y, tap_x])
    whole = result.reshape(len(image), height, width, -1)
    return whole if bias is None else whole + bias


def _may_have_more_rows(call: Call, got: Array, pixels: int) -> bool:
    """Whether the rows may be more than the pixels: whole shards of a 1x1 convolution, as in the real library."""
    return bool(call.sizes["kernel_size"] == (1, 1) and got.size > pixels * got.shape[-1] and got.shape[-2] % TILE == 0)


def _wrong_values(call: Call, got: Array) -> Iterator[str]:
    """What is wrong with an output."""
    wanted = truth(call)
    if wanted is None:
        return
    pixels, channels = wanted.size // wanted.shape[3], wanted.shape[3]
    if got.shape[-1] != channels or (got.size != wanted.size and not _may_have_more_rows(call, got, pixels)):
        yield f"{got.shape} instead of {wanted.shape}"
        return
    rows = got.reshape(-1, channels)
    seen, added = rows[:pixels].reshape(wanted.shape), rows[pixels:]
    row = operands(call)[2].astype(np.float64).reshape(-1) if call.bias else np.zeros(channels)
    if not (np.linalg.norm(added - row, axis=1) <= bound(call) * np.linalg.norm(row)).all():
        yield "rows that a pad added are not the bias"
    if not np.isfinite(seen).all():
        yield f"{np.count_nonzero(~np.isfinite(seen))} values are not finite"
        return
    size = np.linalg.norm(wanted)
    error = np.linalg.norm(seen - wanted) / size if size else np.linalg.norm(seen)
    if error > bound(call):
        yield f"relative L2 {error:.3g} is above {bound(call)}"
    columns = wanted.shape[2] * wanted.shape[3]
    worst, cosine = least_cosine(wanted.reshape(-1, columns), seen.reshape(-1, columns))
    if worst is not None:
        yield f"row {worst} of {wanted.size // columns} correlates by {cosine:.3f}"


def bound(call: Call) -> float:
    """The largest relative L2 error of a call, by the coarsest of its formats."""
    formats = (call.input_dtype, call.weights_dtype, str(call.config.get("weights_dtype")))
    return max([USUAL_ERROR, *(LARGEST_ERROR.get(one, 0.0) for one in formats)])


def least_cosine(rows: Array, others: Array) -> tuple[int | None, float]:
    """The row that correlates too little with its counterpart, and by how much; None if there is none."""
    lengths = np.linalg.norm(rows, axis=1)
    counted = lengths > 0.1 * lengths.max(initial=0.0)
    products = (rows * others).sum(axis=1)[counted]
    both = (lengths * np.linalg.norm(others, axis=1))[counted]
    cosines = np.divide(products, both, out=np.zeros_like(products), where=both > 0)
    if not cosines.size or cosines.min() >= LEAST_CORRELATION:
        return None, 1.0
    return int(np.flatnonzero(counted)[cosines.argmin()]), float(cosines.min())


Make = Callable[[ttsim.Device], ttsim.Tensor]
Values = Literal["exact", "fast"]


@dataclass(frozen=True, slots=True)
class Twin:
    """Another way to make a call."""

    name: str  # What is different, as text
    make: Make  # Makes it on a device
    exact: bool  # Whether the bits are the same


def disagreements(call: Call, *, values: Values = "fast") -> Iterator[str]:
    """What a call's twins compute that the call does not; nothing if it is refused itself."""
    wanted = _numbers(call, lambda device: _run(call, device), values)
    if wanted is None:
        return
    for twin in twins(call):
        got = _numbers(call, twin.make, values)
        if got is None:
            continue
        text = _difference(call, wanted, got, exact=twin.exact)
        if text is not None:
            yield f"{twin.name}: {text}\n  {pasteable(call)}"


def twins(call: Call) -> Iterator[Twin]:
    """A call's twins, the same ones every time."""
    rng = np.random.default_rng([call.seed, 1])
    yield Twin("weights prepared by the call itself", lambda device: _prepared(call, call, device), True)
    yield Twin(
        "prepared weights that went over the host", lambda device: _prepared(call, call, device, moved=True), True
    )
    other = _elsewhere(call, rng)
    yield Twin(f"weights prepared by {_settings(other)}", lambda device: _prepared(other, call, device), False)
    if call.place != "L1_MEMORY_CONFIG":
        place = next(one for one in PLACES[:2] if one != call.place)
        moved = replace(call, place=place)
        yield Twin(f"input: {place}", lambda device: _run(moved, device), False)
    yield Twin(_settings(other), lambda device: _run(other, device), False)
    if call.function == "conv_transpose2d":
        yield Twin('lowering="phase"', lambda device: _run(call, device, lowering="phase"), False)


def _elsewhere(call: Call, rng: np.random.Generator) -> Call:
    """The call in other shards, blocks or slices."""
    config = {name: one for name, one in call.config.items() if name not in ("shard_layout", "act_block_h_override")}
    scheme = rng.choice(np.array(SCHEMES, object))
    if scheme is not None:
        config["shard_layout"] = scheme
    if rng.random() < 0.3:
        config["act_block_h_override"] = 32
    slices = call.slices
    if call.place != "L1_MEMORY_CONFIG" and rng.random() < 0.6:
        kinds = ["Conv2dDRAMSliceHeight", "Conv2dDRAMSliceWidth"]
        slices = None if rng.random() < 0.3 else (str(rng.choice(kinds)), int(rng.integers(1, 5)))
    return replace(call, config=config, slices=slices)


def _settings(call: Call) -> str:
    """Shards, blocks and slices of a call, as text."""
    kept = {name: call.config[name] for name in ("shard_layout", "act_block_h_override") if name in call.config}
    return f"{kept or 'no shards'}, {call.slices or 'no slices'}"


def _numbers(call: Call, make: Make, values: Values) -> Array | None:
    """float64 [outputs, channels] of a call; None if it is refused or does not fit."""
    with ttsim.open_device(l1_small_size=32768, spec=call.device, values=values) as device:
        try:
            got = make(device).to_numpy().astype(np.float64)
        except ttsim.TTSimError:
            return None
    return got.reshape(-1, got.shape[-1])


def _run(call: Call, device: ttsim.Device, **more: Any) -> Any:
    function = ttsim.conv_transpose2d if call.function == "conv_transpose2d" else ttsim.conv2d
    return function(**(arguments(call, device) | more))


def _prepared(first: Call, second: Call, device: ttsim.Device, *, moved: bool = False) -> ttsim.Tensor:
    """The output of the second call with the weights that the first one prepared."""
    _, (weights, bias) = _run(first, device, return_weights_and_bias=True)
    made = {"weight_tensor": weights} if bias is None else {"weight_tensor": weights, "bias_tensor": bias}
    if moved:
        made = {name: one.cpu().to(device) for name, one in made.items()}
    output: ttsim.Tensor = _run(second, device, **made)
    return output


def _difference(call: Call, wanted: Array, got: Array, *, exact: bool) -> str | None:
    if got.shape != wanted.shape:
        return f"{got.shape} instead of {wanted.shape}"
    if np.array_equal(got, wanted, equal_nan=True):
        return None
    if exact:
        return f"{np.count_nonzero(got != wanted)} of {got.size} values differ"
    size = np.linalg.norm(wanted)
    error = np.linalg.norm(got - wanted) / size if size else np.linalg.norm(got)
    if error > 2 * bound(call):
        return f"relative L2 {error:.3g} is above {2 * bound(call)}"
    worst, cosine = least_cosine(wanted, got)
    return f"row {worst} correlates by {cosine:.3f}" if worst is not None else None
