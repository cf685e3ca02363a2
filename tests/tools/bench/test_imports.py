from tools.bench.imports import LIMIT_SECONDS, bench_imports, statement_seconds


def test_an_import_has_a_limit_that_it_keeps():
    figures = {figure.case: figure for figure in bench_imports(1)}
    assert [case for case, figure in figures.items() if figure.limit] == ["import ttsim"]
    assert figures["import ttsim"].limit == LIMIT_SECONDS
    assert figures["import ttsim"].within


def test_what_ran_before_does_not_count():
    wait = "time.sleep(0.2)"
    assert statement_seconds("pass", wait, 1) < 0.1
    assert statement_seconds(wait, None, 1) >= 0.2
