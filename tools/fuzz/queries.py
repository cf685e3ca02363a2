"""Queries of memory beside the real library's own planner: single calls, and chains of calls on states of memory.

Every call is one of `tools.random_calls`, of tensors up to the size of a small network's; single calls are often in
another form (`tools.random_calls.variations`). The real library captures the call on a mock device: without dispatch,
or on top of what the chain has placed.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

import ttsim
from device.errors import TTSimError
from device.memory import layouts
from device.memory.memory_config import BufferType
from device.numbers.formats import round_up
from tools.fuzz.finding import Finding, place_of
from tools.fuzz.real_library import RealLibrary, real_library
from tools.fuzz.sequences import DEVICES
from tools.random_calls import device_calls
from tools.random_calls.drafts import PRELUDE, Choices, Draft, Shadow, State, Step
from tools.random_calls.operations import OPERATIONS, drawn_name
from tools.random_calls.tensors import image
from tools.random_calls.variations import varied
from ttsim.runtime.queried import AllocationRecord, MockAllocatorState
from ttsim.runtime.tensor_copies import tensor_like
from ttsim.runtime.types.tensor_spec import TensorSpec

Answer = dict[str, Any]

# Functions that place nothing, or whose results are files, hosts' tensors or torch's
_LEFT_OUT: Final = ("as_tensor", "from_torch", "deallocate", "command_queue", "copy.copy", "dump_tensor", "from_device")
NAMES: Final = tuple(
    name
    for name, operation in OPERATIONS.items()
    if operation.draw.__module__ != device_calls.__name__ and name not in _LEFT_OUT
)
SMALL_SIZES: Final = (32768, 32768, 16384, 65536)
SIDES: Final = (32, 64, 96, 128, 192, 256, 320, 384, 1, 2, 3, 7, 8, 16, 24, 33, 40, 50, 100, 160, 255)
MOST_ELEMENTS: Final = 2_000_000
TENSORS, ATTEMPTS, LENGTH = 3, 8, 10  # tensors before a call, draws until there is one; calls of a chain
MOST_LIVE: Final = 7  # tensors of a chain
ASKED_AGAIN: Final = 8  # times, where answers differ
WAVERS: Final = "the real library wavers"
WRAPPED: Final = 1 << 60  # peaks of a call that frees what was there before wrap around in the real library


class LargeDraft(Draft):
    """The choices of a step of larger tensors, of integers more often."""

    def data_type(self, *, rare: float = 0.1) -> str:
        """A data type: floats, and integers."""
        return super().data_type(rare=rare)

    def shape(self) -> tuple[int, ...]:
        """A shape of one to six sides."""
        rank = self.pick((4, 4, 4, 4, 3, 3, 2, 2, 5, 6, 1))
        sides = [self.pick((1, 1, 1, 2, 3, 4)) for _ in range(rank - 2)]
        sides += [self.pick(SIDES) for _ in range(min(rank, 2))]
        if rank == 4 and self.chance(0.35):
            rows = self.pick((64, 256, 900, 1024, 3136, 4096, 12288))
            sides = [1, 1, rows, self.pick((8, 16, 32, 64, 128, 256))]
        while prod(sides) > MOST_ELEMENTS:
            sides[int(np.argmax(sides))] = max(sides) // 2
        return tuple(sides)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as both libraries make it."""

    text: str  # Statements that name the results
    results: tuple[str, ...]
    arguments: tuple[str, ...]  # Names of the tensors on the device that the text uses
    made: str = ""  # Lines that make tensors first: on the host, and for a single call its arguments
    dropped: tuple[str, ...] = ()  # Tensors that are freed afterwards


