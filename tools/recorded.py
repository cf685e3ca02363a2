"""Repeat recorded runs of the real ttnn.conv_transpose2d on the simulated device and count what agrees.

usage: python -m tools.recorded [DIR] [--only SUBSTRING] [--show N]

DIR (default: tests/data) holds the records and their outputs; tests/data/README.md explains the fields.
"""

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import ttsim
from ops.planners.conv.arguments import CONV_TRANSPOSE2D, ConvCall
from tools.command import run_tool, tool_parser
from tools.golden.answers import execute, namespace, opened
from tools.golden.calls import DEVICE_OF, recorded_call
from ttsim.api.conv import ConvTranspose2d, operand
from ttsim.report.accuracy import measure
from ttsim.runtime.settings import Values
from ttsim.runtime.tensor import Tensor

Floats = npt.NDArray[np.float32]
Record = Mapping[str, Any]

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
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


ASPECTS = ("values", "specs", "ops", "cbs", "buffers", "peaks", "error")
CB_OPERATIONS = ("HaloDeviceOperation", "Conv2dDeviceOperation", "MatmulDeviceOperation")
BUFFER_FIELDS = ("ev", "type", "address", "size", "page_size", "layout", "max_size_per_bank")
LEAST_PCC = 0.999


def compare(record: Record, outcome: Outcome, recorded: Floats | None) -> dict[str, str | None]:
    """The aspects of a run that can be compared, each with what is wrong or None."""
    if "error" in record:
        want = reason(record["error"])
        equal = outcome.error is not None and want[:60] in plain(outcome.error)
        return {"error": None if equal else f"want {want!r}, got {outcome.error!r}"}
    if outcome.error is not None:
        return {} if record.get("defect") else {"error": outcome.error}
    result = {
        "ops": difference(device_operations(record), device_operations(outcome.fields)),
        "cbs": difference(circular_buffers(record), circular_buffers(outcome.fields)),
        "buffers": buffer_difference(record["buffers"], outcome.fields["buffers"]),
    }
    if record.get("resource_per_core"):
        want_peaks = {key: record["resource_per_core"][key] for key in PEAK_FIELDS}
        result["peaks"] = difference(want_peaks, outcome.fields["resource_per_core"])
    if not record.get("defect"):
        result["specs"] = difference(specs(record), specs(outcome.fields))
        if recorded is not None:
            result["values"] = value_difference(outcome.values, recorded)
    return result


def value_difference(have: Floats | None, recorded: Floats) -> str | None:
    """The difference of the values, bit for bit."""
    if have is None or have.shape != recorded.shape:
        return f"shape {None if have is None else have.shape}, want {recorded.shape}"
    same = np.ascontiguousarray(have).view(np.uint32) == np.ascontiguousarray(recorded).view(np.uint32)
    return None if same.all() else f"{1 - same.mean():.2%} of the elements differ"


def distance_from_float64(record: Record, have: Floats, definition: npt.NDArray[np.float64]) -> str | None:
    """The error of values that need not be exact: they must follow float64 as closely as the recorded ones do."""
    least = min(LEAST_PCC, record["accuracy"]["pcc"] - (1 - LEAST_PCC))
    pcc = measure(have, definition).pcc
    return None if pcc >= least else f"PCC {pcc:.6f} with float64, at least {least:.6f} is wanted"


def reason(text: str) -> str:
    """The first line of an error's reason, without the source position."""
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s*(TT_FATAL|TT_THROW|info:)", line)]
    return plain(lines[0]) if lines else ""


def plain(text: str) -> str:
    """One line, and no running number of a program."""
    return re.sub(r"\s+", " ", re.sub(r"program \d+", "program N", text)).strip()


def device_operations(fields: Mapping[str, Any]) -> list[str]:
    """Names of the device programs in order."""
    return [name.strip() for name in fields.get("ops") or () if name.strip().endswith("DeviceOperation")]


def circular_buffers(fields: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The circular buffers of the operations that compute."""
    return [
        (row["op"], int(row["size"]), int(row["address"]), row["cores"], str(row["globally_allocated"]))
        for row in fields["cbs"]
        if row.get("kind", "circular_buffer_allocate") == "circular_buffer_allocate" and row["op"] in CB_OPERATIONS
    ]


def specs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Output, prepared weight and prepared bias; the part of a memory config that names later features is cut."""
    result = {"output_hw": fields["output_hw"]}
    for key in ("output", "weight_prepared", "bias_prepared"):
        info = fields.get(key)
        if info is not None:
            result[key] = {name: info[name] for name in ("shape", "padded_shape", "dtype", "layout")}
            result[key]["memory_config"] = re.sub(r",nd_shard_spec=.*$", ")", info["memory_config"])
    return result


def difference(want: Any, got: Any) -> str | None:
    """None if equal, else the first thing that differs."""
    if want == got:
        return None
    if isinstance(want, dict):
        key = next(key for key in want if want[key] != got.get(key))
        return f"{key}: want {want[key]}, got {got.get(key)}"
    at = next((i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b), min(len(want), len(got)))
    return f"{len(want)} wanted, {len(got)} got; at {at} want {want[at : at + 1]}, got {got[at : at + 1]}"


def buffer_difference(want: list[dict[str, Any]], got: list[dict[str, Any]]) -> str | None:
    """The `difference` of the fields that a recorded buffer has."""
    rows = [{key: str(row[key]) for key in BUFFER_FIELDS if row.get(key) is not None} for row in want]
    have = [
        {key: str(row.get(key)) for key in (rows[i] if i < len(rows) else BUFFER_FIELDS)} for i, row in enumerate(got)
    ]
    return difference(rows, have)


def main() -> None:
    """Print how many runs agree, per aspect."""
    parser = tool_parser("tools.recorded", __doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=DATA)
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--show", type=int, default=0, help="print the first N differences of each aspect")
    options = parser.parse_args()
    equal, total = Counter[str](), Counter[str]()
    outputs = Outputs(options.directory)
    for record in (record for record in read_records(options.directory) if options.only in record["name"]):
        for aspect, wrong in compare(record, run(record), outputs.of(record)).items():
            total[aspect] += 1
            equal[aspect] += wrong is None
            if wrong is not None and total[aspect] - equal[aspect] <= options.show:
                print(f"{record['set']}/{record['name']} {aspect}: {wrong}")
    print(", ".join(f"{aspect} {equal[aspect]}/{total[aspect]}" for aspect in ASPECTS if total[aspect]))


if __name__ == "__main__":
    sys.exit(run_tool("tools.recorded", main))
