"""The outcome of one random trial, whatever its kind, and what every error must be like."""

from collections import Counter
from collections.abc import Callable
from cProfile import Profile
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb

import ttsim
from device.memory.memory_config import BufferType

MEMORIES = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)
LONGEST_LINE = 1000  # characters of the first line of an error
REFUSAL_CALLS = 200_000  # of Python's functions until something is refused; usual are 8,000
RUN_CALLS = 50_000_000  # until it is done; a search for advice takes 700,000

Table = tuple[tuple[tuple[int, int, bool], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One trial."""

    outcome: str  # How it ended, in a word or two; "fault" where something does not hold
    text: str = ""  # What does not hold, or the error
    again: str = ""  # What makes it happen again: Python that can be pasted, or the text of a file
    # Of a trial of several calls, how often they ended in which way
    calls: Counter[str] = field(default_factory=Counter)


def block_tables(device: ttsim.Device) -> Table:
    """Address, size and state of every block of every memory."""
    return tuple(
        tuple((block.address, block.size_bytes, block.allocated) for block in device.machine.allocator.blocks(memory))
        for memory in MEMORIES
    )


def tried(
    run: Callable[[], object], *, expected: tuple[type[Exception], ...] = (ttsim.TTSimError,), again: str
) -> Finding:
    """Runs something that may be refused with errors of the given classes; any other error is a fault.

    Too long a run is a fault, too. Its length is counted in calls of functions, because seconds depend on a busy
    machine.
    """
    profile = Profile(builtins=False, subcalls=False)
    try:
        profile.runcall(run)
        text, outcome, limit = "", "runs", RUN_CALLS
    except expected as error:
        text, outcome, limit = str(error), "refused", REFUSAL_CALLS
        wrong = unreadable(text)
        if wrong:
            text, outcome = wrong, "fault"
    except Exception as error:
        text, outcome, limit = f"undocumented {type(error).__name__}: {str(error)[:200]}", "fault", RUN_CALLS
    calls = sum(entry.callcount for entry in profile.getstats())
    if outcome != "fault" and calls > limit:
        text, outcome = f"{outcome} after {calls:,} calls of Python's functions", "fault"
    return Finding(outcome=outcome, text=text, again=again)


def unreadable(text: str) -> str:
    """The fault of the text of an error; empty if there is none."""
    first = text.split("\n", 1)[0]
    if not first.strip():
        return f"an error without a first line: {text[:100]!r}"
    if not first.isprintable():
        return f"control characters in the first line: {first[:200]!r}"
    return f"a first line of {len(first)} characters: {first[:100]!r}" if len(first) > LONGEST_LINE else ""


def place_of(error: BaseException) -> str:
    """The last file and line of an error."""
    last = extract_tb(error.__traceback__)[-1:]
    return "".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in last)
