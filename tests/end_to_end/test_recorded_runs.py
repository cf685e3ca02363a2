"""Runs of the real library, made again: the sample in tests/data, and the full collection where it is at hand."""

import hashlib
from collections import Counter

import numpy as np
import pytest

from tools.recorded.compare import compare, distance_from_float64
from tools.recorded.records import DATA, Outputs, inputs, layer_of_case, read_records, run
from ttsim.study.layers.run import Inputs, exact_output

RECORDS = {
    f"{record['set']}/{record['name']}": record
    for record in [*read_records(DATA), *read_records(DATA / "unet_layer_runs.jsonl.gz")]
}
LEAST_SHARE = 0.9  # of the runs of the full collection, per aspect
SMALL_MULTIPLICATIONS = 50_000_000  # of a run of the full collection that is worth repeating here


@pytest.fixture(scope="module")
def outputs():
    return Outputs(DATA)


def differences(record, outputs):
    found = compare(record, run(record), outputs.of(record))
    return {aspect: wrong for aspect, wrong in found.items() if wrong is not None}


def exact_of(record):
    """The run in float64, where it has values and a definition is at hand."""
    if "output_array" not in record:
        return None
    layer = layer_of_case(record["case"])
    x, w, b = inputs(record["case"])
    exact = exact_output(layer, Inputs(x, w, b if layer.bias else None))
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
        for key, array in zip("xwb", inputs(record["case"]), strict=True)
    }
    want = record["input_sha256"]
    assert {key: digests[key] for key in want} == want


def multiplications(case):
    kernel = np.prod(case["kernel"])
    return case.get("batch", 1) * case["H"] * case["W"] * case["in_channels"] * case["out_channels"] * kernel


def full_collection(folder):
    small = (r for r in read_records(folder) if multiplications(r["case"]) <= SMALL_MULTIPLICATIONS)
    return [r for i, r in enumerate(small) if i % 8 == 0]


@pytest.mark.slow
def test_every_eighth_small_run_of_the_full_collection(recordings):
    folder = recordings("oracle/ttnn")
    records, outputs = full_collection(folder), Outputs(folder)
    total: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    for record in records:
        found = compare(record, run(record), outputs.of(record))
        total.update(found.keys())
        for aspect, why in found.items():
            if why is not None:
                wrong.setdefault(aspect, []).append(f"{record['set']}/{record['name']} {aspect}: {why}")
    low = {aspect: rows for aspect, rows in wrong.items() if len(rows) > (1 - LEAST_SHARE) * total[aspect]}
    print("\n".join(row for rows in wrong.values() for row in rows))
    assert not low, {aspect: f"{total[aspect] - len(rows)} of {total[aspect]} agree" for aspect, rows in low.items()}
