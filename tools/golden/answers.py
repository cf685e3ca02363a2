"""What ttsim says to one call on one device: the texts of every public view of it."""

import gc
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from typing import Any, Final, Literal

import numpy as np

import ttsim
from tools.golden.arrays import Numbers, array_lines
from tools.golden.calls import Call
from tools.golden.plain import lines_of, plain

Values = Literal["exact", "fast", "off"]
Aspects = dict[str, str]
SAME: Final = "as a strict device says"
READINGS_EVERY: Final = 10  # calls of a group of which one has all readings of its capture: they say the same again


def answers(call: Call, device: str, *, strict: bool, known: Aspects | None = None) -> Aspects:
    """The texts of a call without values.

    Args:
        call: What is asked.
        strict: Whether the device is strict.
        known: The answers of another device; if result or error, captures and memory are the same, reports are not made
            again, and one aspect says so instead of all.

    Returns:
        Result or error, capture, peaks, memory, and where device operations ran report, explanation, tables, network;
        with the prefix "without dispatch: " what a capture without dispatch sees on a device of its own.
    """
    found: Aspects = {}
    with opened(call, device, strict=strict) as simulated, ttsim.profile(simulated) as profile:
        names = namespace(simulated, random=False)
        found |= outcome(lambda: execute(call.given, names), named="given")
        if "error of given" not in found:
            found |= captured(call, names, ttsim.graph.RunMode.NORMAL)
            found["memory"] = memory(simulated)
    if known is not None and all(known.get(aspect) == text for aspect, text in found.items()):
        return {SAME: "yes"}
    if profile.ran:
        found |= reports(profile)
    return found | _planned(call, device, strict=strict)


def _planned(call: Call, device: str, *, strict: bool) -> Aspects:
    """What a capture without dispatch sees of a call on a device of its own."""
    with opened(call, device, strict=strict) as simulated:
        names = namespace(simulated, random=False)
        given = outcome(lambda: execute(call.given, names), named="given")
        if "error of given" in given:
            return {}
        found = captured(call, names, ttsim.graph.RunMode.NO_DISPATCH)
    return {f"without dispatch: {aspect}": text for aspect, text in found.items()}


def computed(call: Call, device: str, values: Values, *, strict: bool) -> Aspects:
    """Hashes of the values of a call, or its error."""
    with opened(call, device, strict=strict, values=values) as simulated:
        names = namespace(simulated, random=True)

        def run() -> Any:
            execute(call.given, names)
            return execute(call.text, names)

        return outcome(run, named=values, show=_values)


def opened(call: Call, device: str, *, strict: bool, values: Values = "off") -> ttsim.Device:
    """A device for one call."""
    return ttsim.open_device(l1_small_size=call.l1_small_size, spec=device, values=values, strict=strict)


def namespace(device: ttsim.Device, *, random: bool) -> dict[str, Any]:
    """The names that the text of a call knows."""
    numbers = Numbers(random=random)
    return {"ttnn": ttsim, "np": np, "device": device, "normal": numbers.normal, "integers": numbers.integers}


def execute(text: str, names: dict[str, Any]) -> Any:
    """Runs statements; gives what they left in ``y``."""
    exec(compile(text, "call.py", "exec"), names)
    return names.get("y")


def outcome(run: Callable[[], Any], *, named: str, show: Callable[[Any], str] | None = None) -> Aspects:
    """What something returns, or the whole error with its types; and what it prints, if anything."""
    printed, errors = StringIO(), StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(errors):
            result = run()
        found = {} if named == "given" else {named: plain((show or described)(result))}
    except Exception as error:
        kinds = ", ".join(kind.__name__ for kind in type(error).__mro__ if kind is not object)
        found = {f"error of {named}": plain(f"{kinds}\n{error}")}
    for stream, written in (("printed", printed.getvalue()), ("warned", errors.getvalue())):
        text = plain(written)
        if text:  # of a sentence about the machine nothing is left
            found[f"{stream} by {named}"] = text
    return found


def captured(call: Call, names: dict[str, Any], mode: ttsim.graph.RunMode) -> Aspects:
    """The outcome of the text of a call, and the nodes of its capture."""
    ttsim.graph.begin_graph_capture(mode)
    try:
        found = outcome(lambda: execute(call.text, names), named="result")
    finally:
        nodes = ttsim.graph.end_graph_capture()
    found["capture"] = plain("\n".join(json.dumps(node) for node in nodes))
    graph = ttsim.graph
    found["peaks"] = f"{graph.extract_resource_usage_per_core(nodes)} {graph.extract_peak_L1_memory_usage(nodes)}"
    if mode is graph.RunMode.NORMAL and call.number % READINGS_EVERY == 0:
        found |= outcome(lambda: graph.extract_output_info(nodes), named="output info")
        found |= outcome(lambda: graph.pretty_format(nodes), named="formatted capture", show=str)
        found |= outcome(lambda: graph.extract_levelized_graph(nodes, 2), named="levelized capture", show=lines_of)
    return found


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
    found: Aspects = {}
    for aspect, view in views.items():
        found |= outcome(view, named=aspect, show=str)
    return found


def memory(device: ttsim.Device) -> str:
    """What lies in the memories of a device, and how many programs it keeps."""
    gc.collect(0)
    kinds = (ttsim.BufferType.DRAM, ttsim.BufferType.L1, ttsim.BufferType.L1_SMALL)
    views = [f"{kind.name}: {ttsim.get_memory_view(device, kind)}" for kind in kinds]
    return plain("\n".join([f"programs: {device.num_program_cache_entries()}", *views]))


def described(result: object) -> str:
    """A result as text: a tensor by its description and address, several one on each line."""
    if isinstance(result, tuple | list):
        return "\n".join(described(one) for one in result) or repr(result)
    if isinstance(result, set | frozenset):  # whose order changes from process to process
        return "\n".join(sorted(described(one) for one in result)) or repr(result)
    if isinstance(result, ttsim.Tensor):
        return _tensor(result)
    if isinstance(result, np.ndarray):
        return f"array {result.dtype} {list(result.shape)}"
    if isinstance(result, ttsim.CycleReport):
        return result.explain()
    if isinstance(result, Mapping):
        return "\n".join(f"{key}: {described(one)}" for key, one in result.items())
    return repr(result)


def _tensor(tensor: ttsim.Tensor) -> str:
    text = f"tensor {list(tensor.shape)} padded {list(tensor.padded_shape)} {tensor.dtype} {tensor.layout}"
    if not tensor.is_allocated():
        return f"{text} freed"
    if not ttsim.is_tensor_storage_on_device(tensor):
        return f"{text} on the host"
    return f"{text} {tensor.memory_config()} at address {tensor.buffer_address()}"


def _values(result: object) -> str:
    """Hashes of the values of all tensors and arrays of a result; other results as text."""
    if isinstance(result, tuple | list):
        return "\n".join(_values(one) for one in result) or repr(result)
    if isinstance(result, ttsim.Tensor) and result.is_allocated():
        return array_lines(result.cpu().to_numpy())
    if isinstance(result, np.ndarray):
        return array_lines(result)
    return described(result)
