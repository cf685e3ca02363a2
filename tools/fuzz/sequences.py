"""Runs a sequence: draws its steps, makes the calls, and looks at everything after each of them."""

import gc
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final

import numpy as np

import ttsim
from device.numbers.formats import Array
from tools.fuzz.finding import MEMORIES, Finding, block_tables, place_of, unreadable
from tools.random_calls.drafts import MOST_READ, PRELUDE, Choices, Draft, Expected, Shadow, State, Step
from tools.random_calls.operations import OPERATIONS, drawn_name
from tools.random_calls.tensors import image

DEVICES: Final = ("wormhole_n150", "blackhole_p150")
SMALL_SIZES: Final = (32768, 32768, 32768, 16384, 65536, 8192, 1024, 0)
LARGEST: Final = 1e30  # tensors of larger numbers, infinities or NaN take no part in what follows
MOST_LIVE: Final = {True: 9, False: 3}  # tensors on the device, and on the host
LENGTHS: Final = {"calls": 2, "exact": 2, "sequences": 20}  # steps by kind; of the first two an image and a convolution


class Fault(Exception):  # noqa: N818 - what a run finds, not raised to a user
    """Something does not hold in an operation; its kind, in a word or two, is the same in all sequences."""

    def __init__(self, operation: str, kind: str, text: str) -> None:
        super().__init__(f"{operation}: {kind}: {text}")
        self.operation, self.kind = operation, kind


def opening(kind: str, choices: Choices) -> str:
    """The settings of a device for a sequence of a kind, as text."""
    small, strict, values = SMALL_SIZES[0], True, "exact" if kind == "exact" else "fast"
    if kind == "sequences":
        small, strict = choices.pick(SMALL_SIZES), choices.chance(0.75)
        values = "exact" if choices.chance(0.3) else "fast"
    return f'spec="{choices.pick(DEVICES)}", l1_small_size={small}, strict={strict}, values="{values}"'


class Run:
    """One run of a sequence on a device of its own."""

    def __init__(self, settings: str) -> None:
        self.script_lines = [f"{PRELUDE}device = ttsim.open_device({settings})"]
        names: dict[str, Any] = {}
        exec(self.script_lines[0], names)
        self.state = State(names)
        self.before = block_tables(self.state.device)
        self.counts: Counter[str] = Counter()  # how often calls ended in which way
        self.accepted: Counter[str] = Counter()  # how often each operation was accepted

    @property
    def script(self) -> str:
        """All calls as Python that can be pasted."""
        return "\n".join(self.script_lines) + "\n"

    def carry_out(self, name: str, step: Step | None) -> None:
        """Makes the call of a step and looks at the results; raises Fault."""
        if step is None:
            self.counts["none"] += 1
            return
        names = self.state.names
        self.script_lines.append(step.text)
        outcome = self._call(name, step)
        self.counts[outcome] += 1
        if outcome == "right":
            self.accepted[name] += 1
            if step.contradictory and self.state.device.strict:
                raise Fault(name, "accepted", f"{step.contradictory} on a strict device")
            self._take(name, step)
            # what a device that is not strict returns of a contradictory call is nobody's
            dropped = set(re.findall(r"\bt\d+[a-z]*\b", step.text)) if step.contradictory else set()
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
        for on_device, most in MOST_LIVE.items():  # the oldest tensors are dropped where there are many
            live = [shadow.name for shadow in self.state.shadows.values() if shadow.on_device == on_device]
            for old in live[: max(0, len(live) - most)]:
                del self.state.shadows[old], names[old]
                self.script_lines.append(f"del {old}")

    def close(self) -> None:
        """Frees everything; raises Fault if something stays."""
        device = self.state.device
        for tensors in (self.state.names, self.state.shadows):
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
        except ttsim.TTSimError as error:
            if wrong := unreadable(str(error)):
                raise Fault(name, "an unreadable error", wrong) from None
            no_room = isinstance(error, ttsim.OutOfMemoryError | ttsim.CircularBufferError)
            return "does not fit" if no_room else "refused"
        except Exception as error:
            raise Fault(name, f"undocumented {type(error).__name__}", f"{error} ({place_of(error)})") from None
        return "right"

    def _take(self, name: str, step: Step) -> None:
        """Checks the results of an accepted call, and gives them shadows."""
        state = self.state
        for fact, answer in step.facts.items():
            said = state.names.pop(fact)
            if (list(said) if isinstance(answer, list) else said) != answer and not self._excused(step):
                raise Fault(name, "a wrong answer", f"{said} instead of {answer}")
        for result, expect in step.results.items():
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
            self._share(name, tensor, values, written=result in state.shadows)
            opaque = result in step.opaque or values.size != tensor.logical_volume()
            wild = not (np.abs(values) < LARGEST).all()
            state.shadows[result] = Shadow(result, tensor, values, opaque or wild)

    def _share(self, name: str, tensor: ttsim.Tensor, values: Array, *, written: bool) -> None:
        """Updates the shadows of tensors that share the buffer of a result."""
        for other in list(self.state.shadows.values()):
            shares = other.on_device and other.tensor._storage is tensor._storage
            if not shares or other.tensor.logical_volume() > MOST_READ:
                continue
            if written and other.values.size > values.size:  # refused: what lies around is not simulated
                del self.state.shadows[other.name], self.state.names[other.name]
            elif other.values.size != values.size:  # the same tiles with more or fewer rows
                other.values = self._read(name, other.name, other.tensor)
            elif written:
                other.values = values.reshape(other.values.shape)

    def _read(self, name: str, which: str, tensor: ttsim.Tensor) -> Array:
        """The values of a tensor in float64, none of a large one; raises Fault where they cannot be read."""
        if tensor.logical_volume() > MOST_READ:
            return np.zeros(0)
        try:
            return np.asarray(tensor.to_numpy(), np.float64)
        except Exception as error:
            raise Fault(name, f"{type(error).__name__} of to_numpy", f"{which}: {error} ({place_of(error)})") from None

    def _excused(self, step: Step) -> bool:
        """Whether a call may be wrong: a device that is not strict copies errors of ttnn, a strict one refuses."""
        device, names = self.state.device, dict(self.state.names)
        if device.strict:
            return False
        device.strict = True
        try:
            exec(step.text, names)
        except Exception as error:
            return isinstance(error, ttsim.TTSimError)
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


