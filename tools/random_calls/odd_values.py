"""Odd values in place of arguments that a call gives, or for arguments that it leaves out."""

import ast
import builtins
import inspect
from collections.abc import Mapping
from typing import Any, Final

from tools.random_calls.drafts import Choices

ODD: Final = (
    *("None", "True", "0", "-1", "1", "3", "7", "31", "4096", "1<<31", "(1<<32)-1", "1<<40", "1<<70", "1.5", "-0.0"),
    *("2+1j", "float('nan')", "float('inf')", "'x'", "''", "'relu'", "'\\x1b[31m\\u202e\\0'", "'x'*10000", "b'ab'"),
    *("()", "[]", "{}", "{1,2}", "(1,)", "(1,1)", "(0,0)", "(2,0)", "(-1,1)", "(7,7)", "(1,1,1,1)", "(1,2,3)"),
    *("[None,1]", "(1<<31,1)", "(65536,65536)", "(1.5,1)", "('a','b')", "range(2)", "iter([1,1])", "np.int64(3)"),
    *("np.uint8(200)", "np.float32(2)", "np.nan", "np.zeros(0)", "np.zeros(0,np.float32)", "np.array([1,1])"),
    *("np.ma.masked_array(f,f>0)", "np.zeros((2,2),np.float32)", "np.array('x')", "np.array([None])"),
    *("np.zeros((1,0,3),np.float32)", "np.zeros((1,4,4,2),np.float16)", "np.full((1,4,4,2),np.inf,np.float32)"),
    *("object()", "len", "ttsim", "Ellipsis", "h", "x", "t", "w", "single", "empty", "freed", "foreign", "device"),
    *("other", "closed", "ttsim.to_layout(single,ttsim.TILE_LAYOUT).to(device)", "ttsim.bfloat16", "ttsim.bfloat8_b"),
    *("ttsim.uint8", "ttsim.TILE_LAYOUT", "ttsim.ROW_MAJOR_LAYOUT", "ttsim.L1_MEMORY_CONFIG", "ttsim.Conv2dConfig()"),
    *("ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG", "rows", "half", "ttsim.Conv2dL1FullSliceConfig", "ttsim.BufferType.L1"),
    *("ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceHeight,num_slices=3)", "ttsim.CoreCoord(0,0)"),
    *("ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)", "cores((0, 0, 1, 0))", "ttsim.Arch.BLACKHOLE"),
    "ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU)",
)
_NAMES: Final = {
    text: {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} - set(vars(builtins))
    for text in ODD
}
# Functions that leave some arguments to Python: of the host's memory, of files, or of callbacks.
UNCHECKED: Final = (
    *(".rand", "_like", "load_tensor", "dump_tensor", "as_tensor", "allocate_tensor_on_device", "from_host_shards"),
    *(".astype", ".reshape", ".deallocate", ".TemporaryDirectory", ".zeros", ".ones", ".empty", ".full"),
)


def spoiled(text: str, names: Mapping[str, Any], choices: Choices) -> str:
    """A text with odd values, which need no names but ``names``, for one to three arguments of its calls."""
    odd_values = [odd for odd in ODD if _NAMES[odd] <= names.keys()]
    tree = ast.parse(text)
    for _ in range(choices.pick((1, 1, 1, 2, 3))):
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_ours(node)]
        if not calls:
            return text
        call = choices.pick(calls)
        odd = ast.parse(choices.pick(odd_values), mode="eval").body
        places = [*range(len(call.args)), *call.keywords, *left_out(call, names)]
        if not places:
            continue
        place = choices.pick(places)
        if isinstance(place, int):
            call.args[place] = odd
        elif isinstance(place, str):
            call.keywords.append(ast.keyword(place, odd))
        else:
            place.value = odd
    return ast.unparse(tree)


def is_ours(call: ast.Call) -> bool:
    """Whether a call is one of the library's, or of a method, and says itself what it refuses."""
    name = ast.unparse(call.func)
    return "." in name and not name.startswith(("np.", "copy.")) and not name.endswith(UNCHECKED)


def left_out(call: ast.Call, names: Mapping[str, Any]) -> list[str]:
    """The keywords that a call leaves out, which only functions and configs of the library tell."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        function = eval(ast.unparse(call.func), dict(names))
        signature = getattr(function, "_signature", None)  # of a config, which takes any field
        parameters = inspect.signature(function).parameters if signature is None else {}
    except Exception:
        return []
    named = [name for name, parameter in parameters.items() if parameter.kind in kinds]
    left = (named if signature is None else list(signature.arguments))[len(call.args) :]
    return [name for name in left if all(keyword.arg != name for keyword in call.keywords)]
