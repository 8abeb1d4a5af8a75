"""A client on the official SDK: MODE (auto or legacy) SCENARIO AVFS."""

import asyncio
import json
import os
import sys

from mcp import StdioServerParameters

MODE, SCENARIO, AVFS = sys.argv[1:4]


def field(value, name):
    """A field by its name on the wire; the SDKs spell it differently."""
    snake = "".join("_" + c.lower() if c.isupper() else c for c in name)
    return getattr(value, snake) if hasattr(value, snake) else getattr(value, name)


class Server:
    """One server, by whichever SDK is there."""

    def __init__(self, *words):
        self.parameters = StdioServerParameters(command=AVFS, args=["mcp", *words], env=dict(os.environ))

    async def __aenter__(self):
        try:
            from mcp import Client

            self.context = Client(self.parameters, mode=MODE)
            self.client = await self.context.__aenter__()
            expected = "2026-07-28" if MODE == "auto" else "2025-11-25"
            assert self.client.protocol_version == expected, self.client.protocol_version
        except ImportError:
            from contextlib import AsyncExitStack

            from mcp import ClientSession
            from mcp.client.stdio import stdio_client

            self.context = AsyncExitStack()
            await self.context.__aenter__()
            read, write = await self.context.enter_async_context(stdio_client(self.parameters))
            self.client = await self.context.enter_async_context(ClientSession(read, write))
            await self.client.initialize()
        return self

    async def __aexit__(self, *why):
        return await self.context.__aexit__(*why)

    async def raw(self, name, arguments, **more):
        return await self.client.call_tool(name, arguments, **more)

    async def call(self, tool, /, **arguments):
        """What a tool answers: its structured content, else its text."""
        result = await self.raw(tool, arguments)
        assert not field(result, "isError"), (tool, arguments, result)
        said = field(result, "structuredContent")
        return said if said is not None else result.content[0].text

    async def refused(self, tool, /, **arguments):
        result = await self.raw(tool, arguments)
        assert field(result, "isError"), (tool, arguments, result)
        return json.loads(result.content[0].text)


async def core():
    async with Server("--agent", "sdk") as server:
        tools = (await server.client.list_tools()).tools
        names = [tool.name for tool in tools]
        assert names == ["exec", "job", "read", "write", "edit", "search", "vault", "checkpoint"], names
        for tool in tools:
            hints = tool.annotations
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]:
                assert field(hints, hint) is not None, (tool.name, hint)
            assert field(tool, "outputSchema"), tool.name

        heard = []

        async def progress(count, total, message):
            heard.append((count, message))

        slow = {"command": "for i in 1 2 3; do echo $i; sleep 0.4; done"}
        said = await server.raw("exec", slow, progress_callback=progress)
        said = field(said, "structuredContent")
        assert said["exit_code"] == 0 and said["stdout"] == "1\n2\n3\n", said
        assert len(heard) >= 2 and "1\n" in heard[0][1], heard

        await server.call("write", path="/p/a.py", content="print('one')\n")
        assert (await server.call("exec", command="python3 /p/a.py"))["stdout"] == "one\n"
        await server.call("edit", path="/p/a.py", old="one", new="two")
        assert (await server.call("read", path="/p/a.py"))["content"] == "print('two')\n"
        assert (await server.call("read", path="/p"))["entries"][0]["name"] == "a.py"
        assert (await server.call("search", pattern="two"))["matches"][0]["line"] == 1
        await server.call("checkpoint", action="save", name="s")
        await server.call("exec", command="rm -r /p")
        assert (await server.call("checkpoint", action="diff", name="s"))["changes"]
        await server.call("checkpoint", action="restore", name="s")
        assert (await server.call("checkpoint", action="list"))["checkpoints"]
        await server.call("vault", action="fork", name="f")
        assert len((await server.call("vault", action="list"))["vaults"]) == 2
        assert (await server.call("vault", action="info", vault="f"))["parent"] == "v"
        started = await server.call("exec", command="sleep 0.2; echo done", background=True)
        ended = await server.call("job", action="wait", job_id=started["job_id"])
        assert ended["exit_code"] == 0 and ended["stdout"] == "done\n", ended
        assert (await server.call("job", action="list"))["jobs"]
        assert (await server.refused("read", path="/none"))["error"] == "NotFound"
        assert (await server.refused("exec", command="x", nonsense=1))["error"] == "Invalid"

        many = await asyncio.gather(*(server.call("exec", command=f"echo {n}") for n in range(20)))
        assert sorted(int(it["stdout"]) for it in many) == list(range(20))

        resources = await server.client.list_resources()
        assert resources.resources
        templates = await server.client.list_resource_templates()
        assert field(templates, "resourceTemplates")
        uri = "avfs://vault/v/file/p/a.py"
        read = await server.client.read_resource(uri)
        assert read.contents[0].text == "print('two')\n"
        prompts = (await server.client.list_prompts()).prompts
        got = await server.client.get_prompt(prompts[0].name, {"task": "this"})
        assert "this" in got.messages[0].content.text


asyncio.run(globals()[SCENARIO]())
print("all is well")
