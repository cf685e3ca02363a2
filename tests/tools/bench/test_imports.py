from tools.bench import plans as imports
from tools.bench.plans import ARRAYS, LIMIT_SECONDS, bench_imports, statement_seconds


def test_one_import_has_a_limit(monkeypatch):
    monkeypatch.setattr(imports, "statement_seconds", lambda *_: LIMIT_SECONDS + 0.01)
    figures = {figure.case: figure for figure in bench_imports(1)}
    assert [case for case, figure in figures.items() if figure.limit] == ["import ttsim"]
    assert figures["import ttsim"].limit == LIMIT_SECONDS
    assert not figures["import ttsim"].within


def test_an_import_keeps_its_limit():
    assert statement_seconds("import ttsim", ARRAYS, 7) <= LIMIT_SECONDS


def test_what_ran_before_does_not_count():
    op = "sum(range(5_000_000))"
    assert statement_seconds("pass", op, 1) < 0.1 * statement_seconds(op, None, 1)
