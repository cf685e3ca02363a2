"""What must not change a random call's numbers: how its weights came, where its input lies, how it is cut and lowered.

Each twin of a call is made on a strict device of its own. A twin that is refused or does not fit says nothing. Weights
prepared ahead for the same call, and a host input, give the same bits. Other slices, shards and blocks sum in another
order and round partial sums elsewhere, so they agree within the bound of the call's coarsest format.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

import ttsim
from device.numbers.formats import Array
from tools.fuzz.calls import PLACES, SCHEMES, Call
from tools.fuzz.making import arguments, pasteable
from tools.fuzz.oracles import bound, least_cosine

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