def wrong_result(tensor: ttsim.Tensor, values: Array, expected: Expected, *, opaque: bool) -> tuple[str, str]:
    """What is wrong with a tensor, in a word or two and in full; empty if nothing is."""
    shape = expected.shape if expected.values is None else np.shape(expected.values)
    dtype = tensor.dtype.name.lower()
    read = tensor.logical_volume() <= MOST_READ and not opaque
    if not opaque or expected.shape:
        for have, wanted in (
            (list(tensor.shape), list(shape)),
            (dtype, dtype if dtype in expected.dtypes or not expected.dtypes else " or ".join(expected.dtypes)),
            (tensor.layout.name, expected.layout),
            (tensor.memory_config(), expected.place),
        ):
            if wanted is not None and have != wanted:
                return "a wrong shape", f"{have} instead of {wanted}"
    if read and values.shape != tuple(tensor.shape):
        return "a wrong array", f"{values.shape} instead of {list(tensor.shape)}"
    if dtype in ("bfloat16", "float32"):  # the groups of block floats differ
        stored = values.astype(np.float32)
        if dtype == "bfloat16":
            stored = (stored.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        if not np.array_equal(stored, values, equal_nan=True):
            return "numbers that its data type does not have", dtype
    return ("wrong values", wrong_values(values, expected)) if read and expected.values is not None else ("", "")


def wrong_values(values: Array, expected: Expected) -> str:
    """What is wrong with the values of a tensor; empty if nothing is."""
    wanted = np.asarray(expected.values, np.float64)
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
    if expected.norm is not None and near.size >= 32:
        with np.errstate(over="ignore"):  # of squares beyond float64, which have no relative error
            size, error = np.linalg.norm(wanted), np.linalg.norm(values - wanted)
        if 0 < size < inf and error > expected.norm * size:
            return f"relative L2 {error / size:.3g} is above {expected.norm:.3g}"
    return ""


@dataclass(slots=True)
class Outcome:
    """The result of a sequence."""

    script: str  # The calls as Python
    counts: Counter[str] = field(default_factory=Counter)  # How often calls ended in which way
    fault: Fault | None = None  # What does not hold; None if everything does
    steps: list[int] = field(default_factory=list)  # The numbers of the steps


def run(seed: int, index: int, kind: str, steps: Sequence[int]) -> Outcome:
    """Runs steps of a sequence until something does not hold; a step is drawn the same whether others run or not."""
    going = Run(opening(kind, Choices(np.random.default_rng([seed, index]))))
    fault, taken = None, list[int]()
    try:
        for number in steps:
            taken.append(number)
            draft = Draft(np.random.default_rng([seed, index, number]), going.state, number)
            if kind == "sequences":
                name = drawn_name(draft) if going.state.shadows else "from_numpy"
                step = OPERATIONS[name](draft)
            else:
                name = "image" if number == 0 else draft.pick(("conv_transpose2d", "conv_transpose2d", "conv2d"))
                step = image(draft) if number == 0 else OPERATIONS[name](draft)
            going.carry_out(name, step)
            step = None  # else the step would keep arrays alive
        going.close()
    except Fault as error:
        fault = error
    return Outcome(going.script, going.counts, fault, taken)


def shortened(seed: int, index: int, kind: str, first: Outcome) -> Outcome:
    """The same fault without the steps that it does not need."""
    best, fault = first, first.fault
    for number in first.steps[-2::-1]:
        again = run(seed, index, kind, [step for step in best.steps if step != number])
        if fault and again.fault and (again.fault.operation, again.fault.kind) == (fault.operation, fault.kind):
            best = again
    return best


def check(seed: int, index: int, *, kind: str = "sequences") -> Finding:
    """Makes a sequence; a fault is shown by a script that is as short as leaving steps out makes it."""
    outcome = run(seed, index, kind, range(LENGTHS[kind]))
    if outcome.fault is None:
        return Finding(outcome="right", calls=outcome.counts)
    shortest = shortened(seed, index, kind, outcome)
    return Finding(outcome="fault", text=str(shortest.fault), again=shortest.script, calls=outcome.counts)
