"""What a command chooses for scripts that cannot be edited, as the environment variables that ``open_device`` reads."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import get_args

from ops.sensitivity.changes import load_spec
from ttsim.runtime.settings import SPEC_VARIABLE, STRICT_VARIABLE, VALUES_VARIABLE, Values, add_changes, chosen_device
from ttsim.runtime.tracebacks import TRACEBACK_VARIABLE


def add_choices(parser: ArgumentParser) -> None:
    """Adds the flags that choose a device, its values, how strict it is, and how much of an error is shown."""
    parser.add_argument("--device", metavar="SPEC", help=f"name or TOML file; sets {SPEC_VARIABLE}")
    add_changes(parser)
    parser.add_argument("--values", choices=get_args(Values), help=f"what devices compute; sets {VALUES_VARIABLE}")
    text = f"accept what the real library gets wrong; sets {STRICT_VARIABLE}=0"
    parser.add_argument("--no-strict", action="store_true", help=text)
    text = f"show the frames inside ttsim of an error; sets {TRACEBACK_VARIABLE}=1"
    parser.add_argument("--traceback", action="store_true", help=text)


def chosen(options: Namespace) -> dict[str, str]:
    """The environment variables of the given flags; raises SpecError for an unknown device or a bad change."""
    device = chosen_device(options) if options.changes else options.device
    if options.changes:
        load_spec(device)  # refused before the script runs
    strict = "0" if options.no_strict else None
    variables = {SPEC_VARIABLE: device, VALUES_VARIABLE: options.values, STRICT_VARIABLE: strict}
    variables[TRACEBACK_VARIABLE] = "1" if options.traceback else None
    return {name: value for name, value in variables.items() if value is not None}


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for the length of a ``with`` block, for child processes, too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in before:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})