@dataclass(slots=True)
class Scene:
    """A device, on which nothing is placed, and the tensors that calls may use."""

    device: ttsim.Device
    state: State
    made: dict[str, str] = field(default_factory=dict)  # The line that makes each tensor

    @classmethod
    def of(cls, spec: str, l1_small_size: int) -> "Scene":
        """A scene without tensors; the device is not strict, because the real library accepts its defects."""
        names: dict[str, Any] = {}
        exec(PRELUDE, names)
        device = ttsim.open_device(spec=spec, l1_small_size=l1_small_size, strict=False, values="off")
        names |= {"device": device, "numbers": lambda _seed, shape, _kind="": np.ones(shape, np.float32)}
        return cls(device, State(names))

    def add(self, name: str, tensor: ttsim.Tensor) -> None:
        """Gives calls a tensor."""
        self.state.names[name] = tensor
        self.state.shadows[name] = Shadow(name, tensor, np.broadcast_to(np.float64(1.0), tuple(tensor.shape)))

    def make(self, name: str, line: str) -> bool:
        """Whether a line makes a tensor, which takes no memory."""
        try:
            unplaced(lambda: exec(line, self.state.names))
        except TTSimError:
            return False
        self.made[name] = line
        if self.state.names[name].device() is not None:
            self.add(name, self.state.names[name])
        return True

    def like(self, spec: TensorSpec) -> ttsim.Tensor:
        """A tensor that takes no memory."""
        tensor: ttsim.Tensor = unplaced(lambda: tensor_like(spec, self.device))
        return tensor

    def result(self, text: str, results: Sequence[str]) -> layouts.TensorSpec | None:
        """The first result of a call; None for a refused one, and for one without, which is to be refused."""
        names = dict(self.state.names)
        if not results:
            return None
        with suppress(TTSimError):
            unplaced(lambda: exec(text, names))
            spec: layouts.TensorSpec = names[results[0]].spec
            return spec
        return None

    def used(self, text: str) -> tuple[str, ...]:
        """Names of the tensors on the device in a text."""
        words = re.findall(r"\bt\d+[a-z]*\b", text)
        return tuple(name for name in dict.fromkeys(words) if name in self.state.shadows)

    def op(self, call: Call, kept: list[str] | None = None) -> Callable[..., list[ttsim.Tensor]]:
        """The call as a function of a device and of its arguments; the results on a device are named in ``kept``."""

        def op(on: ttsim.Device, *tensors: ttsim.Tensor) -> list[ttsim.Tensor]:
            names = self.state.names | {"device": on} | dict(zip(call.arguments, tensors, strict=True))
            exec(call.text, names)
            on_device = [name for name in call.results if names[name].device() is not None]
            if kept is not None:
                kept[:] = on_device
            return [names[name] for name in on_device]

        return op


def unplaced(work: Callable[[], Any]) -> Any:
    """The result of a function that takes no memory of the device."""
    ttsim.graph.begin_graph_capture(ttsim.graph.RunMode.NO_DISPATCH)
    try:
        return work()
    finally:
        ttsim.graph.end_graph_capture()


def drawn(draft: Draft, name: str) -> Step | None:
    """A drawn call of an operation, which leaves all tensors in place."""
    with np.errstate(all="ignore"):
        step = OPERATIONS[name](draft)
    return None if step is None or step.frees or not step.results else step


def call_of(step: Step, draft: Draft) -> tuple[list[tuple[str, str]], str, tuple[str, ...]]:
    """The lines of a step that make its operands, by name; its call; and the names of the call's results."""
    operands = [(operand.name, operand.text) for operand in draft.operands]
    text = step.text.removeprefix("".join(line for _, line in operands))
    names = [name for name, _ in operands]
    results = tuple(name for name in step.results if name not in names or name == draft.target)
    return operands, text, results


# Single calls


