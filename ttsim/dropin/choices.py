"""Flags of commands as environment variables that ``open_device`` reads, for scripts that cannot be edited."""

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ops.sensitivity.changes import load_spec, split_changes, with_changes
from ttsim.runtime.settings import FALLBACK_VARIABLE, SPEC_VARIABLE, STRICT_VARIABLE, VALUES_VARIABLE
from ttsim.runtime.tracebacks import TRACEBACK_VARIABLE
from ttsim.study.options import chosen_device


def chosen(options: Namespace) -> dict[str, str]:
    """The environment variables of the given flags; raises SpecError for an unknown device or a bad change."""
    device = chosen_device(options) if options.changes else options.device
    if device is not None:
        load_spec(device)  # refused before the script runs
        base, changes = split_changes(device)
        if base.endswith(".toml"):  # whatever folder the script changes to
            device = with_changes(str(Path(base).absolute()), changes)
    strict = "0" if options.no_strict else None
    variables = {SPEC_VARIABLE: device, VALUES_VARIABLE: options.values, STRICT_VARIABLE: strict}
    variables |= {TRACEBACK_VARIABLE: "1" if options.traceback else None, FALLBACK_VARIABLE: options.fallback}
    return {name: value for name, value in variables.items() if value is not None}


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """A context with environment variables, also for child processes."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in before:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})
