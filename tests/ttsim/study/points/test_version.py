from ttsim.study.store import model_version, version_of


def test_one_version_of_a_process():
    assert model_version() == model_version()
    assert len(model_version()) == 16


def test_contents_and_names_of_sources_count(tmp_path):
    def version():
        return version_of(iter([("a", tmp_path)]))

    (tmp_path / "x.py").write_text("1\n")
    first = version()
    (tmp_path / "notes.md").write_text("no source")
    (tmp_path / "x.py").write_bytes(b"1\r\n")
    assert version() == first
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.toml").write_text("a = 1\n")
    second = version()
    assert second != first
    (tmp_path / "x.py").rename(tmp_path / "y.py")
    assert version() not in (first, second)
