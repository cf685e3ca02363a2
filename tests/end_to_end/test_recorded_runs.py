"""Runs of the real library, made again: the sample in tests/data, and the full collection where it is at hand."""

import hashlib
import re
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from tools.recorded import DATA, Outputs, compare, distance_from_float64, inputs, pair, read_records, run
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Inputs, exact_output

RECORDS = {
    f"{record['set']}/{record['name']}": record
    for record in [*read_records(DATA), *read_records(DATA / "unet_layer_runs.jsonl.gz")]
}
OF_A_PROGRAM = 2  # runs that are planned here
LEAST_RUNS = 400  # of each architecture in the full collection
SMALL_MULTIPLICATIONS = 50_000_000  # of a run of the full collection that is worth repeating here


@pytest.fixture(scope="module")
def outputs():
    return Outputs(DATA)


def differences(record, outputs):
    found = compare(record, run(record), outputs.of(record))
    return {aspect: wrong for aspect, wrong in found.items() if wrong is not None}


def exact_of(record):
    """The run in float64, where it has values and a definition is at hand."""
    case = record["case"]
    config = {name: case["activation"] for name in ("activation",) if case.get(name)} | case.get("conv_config", {})
    layer = Layer(
        in_channels=case["in_channels"],
        out_channels=case["out_channels"],
        input_height=case["H"],
        input_width=case["W"],
        kernel_size=tuple(pair(case["kernel"])),
        groups=case.get("groups", 1),
        mirror_kernel=case.get("mirror_kernel") is not False,
        config=config,
        **{
            name: tuple(pair(case.get(name, usual)))
            for name, usual in (("stride", 1), ("padding", 0), ("output_padding", 0), ("dilation", 1))
        },
    )
    x, w, b = inputs(record)
    exact = exact_output(layer, Inputs(x, w, b if case.get("has_bias") else None))
    return None if exact is None else exact.reshape(1, 1, -1, layer.out_channels)


@pytest.mark.parametrize("name", RECORDS)
def test_sampled_run(name, outputs):
    assert differences(RECORDS[name], outputs) == {}


@pytest.mark.parametrize("name", [n for n, r in RECORDS.items() if "output_array" in r and not r.get("defect")])
def test_fast_reading_follows_float64(name):
    record = RECORDS[name]
    definition = exact_of(record)
    if definition is None:
        pytest.skip("float64 has no definition of this call at hand")
    assert distance_from_float64(record, run(record, "fast").values, definition) is None


def test_sample_is_small_and_varied():
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 2_000_000
    modes = Counter(record["mode"] for record in RECORDS.values())
    assert set(modes) == {"sim", "mock", "plan"}
    assert {record["arch"] for record in RECORDS.values()} == {"wh", "bh"}
    assert sum("output_array" in record for record in RECORDS.values()) >= 20
    assert sum("error" in record for record in RECORDS.values()) >= 10


@pytest.mark.parametrize("name", [name for name, record in RECORDS.items() if "input_sha256" in record])
def test_inputs_are_the_recorded_ones(name):
    record = RECORDS[name]
    digests = {
        key: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        for key, array in zip("xwb", inputs(record), strict=True)
    }
    want = record["input_sha256"]
    assert {key: digests[key] for key in want} == want


def multiplications(case):
    kernel = np.prod(case["kernel"])
    return case.get("batch", 1) * case["H"] * case["W"] * case["in_channels"] * case["out_channels"] * kernel


def program(record):
    """Which device operations ran, and the place of the output or the error, without sizes."""
    layouts = re.findall(r"TensorMemoryLayout::\w+", str(record.get("output")))
    error = re.sub(r"\d+", "#", record.get("error") or "")[:60]
    return (*dict.fromkeys(record.get("ops") or ()), *layouts, error)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["wh", "bh"])
def test_plans_of_the_full_collection(recordings, arch):
    """Operations, circular buffers, buffers, peaks, specs and errors of the first two recorded calls of each program.

    `python -m tools.recorded` repeats all.
    """
    records = [record for record in read_records(recordings("oracle/ttnn")) if record["arch"] == arch]
    assert len(records) > LEAST_RUNS
    wrong, seen = {}, Counter()
    for record in records:
        seen[program(record)] += 1
        if seen[program(record)] > OF_A_PROGRAM:
            continue
        found = compare(record, run(record, "off"), None)
        wrong |= {f"{record['set']}/{record['name']} {aspect}": why for aspect, why in found.items() if why}
    assert wrong == {}


@pytest.mark.slow
def test_values_of_some_small_runs_of_the_full_collection(recordings):
    folder = recordings("oracle/ttnn")
    outputs = Outputs(folder)
    small = (record for record in read_records(folder) if multiplications(record["case"]) <= SMALL_MULTIPLICATIONS)
    found = {
        f"{record['set']}/{record['name']}": compare(record, run(record), outputs.of(record)).get("values")
        for record in islice(small, 0, None, 24)
        if outputs.of(record) is not None
    }
    assert {name: why for name, why in found.items() if why} == {}
