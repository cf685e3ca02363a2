"""Runs a sequence: draws its steps, makes the calls, and looks at everything after each of them."""

import gc
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np

import ttsim
from device.numbers.formats import Array
from tools.fuzz.finding import MEMORIES, Finding, block_tables, unreadable
from tools.random_calls.drafts import MOST_READ, PRELUDE, Choices, Draft, Expected, Operation, Shadow, State, Step
from tools.random_calls.operations import OPERATIONS, WEIGHTS
from tools.random_calls.tensors import image

DEVICES: Final = ("wormhole_n150", "blackhole_p150")
SMALL_SIZES: Final = (32768, 32768, 32768, 16384, 65536, 8192, 1024, 0)
LARGEST: Final = 1e30  # tensors of larger numbers, infinities or NaN take no part in what follows
MOST_LIVE: Final = 9  # tensors on the device
MOST_ON_HOST: Final = 3
NAMES: Final = tuple(OPERATIONS)
ODDS: Final = np.cumsum([WEIGHTS[name] for name in NAMES])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The properties of a kind of sequences."""

    length: int = 20  # Steps
    plan: Sequence[tuple[str, Operation]] = ()  # The operations in order; none for drawn ones on a drawn device
    values: str = "fast"  # Of the device; drawn where operations are drawn
    with_twins: bool = False  # Whether calls are made in other ways as well


def _convolution(draft: Draft) -> Step | None:
    return OPERATIONS[draft.pick((*["conv_transpose2d"] * 3, "conv2d"))](draft)


CALL: Final = (("image", image), ("convolution", _convolution))
KINDS: Final[Mapping[str, Kind]] = {
    "calls": Kind(length=2, plan=CALL),
    "exact": Kind(length=2, plan=CALL, values="exact"),
    "twins": Kind(length=2, plan=CALL, with_twins=True),
    "sequences": Kind(),
}


class Fault(Exception):  # noqa: N818 - what a run finds, not raised to a user
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
    """The result of a sequence."""

    record: Record  # All choices
    script: str  # The calls as Python
    counts: Counter[str]  # How often calls ended in which way
    fault: Fault | None  # What does not hold; None if everything does


class Run:
    """One run of a sequence on a device of its own."""

    def __init__(self, opening: Choices, kind: Kind = KINDS["sequences"]) -> None:
        spec, small, strict, values = opening.pick(DEVICES), SMALL_SIZES[0], True, kind.values
        if not kind.plan:
            small, strict = opening.pick(SMALL_SIZES), not opening.chance(0.25)
            values = "exact" if opening.chance(0.3) else "fast"
        settings = f'spec="{spec}", l1_small_size={small}, strict={strict}, values="{values}"'
        self.script_lines = [f"{PRELUDE}device = ttsim.open_device({settings})"]
        names: dict[str, Any] = {}
        exec(self.script_lines[0], names)
        self.kind = kind
        self.state = State(names, from_host=bool(kind.plan), with_twins=kind.with_twins)
        self.before = block_tables(self.state.device)
        self.counts: Counter[str] = Counter()  # how often calls ended in which way
        self.accepted: Counter[str] = Counter()  # how often each operation was accepted

    @property
    def script(self) -> str:
        """All calls as Python that can be pasted."""
        return "\n".join(self.script_lines) + "\n"

    def step(self, draft: Draft) -> None:
        """Draws a step, makes the call and looks at the results; raises Fault."""
        if self.kind.plan:
            name, operation = self.kind.plan[draft.number % len(self.kind.plan)]
        else:
            name = NAMES[int(np.searchsorted(ODDS, draft.below(int(ODDS[-1] * 10)) / 10, side="right"))]
            name = name if self.state.shadows else "from_numpy"
            operation = OPERATIONS[name]
        step = operation(draft)
        if step is None:
            self.counts["none"] += 1
        else:
            self.carry_out(name, step, draft.number)

    def carry_out(self, name: str, step: Step, number: int) -> None:
        """Makes the call of a step and looks at the results; raises Fault."""
        names = self.state.names
        self.script_lines.append(step.text)
        outcome = self._call(name, step)
        self.counts[outcome] += 1
        if outcome == "right":
            self.accepted[name] += 1
            if step.contradictory and self.state.device.strict:
                raise Fault(name, "accepted", f"{step.contradictory} on a strict device")
            self._take(name, step, number)
            self._compare_twins(name, step, number)
            # what a device that is not strict returns of a contradictory call is nobody's
            dropped = set(re.findall(rf"\bt{number}[a-z]*\b", step.text)) if step.contradictory else set()
        else:
            self.script_lines[-1] = "\n".join(f"# {outcome}: {line}" for line in step.text.splitlines())
            dropped = {*step.results, *step.opaque, *step.facts}
        for result in dropped - set(self.state.shadows):
            names.pop(result, None)
        for gone in step.frees:
            shadow = self.state.shadows.get(gone)
            if shadow is not None and (gone not in names or not shadow.tensor.is_allocated()):
                del self.state.shadows[gone]
                names.pop(gone, None)
        shadow = None  # else it would keep the tensor alive
        self._look(name)
        self._tidy()

    def close(self) -> None:
        """Frees everything; raises Fault if something stays."""
        device = self.state.device
        for tensors in (self.state.names, self.state.shadows, self.state.prepared):
            tensors.clear()
        gc.collect(1)
        device.clear_program_cache()
        left = [buffer.name for buffer in device.machine.memory.live()]
        if left or block_tables(device) != self.before:
            raise Fault("the end", "a leak", f"blocks stay when all is freed: {left[:3]}")
        device.close()

    def _call(self, name: str, step: Step) -> str:
        """Makes the call; the outcome in words."""
        try:
            exec(step.text, self.state.names)
        except (ttsim.OutOfMemoryError, ttsim.CircularBufferError) as error:
            outcome, text = "does not fit", str(error)
        except ttsim.TTSimError as error:
            outcome, text = "refused", str(error)
        except Exception as error:
            place = _place_of(error)
            raise Fault(name, f"undocumented {type(error).__name__}", f"{error} ({place})") from None
        else:
            return "right"
        if wrong := unreadable(text):
            raise Fault(name, "an unreadable error", wrong)
        return outcome

    def _take(self, name: str, step: Step, number: int) -> None:
        """Checks the results of an accepted call, and gives them shadows."""
        state = self.state
        for fact, answer in step.facts.items():
            said = state.names.pop(fact)
            if (list(said) if isinstance(answer, list) else said) != answer and not self._excused(step):
                raise Fault(name, "a wrong answer", f"{said} instead of {answer}")
        for place, (result, expect) in enumerate(step.results.items()):
            tensor = state.names.get(result)
            if not isinstance(tensor, ttsim.Tensor):
                raise Fault(name, "a wrong type", f"{result} is {type(tensor).__name__}")
            if not tensor.is_allocated():
                if result not in step.frees:
                    raise Fault(name, "a result without memory", result)
                continue
            values, expected = self._read(name, result, tensor), expect()
            if any(other.tensor._storage is tensor._storage for other in state.shadows.values() if other.on_device):
                expected = replace(expected, place=None)  # there was nothing to do: the input is returned where it is
            kind, wrong = wrong_result(tensor, values, expected, opaque=result in step.opaque)
            if wrong and not (kind in ("a wrong shape", "wrong values") and self._excused(step)):
                raise Fault(name, kind, f"{result}: {wrong}")
            old = state.shadows.get(result)
            self._share(name, tensor, values, written=old is not None)
            opaque = result in step.opaque or values.size != tensor.logical_volume()
            wild = not (np.abs(values) < LARGEST).all()
            stable = old.number if old is not None else 8 * number + place
            state.shadows[result] = Shadow(stable, result, tensor, values, opaque or wild)

    def _share(self, name: str, tensor: ttsim.Tensor, values: Array, *, written: bool) -> None:
        """Updates the shadows of tensors that share the buffer of a result."""
        for other in list(self.state.shadows.values()):
            if not other.is_read or not other.on_device or other.tensor._storage is not tensor._storage:
                continue
            if written and other.values.size > values.size:  # refused: what lies around is not simulated
                del self.state.shadows[other.name], self.state.names[other.name]
            elif other.values.size != values.size:  # the same tiles with more or fewer rows
                other.values = self._read(name, other.name, other.tensor)
            elif written:
                other.values = values.reshape(other.values.shape)

    def _compare_twins(self, name: str, step: Step, number: int) -> None:
        """Makes a call in its other ways, which must agree; raises Fault."""
        if not step.twins:
            return
        result = f"t{number}"
        values, expected = self.state.shadows[result].values, step.results[result]()
        near = replace(
            expected, values=values, bound=2 * np.asarray(expected.bound), norm=2 * (expected.norm or np.inf)
        )
        for difference, (text, exact) in step.twins.items():
            names = dict(self.state.names)
            try:
                exec(text, names)
            except ttsim.TTSimError:
                continue
            twin = np.asarray(names["twin"].to_numpy(), np.float64)
            wrong = wrong_values(twin, Expected(values=values) if exact else near)
            if wrong:
                raise Fault(name, "a twin differs", f"{difference}: {wrong}\n{text}")

    def _read(self, name: str, which: str, tensor: ttsim.Tensor) -> Array:
        """The values of a tensor in float64, none of a large one; raises Fault where they cannot be read."""
        if tensor.logical_volume() > MOST_READ:
            return np.zeros(0)
        try:
            return np.asarray(tensor.to_numpy(), np.float64)
        except Exception as error:
            raise Fault(name, f"{type(error).__name__} of to_numpy", f"{which}: {error} ({_place_of(error)})") from None

    def _excused(self, step: Step) -> bool:
        """Whether a call may be wrong: a device that is not strict copies errors of ttnn, a strict one refuses."""
        device, names = self.state.device, dict(self.state.names)
        if device.strict:
            return False
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

    def _look(self, name: str) -> None:
        """Raises Fault unless every live tensor holds its values, and every block belongs to a buffer."""
        for shadow in self.state.shadows.values():
            if not shadow.tensor.is_allocated():
                raise Fault(name, "an input freed", f"{shadow.name} is gone")
            now = self._read(name, shadow.name, shadow.tensor)
            if now.shape != shadow.values.shape or not np.array_equal(now, shadow.values, equal_nan=True):
                raise Fault(name, "a tensor changed", f"{shadow.name}, which the call does not write")
        if self._wrong_blocks():
            gc.collect()
        if wrong := self._wrong_blocks():
            raise Fault(name, "wrong blocks", wrong)

    def _wrong_blocks(self) -> str:
        """The disagreements between the allocator, the buffers and the live tensors."""
        machine = self.state.device.machine
        live = {buffer.number: buffer for buffer in machine.memory.live()}
        owned = {shadow.tensor.buffer.number for shadow in self.state.shadows.values() if shadow.on_device}
        cached = {buffer.number for program in machine.program_cache.values() for buffer in program.resident}
        for number, buffer in live.items():
            if number not in owned | cached:
                kind = buffer.spec.buffer_type.name
                return f"the buffer of {buffer.name} in {kind} belongs to no tensor and no program"
        for number in owned - set(live):
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
                self.script_lines.append(f"del {name}")


def run(record: Record, kind: Kind = KINDS["sequences"]) -> Outcome:
    """Runs a sequence of a kind, or the recorded steps, until something does not hold."""
    generator = None if record.seed is None else np.random.default_rng(record.seed)
    opening = Choices(generator or record.opening)
    taken: dict[int, tuple[int, ...]] = {}
    fault = None
    going = Run(opening, kind)
    try:
        for number in record.steps if generator is None else range(kind.length):
            draft = Draft(generator or record.steps[number], going.state, number)
            try:
                going.step(draft)
            finally:
                taken[number] = tuple(draft.taken)
        going.close()
    except Fault as error:
        fault = error
    return Outcome(Record(None, tuple(opening.taken), taken), going.script, going.counts, fault)


def wrong_result(tensor: ttsim.Tensor, values: Array, expected: Expected, *, opaque: bool) -> tuple[str, str]:
    """What is wrong with a tensor, in a word or two and in full; empty if nothing is."""
    shape = expected.shape if expected.values is None else np.shape(expected.values)
    dtype = tensor.dtype.name.lower()
    read = tensor.logical_volume() <= MOST_READ
    if not opaque or expected.shape:
        for have, wanted in (
            (list(tensor.shape), list(shape)),
            (dtype, dtype if dtype in expected.dtypes or not expected.dtypes else " or ".join(expected.dtypes)),
            (tensor.layout.name, expected.layout),
            (tensor.memory_config(), expected.place),
        ):
            if wanted is not None and have != wanted:
                return "a wrong shape", f"{have} instead of {wanted}"
    if read and not opaque and values.shape != tuple(tensor.shape):
        return "a wrong array", f"{values.shape} instead of {list(tensor.shape)}"
    if dtype in ("bfloat16", "float32"):  # the groups of block floats differ
        stored = values.astype(np.float32)
        if dtype == "bfloat16":
            stored = (stored.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        if not np.array_equal(stored, values, equal_nan=True):
            return "numbers that its data type does not have", dtype
    if read and not opaque and expected.values is not None:
        return "wrong values", wrong_values(values, expected)
    return "", ""


def wrong_values(values: Array, expected: Expected) -> str:
    """What is wrong with the values of a tensor; empty if nothing is."""
    wanted = np.asarray(expected.values, np.float64)
    if values.size != wanted.size:
        return f"an array of {values.shape} instead of {wanted.shape}"
    values = values.reshape(wanted.shape)
    bound = np.broadcast_to(np.asarray(expected.bound, np.float64), wanted.shape)
    with np.errstate(all="ignore"):
        near = (np.abs(values - wanted) <= bound) | (values == wanted) | np.isposinf(bound)
    near |= np.isnan(values) & np.isnan(wanted)
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


def _place_of(error: BaseException) -> str:
    """The last file and line of an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"


