"""Drawn calls in other forms: other tensors, arguments that calls leave out, positions and names, other numbers.

Nothing is known of the results: these calls are for two libraries whose answers are compared.
"""

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from tools.random_calls.drafts import BLOCKS, FLOATS, INTEGERS, Draft
from tools.random_calls.odd_values import is_ours, left_out

Lines = dict[str, str]  # The line that makes a tensor, by the tensor's name
CHANGED, ADDED, NAMED, COUNTED = 0.25, 0.4, 0.1, 0.15  # how often: a tensor, an argument, its name, a number
ACTIVATIONS: Final = ("RELU", "SILU", "GELU", "EXP", "SQUARE")
WRITTEN: Final = ("output_tensor", "optional_output_tensor", "optional_tensor", "output", "out")


def varied(
    text: str, made: Mapping[str, str], draft: Draft, spec: Callable[[], TensorSpec | None]
) -> tuple[str, Lines]:
    """A call in another form, with the lines that make its tensors; mostly with one or two things changed.

    ``spec`` gives the result of the call as it is, None where it is refused.
    """
    lines = {name: other_tensor(line, draft) if draft.chance(CHANGED) else line for name, line in made.items()}
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_ours(node)]
    if not calls:
        return text, lines
    call, *_ = calls
    if draft.chance(COUNTED):
        _count(call, draft)
    while draft.chance(ADDED):
        lines |= _add(call, draft, spec())
    if draft.chance(NAMED):
        _name(call, draft)
    return ast.unparse(tree) + "\n", lines


def other_tensor(line: str, draft: Draft) -> str:
    """A line that makes a tensor of another format, layout, place or shape on the device."""
    tree: Any = ast.parse(line).body[0]
    keywords = {keyword.arg: keyword for keyword in tree.value.keywords}
    if "device" not in keywords:
        return line
    numbers, dtype = tree.value.args
    sides, tiled = ast.literal_eval(numbers.args[1]), "TILE" in ast.unparse(keywords["layout"])
    form = draft.pick(("format", "layout", "place", "place", "shape"))
    match form:
        case "format":
            dtype.attr = draft.pick((*FLOATS, *INTEGERS))
        case "layout":
            tiled = not tiled
        case "shape":
            sides = _other_sides(sides, draft)
    tiled = tiled or dtype.attr in BLOCKS
    numbers.args[1] = _node(str(sides))
    keywords["layout"].value = _node(f"ttsim.{'TILE' if tiled else 'ROW_MAJOR'}_LAYOUT")
    if "memory_config" in keywords and (form in ("place", "shape") or draft.chance(0.5)):
        keywords["memory_config"].value = _node(draft.memory_config(sides, tiled=tiled, sharded=0.7))
    return ast.unparse(tree) + "\n"


def _other_sides(sides: tuple[int, ...], draft: Draft) -> tuple[int, ...]:
    """A shape of another rank, or with one side repeated or longer."""
    place = draft.below(len(sides))
    return draft.pick(
        (
            (1, *sides),
            (draft.pick((2, 3)), *sides),
            sides[1:] or sides,
            (*sides[:place], 1, *sides[place + 1 :]),
            (*sides[:place], sides[place] + 1, *sides[place + 1 :]),
            (*sides[:-2], *sides[:-3:-1]),
        )
    )


def _add(call: ast.Call, draft: Draft, spec: TensorSpec | None) -> Lines:
    """Gives a call an argument that it leaves out, and returns the line of the tensor that this may be."""
    names = left_out(call, draft.state.names)
    defaults = {name: _default(call, name, draft) for name in names}
    known = [name for name in names if name in (*_VALUES, *WRITTEN) or isinstance(defaults[name], bool | int | float)]
    if not known or spec is None:
        return {}
    name = draft.pick(known)
    lines: Lines = {}
    if name in WRITTEN:
        text = f"{draft.name}o"
        where = draft.memory_config(spec.shape, tiled=spec.layout is Layout.TILE, sharded=0.2)
        dtype, layout = f"ttsim.{spec.data_format}", f"ttsim.{spec.layout.name}_LAYOUT"
        line = f"{text} = ttsim.from_numpy(numbers(1, {tuple(spec.shape)}), {dtype}, layout={layout}, device=device, "
        line += f"memory_config={where})\n"
        lines[text] = other_tensor(line, draft) if draft.chance(CHANGED) else line
    elif name in _VALUES:
        text = _VALUES[name](draft, spec)
    else:
        default: Any = defaults[name]
        text = str(not default if isinstance(default, bool) else draft.pick((default, 0, 1, -1, 2)))
    call.keywords.append(ast.keyword(name, _node(text)))
    return lines


