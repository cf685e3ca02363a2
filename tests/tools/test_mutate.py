"""Mutations of sources: which there are, how they are drawn, and which of them tests catch."""

import pytest

from tools.mutate import APPROVED, ROOT, WIDER, drawn, importers, main, mutations_of, outcome, runs_for


@pytest.mark.parametrize(
    ("source", "kind", "mutated"),
    [
        ("x = a + b\n", "arithmetic", "x = (a - b)\n"),
        ("x = é //\\\n  b\n", "arithmetic", "x = (é * b)\n"),
        ("x = a < b\n", "comparison", "x = (a <= b)\n"),
        ("x = a is not b\n", "comparison", "x = (a is b)\n"),
        ("x = a and b\n", "condition", "x = (a or b)\n"),
        ("while a:\n    b()\n", "condition", "while (not (a)):\n    b()\n"),
        ("def f(a, *, b=False):\n    pass\n", "default", "def f(a, *, b=True):\n    pass\n"),
        ("class A:\n    b: int = 4\n", "default", "class A:\n    b: int = 5\n"),
        ("x = [a, 32]\n", "constant", "x = [a, 33]\n"),
        ("def f():\n    return a\n", "return", "def f():\n    return None\n"),
    ],
)
def test_each_kind_changes_one_expression(source, kind, mutated):
    (mutation,) = mutations_of("a.py", source.encode())
    assert (mutation.kind, mutation.applied(source.encode()).decode()) == (kind, mutated)


@pytest.mark.parametrize(
    "source", ["x: Literal[3]\n", 'f"{a + 1}"\n', '"text %s" % a\n', "def f():\n    return None\n"]
)
def test_types_and_texts_stay(source):
    assert not list(mutations_of("a.py", source.encode()))


@pytest.mark.slow
def test_a_seed_draws_the_same_mutations_and_the_nearest_tests_run_first():
    chosen, files = drawn(ROOT, 1, 60, only="device/time"), importers(ROOT)
    assert chosen == drawn(ROOT, 1, 60, only="device/time") != drawn(ROOT, 2, 60, only="device/time")
    assert len(set(chosen)) == 60
    with pytest.raises(ValueError, match="no file of device, ops, ttsim with 'nowhere' in its path"):
        drawn(ROOT, 1, 1, only="nowhere")
    for path, first in {
        "device/time/network.py": "tests/device/time/test_network.py",
        "ops/programs/data_movement/nowhere.py": "tests/ops/programs/data_movement/",
    }.items():
        near, approved, others = runs_for(ROOT, path, WIDER, files)
        assert approved == [APPROVED]
        assert near[0].startswith(first)
        assert not set(near) & set(others)
        assert APPROVED not in [*near, *others]
        assert len(others) > 100


@pytest.fixture
def clone(tmp_path):
    """A project whose tests see the sum, not the limit, and hang where the loop does not end."""
    files = {
        "ops/__init__.py": "",
        "ops/part.py": "def total(a, b):\n    return a + b\n\n\ndef small(a):\n    return a < 7\n\n\n"
        "def count(a):\n    n = 0\n    while n < a:\n        n += 2 - 1\n    return n\n",
        "tests/ops/test_part.py": "from ops.part import count, total\n\n\n"
        "def test_total():\n    assert total(2, 3) == 5\n    assert count(3) == 3\n",
        "tests/test_more.py": "from ops.part import small\n\n\ndef test_small():\n    assert small(3)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    return tmp_path


@pytest.mark.slow
def test_mutations_are_caught_survive_or_do_not_end_and_are_taken_back(clone, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading those of the project takes most of the time
    source = (clone / "ops/part.py").read_bytes()
    at = {str(mutation).split(": ", 1)[1]: mutation for mutation in mutations_of("ops/part.py", source)}
    wider = [["tests/ops/test_part.py"], ["tests/test_more.py"]]
    assert outcome(clone, at["arithmetic: a + b -> (a - b)"], wider, 60) == "caught"
    assert outcome(clone, at["return: a < 7 -> None"], wider, 60) == "caught"
    assert outcome(clone, at["comparison: a < 7 -> (a <= 7)"], wider, 60) == "survived"
    assert outcome(clone, at["constant: 1 -> 2"], wider, 4) == "not ended"
    assert (clone / "ops/part.py").read_bytes() == source


def test_tests_are_found_by_imports(clone):
    files = importers(clone)
    assert files["ops/part.py"] == {"tests/ops/test_part.py", "tests/test_more.py"}
    near = ["tests/ops/test_part.py", "tests/test_more.py"]
    assert runs_for(clone, "ops/part.py", ["tests"], files) == [near, [], []]
    assert runs_for(clone, "ops/part.py", ["tests"], {}) == [near[:1], [], near[1:]]


def test_the_command_lists(clone, capsys):
    assert main(["--only", "part", "--list", "--count", "3", "--seed", "5"], clone) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 3
    assert all(line.startswith("ops/part.py:") for line in listed)
