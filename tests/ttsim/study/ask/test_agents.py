"""The server of the Model Context Protocol, by the client of its Python SDK."""

import asyncio
import json

import pytest

from ttsim.study.ask.agents import server
from ttsim.study.ask.tools import TOOLS

client = pytest.importorskip("mcp.client.client", reason="the package mcp is not installed")
LAYER = {"input_height": 16, "input_width": 16, "in_channels": 64, "out_channels": 32, "kernel_size": 2, "stride": 2}


def called(*calls):
    """The tools, and the results of calls."""

    async def talk():
        async with client.Client(server()) as talking:
            listed = await talking.list_tools()
            return listed.tools, [await talking.call_tool(name, given) for name, given in calls]

    return asyncio.run(talk())


def test_tools_are_listed_and_answer():
    asked = {"layer": LAYER, "device": "n150"}
    tools, (estimated, explained) = called(("estimate", asked), ("explain", asked))
    assert {tool.name: (tool.description, tool.input_schema) for tool in tools} == {
        name: (tool.about, tool.schema) for name, tool in TOOLS.items()
    }
    answer = TOOLS["estimate"].call(asked)
    assert estimated.structured_content == json.loads(estimated.content[0].text) == answer
    assert explained.content[0].text == TOOLS["explain"].call(asked)["text"]


def test_mistakes_are_results(monkeypatch):
    def fails(self, arguments):
        raise ZeroDivisionError("by hand")

    _, results = called(("estimate", {"op": "rel"}), ("estimat", {}))
    assert [(result.is_error, result.content[0].text) for result in results] == [
        (True, "'rel' is no operation that ttsim plans, did you mean 'relu'?"),
        (True, "there is no tool 'estimat', did you mean 'estimate'?"),
    ]
    monkeypatch.setattr("ttsim.study.ask.tools.Tool.call", fails)
    _, (failed,) = called(("estimate", {}))
    assert failed.content[0].text == "ttsim failed at this call: ZeroDivisionError: by hand"
