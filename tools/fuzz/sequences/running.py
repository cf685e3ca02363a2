"""Runs a sequence: draws its steps, makes the calls, and looks at everything after each of them."""

import gc
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

import ttsim
from tools.fuzz.finding import MEMORIES, Finding, block_tables, unreadable
from tools.fuzz.sequences.operations import OPERATIONS, WEIGHTS
from tools.fuzz.sequences.state import MOST_READ, PRELUDE, Choices, Draft, Expected, Shadow, State, Step, exactly

DEVICES: Final = ("wormhole_n150", "blackhole_p150")
SMALL_SIZES: Final = (32768, 32768, 32768, 16384, 65536, 8192, 1024, 0)
LARGEST: Final = 1e30  # tensors of larger numbers, infinities or NaN take no part in what follows
MOST_LIVE: Final = 9  # tensors on the device
MOST_ON_HOST: Final = 3
NAMES: Final = tuple(OPERATIONS)
ODDS: Final = np.cumsum([WEIGHTS.get(name, 1.0) for name in NAMES])


class Fault(Exception):  # noqa: N818 - found, not raised to a user
    """Something does not hold.

    Attributes:
        operation: Which call.
        kind: What does not hold, in a word or two: the same for the same fault in a shorter sequence.
    """

    def __init__(self, operation: str, kind: str, text: str) -> None:
        super().__init__(f"{operation}: {kind}: {text}")
        self.operation = operation
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Record:
    """The choices of a sequence, from which it can be run again."""

    # Of the generator that draws steps which are not recorded; None to replay recorded steps only
    seed: tuple[int, ...] | None
    opening: tuple[int, ...] = ()  # Choices of the device
    steps: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # Choices of each step by its number


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a sequence."""

    record: Record  # All choices that were made
    script: str  # The calls as Python
    counts: Counter[str]  # How often calls ended in which way
    accepted: Counter[str]  # How often each operation was accepted
    needed: frozenset[int]  # The steps that the last one depends on, itself included
    fault: Fault | None  # What does not hold; None if everything does


class Run:
    """One run of a sequence on a device of its own."""

    def __init__(self, opening: Choices) -> None:
        spec, small = opening.pick(DEVICES), opening.pick(SMALL_SIZES)
        strict, values = not opening.chance(0.25), "exact" if opening.chance(0.3) else "fast"
        self.opened = (
            f'device = ttsim.open_device(spec="{spec}", l1_small_size={small}, strict={strict}, values="{values}")\n'
        )
        names: dict[str, Any] = {}
        exec(PRELUDE + self.opened, names)
        self.state = State(names, {}, {})
        self.before = block_tables(self.state.device)
        self.lines: list[str] = []
        self.texts: dict[int, str] = {}
        self.counts: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()

    @property
    def script(self) -> str:
        """All calls as Python that can be pasted."""
        return PRELUDE + self.opened + "\n".join(self.lines) + "\n"

    def step(self, number: int, choices: Choices) -> None:
        """Draws a step, makes the call and looks at what came of it; raises Fault."""
        name = NAMES[_drawn_name(choices)]
        if not self.state.shadows:
            name = "from_numpy"
        step = OPERATIONS[name](Draft(choices, self.state, number))
        if step is None:
            self.counts["none"] += 1
        else:
            self.carry_out(name, step, number)

    def carry_out(self, name: str, step: Step, number: int) -> None:
        """Makes the call of a step and looks at what came of it; raises Fault."""
        self.lines.append(step.text)
        self.texts[number] = step.text
        outcome = self._made(name, step)
        self.counts[outcome] += 1
        if outcome == "right":
            self.accepted[name] += 1
            if step.contradictory and self.state.device.strict:
                raise Fault(name, "accepted", f"{step.contradictory} on a strict device")
            self._take(name, step, number)
            if step.contradictory:  # what a device that is not strict made of it is nobody's
                for made in set(re.findall(rf"\bt{number}[a-z]*\b", step.text)) - set(self.state.shadows):
                    self.state.names.pop(made, None)
        else:
            self.lines[-1] = _commented(step.text, outcome)
            for made in (*step.results, *step.opaque, *step.facts):
                if made not in self.state.shadows:
                    self.state.names.pop(made, None)
        self._look(name, step)
        self._tidy()

    def close(self) -> None:
        """Frees everything; raises Fault if something stays."""
        device = self.state.device
        self.state.names.clear()
        self.state.shadows.clear()
        self.state.prepared.clear()
        gc.collect(1)
        device.clear_program_cache()
        left = [buffer.name for buffer in device.machine.memory.live()]
        if left or block_tables(device) != self.before:
            raise Fault("the end", "a leak", f"blocks stay when all is freed: {left[:3]}")
        device.close()

    def _made(self, name: str, step: Step) -> str:
        """Makes the call; what came of it in words."""
        try:
            exec(step.text, self.state.names)
        except (ttsim.OutOfMemoryError, ttsim.CircularBufferError) as error:
            outcome, text = "does not fit", str(error)
        except ttsim.TTSimError as error:
            outcome, text = "refused", str(error)
        except Exception as error:
            where = _place_of(error)
            raise Fault(name, f"undocumented {type(error).__name__}", f"{error} ({where})") from None
        else:
            return "right"
        wrong = unreadable(text)
        if wrong:
            raise Fault(name, "an unreadable error", wrong)
        return outcome

    def _take(self, name: str, step: Step, number: int) -> None:
        """Looks at the results of a call that was accepted, and gives them shadows."""
        state = self.state
        for fact, answer in step.facts.items():
            found = state.names.pop(fact)
            if (list(found) if isinstance(answer, list) else found) != answer and not self._excused(step):
                raise Fault(name, "a wrong answer", f"{found} instead of {answer}")
        for place, (result, expect) in enumerate(step.results.items()):
            tensor = state.names.get(result)
            if not isinstance(tensor, ttsim.Tensor):
                raise Fault(name, "a wrong type", f"{result} is {type(tensor).__name__}")
            opaque = result in step.opaque
            if not tensor.is_allocated():
                if result in step.frees:
                    continue
                raise Fault(name, "a result without memory", result)
            is_read = tensor.logical_volume() <= MOST_READ
            values = self._read(name, result, tensor) if is_read else np.zeros(0)
            expected = expect()
            if any(other.tensor._storage is tensor._storage for other in state.shadows.values() if other.on_device):
                expected = replace(expected, place=None)  # there was nothing to do: the input is returned where it is
            wrong = _wrong_shape(tensor, expected) if not opaque or expected.shape else ""
            if wrong and not self._excused(step):
                raise Fault(name, "a wrong shape", wrong)
            opaque = opaque or not is_read
            if not opaque and values.shape != tuple(tensor.shape):
                raise Fault(name, "a wrong shape", f"an array of {values.shape} instead of {list(tensor.shape)}")
            if is_read and not _representable(values, tensor):
                raise Fault(name, "numbers that its data type does not have", result)
            if not opaque and not wrong and expected.values is not None:
                self._compare(name, values, expected, step)
            old = state.shadows.get(result)
            other: Shadow | None
            for other in list(state.shadows.values()):
                if not other.is_read or not other.on_device or other.tensor._storage is not tensor._storage:
                    continue
                if old is not None and other.values.size > values.size:  # refused: what lies around is not simulated
                    del state.shadows[other.name], state.names[other.name]
                elif other.values.size != values.size:  # the same tiles with more or fewer rows
                    other.values = self._read(name, other.name, other.tensor)
                elif old is not None:
                    other.values = values.reshape(other.values.shape)
            other = None  # else it would keep the tensor alive
            stable = old.number if old is not None else 8 * number + place
            wild = not (np.abs(values) < LARGEST).all()
            state.shadows[result] = Shadow(stable, result, tensor, values, opaque or wild)

    def _read(self, name: str, which: str, tensor: ttsim.Tensor) -> Any:
        """The values of a tensor; raises Fault where they cannot be read."""
        try:
            return exactly(tensor)
        except Exception as error:
            raise Fault(name, f"{type(error).__name__} of to_numpy", f"{which}: {error} ({_place_of(error)})") from None

    def _compare(self, name: str, values: Any, expected: Expected, step: Step) -> None:
        wrong = wrong_values(values, expected)
        if wrong and not self._excused(step):
            raise Fault(name, "wrong values", wrong)

    def _excused(self, step: Step) -> bool:
        """Whether a call may be wrong: what the real library gets wrong, a device that is not strict copies.

        A strict device must refuse the call.
        """
        device = self.state.device
        if device.strict:
            return False
        names = dict(self.state.names)
        device.strict = True
        try:
            exec(step.text, names)
        except ttsim.TTSimError:
            return True
        except Exception:
            return False
        finally:
            device.strict = False
        return False

    def _look(self, name: str, step: Step) -> None:
        """Looks at all that is alive; raises Fault."""
        state = self.state
        for gone in step.frees:
            shadow = state.shadows.get(gone)
            if shadow is not None and (gone not in state.names or not shadow.tensor.is_allocated()):
                del state.shadows[gone]
                state.names.pop(gone, None)
        shadow = None  # else it would keep the tensor alive
        self._look_at_tensors(name)
        wrong = self._wrong_blocks()
        if wrong:
            gc.collect()
            wrong = self._wrong_blocks()
        if wrong:
            raise Fault(name, "wrong blocks", wrong)

    def _look_at_tensors(self, name: str) -> None:
        """Every live tensor must be there and hold what it held; raises Fault."""
        for shadow in self.state.shadows.values():
            if not shadow.tensor.is_allocated():
                raise Fault(name, "an input freed", f"{shadow.name} is gone")
            if shadow.is_read:
                now = self._read(name, shadow.name, shadow.tensor)
                if now.shape != shadow.values.shape or not np.array_equal(now, shadow.values, equal_nan=True):
                    raise Fault(name, "a tensor changed", f"{shadow.name}, which the call does not write")

    def _wrong_blocks(self) -> str:
        """What does not agree between the allocator, the buffers and the live tensors."""
        machine = self.state.device.machine
        live = {buffer.number: buffer for buffer in machine.memory.live()}
        held = {shadow.tensor.buffer.number for shadow in self.state.shadows.values() if shadow.on_device}
        cached = {buffer.number for program in machine.program_cache.values() for buffer in program.resident}
        for number, buffer in live.items():
            if number not in held | cached:
                return (
                    f"the buffer of {buffer.name} in {buffer.spec.buffer_type.name} belongs to no tensor and no program"
                )
        for number in held - set(live):
            return f"buffer {number} of a live tensor is not in memory"
        for memory in MEMORIES:
            blocks = sorted(block.address for block in machine.allocator.blocks(memory) if block.allocated)
            buffers = sorted(buffer.address for buffer in live.values() if buffer.spec.buffer_type is memory)
            if blocks != buffers:
                return f"{memory.name}: blocks at {blocks[:9]}, buffers at {buffers[:9]}"
        return ""

    def _tidy(self) -> None:
        """Drops the oldest tensors where there are many."""
        state = self.state
        for on_device, most in ((True, MOST_LIVE), (False, MOST_ON_HOST)):
            names = [shadow.name for shadow in state.shadows.values() if shadow.on_device == on_device]
            for name in names[: max(0, len(names) - most)]:
                del state.shadows[name]
                del state.names[name]
                self.lines.append(f"del {name}")


def run(record: Record, length: int) -> Outcome:
    """Runs a sequence of up to ``length`` steps, or the recorded ones, until something does not hold."""
    generator = None if record.seed is None else np.random.default_rng(record.seed)
    opening = Choices(record.opening if generator is None else generator)
    taken: dict[int, tuple[int, ...]] = {}
    fault = None
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:  # for the files of dump_tensor
        os.chdir(folder)
        try:
            going = Run(opening)
            for number in record.steps if generator is None else range(length):
                choices = Choices(record.steps[number] if generator is None else generator)
                try:
                    going.step(number, choices)
                except Fault as found:
                    fault = found
                taken[number] = tuple(choices.taken)
                if fault is not None:
                    break
            if fault is None:
                try:
                    going.close()
                except Fault as found:
                    fault = found
        finally:
            os.chdir(here)
    return Outcome(
        record=Record(None, tuple(opening.taken), taken),
        script=going.script,
        counts=going.counts,
        accepted=going.accepted,
        needed=needed(going.texts),
        fault=fault,
    )


def needed(texts: Mapping[int, str]) -> frozenset[int]:
    """The numbers of the steps that the last step depends on, by the names in their texts."""
    found, left = set[int](), [max(texts)] if texts else []
    while left:
        number = left.pop()
        if number in texts and number not in found:
            found.add(number)
            left += [int(name) for name in re.findall(r"\bt(\d+)", texts[number])]
            # what writes into a tensor that the step uses
            left += [
                other
                for other, text in texts.items()
                if other > number and text.startswith("ttsim.") and re.search(rf"\bt{number}\b", text)
            ]
    return frozenset(found)


def wrong_values(values: Any, expected: Expected) -> str:
    """What is wrong with the values of a tensor; empty if nothing is."""
    wanted = np.asarray(expected.values, np.float64)
    bound = np.broadcast_to(np.asarray(expected.bound, np.float64), wanted.shape)
    with np.errstate(all="ignore"):
        near = (np.abs(values - wanted) <= bound) | (values == wanted) | np.isposinf(bound)
    if not near.all():
        first = tuple(int(place) for place in np.argwhere(~near)[0])
        return (
            f"{np.count_nonzero(~near)} of {near.size} elements, first at {first}: {values[first]:.7g} instead of "
            f"{wanted[first]:.7g}, error allowed {bound[first]:.3g}"
        )
    size = np.linalg.norm(wanted)
    if expected.norm is not None and near.size >= 32 and size > 0:
        error = np.linalg.norm(values - wanted) / size
        if error > expected.norm:
            return f"relative L2 {error:.3g} is above {expected.norm:.3g}"
    return ""


def _representable(values: Any, tensor: ttsim.Tensor) -> bool:
    """Whether the numbers of a tensor are numbers of its data type; not asked of block floats, whose groups differ."""
    kind = tensor.dtype.name.lower()
    if kind not in ("bfloat16", "float32"):
        return True
    held = values.astype(np.float32)
    if kind == "bfloat16":
        held = (held.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return bool(np.array_equal(held, values, equal_nan=True))


def _wrong_shape(tensor: ttsim.Tensor, expected: Expected) -> str:
    wanted = expected.shape if expected.values is None else np.shape(expected.values)
    if tuple(tensor.shape) != tuple(wanted):
        return f"{list(tensor.shape)} instead of {list(wanted)}"
    if expected.dtypes and tensor.dtype.name.lower() not in expected.dtypes:
        return f"{tensor.dtype.name.lower()} instead of {' or '.join(expected.dtypes)}"
    if expected.layout is not None and tensor.layout.name != expected.layout:
        return f"{tensor.layout.name} instead of {expected.layout}"
    if expected.place is not None and tensor.memory_config() != expected.place:
        return f"{tensor.memory_config()} instead of {expected.place}"
    return ""


def _drawn_name(choices: Choices) -> int:
    """The place of an operation in the table, by its odds: 0 is the first one."""
    return int(np.searchsorted(ODDS, choices.below(int(ODDS[-1] * 10)) / 10, side="right"))


def _commented(text: str, outcome: str) -> str:
    return "\n".join(f"# {outcome}: {line}" for line in text.splitlines())


def _place_of(error: BaseException) -> str:
    """Where an error was raised: the last file and line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"


