"""One call at a time on a device, and all of a call or nothing: threads wait their turn, interrupts leave no trace.

A call holds its device from its first look at the memory to its result; calls on other devices run beside it. A call
that ends in an error frees what it made; one that is interrupted (Ctrl-C) forgets its programs, too, so that the block
table is as before, but for inputs that the call had released on its caller's behalf.
"""

from collections.abc import Callable
from threading import get_ident
from typing import TypeVar

from device.machine import Machine

R = TypeVar("R")


def locked(machine: Machine, function: Callable[[], R]) -> R:
    """What ``function`` returns, run while no other thread uses the machine; nothing of it stays if it fails."""
    mine = get_ident()
    if machine.caller == mine:
        return function()
    moment = None
    try:
        machine.turn.take()
        machine.caller = mine
        moment = machine.begin()
        result = function()
        _give_up(machine, mine)
        return result
    except BaseException as error:
        if moment is not None:
            machine.roll_back(moment, programs=not isinstance(error, Exception))
        _give_up(machine, mine)
        raise


def _give_up(machine: Machine, mine: int) -> None:
    """Lets the next thread in; harmless when this one has done so."""
    if machine.caller == mine:
        machine.caller = None
    machine.turn.give()
