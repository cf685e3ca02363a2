"""Threads on one device, switched as often as Python can: every call is whole, and the block table consistent."""

import gc
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import Final

import numpy as np

import ttsim
from tools.fuzz.finding import Finding, block_tables
from tools.fuzz.interrupts import SCENES

THREADS: Final = 3
CALLS: Final = 3  # of each thread
INTERVAL: Final = 1e-6  # seconds between switches


def check(seed: int, index: int) -> Finding:
    """Lets threads make calls on one device."""
    rng = np.random.default_rng([seed, index])
    plans = [[str(one) for one in rng.choice(list(SCENES), CALLS)] for _ in range(THREADS)]
    begun = time.perf_counter()
    wrong = found_after(plans)
    again = f"tools.fuzz.threads.found_after({plans})"
    seconds = time.perf_counter() - begun
    return Finding(outcome="fault" if wrong else "whole", text=wrong, again=again, seconds=seconds)


def found_after(plans: list[list[str]]) -> str:
    """What does not hold after threads have run the scenes of each list; empty if all does."""
    device = ttsim.open_device(l1_small_size=32768, values="off")
    before = block_tables(device)
    failures: list[str] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(INTERVAL)
    try:
        threads = [Thread(target=_worker(plan, device, failures)) for plan in plans]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    gc.collect(1)
    device.clear_program_cache()
    if block_tables(device) != before:
        failures.append(f"blocks are left: {[one.name for one in device.machine.memory.live()][:3]}")
    if device.machine.caller is not None or device.running or device.machine.recorders:
        failures.append("somebody has not finished")
    device.close()
    return "; ".join(failures)


def _worker(plan: list[str], device: ttsim.Device, failures: list[str]) -> Callable[[], None]:
    def op() -> None:
        try:
            for scene in plan:
                SCENES[scene](device)
        except ttsim.OutOfMemoryError:  # the others had the room
            return
        except ttsim.CircularBufferError:
            return
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")

    return op
