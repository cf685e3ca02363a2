import pytest

from device.errors import ArgumentError
from ttsim.study.layers.read import check_keys, leaves, read_toml


@pytest.mark.parametrize("content", [b"x =", b"x = \xff", b"x = " + b"[" * 5000])
def test_what_is_no_toml(tmp_path, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"a\.toml: a sweep is TOML: "):
        read_toml(path, "a sweep")


def test_a_byte_order_mark_is_no_content(tmp_path):
    (tmp_path / "a.toml").write_text("x = 1\n", encoding="utf-8-sig")
    assert read_toml(tmp_path / "a.toml", "a sweep") == {"x": 1}


def test_an_unknown_key_and_the_nearest():
    with pytest.raises(ArgumentError, match=r"^f: unknown key 'layers'; did you mean 'layer'\?$"):
        check_keys("f", {"layer": 1, "layers": 2}, ("common", "layer"))
    with pytest.raises(ArgumentError, match=r"^f: unknown key 'x'; known are common, layer$"):
        check_keys("f", {"x": 1}, ("common", "layer"))


def test_tables_within_tables_are_names_with_dots():
    table = {"a": 1, "b": {"c": [2], "d": {"e": 3}}, "b.f": 4, "g": {"from": 1, "to": 2}, "h": {}}
    assert list(leaves(table)) == [("a", 1), ("b.c", [2]), ("b.d.e", 3), ("b.f", 4), ("g.from", 1), ("g.to", 2)]
    assert ("g", {"from": 1, "to": 2}) in list(leaves(table, whole=("from",)))


def test_as_deep_as_a_file_may_nest():
    table = {"x": 1}
    for _ in range(3000):
        table = {"x": table}
    assert list(leaves(table)) == [(".".join("x" * 3001), 1)]