SECONDS: Final = 60.0


def shrunk(first: Outcome, again: Callable[[Record], Outcome], *, seconds: float = SECONDS) -> Outcome:
    """The simplest outcome with the same kind of fault that is reached in the given time; ``again`` runs a record."""
    best, end = first, time.monotonic() + seconds
    simpler = _simpler(best.record)
    while time.monotonic() < end and (record := next(simpler, None)) is not None:
        outcome = again(record)
        if same_fault(outcome, first) and _size(outcome.record) < _size(best.record):
            best, simpler = outcome, _simpler(outcome.record)
    return best


def same_fault(outcome: Outcome, other: Outcome) -> bool:
    """Whether both show the same fault."""
    a, b = outcome.fault, other.fault
    return a is not None and b is not None and (a.operation, a.kind) == (b.operation, b.kind)


def _size(record: Record) -> tuple[int, int, tuple[int, ...]]:
    """Smaller is simpler: fewer steps, fewer choices, lower choices."""
    choices = (*record.opening, *chain.from_iterable(record.steps.values()))
    return len(record.steps), len(choices), choices


def _simpler(record: Record) -> Iterator[Record]:
    """Simpler records, the boldest first: without half of the steps, a fourth, ..., and with lower choices."""
    numbers = list(record.steps)
    size = len(numbers) // 2
    while size:
        for start in range(len(numbers) - size - 1, -1, -size):  # the last step, which shows the fault, stays
            left = numbers[:start] + numbers[start + size :]
            yield replace(record, steps={number: record.steps[number] for number in left})
        size //= 2
    yield from (replace(record, opening=choices) for choices in _lower(record.opening))
    for number in reversed(numbers):
        yield from (
            replace(record, steps={**record.steps, number: choices}) for choices in _lower(record.steps[number])
        )


def _lower(choices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Lower choices: some of them 0, or one of them half as large or smaller by one."""
    for length in (4, 2, 1):
        for place in range(len(choices) - length + 1):
            if any(choices[place : place + length]):
                yield (*choices[:place], *(0,) * length, *choices[place + length :])
    for place, choice in enumerate(choices):
        for lower in {choice // 2, choice - 1} - {0, -1}:
            yield (*choices[:place], lower, *choices[place + 1 :])


def check(seed: int, index: int, *, kind: str = "sequences") -> Finding:
    """Makes a sequence; a fault is shown by the shortest script that is found."""
    again = partial(run, kind=KINDS[kind])
    outcome = again(Record((seed, index)))
    if outcome.fault is None:
        return Finding(outcome="right", calls=outcome.counts)
    shortest = shrunk(outcome, again)
    return Finding(outcome="fault", text=str(shortest.fault), again=shortest.script, calls=outcome.counts)
