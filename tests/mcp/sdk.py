#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official Python client, in each mode, on stdio and by HTTP. Run by fixture.py."""

import asyncio
import os

from mcp import Client, StdioServerParameters

PROGRAM = StdioServerParameters(
    command=os.environ["MCP_COMMAND"], args=["--store", os.environ["MCP_STORE"], "mcp"])


async def exercise(name, server, mode):
    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["search", "open", "list"], tools
        found = await client.call_tool("search", {"query": "content"})
        assert "of 1 searched" in found.content[0].text, found
        wrong = await client.call_tool("open", {"handle": "nothing-here"})
        assert wrong.is_error, wrong
        resources = await client.list_resources()
        assert str(resources.resources[0].uri) == "annal://session/conformance", resources
        templates = await client.list_resource_templates()
        assert len(templates.resource_templates) == 4, templates
        read = await client.read_resource("annal://session/conformance/event/2")
        assert "This is the content" in read.contents[0].text, read
        try:
            await client.read_resource("annal://session/nobody")
        except Exception:  # its type differs from version to version
            pass
        else:
            raise AssertionError("a resource that does not exist was read")
        print(f"python, {name}, {mode}: {client.protocol_version} ok")


async def main():
    for mode in ("auto", "legacy", "2026-07-28"):
        await exercise("stdio", PROGRAM, mode)
        await exercise("HTTP", os.environ["MCP_URL"], mode)


asyncio.run(main())
