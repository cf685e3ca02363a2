"""A call that a device carried out, as profiles remember it."""

from dataclasses import dataclass

from device.events import BufferAllocated, Event, MadeTensor
from device.plan import Plan
from ops.calls.convolution.arguments import ConvArguments
from ttsim.runtime.sites import CallSite


@dataclass(frozen=True, slots=True, kw_only=True)
class RanCall:
    """A call that a device carried out, as profiles remember it."""

    function: str  # The function of the library that was called
    plan: Plan  # What it did
    # Indices of the plan's steps whose device operations ran, in order: a tensor that is to be moved stays where it is
    # if there is no better place
    ran: tuple[int, ...]
    useful_flops: int | None = None  # Multiplications and additions of its definition; None if it has none of its own
    # The arguments of a convolution, as its caller gave them; None for any other call
    asked: ConvArguments | None = None
    # What the script gave to the function, by name or number, for `texts` to tell; none where nobody knows
    given: tuple[tuple[str, object], ...] = ()
    sites: tuple[CallSite, ...] = ()  # The script's lines that ran meanwhile, outermost first
    before: tuple[BufferAllocated, ...] = ()  # What lay in its memories when it began, oldest first
    events: tuple[Event, ...] = ()  # What happened on the device meanwhile
    inputs: tuple[tuple[str, MadeTensor], ...] = ()  # What it read that was on the device already, by name in the plan
    results: tuple[tuple[str, MadeTensor], ...] = ()  # What it returned, likewise
    error: str = ""  # Why it did not fit; empty if it did. Nothing ran then, and the events are those of its planning.
