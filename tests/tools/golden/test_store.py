import pytest

from tools.golden.store import clear, read_sections, record_files, title, write_sections

SECTIONS = {title("conv2d/0001", "result"): "tensor [1]\n\n at address 3\r", title("add/0002", "error"): ""}


def test_sections_come_back_as_they_were(tmp_path):
    write_sections(tmp_path / "plans" / "some.txt.xz", SECTIONS)
    assert read_sections(tmp_path / "plans" / "some.txt.xz") == SECTIONS
    assert record_files(tmp_path) == ["plans/some.txt.xz"]


def test_the_order_of_sections_does_not_matter(tmp_path):
    write_sections(tmp_path / "a.txt.xz", SECTIONS)
    write_sections(tmp_path / "b.txt.xz", dict(reversed(SECTIONS.items())))
    assert (tmp_path / "a.txt.xz").read_bytes() == (tmp_path / "b.txt.xz").read_bytes()


def test_other_files_and_empty_folders_are_told(tmp_path):
    (tmp_path / "a.txt.xz").write_bytes(b"abc")
    with pytest.raises(ValueError, match="is no file of a record"):
        read_sections(tmp_path / "a.txt.xz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no record"):
        record_files(tmp_path / "empty")


def test_clearing_leaves_other_parts(tmp_path):
    for part in ("plans", "values"):
        write_sections(tmp_path / part / "a.txt.xz", SECTIONS)
    write_sections(tmp_path / "plans" / "b.txt.xz", SECTIONS)
    clear(tmp_path, ["plans"], "s/b")
    assert record_files(tmp_path) == ["plans/a.txt.xz", "values/a.txt.xz"]
    clear(tmp_path, ["plans"])
    assert record_files(tmp_path) == ["values/a.txt.xz"]