def question(seed: int, index: int) -> tuple[str, Scene, Call | None]:
    """The name of an operation, and a call of it with the scene that has its arguments; None where none is drawn."""
    name = NAMES[index % len(NAMES)]
    draw = Choices(np.random.default_rng([seed, index]))
    scene = Scene.of(draw.pick(DEVICES), SMALL_SIZES[0])
    for number in range(TENSORS + 2 * ATTEMPTS):
        draft = LargeDraft(np.random.default_rng([seed, index, number]), scene.state, number)
        if number < TENSORS or not number % 2:
            step = image(draft, 0.3) if draft.chance(0.3) else OPERATIONS["from_numpy"](draft)
            if step is not None:
                scene.make(draft.name, step.text + "\n")
            continue
        try:
            step = drawn(draft, name)
        except TTSimError:
            continue
        if step is None:
            continue
        operands, text, results = call_of(step, draft)
        if not all(scene.make(*operand) for operand in operands):
            continue
        made = {name: line for name, line in scene.made.items() if re.search(rf"\b{name}\b", text)}
        text, made = varied(text, made, draft, partial(scene.result, text, results))
        if all(scene.make(*line) for line in made.items()):
            return name, scene, Call(text, results, scene.used(text), "".join(made.values()))
    return name, scene, None


def check_call(seed: int, index: int, *, real: str) -> Finding:
    """A call whose constraints are asked of both libraries, and whose runtime is that of its estimate."""
    name, scene, call = question(seed, index)
    with scene.device:
        if call is None:
            return Finding(outcome="none drawn")
        device = scene.device.spec.name
        again = f"# {name} on {device}\n{call.made}{call.text}"
        step = {"made": call.made, "text": call.text, "arguments": [], "results": call.results, "dropped": []}
        steps = {"l1_small_size": SMALL_SIZES[0], "placed": False, "steps": [step]}
        library = real_library(real, device)
        answers = library.answers(steps)
        if answers is None:
            return Finding(outcome="the real library ended")
        if "unmade" in answers[0] or answers[0].get("kind") == "absent":
            return Finding(outcome="not in the real library")
        try:
            ours = constraints(scene, call)
            text = difference(answers[0], ours)
            if text and answers_so_too(library, steps, 0, ours):
                return Finding(outcome=WAVERS)
            text = text or untimely(scene, call)
        except Exception as error:
            place = place_of(error)
            if place.startswith("<string>"):  # the text itself, as where it names fewer results than a call has
                text = difference(answers[0], {"error": str(error), "kind": type(error).__name__})
            else:
                text = f"undocumented {type(error).__name__}: {error} ({place})"
    if text:
        return Finding(outcome="fault", text=f"{name}: {text}", again=again)
    return Finding(outcome="refused alike" if "error" in answers[0] else "equal")


def answers_so_too(library: RealLibrary, steps: Answer, number: int, ours: Answer) -> bool:
    """Whether the real library gives ttsim's answer to a step when it is asked again.

    Some of its answers depend on memory that it does not initialize.
    """
    repeated = (library.answers(steps) for _ in range(ASKED_AGAIN))
    return any(answers and number < len(answers) and not difference(answers[number], ours) for answers in repeated)


def constraints(scene: Scene, call: Call) -> Answer:
    """What ttsim answers to a single call."""
    specs = [TensorSpec.of(scene.state.shadows[name].tensor.spec) for name in call.arguments]
    return answer_of(ttsim.graph.query_op_constraints(scene.op(call), scene.device, scene.device, *specs))


def untimely(scene: Scene, call: Call) -> str:
    """The difference between the runtime of a call and its estimate; empty for none."""
    specs = [TensorSpec.of(scene.state.shadows[name].tensor.spec) for name in call.arguments]
    response = ttsim.graph.query_op_runtime(scene.op(call), scene.device, scene.device, *specs)
    try:
        estimate = ttsim.estimate_cycles(scene.op(call), scene.device, *specs, device=scene.device).nanoseconds
    except TTSimError as error:
        alike = first_line(str(error)) == first_line(response.error_message or "")  # whose advice differs
        return "" if alike else f"an estimate is refused: {error}"
    return "" if response.runtime == round(estimate) else f"runtime {response.runtime} ns, estimate {estimate} ns"


# Chains


def chain(seed: int, index: int) -> tuple[Scene, int, list[Call], list[Answer]]:
    """A chain of calls with ttsim's answers, each on the state that the earlier ones left."""
    draw = Choices(np.random.default_rng([seed, index]))
    small = draw.pick(SMALL_SIZES)
    scene = Scene.of(draw.pick(DEVICES), small)
    state, records = MockAllocatorState(), dict[str, AllocationRecord]()
    calls, answers = list[Call](), list[Answer]()
    length, number = draw.between(3, LENGTH), 0
    while len(calls) < length and number < 4 * LENGTH:
        number += 1
        draft = LargeDraft(np.random.default_rng([seed, index, number]), scene.state, number)
        few = len(scene.state.shadows) < 2
        try:
            step = (image(draft) if draft.chance(0.4) else OPERATIONS["from_numpy"](draft)) if few else None
            step = step if few else drawn(draft, _name(draft))
        except TTSimError:
            continue
        if step is None:
            continue
        operands, text, results = call_of(step, draft)
        if not results:  # of arguments that contradict each other: if they pass, a tensor without a name would stay
            continue
        steps = [(line, (name,)) for name, line in operands] + [(text, results)]
        host = ""
        for line, named in steps:
            if line is not text and "device=device" not in line:
                exec(line, scene.state.names)
                host += line
                continue
            kept: list[str] = []
            call = Call(line, named, scene.used(line), host if line is text else "", _dropped(draft, scene, len(named)))
            answer, state = _placed(scene, call, state, kept, records)
            calls.append(call)
            answers.append(answer)
            if "error" in answer:
                return scene, small, calls, answers
    return scene, small, calls, answers


def _name(draft: Draft) -> str:
    """The name of an operation, drawn until it is one of these queries'."""
    while (name := drawn_name(draft)) not in NAMES:
        pass
    return name


def _dropped(draft: Draft, scene: Scene, results: int) -> tuple[str, ...]:
    """Tensors that are freed after a call: often one, and the oldest where there are many."""
    live = list(scene.state.shadows)
    many = max(0, len(live) + results - MOST_LIVE)
    one = [draft.pick(live)] if len(live) > 2 and draft.chance(0.3) else []
    return tuple(dict.fromkeys([*live[:many], *one]))


def _placed(
    scene: Scene, call: Call, state: MockAllocatorState, kept: list[str], records: dict[str, AllocationRecord]
) -> tuple[Answer, MockAllocatorState]:
    """What ttsim answers to a call on a state, and the state with what is kept; the scene gets the results."""
    specs = [TensorSpec.of(scene.state.shadows[name].tensor.spec) for name in call.arguments]
    ask = ttsim.graph.query_op_constraints_with_initial_state
    output = ask(scene.op(call, kept), scene.device, state, scene.device, *specs)
    answer, state = answer_of(output.response), output.new_state
    if "error" not in answer:
        placed = output.output_allocations
        answer["places"] = [[kind.name, start, size if start else 0] for kind, start, size in placed]
        specs = list(output.response.output_tensor_specs or ())
        for name, spec, record in zip(kept, specs, output.output_allocations, strict=True):
            if name not in call.arguments:
                scene.add(name, scene.like(spec))
                if record.address:  # as the allocator keeps it
                    unit = _alignment_bytes(scene.device, record.buffer_type)
                    records[name] = record._replace(size_per_bank=round_up(record.size_per_bank, unit))
    for name in call.dropped:
        records.pop(name, None)
        scene.state.shadows.pop(name, None)
    state = state.with_allocations(records.values())
    answer["state"] = {kind.name: [list(region) for region in regions] for kind, regions in state.regions.items()}
    return answer, state


def _alignment_bytes(device: ttsim.Device, kind: BufferType) -> int:
    """What sizes of buffers of a memory are rounded up to."""
    return device.spec.dram.alignment_bytes if kind is BufferType.DRAM else device.spec.l1.allocation_alignment_bytes


def check_chain(seed: int, index: int, *, real: str) -> Finding:
    """A chain whose answers and states are held against those of the real library."""
    try:
        scene, small, calls, ours = chain(seed, index)
    except Exception as error:
        return Finding(outcome="fault", text=f"undocumented {type(error).__name__}: {error} ({place_of(error)})")
    scene.device.close()
    device = scene.device.spec.name
    steps = [
        {name: getattr(call, name) for name in ("made", "text", "arguments", "results", "dropped")} for call in calls
    ]
    library, question_of_all = real_library(real, device), {"l1_small_size": small, "placed": True, "steps": steps}
    answers = library.answers(question_of_all)
    if answers is None:
        return Finding(outcome="the real library ended")
    compared = 0
    for number, (wanted, got) in enumerate(zip(answers, ours, strict=False)):
        if "unmade" in wanted or wanted.get("kind") == "absent":
            break
        if text := difference(wanted, got):
            if answers_so_too(library, question_of_all, number, got):
                return Finding(outcome=WAVERS, calls=Counter(equal=compared))
            lines = [f"{call.made}{call.text}\n# freed: {call.dropped}" for call in calls[: number + 1]]
            again = f"# on {device}, l1_small_size={small}\n" + "\n".join(lines)
            return Finding(outcome="fault", text=f"step {number}: {text}", again=again)
        compared += 1
    return Finding(outcome="equal" if compared else "not in the real library", calls=Counter(equal=compared))


# Answers


def answer_of(response: ttsim.graph.ConstraintQueryResponse) -> Answer:
    """A response in the words of the real library's process."""
    if response.error_message is not None:
        kind = "TypeError" if response.refusal == "argument" else str(response.refusal)
        return {"error": response.error_message, "kind": kind}
    specs = [described(spec) for spec in response.output_tensor_specs or ()]
    return {"usage": list(response.resource_usage), "specs": specs}


def described(spec: TensorSpec) -> Answer:
    """A spec in the words of the real library's process."""
    words: Answer = {name: list(getattr(spec, name)) for name in ("shape", "padded_shape")}
    words |= {name: str(getattr(spec, name)) for name in ("dtype", "layout")}
    return words | {"memory_config": re.sub(r",nd_shard_spec=.*$", ")", str(spec.memory_config))}


def first_line(text: str) -> str:
    """The reason of an error: no place in a source file, no running number of a program, no number of stray memory."""
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s*(TT_FATAL|TT_THROW|info:)", line)]
    text = re.sub(r"program \d+", "program N", lines[0]) if lines else ""
    text = re.sub(r"runtime args cannot be modified from \d+", "runtime args cannot be modified from N", text)
    return re.sub(r"\s+", " ", text).strip()


def difference(real: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """The first difference between two answers; empty for none.

    Of a TypeError, which the binding words, only the class counts; peaks that wrap around are not compared.
    """
    errors = [first_line(str(answer["error"])) if "error" in answer else None for answer in (real, ours)]
    if errors != [None, None]:
        if real.get("kind") == ours.get("kind") == "TypeError" or errors[0] == errors[1]:
            return ""
        return f"real {errors[0] or 'accepts'!r}, ours {errors[1] or 'accepts'!r}"
    for part in ("specs", "usage", "places", "state"):
        wanted, got = real.get(part), ours.get(part)
        if part in ours and wanted != got and not (part == "usage" and max(wanted or [0]) > WRAPPED):
            return f"{part}: real {_unlike(wanted, got)}, ours {_unlike(got, wanted)}"
    return ""


def _unlike(values: Any, others: Any) -> str:
    """The part of a list in which it differs from another of the same length."""
    pairs: Sequence[tuple[Any, Any]] = (
        list(zip(values, others, strict=True)) if isinstance(values, list) and len(values) == len(others) else []
    )
    return str(next((value for value, other in pairs if value != other and isinstance(value, list | dict)), values))
