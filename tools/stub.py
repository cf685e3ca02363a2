"""Writes ``ttsim/api/convolutions.pyi`` from the tables of the calls.

usage: python -m tools.stub
"""

from inspect import Parameter, signature
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Any, Final, get_args, get_type_hints

import ttsim
from ttsim.api import conv, convolutions
from ttsim.runtime.types.signatures import short_type

PATH: Final = Path(convolutions.__file__).with_suffix(".pyi")
CALLS: Final = (conv.ConvTranspose2d, conv.Conv2d, conv.Conv1d)
FLAGS: Final = ("return_output_dim", "return_weights_and_bias")
TIED: Final = "\0"  # a space within a parameter, where no line ends
HEAD: Final = '''"""Types of the convolutions, written by ``python -m tools.stub`` from the tables in ``conv.py``."""

# ruff: noqa: E501, I001 - a type or several names in a line
# fmt: off
from collections.abc import Sequence
from typing import Literal, overload

from ttsim import {names}

'''


def stub() -> str:
    """The text of the file: five overloads of each function, the last for flags that are known at run time alone."""
    functions = [text for call in CALLS for text in _overloads(call)]
    used = "\n".join(functions).replace("[", " ").replace("]", " ").replace(",", " ").split()
    names = fill(", ".join(sorted(set(used) & set(dir(ttsim)))), 110, subsequent_indent="    ")
    return "\n\n".join([HEAD.format(names=f"(\n    {names},\n)").rstrip(), *functions]) + "\n"


def _overloads(call: Any) -> list[str]:
    returned = get_type_hints(call.run)["return"]
    results: dict[tuple[bool, ...] | None, Any] = dict(
        zip([flags[::-1] for flags in product((False, True), repeat=2)], get_args(returned), strict=True)
    )
    return [_overload(call, flags, result) for flags, result in [*results.items(), (None, returned)]]


def _overload(call: Any, flags: tuple[bool, ...] | None, result: Any) -> str:
    name = call._name
    own = signature(getattr(ttsim, name))
    wanted = dict(zip(FLAGS, flags or (), strict=False))
    parameters = [_parameter(parameter, wanted) for parameter in own.parameters.values()]
    whole = ", ".join(parameter.replace(" ", TIED) for parameter in parameters)
    body = fill(whole, 116, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False).replace(TIED, " ")
    return f"@overload\ndef {name}(\n    *,\n{body},\n) -> {short_type(result)}: ..."


def _parameter(parameter: Parameter, wanted: dict[str, bool]) -> str:
    default = "" if parameter.default is Parameter.empty else f" = {parameter.default!r}"
    if parameter.name not in wanted:
        return f"{parameter.name}: {parameter.annotation}{default}"
    flag = wanted[parameter.name]
    return f"{parameter.name}: Literal[{flag}]" + ("" if flag else default)


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
