"""The command mcp, which serves the tools of `tools` over the Model Context Protocol on stdin and stdout."""

import argparse
import asyncio
import json
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from device.errors import ArgumentError, TTSimError, nearest, shown
from ttsim.study.ask.tools import TOOLS
from ttsim.study.store import model_version

INSTRUCTIONS = (
    "ttsim predicts what calls of ttnn take of Tenstorrent devices, without a card. Arguments of calls are written as "
    'in lines of `ttsim ask`: {"ttnn.TensorSpec": {"shape": [1, 1, 64, 128], "dtype": "ttnn.bfloat16", '
    '"layout": "ttnn.TILE_LAYOUT"}}; a transposed convolution may be a layer instead: {"input_height": 32, '
    '"input_width": 32, "in_channels": 64, "out_channels": 32, "kernel_size": 2, "stride": 2}.'
)


def mcp_command(options: argparse.Namespace) -> int:
    """Serves until stdin ends. Returns the exit code; raises ArgumentError if the SDK is not installed."""
    if find_spec("mcp") is None:
        raise ArgumentError("mcp: this needs the package mcp; pip install 'ttsim[mcp]'")
    asyncio.run(_serve(server()))
    return 0


async def _serve(serving: Any) -> None:
    async with import_module("mcp.server.stdio").stdio_server() as (reads, writes):
        await serving.run(reads, writes, serving.create_initialization_options())


def server() -> Any:
    """The SDK's server with all tools; an invalid call returns a result that describes the error."""
    types = import_module("mcp_types")

    async def listed(context: Any, params: Any) -> Any:
        hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
        tools = [
            types.Tool(name=name, description=tool.about, input_schema=tool.schema, annotations=hints)
            for name, tool in TOOLS.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def called(context: Any, params: Any) -> Any:
        try:
            if params.name not in TOOLS:
                raise ArgumentError(f"there is no tool {shown(params.name)}{nearest(params.name, list(TOOLS))}")
            answer = TOOLS[params.name].call(params.arguments or {})
        except Exception as error:
            known = isinstance(error, TTSimError | OSError)
            said = str(error) if known else f"ttsim failed at this call: {type(error).__name__}: {error}"
            return types.CallToolResult(content=[types.TextContent(text=said)], is_error=True)
        text = answer.get("text") or json.dumps(answer)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)

    lowlevel = import_module("mcp.server.lowlevel")
    return lowlevel.Server(
        "ttsim", version=model_version(), instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )
