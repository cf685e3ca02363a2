"""The answers of ttsim to one call on one device: the texts of every public view of the call."""

import gc
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

import ttsim
from tools.golden.calls import Call
from tools.random_calls.drafts import PRELUDE

Array = npt.NDArray[Any]
DIGITS: Final = 20  # of a hash, hexadecimal


def zeros(shape: Sequence[int]) -> Array:
    """float32 zeros that take no memory."""
    return np.broadcast_to(np.float32(0), tuple(shape))


def array_lines(array: Array) -> str:
    """Type, shape and hash of the bits of an array, and of each image of a batch, so that a difference can be located.

    All numbers are shown where there are at most eight.
    """
    rows = [f"[{index}] {_array_text(image)}" for index, image in enumerate(array)] if 1 < len(array) <= 8 else []
    return "\n".join([_array_text(array), *rows])


def _array_text(array: Array) -> str:
    bits = np.ascontiguousarray(array)
    shown = f" {bits.ravel().tolist()}" if bits.size <= 8 else ""
    return f"{bits.dtype} {list(bits.shape)} {_digest(bits.tobytes())}{shown}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def column_text(column: Sequence[Any]) -> str:
    """A column of figures as their sum and a hash, one of words as the different words and a hash of their order."""
    if all(isinstance(figure, int | float) for figure in column):
        return f"sum {sum(column)!r} hash {_digest(repr(list(column)).encode())}"
    words = list(dict.fromkeys(map(repr, column)))
    return f"{', '.join(words)} hash {_digest(repr([words.index(repr(figure)) for figure in column]).encode())}"


ROOT: Final = Path(__file__).resolve().parents[2]

# (pattern, what stands there instead)
REPLACED: Final = tuple(
    (re.compile(pattern, re.MULTILINE), instead)
    for pattern, instead in (
        (re.escape(str(ROOT)), "<project>"),  # where the clone lies
        (re.escape(tempfile.gettempdir()) + r"/golden-[A-Za-z0-9_]+", "<temporary>"),  # a command's own folder
        (re.escape(sys.prefix) + r"(?=/)", "<python>"),  # where Python lies
        (re.escape(sys.base_prefix) + r"(?=/)", "<python>"),  # where the Python of an environment lies
        (r"\bat 0x[0-9a-f]{6,}", "at <address>"),  # addresses of Python's objects
        (r"\bin \d+\.\d+s\b", "in <time> s"),  # how long pytest took
        (r"^ttsim compiles its loops .*\n?", ""),  # once on a machine
        # hashes of ttsim's sources, or of a plan in words that users do not see; digits alone are a figure
        (r"(?<![.\w])(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{16}(?:[0-9a-f]{48})?(?!\w)", "<hash>"),
    )
)


def plain(text: str) -> str:
    """A text without what differs from machine to machine or from run to run."""
    for pattern, instead in REPLACED:
        text = pattern.sub(instead, text)
    return text


MANY: Final = 17  # objects of a list from which on columns are hashed: more than the stages of an operation


def lines_of(value: Any) -> str:
    """Data of JSON as lines of text: the path of an object, then its figures and words.

    A list of many objects with equal keys, such as the cores of a device, is a line for each key: the sum and a hash
    of its column, so that the key at fault is found without a line for each core.
    """
    return "\n".join(_lines("", value))


