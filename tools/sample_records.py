"""Choose a small, varied sample of recorded runs and store it as test data, the same bytes every time.

usage: python -m tools.sample_records SOURCE [--bytes N] [--to DIR]

SOURCE is a folder with ``cases.jsonl.gz`` and ``outputs.npz``. For each way of recording (with values, without
dispatch, host code only) records are chosen greedily: the next is the one that adds most to what is not shown twice
yet (schemes, formats, errors, options, sequences of operations).
"""

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.command import run_tool, tool_parser
from tools.recorded.compare import BUFFER_FIELDS, CB_OPERATIONS, device_operations, reason
from tools.recorded.records import DATA, Record, pair, read_records

ENOUGH = 2  # a trait that two chosen records show adds nothing more
RARE = 8  # an error or a path of its own weighs as much as so many other traits
COUNTS = {"sim": 36, "mock": 8, "plan": 28}  # records by their way of recording
LARGEST_OUTPUT_BYTES = 70_000
SPEC_FIELDS = ("shape", "padded_shape", "dtype", "layout", "memory_config")
KEPT = ("set", "name", "arch", "mode", "ttnn", "case", "output_hw", "resource_per_core", "accuracy", "input_sha256")
TRAITS = (
    *("input_dtype", "weights_in_dtype", "weights_dtype", "dtype", "input_memory", "input_layout", "input_4d"),
    *("shard_layout", "act_block_h_override", "output_layout", "activation", "math_fidelity", "prep", "slice"),
    *("fp32_dest_acc_en", "packer_l1_acc", "mirror_kernel", "has_bias", "l1_small_size", "memory_config"),
)
USUAL = {"kernel": 0, "stride": 1, "dilation": 1, "padding": 0, "output_padding": 0}


def traits(record: Record) -> Iterator[str]:
    """The traits of a record, as words."""
    case, arch = record["case"], record["arch"]
    yield f"set {record['set']}"
    yield f"{arch} {record['mode']} {' '.join(dict.fromkeys(device_operations(record)))}"
    if "error" in record:
        yield "error " + re.sub(r"\d+", "N", reason(record["error"]))[:40]
        return
    output = record["output"]
    yield f"{arch} {output['memory_config'].split(',')[0]} {output['dtype']} {output['layout']}"
    yield from (f"{key} {case.get(key)}" for key in TRAITS)
    yield from (f"{key} {value} {case.get('shard_layout')}" for key, value in case.get("conv_config", {}).items())
    yield from (f"{key} {min(case.get(key, 1), 4)}" for key in ("groups", "batch"))
    yield from (f"{key} {pair(case.get(key, value))}" for key, value in USUAL.items())
    yield f"defect {bool(record.get('defect'))}"


def weight(trait: str, times: int) -> float:
    """The gain of one more record with a trait that the sample shows so many times."""
    if trait.startswith("error"):
        return 0.0 if times else RARE
    return 1 / (1 + times) if times < ENOUGH else 0.0


def choose(records: Sequence[Record], sizes: Mapping[str, int], count: int, budget_bytes: int) -> list[Record]:
    """A sample of the records, in their order."""
    shown, chosen = Counter[str](), set[int]()
    all_traits = [frozenset(traits(record)) for record in records]
    bytes_of = [sizes.get(record.get("output_array", ""), 0) for record in records]
    while len(chosen) < count:
        gains = {
            at: sum(weight(trait, shown[trait]) for trait in all_traits[at])
            for at, record in enumerate(records)
            if at not in chosen
            and bytes_of[at] <= min(LARGEST_OUTPUT_BYTES, budget_bytes)
            and "output_sha256" not in record
        }
        best = max(gains, key=lambda at: gains[at], default=-1)
        if gains.get(best, 0.0) <= 0.0:
            break
        chosen.add(best)
        shown.update(all_traits[best])
        budget_bytes -= bytes_of[best]
    return [records[at] for at in sorted(chosen)]


def shorten(record: Record) -> dict[str, Any]:
    """A record with the fields that are compared, and no others."""
    sample = {key: record[key] for key in KEPT if key in record}
    for key in ("output", "weight_prepared", "bias_prepared"):
        if record.get(key):
            sample[key] = {name: record[key][name] for name in SPEC_FIELDS}
    if "error" in record:
        return {**sample, "error": reason(record["error"])}
    sample["ops"] = device_operations(record)
    sample["cbs"] = [
        {key: row[key] for key in ("op", "size", "address", "cores", "globally_allocated")}
        for row in record["cbs"]
        if row.get("kind", "circular_buffer_allocate") == "circular_buffer_allocate" and row["op"] in CB_OPERATIONS
    ]
    sample["buffers"] = [
        {key: row[key] for key in BUFFER_FIELDS if row.get(key) is not None} for row in record["buffers"]
    ]
    return {**sample, **{key: record[key] for key in ("output_array", "defect") if key in record}}


def write_records(path: Path, records: Sequence[Record]) -> None:
    """One JSON line per record, gzip without a time stamp."""
    text = "".join(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0))


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """An .npz with sorted names; numpy writes no time stamps."""
    np.savez_compressed(path, **{key: arrays[key] for key in sorted(arrays)})


def main() -> None:
    """Choose and write the sample."""
    parser = tool_parser("tools.sample_records", __doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--bytes", type=int, default=1_200_000, help="of output arrays, before compression")
    parser.add_argument("--to", type=Path, default=DATA)
    options = parser.parse_args()
    archive = np.load(options.source / "outputs.npz")
    records = read_records(options.source)
    keys = [record["output_array"] for record in records if "output_array" in record]
    sizes = {key: archive[key].nbytes for key in keys}
    short = [
        shorten(record)
        for mode, count in COUNTS.items()
        for record in choose([r for r in records if r["mode"] == mode], sizes, count, options.bytes)
    ]
    options.to.mkdir(parents=True, exist_ok=True)
    write_records(options.to / "recorded_runs.jsonl.gz", short)
    arrays = {record["output_array"]: archive[record["output_array"]] for record in short if "output_array" in record}
    write_arrays(options.to / "recorded_outputs.npz", arrays)
    for name, number in sorted(Counter(record["set"] for record in short).items()):
        print(f"{name}: {number}")
    errors = sum("error" in record for record in short)
    print(f"{len(short)} records, {len(arrays)} with values, {errors} with an error")


if __name__ == "__main__":
    sys.exit(run_tool("tools.sample_records", main))
