"""How a tool ends on the command line: a mistake is one line and exit status 2, and a closed pipe is no mistake."""

import os
import sys
import zipfile
import zlib
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from csv import Error as CsvError

from ttsim.report.formatting import printable


def tool_parser(name: str, text: str | None) -> ArgumentParser:
    """A parser of a tool's command line, whose help is the tool's docstring as it stands."""
    return ArgumentParser(prog=name, description=text, formatter_class=RawDescriptionHelpFormatter)


def run_tool(name: str, main: Callable[[], int | None]) -> int:
    """Runs a tool; returns its exit status."""
    try:
        code = main() or 0
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except LookupError as error:
        return _report(name, f"the file is not understood: {type(error).__name__}: {error}")
    except (OSError, ValueError, CsvError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        return _report(name, str(error) or type(error).__name__)
    return code


def _report(name: str, text: str) -> int:
    """Says in one line why the tool ended."""
    print(f"{name}: {printable(text)}", file=sys.stderr)
    return 2