def _default(call: ast.Call, name: str, draft: Draft) -> object:
    parameter = _parameters(call, draft).get(name)
    return None if parameter is None else parameter.default


def _parameters(call: ast.Call, draft: Draft) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(draft.evaluated(ast.unparse(call.func))).parameters
    except (TypeError, ValueError):
        return {}


def _place(draft: Draft, spec: TensorSpec) -> str:
    return draft.memory_config(spec.shape, tiled=spec.layout is Layout.TILE, sharded=0.6)


def _cores(draft: Draft, spec: TensorSpec) -> str:
    return f"cores({', '.join(map(str, draft.rectangles()))})"


def _grid(draft: Draft, spec: TensorSpec) -> str:
    return f"ttsim.CoreGrid(y={draft.between(1, 8)}, x={draft.between(1, 8)})"


def _dtype(draft: Draft, spec: TensorSpec) -> str:
    return f"ttsim.{draft.pick((*FLOATS, *FLOATS, *INTEGERS))}"


def _activations(draft: Draft, spec: TensorSpec) -> str:
    return f"[ttsim.UnaryWithParam(ttsim.UnaryOpType.{draft.pick(ACTIVATIONS)})]"


def _kernel_config(draft: Draft, spec: TensorSpec) -> str:
    fidelity = f"math_fidelity=ttsim.MathFidelity.{draft.pick(('LoFi', 'HiFi2', 'HiFi3', 'HiFi4'))}"
    flags = ("fp32_dest_acc_en", "packer_l1_acc", "math_approx_mode", "dst_full_sync_en")
    chosen = [f"{flag}={draft.chance(0.5)}" for flag in flags if draft.chance(0.5)]
    return f"ttsim.WormholeComputeKernelConfig({', '.join((fidelity, *chosen))})"


# Texts of the arguments whose defaults do not tell what else they may be
_VALUES: Final[Mapping[str, Callable[[Draft, TensorSpec], str]]] = {
    **dict.fromkeys(("memory_config", "output_memory_config"), _place),
    **dict.fromkeys(("sub_core_grids", "sub_core_grid", "core_range_set"), _cores),
    **dict.fromkeys(("dtype", "output_dtype"), _dtype),
    **dict.fromkeys(("activations", "input_tensor_a_activations", "input_tensor_b_activations"), _activations),
    **{"core_grid": _grid, "compute_kernel_config": _kernel_config},
    "rounding_mode": lambda draft, spec: draft.pick(('"floor"', '"trunc"', "None")),
    "activation": lambda draft, spec: f'"{draft.pick(ACTIVATIONS).lower()}"',
}


def _count(call: ast.Call, draft: Draft) -> None:
    """Changes one whole number of a call or of a config in it."""
    skipped = {id(inner) for node in ast.walk(call) if _makes(node) for inner in ast.walk(node)}
    whole = [node for node in ast.walk(call) if isinstance(node, ast.Constant) and type(node.value) is int]
    whole = [node for node in whole if id(node) not in skipped]
    if whole:
        node = draft.pick(whole)
        number = int(node.value)  # type: ignore[arg-type]
        node.value = draft.pick((number + 1, max(number - 1, 0), 2 * number, number // 2))


def _makes(node: ast.AST) -> bool:
    """Whether a part of a text makes numbers on the host."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("np.", "numbers"))


def _name(call: ast.Call, draft: Draft) -> None:
    """Gives the last positional argument of a call by its name."""
    parameters = list(_parameters(call, draft).values())
    if 1 < len(call.args) <= len(parameters):
        parameter = parameters[len(call.args) - 1]
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            call.keywords.insert(0, ast.keyword(parameter.name, call.args.pop()))


def _node(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
