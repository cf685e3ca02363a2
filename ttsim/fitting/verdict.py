"""Why a call does not fit a device, and what nearby would.

Every suggestion was planned and allocated on a copy of the device before it is made. The order is from the smallest
change to the largest, the number of trials is bounded, and the same call on the same device always gets the same text.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from device.memory.memory_config import BufferType
from ops.calls.conv_transpose2d.alternatives import (
    MOST_SLICES,
    TOGETHER,
    alternatives,
    automatic,
    costs,
    index_tensors_in_dram,
)
from ops.calls.convolution.arguments import ConvArguments
from ttsim.fitting.consumers import Shortage, bank_bytes, shortage
from ttsim.fitting.source import conv_config_source, slice_config_source
from ttsim.fitting.trial import Ground, attempt

SHOWN: Final = 3  # consumers, and suggestions
TRIALS: Final = 24
STEPS: Final = 6000  # of all trials' events together, so that many slices do not take many seconds
L1_SMALL_SIZES: Final = tuple(1 << power for power in range(10, 18))


def verdict(call: ConvArguments, ground: Ground, *, planned: bool = True) -> str:
    """What continues the error of a call that ran out of memory.

    Args:
        call: Its arguments, validated.
        ground: The device, as the failed call left it.
        planned: False if already the plan could not be made, so that nothing was allocated.
    """
    found = _shortage(call, ground) if planned else None
    small = found is not None and found.memory is BufferType.L1_SMALL
    fitting = list(islice(_index_tensors(call, ground) if small else _configs(call, ground), SHOWN))
    if not fitting:
        fitting = list(islice(_left_to_the_library(call, ground), 1))
    lines = [] if found is None else _largest(found, ground)
    if not fitting:
        lines.append("No config that was tried makes it fit as the device is now.")
        return "\n".join(lines)
    lines.append("What fits, each simulated on this device as it is now, the smallest change first:")
    return "\n".join([*lines, *(f"  {one}" for one in fitting)])


def _shortage(call: ConvArguments, ground: Ground) -> Shortage | None:
    """What did not fit; the circular buffers of a cached program are known once the program is made anew."""
    live = ground.machine.memory.live()
    found = shortage(attempt(call, ground).events, live)
    if found is None or not found.cached:
        return found
    return shortage(attempt(call, ground, cached=False).events, live)


def _largest(found: Shortage, ground: Ground) -> list[str]:
    machine = ground.machine
    total = bank_bytes(machine.spec, found.memory, machine.l1_small_bytes)
    where = "of a bank of DRAM" if found.memory is BufferType.DRAM else f"of a core's {found.memory.name}"
    if not found.consumers or not total:
        return []
    return [
        f"The largest parts {where} ({total} B) at that moment:",
        *(f"  {size} B ({100 * size / total:.0f} %): {text}" for text, size in found.consumers[:SHOWN]),
    ]


def _configs(call: ConvArguments, ground: Ground) -> Iterator[str]:
    """Changes of the call's configs that fit: the nearest of each kind."""
    free_l1_bytes = ground.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
    done: set[str] = set()
    fewest, steps = MOST_SLICES + 1, 0
    for kind, other in islice(alternatives(call, ground.machine.spec, free_l1_bytes=free_l1_bytes), TRIALS):
        slices = 0 if other.slice_config is None else other.slice_config.num_slices
        if kind in done or slices >= fewest or steps > STEPS:
            continue  # as many slices as fit with a smaller change are no use with a larger one
        if kind == TOGETHER and not slices and done:
            continue  # one change was enough
        trial = attempt(other, ground)
        steps += len(trial.events)
        if trial.error is None:
            done.add(kind)
            fewest = slices if slices > 1 else fewest
            yield _changes(call, other)


def _left_to_the_library(call: ConvArguments, ground: Ground) -> Iterator[str]:
    """The call with its configs left out, and then with other schemes, in slices that the library chooses."""
    for other in automatic(call):
        if other.arguments != call and attempt(other.arguments, ground).error is None:
            yield _changes(call, other.arguments)


def _index_tensors(call: ConvArguments, ground: Ground) -> Iterator[str]:
    """What makes room for index tensors."""
    if ground.machine.program_cache and attempt(call, ground, cached=False).error is None:
        yield "device.clear_program_cache()"
    other = index_tensors_in_dram(call)
    if other is not None and attempt(other.arguments, ground).error is None:
        yield _changes(call, other.arguments)
    for size in L1_SMALL_SIZES:
        if size > ground.machine.l1_small_bytes and attempt(call, ground, l1_small_bytes=size).error is None:
            yield f"ttnn.open_device(l1_small_size={size})"
            return


def _changes(call: ConvArguments, other: ConvArguments) -> str:
    """Arguments of a call that differ from another's, as Python, with what they cost as a comment."""
    parts = []
    if other.input != call.input:
        parts.append("input_tensor=ttnn.to_memory_config(input_tensor, ttnn.DRAM_MEMORY_CONFIG)")
    if other.memory_config != call.memory_config:
        parts.append("memory_config=None")
    if other.conv_config != call.conv_config:
        parts.append(f"conv_config={conv_config_source(other.conv_config)}")
    if other.slice_config is not None and other.slice_config != call.slice_config:
        parts.append(f"dram_slice_config={slice_config_source(other.slice_config)}")
    elif other.slice_config is None and call.slice_config is not None:
        parts.append("dram_slice_config=None")
    notes = costs(call, other)
    return ", ".join(parts) + (f"  # {'; '.join(notes)}" if notes else "")
