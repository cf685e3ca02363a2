"""What docs/ says can be found, run and read: fields, examples, sections that code cites, paths."""

import re
import runpy
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from device.spec.device_spec import load_spec

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = {path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8") for path in DOCS}
PAGES = {name: f"docs/{name}" for name in TEXTS} | {"README.md": "README.md"}
SOURCES = sorted(path for folder in ("device", "ops", "ttsim", "tools") for path in (ROOT / folder).rglob("*.py"))
HEADING = re.compile(r"^#+ (?:\d+\. )?(.+)$", flags=re.MULTILINE)
CITATION = re.compile(r"docs/([\w/-]+\.md), (\[+[\w.]+\]+|\w[\w-]*(?: [\w-]+)*)")
TABLE = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", flags=re.DOTALL | re.MULTILINE)


def text_of(file: str) -> str:
    """The text of a page, in whatever folder the page is."""
    return next(text for name, text in TEXTS.items() if name.rpartition("/")[2] == file)


def fields_of(values: dict[str, object], table: str = "Device") -> Iterator[tuple[str, str]]:
    """Every field of a device as (heading of its table, name)."""
    for name, value in values.items():
        inner = name if table == "Device" else f"{table}.{name}"
        if isinstance(value, dict):
            yield from fields_of(value, inner)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from fields_of(value[0], f"[{inner}]")
        if table != "Device" or not isinstance(value, dict):
            yield table, name


def documented_fields() -> Iterator[tuple[str, str]]:
    """Every field that docs/reference/device-fields.md names, as (heading of its table, name)."""
    for heading, body in TABLE.findall(text_of("device-fields.md")):
        for table in heading.split(", "):
            name = table if table == "Device" else table.removeprefix("[").removesuffix("]")
            for field in re.findall(r"^\| `(\w+)` \|", body, flags=re.MULTILINE):
                yield name, field


def citations() -> Iterator[tuple[Path, str, str]]:
    """Every section of docs/ that a source or another document names."""
    for path in (*SOURCES, *DOCS):
        text = re.sub(r"\n\s*(?:# )?", " ", path.read_text(encoding="utf-8"))
        for document, words in CITATION.findall(text):
            yield path, document, words


def test_device_file_names_every_field_and_no_other():
    documented = list(documented_fields())
    assert len(documented) == len(set(documented))
    assert set(documented) == set(fields_of(load_spec("wormhole_n150").to_dict()))


def test_every_row_of_a_device_table_says_what_it_moves():
    readers = {"plan", "memory", "values", "cycles", "launches", "report"}
    for row in re.findall(r"^\| `\w+` \|.*$", text_of("device-fields.md"), flags=re.MULTILINE):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 5, row
        assert cells[2], row
        assert cells[4] or cells[1] in ("text", "table", "list of tables"), f"no source: {row}"
        assert set(cells[3].split(", ")) <= readers or cells[1] == "list", row


def runs() -> Iterator[object]:
    """The pages that have code, as test parameters; those of the API run in one process.

    Pages that need torch are set apart like slow ones: README's test command installs no torch.
    """
    for name, path in PAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        if ("```python" in text or "```text" in text) and "/api/" not in name:
            apart = "\n<!-- slow -->\n" in text or "\nimport torch" in text
            yield pytest.param([path], id=name, marks=[pytest.mark.slow] if apart else [])
    yield pytest.param([path for name, path in PAGES.items() if "/api/" in name], id="api")


WRONG_OUTPUTS = runpy.run_path(str(ROOT / "docs" / "outputs.py"))["wrong_outputs"]


@pytest.mark.parametrize("pages", list(runs()))
def test_code_runs_and_prints_the_outputs_that_are_shown(pages, monkeypatch):
    if "\nimport torch" in (ROOT / pages[0]).read_text(encoding="utf-8") and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    monkeypatch.setenv("PATH", "")
    wrong = [(page, code, out) for page in pages for code, _, out in WRONG_OUTPUTS(ROOT / page)]
    assert wrong == []


def test_pictures_are_those_that_the_script_draws():
    drawn = dict(runpy.run_path(str(ROOT / "docs" / "pictures.py"))["pictures"]())
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "pictures").iterdir()}
    assert files == drawn


def test_the_navigation_has_every_page():
    named = re.findall(r"[\w/-]+\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(named) == sorted(TEXTS)


def test_notebooks_are_those_of_their_pages():
    for path, text in runpy.run_path(str(ROOT / "docs" / "notebooks.py"))["notebooks"]():
        assert path.read_text(encoding="utf-8") == text, path


NO_PAGE = {f"ttsim.api.modules.{name}" for name in ("database", "device")} | {"ttsim.errors"}  # nothing of their own


def test_the_api_reference_has_every_public_name():
    modules = set(re.findall(r"^::: names of (\S+)$", "\n".join(TEXTS.values()), flags=re.MULTILINE))
    public = runpy.run_path(str(ROOT / "docs" / "hooks.py"))["public_names"]()
    own = {"ttsim": "ttsim.", "ttsim.api.modules": "ttsim.api.modules."}  # modules themselves, which have pages
    rest = {own[home] + name for home in own for name in public[home]} - NO_PAGE
    assert modules == set(public) - set(own) | rest
    pages = [text for name, text in TEXTS.items() if "/api/" in name]
    assert [text[:40] for text in pages if "```python" not in text] == []


def test_sections_that_are_cited_exist():
    headings = {name: HEADING.findall(text) for name, text in TEXTS.items()}
    cited = list(citations())
    assert len(cited) > 20
    for path, document, words in cited:
        known = headings.get(document, [])
        assert any(f"{words} ".startswith(f"{one} ") for one in known), f"{path.relative_to(ROOT)}: {document}, {words}"


def test_nothing_cites_a_document_that_is_not_here():
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\(reference,|reference, sections?|exact values, sections?", text), path
        for document in re.findall(r"docs/([\w/-]+\.md)", text):
            assert document in TEXTS, f"{path}: {document}"


@pytest.mark.parametrize("path", [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_paths_and_links_exist(path):
    text = path.read_text(encoding="utf-8")
    for named in re.findall(r"`((?:ttsim|ops|device|tools|tests|docs)/[\w./-]+)`", text):
        assert (ROOT / named).exists(), named
    for target in re.findall(r"(?:\]\(|src=\"|srcset=\")([^)#\"]+)", text):
        assert target.startswith("http") or (path.parent / target).exists(), target
    for target, anchor in re.findall(r"\]\(([\w./-]*)#([^)]+)\)", text):
        if path in DOCS or not target:
            assert anchor in anchors_of(path.parent / target if target else path), (target, anchor)


def test_the_notice_names_files_that_exist():
    named = re.findall(r"(?:tests|ttsim)/[\w./*-]+\w", (ROOT / "NOTICE").read_text(encoding="utf-8"))
    assert [name for name in named if not any(ROOT.glob(name))] == []
    assert len(named) >= 5


def anchors_of(path: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def defects() -> list[list[str]]:
    """The cells of every row of docs/reference/real-defects.md."""
    rows = [line for line in text_of("real-defects.md").splitlines() if line.startswith("| ") and "::" in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def test_every_defect_of_the_real_library_names_tests_that_exist():
    assert len(defects()) >= 20
    for row in defects():
        assert len(row) == 4, row
        assert re.match("(refuses|copies|differs)", row[2]), row
        for named in row[3].split(", "):
            path, name = named.split("::")
            text = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"^( {{4}})?def {re.escape(name)}\(", text, flags=re.MULTILINE), named
