import numpy as np

from tools.recorded.records import DATA, read_records
from tools.sample_records import choose, shorten, write_arrays, write_records


def test_a_sample_of_the_sample_is_the_same_every_time():
    records = read_records(DATA)
    first = choose(records, {}, 10, 0)
    assert first == choose(records, {}, 10, 0)
    assert len(first) == 10
    assert len({record["name"] for record in first}) > 5


def test_large_outputs_stay_out():
    records = [record for record in read_records(DATA) if "output_array" in record]
    assert not choose(records, {record["output_array"]: 100 for record in records}, 5, 99)


def test_shortening_twice_changes_nothing():
    assert [shorten(record) for record in read_records(DATA)] == read_records(DATA)


def test_files_are_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_records(tmp_path / f"{name}.gz", [{"y": 1, "x": [2]}])
        write_arrays(tmp_path / f"{name}.npz", {"k/2": np.arange(3), "k/1": np.zeros(2)})
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert np.array_equal(np.load(tmp_path / "a.npz")["k/2"], np.arange(3))