SECONDS: Final = 60.0

Again = Callable[[Record], Outcome]


def shrunk(first: Outcome, again: Again, *, seconds: float = SECONDS) -> Outcome:
    """The simplest outcome with the same kind of fault that was found in the given time.

    Args:
        first: An outcome with a fault.
        again: Runs a record.
        seconds: When to stop.
    """
    best, end = first, time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for record in _simpler(best):
            if time.monotonic() > end:
                break
            outcome = again(record)
            if same_fault(outcome, first) and _size(outcome.record) < _size(best.record):
                best, progress = outcome, True
                break
    return best


def same_fault(outcome: Outcome, other: Outcome) -> bool:
    """Whether both show the same fault."""
    faults = (outcome.fault, other.fault)
    if faults[0] is None or faults[1] is None:
        return False
    return (faults[0].operation, faults[0].kind) == (faults[1].operation, faults[1].kind)


def _size(record: Record) -> tuple[int, int, tuple[int, ...]]:
    """Smaller is simpler: fewer steps, fewer choices, lower choices."""
    choices = tuple(choice for choices in record.steps.values() for choice in choices)
    return len(record.steps), len(choices) + len(record.opening), (*record.opening, *choices)


def _simpler(outcome: Outcome) -> Iterator[Record]:
    """Simpler records, the boldest first."""
    record = outcome.record
    numbers = list(record.steps)
    if 0 < len(outcome.needed) < len(numbers):
        yield replace(record, steps={number: record.steps[number] for number in numbers if number in outcome.needed})
    count = len(numbers)
    size = count // 2
    while size:
        for start in range(count - size - 1, -1, -size):  # the last step, which shows the fault, stays
            kept = numbers[:start] + numbers[start + size :]
            yield replace(record, steps={number: record.steps[number] for number in kept})
        size //= 2
    for choices in _lower(record.opening):
        yield replace(record, opening=choices)
    for number in reversed(numbers):
        for choices in _lower(record.steps[number]):
            yield replace(record, steps={**record.steps, number: choices})


def _lower(choices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Lower choices, or fewer of them."""
    for length in (4, 2, 1):
        for place in range(len(choices) - length + 1):
            if any(choices[place : place + length]):
                yield (*choices[:place], *(0,) * length, *choices[place + length :])
    for place, choice in enumerate(choices):
        for lower in (choice // 2, choice - 1):
            if 0 < lower < choice:
                yield (*choices[:place], lower, *choices[place + 1 :])


LENGTH = 20  # steps of a sequence


def check(seed: int, index: int) -> Finding:
    """Makes a sequence; a fault is shown by the shortest script that was found."""
    begun = time.perf_counter()
    outcome = run(Record((seed, index)), LENGTH)
    seconds = time.perf_counter() - begun
    if outcome.fault is None:
        return Finding(outcome="right", calls=outcome.counts, seconds=seconds)
    found = shrunk(outcome, lambda record: run(record, LENGTH))
    return Finding(
        outcome="fault", text=str(found.fault), again=found.script, calls=outcome.counts + Counter(), seconds=seconds
    )
