"""Recorded runs of the real ttnn.conv_transpose2d: reading them, remaking their inputs, and their planner's words."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import ttsim
from ops.planners.conv.arguments import CONV_TRANSPOSE2D, ConvCall
from tools.golden.answers import execute, namespace, opened
from tools.golden.calls import DEVICE_OF, recorded_call
from ttsim.api.conv import ConvTranspose2d, operand
from ttsim.runtime.settings import Values
from ttsim.runtime.tensor import Tensor

Floats = npt.NDArray[np.float32]
Record = Mapping[str, Any]

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
PEAK_FIELDS = ("peak_cb", "peak_l1", "peak_total")


@dataclass(slots=True)
class Outcome:
    """The run of one case in ttsim, under the record's own keys; `error` is None when the call returned."""

    fields: dict[str, Any] = field(default_factory=dict)
    values: Floats | None = None
    error: str | None = None


def read_records(source: Path = DATA) -> list[Record]:
    """All records of a file, or of the one in a directory, in file order."""
    path = source
    if source.is_dir():
        named = source / "recorded_runs.jsonl.gz"
        path = named if named.exists() else source / "cases.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        try:
            return [json.loads(line) for line in lines]
        except EOFError as error:
            raise ValueError(f"{path}: the file is cut short") from error


class Outputs:
    """The recorded output arrays of a directory, read one by one."""

    def __init__(self, directory: Path = DATA) -> None:
        """Opens the archive beside the records."""
        name = "recorded_outputs.npz" if (directory / "recorded_outputs.npz").exists() else "outputs.npz"
        self._archive = np.load(directory / name)

    def of(self, record: Record) -> Floats | None:
        """The recorded output as float32 (bfloat16 is stored as the upper half of its bits), None without one."""
        key = record.get("output_array")
        if key is None:
            return None
        stored: npt.NDArray[Any] = self._archive[key]
        if stored.dtype == np.uint16:
            stored = (stored.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(stored, dtype=np.float32)


def pair(value: Any) -> list[int]:
    """An int as [int, int], a sequence as a list."""
    return [value, value] if isinstance(value, int) else list(value)


def inputs(record: Record) -> list[Floats]:
    """x, w and b of a run: float32 of the precision that the call had."""
    names, case = namespace(None, random=True), record["case"]
    execute(recorded_call(record, 0).given.partition("\n")[0], names)
    weights = case.get("weights_in_dtype")
    return [
        names[name] if dtype == "float32" else names[name].astype(ml_dtypes.bfloat16).astype(np.float32)
        for name, dtype in (("x", case.get("input_dtype")), ("w", weights), ("b", weights))
    ]


def run(record: Record, values: Values = "exact") -> Outcome:
    """Makes the recorded call on a fresh simulated device; without values where none were recorded."""
    outcome, call = Outcome(), recorded_call(record, 0)
    values = values if record["mode"] == "sim" else "off"
    mode = ttsim.graph.RunMode.NO_DISPATCH if record["mode"] == "mock" else ttsim.graph.RunMode.NORMAL
    # Records tell what the real library did, wrong results too: the device is not strict.
    with opened(call, DEVICE_OF[record["arch"]], strict=False, values=values) as device:
        names = namespace(device, random=True) | {"normal": lambda *_, **__: inputs(record)}
        try:
            execute(call.given, names)
            ttsim.graph.begin_graph_capture(mode)
            try:
                output, size, (weight, bias) = execute(call.text, names)
            finally:
                outcome.fields.update(read_trace(ttsim.graph.end_graph_capture()))
            outcome.fields.update(
                output=describe(output),
                weight_prepared=describe(weight),
                bias_prepared=None if bias is None else describe(bias),
                output_hw=list(size),
            )
            if values != "off":
                outcome.values = np.array(output.cpu().to_list(), dtype=np.float32)
        except (RuntimeError, ValueError, TypeError) as error:
            outcome.error = str(error)
    return outcome


def describe(tensor: Tensor) -> dict[str, Any]:
    """A tensor's spec in the record's words."""
    words = {name: str(getattr(tensor, name)) for name in ("dtype", "layout")}
    shapes = {name: list(getattr(tensor, name)) for name in ("shape", "padded_shape")}
    return {**shapes, **words, "memory_config": str(tensor.memory_config())}


def read_trace(trace: Any) -> dict[str, Any]:
    """Device operations, circular buffers, buffers and peaks of a captured graph, in the record's words."""
    fields: dict[str, Any] = {"ops": [], "cbs": [], "buffers": []}
    stack: list[str] = []
    for node in trace:
        kind, parameters = node["node_type"], node.get("params") or {}
        if kind == "function_start":
            stack.append(parameters["name"])
            fields["ops"].append(parameters["name"])
        elif kind == "function_end" and stack:
            stack.pop()
        elif kind == "circular_buffer_allocate":
            op, cores = stack[-1] if stack else None, parameters["core_range_set"]
            fields["cbs"].append({**parameters, "op": op, "cores": cores})
        elif kind in ("buffer_allocate", "buffer_deallocate"):
            fields["buffers"].append({**parameters, "ev": kind.removeprefix("buffer_")})
    usage = ttsim.graph.extract_resource_usage_per_core(trace)
    return {**fields, "resource_per_core": {key: getattr(usage, key) for key in PEAK_FIELDS}}


def planner_arguments(case: Mapping[str, Any], arch: str = "wh") -> ConvCall:
    """The arguments that `plan_convolution` takes: those of the call, with weights and bias as they were before."""
    call = recorded_call({"case": {**case, "prep": None}, "arch": arch, "mode": "plan"}, 0)
    text = call.text.replace("ttnn.conv_transpose2d(", "planned(", 1)
    with opened(call, DEVICE_OF[arch], strict=False) as device:
        names = namespace(device, random=False) | {"planned": ConvTranspose2d}
        execute(call.given, names)
        checked: ConvTranspose2d = execute(text, names)
        bias = None if checked.bias_tensor is None else operand(checked.bias_tensor)
        return checked.arguments(
            CONV_TRANSPOSE2D,
            out=checked.dtype,
            slices=checked.dram_slice_config,
            input=operand(checked.input_tensor),
            weight=operand(checked.weight_tensor),
            bias=bias,
            output_padding=tuple(checked.output_padding),
            mirror_kernel=checked.mirror_kernel,
            memory_config=checked.memory_config,
        )