def _lines(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        flat = {key: item for key, item in value.items() if _is_flat(item)}
        if flat or not value:
            yield f"{path or 'all'} {', '.join(f'{key}: {item!r}' for key, item in flat.items())}"
        for key, item in value.items():
            if key not in flat:
                yield from _lines(f"{path}.{key}" if path else str(key), item)
    elif _is_flat(value):
        yield f"{path} {value!r}"
    elif len(value) >= MANY and all(_is_row(row) and list(row) == list(value[0]) for row in value) and value[0]:
        yield f"{path} {len(value)} rows"
        yield from (f"{path}.{key} {column_text([row[key] for row in value])}" for key in value[0])
    else:
        for index, item in enumerate(value):
            yield from _lines(f"{path}[{index}]", item)


def _is_flat(value: Any) -> bool:
    """Whether a value is a figure, a word, or a list of these."""
    if isinstance(value, list):
        return not any(isinstance(item, Mapping | list) for item in value)
    return not isinstance(value, Mapping)


def _is_row(value: Any) -> bool:
    """Whether a value is an object of flat values."""
    return isinstance(value, Mapping) and all(map(_is_flat, value.values()))


Values = Literal["exact", "fast", "off"]
Aspects = dict[str, str]
SAME: Final = "as a strict device says"
READINGS_EVERY: Final = 10  # calls of a group of which one has all readings of its capture: they say the same again


def answers(call: Call, device: str, *, strict: bool, known: Aspects | None = None) -> Aspects:
    """The texts of a call without values.

    They are result or error, capture, peaks, memory, and where device operations ran report, explanation, tables,
    network; with the prefix "without dispatch: " what a capture without dispatch sees on a device of its own. ``known``
    are the answers of another device: if result or error, captures and memory are the same, one aspect says so instead
    of all.
    """
    aspects: Aspects = {}
    with opened(call, device, strict=strict) as simulated, ttsim.profile(simulated) as profile:
        names = namespace(simulated, random=False)
        aspects |= outcome(lambda: execute(call.given, names), named="given")
        if "error of given" not in aspects:
            aspects |= captured(call, names, ttsim.graph.RunMode.NORMAL)
            aspects["memory"] = memory(simulated)
    if known is not None and all(known.get(aspect) == text for aspect, text in aspects.items()):
        return {SAME: "yes"}
    if profile.ran:
        aspects |= reports(profile)
    with opened(call, device, strict=strict) as simulated:
        names = namespace(simulated, random=False)
        if "error of given" not in outcome(lambda: execute(call.given, names), named="given"):
            planned = captured(call, names, ttsim.graph.RunMode.NO_DISPATCH)
            aspects |= {f"without dispatch: {aspect}": text for aspect, text in planned.items()}
    return aspects


def computed(call: Call, device: str, values: Values, *, strict: bool) -> Aspects:
    """Hashes of the values of a call, or its error."""
    with opened(call, device, strict=strict, values=values) as simulated:
        text, names = f"{call.given}\n{call.text}", namespace(simulated, random=True)
        return outcome(lambda: execute(text, names), named=values, show=values_text)


def opened(call: Call, device: str, *, strict: bool, values: Values = "off") -> ttsim.Device:
    """A device for one call."""
    return ttsim.open_device(l1_small_size=call.l1_small_size, spec=device, values=values, strict=strict)


def namespace(device: ttsim.Device | None, *, random: bool) -> dict[str, Any]:
    """The names that the text of a call knows: those of random calls, and the arrays of recorded ones.

    Arrays are random, or zeros where values are off. ``normal(seed, *shapes, scales=...)`` gives float32 arrays of
    normal numbers, each times its scale (one array for a single shape, else a list), ``integers`` int32 numbers from 0
    to 99.
    """
    names: dict[str, Any] = {}
    exec(PRELUDE, names)

    def normal(seed: int, *shapes: Sequence[int], scales: Sequence[float] = ()) -> Any:
        rng, factors = np.random.default_rng(seed), scales or [1.0] * len(shapes)
        result = [
            (rng.standard_normal(shape) * scale).astype(np.float32) if random else zeros(shape)
            for shape, scale in zip(shapes, factors, strict=True)
        ]
        return result if len(result) > 1 else result[0]

    def integers(seed: int, shape: Sequence[int]) -> Array:
        return np.random.default_rng(seed).integers(0, 100, shape, dtype=np.int32)

    if not random:
        names["numbers"] = lambda seed, shape, kind="normal": zeros(shape)
    return names | {"ttnn": ttsim, "device": device, "normal": normal, "integers": integers}


def execute(text: str, names: dict[str, Any]) -> Any:
    """Runs statements; gives what they left in ``y``."""
    exec(compile(text, "call.py", "exec"), names)
    return names.get("y")


def outcome(run: Callable[[], Any], *, named: str, show: Callable[[Any], str] | None = None) -> Aspects:
    """The result of a function, or the whole error with its types; and the output, if any."""
    printed, errors = StringIO(), StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(errors):
            result = run()
        aspects = {} if named == "given" else {named: plain((show or described)(result))}
    except Exception as error:
        kinds = ", ".join(kind.__name__ for kind in type(error).__mro__ if kind is not object)
        aspects = {f"error of {named}": plain(f"{kinds}\n{error}")}
    for stream, written in (("printed", printed.getvalue()), ("warned", errors.getvalue())):
        text = plain(written)
        if text:  # of a sentence about the machine nothing is left
            aspects[f"{stream} by {named}"] = text
    return aspects


def captured(call: Call, names: dict[str, Any], mode: ttsim.graph.RunMode) -> Aspects:
    """The outcome of the text of a call, and the nodes of its capture."""
    ttsim.graph.begin_graph_capture(mode)
    try:
        aspects = outcome(lambda: execute(call.text, names), named="result")
    finally:
        nodes = ttsim.graph.end_graph_capture()
    aspects["capture"] = plain("\n".join(json.dumps(node) for node in nodes))
    graph = ttsim.graph
    aspects["peaks"] = f"{graph.extract_resource_usage_per_core(nodes)} {graph.extract_peak_L1_memory_usage(nodes)}"
    if mode is graph.RunMode.NORMAL and call.number % READINGS_EVERY == 0:
        aspects |= outcome(lambda: graph.extract_output_info(nodes), named="output info")
        aspects |= outcome(lambda: graph.pretty_format(nodes), named="formatted capture", show=str)
        aspects |= outcome(lambda: graph.extract_levelized_graph(nodes, 2), named="levelized capture", show=lines_of)
    return aspects


def reports(profile: ttsim.Profile) -> Aspects:
    """Every public view of what a profile saw, but for files; a view that fails is an answer, too."""
    report, network = cache(profile.report), cache(profile.network)
    views: dict[str, Callable[[], str]] = {
        "report": lambda: lines_of(json.loads(report().to_json())),
        "explanation": lambda: report().explain(),
        "table of 80 columns": lambda: report().table(80),
        "table of 160 columns": lambda: report().table(160),
        "network": lambda: str(network()),
        "network in JSON": lambda: lines_of(json.loads(network().to_json())),
    }
    aspects: Aspects = {}
    for aspect, view in views.items():
        aspects |= outcome(view, named=aspect, show=str)
    return aspects


def memory(device: ttsim.Device) -> str:
    """The contents of the memories of a device, and the number of cached programs."""
    gc.collect(0)
    kinds = (ttsim.BufferType.DRAM, ttsim.BufferType.L1, ttsim.BufferType.L1_SMALL)
    views = [f"{kind.name}: {ttsim.get_memory_view(device, kind)}" for kind in kinds]
    return plain("\n".join([f"programs: {device.num_program_cache_entries()}", *views]))


def described(result: object, *, values: bool = False) -> str:
    """A result as text: a tensor by its description and address, or by hashes of its values; several on lines."""
    if isinstance(result, tuple | list):
        return "\n".join(described(item, values=values) for item in result) or repr(result)
    if isinstance(result, set | frozenset):  # whose order changes from process to process
        return "\n".join(sorted(map(described, result))) or repr(result)
    if isinstance(result, ttsim.Tensor):
        return array_lines(result.cpu().to_numpy()) if values and result.is_allocated() else _tensor(result)
    if isinstance(result, np.ndarray):
        return array_lines(result) if values else f"array {result.dtype} {list(result.shape)}"
    if isinstance(result, ttsim.CycleReport):
        return result.explain()
    if isinstance(result, Mapping):
        return "\n".join(f"{key}: {described(item)}" for key, item in result.items())
    return repr(result)


values_text = partial(described, values=True)


def _tensor(tensor: ttsim.Tensor) -> str:
    text = f"tensor {list(tensor.shape)} padded {list(tensor.padded_shape)} {tensor.dtype} {tensor.layout}"
    if not tensor.is_allocated():
        return f"{text} freed"
    if not ttsim.is_tensor_storage_on_device(tensor):
        return f"{text} on the host"
    return f"{text} {tensor.memory_config()} at address {tensor.buffer_address()}"
