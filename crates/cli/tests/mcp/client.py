"""A client on the official SDK: MODE (auto or legacy) SCENARIO AVFS.

AVFS is the program, or the daemon's socket, to which streamable HTTP is spoken."""

import asyncio
import json
import os
import stat
import sys
from contextlib import AsyncExitStack

from mcp import StdioServerParameters

MODE, SCENARIO, AVFS = sys.argv[1:4]


def field(value, name):
    """A field by its name on the wire; the SDKs spell it differently."""
    snake = "".join("_" + c.lower() if c.isupper() else c for c in name)
    return getattr(value, snake) if hasattr(value, snake) else getattr(value, name)


class Server:
    """One server, by whichever SDK is there."""

    def __init__(self, *words):
        self.words = words
        self.parameters = StdioServerParameters(command=AVFS, args=["mcp", *words], env=dict(os.environ))
        self.context = AsyncExitStack()

    async def transport(self):
        """How to reach the server, in the terms of whichever SDK is there."""
        if not stat.S_ISSOCK(os.stat(AVFS).st_mode):
            return self.parameters
        from mcp.client.streamable_http import streamable_http_client

        try:
            import httpx2 as httpx
        except ImportError:
            import httpx
        by_socket = httpx.AsyncHTTPTransport(uds=AVFS)
        said = dict(zip(self.words[::2], self.words[1::2]))
        client = httpx.AsyncClient(transport=by_socket, timeout=60, headers={"avfs-name": said["--agent"]})
        client = await self.context.enter_async_context(client)
        address = f"http://localhost/mcp?vault=v&toolset={said.get('--toolset', 'core')}"
        return streamable_http_client(address, http_client=client)

    async def __aenter__(self):
        await self.context.__aenter__()
        transport = await self.transport()
        try:
            from mcp import Client

            self.client = await self.context.enter_async_context(Client(transport, mode=MODE))
            expected = "2026-07-28" if MODE == "auto" else "2025-11-25"
            assert self.client.protocol_version == expected, self.client.protocol_version
        except ImportError:
            from mcp import ClientSession
            from mcp.client.stdio import stdio_client

            if transport is self.parameters:
                transport = stdio_client(transport)
            streams = await self.context.enter_async_context(transport)
            self.client = await self.context.enter_async_context(ClientSession(*streams[:2]))
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


async def guide():
    """The guide's patterns with its own names, parameters and result keys."""
    async with Server("--toolset", "guide", "--agent", "g") as server:
        call, refused = server.call, server.refused

        async def listed(tool, **arguments):
            return json.loads(await call(tool, **arguments))

        # 1: a disposable sandbox.
        made = await call("workspace_create", name="sandbox-untrusted-script", memory_mb=1024)
        keys = {"workspace_id", "name", "state", "ip", "boot_time_ms", "from_pool", "resources"}
        assert set(made) == keys and made["resources"]["memory_mb"] == 1024, made
        box = made["workspace_id"]
        text = await call("file_write", workspace_id=box, path="/tmp/script.py", content="print(6*7)\n")
        assert text == "File written: /tmp/script.py", text
        ran = await call("exec", workspace_id=box, command="python3 /tmp/script.py", timeout_secs=10)
        assert ran == {"exit_code": 0, "stdout": "42\n", "stderr": ""}, ran
        assert (await refused("exec", workspace_id=box, command="sleep 9", timeout_secs=1))["error"] == "TimedOut"
        assert (await refused("workspace_create", name="net", allow_internet=True))["error"] == "Denied"
        assert (await refused("network_policy", workspace_id=box, allow_internet=True))["error"] == "Denied"
        assert not (await call("network_policy", workspace_id=box))["network_policy"]["allow_internet"]
        await call("workspace_destroy", workspace_id=box)
        gone = await refused("exec", workspace_id=box, command="true")
        assert gone["error"] in ("NotFound", "Invalid") and gone["next"], gone

        # 2: checkpoint and roll back.
        dev = (await call("workspace_create", name="dev-loop"))["workspace_id"]
        await call("file_write", workspace_id=dev, path="/app/index.js", content="v1\n", mode="0600")
        saved = await call("snapshot_create", workspace_id=dev, name="after-npm-install")
        assert set(saved) == {"snapshot_id", "name", "workspace_id", "has_memory", "created_at"}, saved
        await call("exec", workspace_id="dev-loop", command="rm -r /app; echo junk > /junk")
        await call("snapshot_restore", workspace_id=dev, snapshot_name="after-npm-install")
        assert await call("file_read", workspace_id=dev, path="/app/index.js") == "v1\n"
        assert (await refused("snapshot_create", workspace_id=dev, name="m", include_memory=True))["error"]

        # 3: hypotheses in forks.
        await call("file_write", workspace_id=dev, path="/app/problem.py", content="def solve(n): pass\n")
        await call("snapshot_create", workspace_id=dev, name="base-ready")
        forks = []
        for name in ["approach-sorting", "approach-hashmap"]:
            fork = await call("workspace_fork", workspace_id=dev, snapshot_name="base-ready", new_name=name)
            assert fork["forked_from"]["snapshot_name"] == "base-ready" and fork["name"] == name, fork
            assert fork["forked_from"]["source_workspace_id"] == dev
            forks.append(fork["workspace_id"])
        batch = await call("workspace_batch_fork", workspace_id=dev, count=3, snapshot_name="base-ready")
        assert batch["success_count"] == 3 and [w["name"] for w in batch["workers"]][0] == "worker-1", batch
        commands = [f"echo {n}; exit {n}" for n in range(2)]
        ran = await call("exec_parallel", workspace_ids=forks, commands=commands)
        assert ran["summary"]["total"] == 2 and ran["summary"]["succeeded"] == 1, ran
        assert [r["stdout"] for r in ran["results"]] == ["0\n", "1\n"], ran
        info = await call("workspace_info", workspace_id=forks[0])
        assert info["forked_from"]["source_workspace_name"] == "dev-loop", info
        await call("workspace_destroy", workspace_id=forks[0])

        # 4: an environment that outlives this client; 8: variables.
        env = (await call("workspace_create", name="rust-dev-env"))["workspace_id"]
        assert await call("set_env", workspace_id=env, vars={"TOOL": "ready"}) == {"count": 1, "status": "set"}
        await call("workspace_stop", workspace_id=env)
        stopped = await refused("exec", workspace_id=env, command="true")
        assert "workspace_start" in stopped["hint"], stopped

    async with Server("--toolset", "guide", "--agent", "g") as server:
        call, refused = server.call, server.refused
        found = json.loads(await call("workspace_list", state_filter="stopped"))
        assert [it["name"] for it in found] == ["rust-dev-env"] and found[0]["owned"], found
        env = found[0]["workspace_id"]
        await call("workspace_start", workspace_id=env)
        ran = await call("exec", workspace_id=env, command="echo $TOOL $X", env={"X": "own"})
        assert ran["stdout"] == "ready own\n", ran

        # 5: editing files.
        await call("file_write", workspace_id=env, path="/app/c.py", content="D = 1\nD = 1\n")
        text = await call("file_edit", workspace_id=env, path="/app/c.py", old_string="D = 1", new_string="D = 2")
        assert text == "File edited: /app/c.py"
        assert await call("file_read", workspace_id=env, path="/app/c.py") == "D = 2\nD = 1\n"
        assert await call("file_read", workspace_id=env, path="/app/c.py", offset=2, limit=3) == "= 2"
        entry = json.loads(await call("file_list", workspace_id=env, path="/app"))[0]
        assert set(entry) == {"name", "kind", "size", "permissions", "modified"}, entry
        await call("exec", workspace_id=env, command="head -c 9 /dev/urandom > /app/bin; printf '\\xff' >> /app/bin")
        assert (await refused("file_read", workspace_id=env, path="/app/bin"))["error"] == "Invalid"

        # Background builds.
        job = await call("exec_background", workspace_id=env, command="echo begun; read x < /wait; echo $x", workdir="/")
        assert job["status"] == "started", job
        while True:
            polled = await call("exec_poll", workspace_id=env, job_id=job["job_id"])
            assert set(polled) == {"job_id", "running", "exit_code", "stdout", "stderr"}, polled
            if not polled["running"]:
                break
            await asyncio.sleep(0.1)
        assert polled["stdout"].startswith("begun"), "also of one that failed"
        job = await call("exec_background", workspace_id=env, command="sleep 600")
        killed = await call("exec_kill", workspace_id=env, job_id=job["job_id"])
        assert killed == {"job_id": job["job_id"], "signal": 9, "status": "killed"}, killed
        assert (await refused("exec_poll", workspace_id="dev-loop", job_id=job["job_id"]))["error"] == "NotFound"

        # 6: git.
        setup = "mkdir -p /workspace/repo && cd /workspace/repo && git init -q -b main && echo '# Old' > README.md"
        assert (await call("exec", workspace_id=env, command=setup))["exit_code"] == 0
        who = {"author_name": "A", "author_email": "a@b.example"}
        repo = {"workspace_id": env, "path": "/workspace/repo"}
        done = await call("git_commit", message="one; $(touch /pwned) 'two'", add_all=True, **repo, **who)
        assert done["branch"] == "main" and done["summary"] == "one; $(touch /pwned) 'two'", done
        await call("file_edit", workspace_id=env, path="/workspace/repo/README.md", old_string="Old", new_string="New")
        status = await call("workspace_git_status", **repo)
        assert status["branch"] == "main" and status["modified"] == ["README.md"] and status["dirty"], status
        diff = await call("git_diff", stat=True, **repo)
        assert "+# New" in diff["diff"] and not diff["truncated"] and "README" in diff["stat"], diff
        assert (await call("git_commit", message="x", **repo, **who))["status"] == "nothing_to_commit"
        assert (await call("git_status", workspace_id=env, path="/app"))["error"] == "not_a_git_repository"
        assert (await refused("git_clone", workspace_id=env, url="https://example.com/x.git"))["error"] == "Denied"

        # 7: sizes of snapshots.
        await call("exec", workspace_id=env, command="head -c 100000 /dev/urandom > /big")
        await call("snapshot_create", workspace_id=env, name="with-big")
        await call("exec", workspace_id=env, command="rm /big; echo new > /new")
        snapshots = (await call("snapshot_list", workspace_id=env))["snapshots"]
        size = {it["name"]: it for it in snapshots}["with-big"]
        assert size["used_bytes"] == 100000 and size["referenced_bytes"] > 100000, size
        differs = await call("snapshot_diff", workspace_id=env, snapshot_name="with-big")
        changes = {(it["change"], it["path"]) for it in differs["files"]}
        assert changes == {("deleted", "/big"), ("created", "/new")}, differs
        await call("snapshot_delete", workspace_id=env, snapshot_name="with-big")

        golden = await call("workspace_prepare", name="gold", setup_commands=["echo ready > /ready"])
        assert golden["snapshot_name"] == "golden" and "reused_existing" not in golden, golden
        assert (await call("workspace_prepare", name="gold"))["reused_existing"]
        told = await refused("port_forward", workspace_id=env, guest_port=80, host_port=8080)
        assert told["error"] == "Denied" and told["hint"].endswith(" 80 8080`"), told
        assert not (await call("port_forward_remove", workspace_id=env, guest_port=80))["removed"]
        assert (await call("workspace_logs", workspace_id=env))["console"]
        assert (await call("workspace_adopt", workspace_id=env))["adopted"]
        assert (await call("workspace_adopt_all"))["adopted_count"] >= 3


async def sandbox():
    """agentkernel's names."""
    async with Server("--toolset", "sandbox", "--agent", "s") as server:
        call, refused = server.call, server.refused
        heard = []

        async def progress(count, total, message):
            heard.append(message)

        run = {"command": ["sh", "-c", "echo $A; pwd; sleep 0.5; exit 3"], "cwd": "/tmp", "env": {"A": "x y"}}
        result = await server.raw("sandbox_run", run, progress_callback=progress)
        said = field(result, "structuredContent")
        assert result.content[0].text == "x y\n/tmp\n" and said["exit_code"] == 3 and not said["success"], said
        assert heard, "it streams"
        slow = await call("sandbox_run", command="sleep 60", timeout_ms=500)
        assert slow["status"] == "timed_out" and slow["exit_code"] is None, slow
        assert (await refused("sandbox_run", command="true", network={"allowed_domains": ["x.org"]}))["error"] == "Denied"
        assert (await refused("sandbox_run", command="true", image="alpine:3.20"))["error"] == "Unavailable"
        limited = await call("sandbox_run", command="ulimit -v; true", profile="restrictive")
        assert limited["success"], limited
        made = await call("sandbox_create", name="box")
        assert made == "Sandbox 'box' created and started with image 'host'", made
        wrote = await call("sandbox_file_write", name="box", path="/a/hello.txt", content="hello world")
        assert wrote == "Wrote 11 bytes to '/a/hello.txt' in sandbox 'box'", wrote
        assert await call("sandbox_file_read", name="box", path="/a/hello.txt") == "hello world"
        await call("sandbox_write_files", name="box", files={"/x": "1", "/y": "2"})
        ran = await call("sandbox_exec", name="box", command=["cat", "/x", "/y"], env=["K=V"], workdir="/a")
        assert ran["output"] == "12", ran
        assert (await refused("sandbox_exec", name="box", command=["id"], sudo=True))["error"] == "Denied"
        assert "box\trunning\tnamespace" in await call("sandbox_list")
        job = await call("sandbox_exec_detach", name="box", command="echo out; echo err >&2; sleep 600")
        assert job["status"] == "running" and job["sandbox"] == "box", job
        while "out" not in (logs := await call("sandbox_exec_logs", id=job["id"]))["stdout"]:
            await asyncio.sleep(0.1)
        assert "stdout" not in await call("sandbox_exec_logs", id=job["id"], stream="stderr")
        assert json.loads(await call("sandbox_exec_list", name="box"))[0]["id"] == job["id"]
        assert (await call("sandbox_exec_kill", id=job["id"]))["status"] == "failed"
        assert (await call("sandbox_exec_status", id=job["id"]))["exit_code"] is None
        assert (await call("snapshot_take", sandbox="box", name="s1"))["sandbox"] == "box"
        assert (await call("snapshot_get", name="s1"))["name"] == "s1"
        assert (await call("snapshot_restore", name="s1", as_name="again"))["sandbox"] == "again"
        assert await call("sandbox_file_read", name="again", path="/x") == "1"
        assert (await call("sandbox_fork", name="box", as_name="forked"))["sandbox"]["name"] == "forked"
        await call("sandbox_stop", name="box")
        assert (await refused("sandbox_exec", name="box", command="true"))["error"] == "Conflict"
        await call("sandbox_start", name="box")
        assert len(json.loads(await call("snapshot_list"))) >= 1
        await call("snapshot_delete", name="s1")
        assert await call("sandbox_remove", name="box") == "Sandbox 'box' removed"


def filled(value, answers):
    """`$job.id` is a field of the answer that was kept as `job`."""
    if isinstance(value, str) and value.startswith("$"):
        name, inner = value[1:].split(".")
        return answers[name][inner]
    if isinstance(value, list):
        return [filled(it, answers) for it in value]
    if isinstance(value, dict):
        return {key: filled(it, answers) for key, it in value.items()}
    return value


async def every(toolset):
    """Every tool of a set, by the calls in `calls.json`."""
    with open("calls.json") as file:
        calls = json.load(file)[toolset]
    async with Server("--toolset", toolset, "--vault", "v", "--agent", "sdk") as server:
        answers, called = {}, set()
        for step in calls:
            result = await server.raw(step["call"], filled(step["with"], answers))
            called.add(step["call"])
            text = result.content[0].text
            if "refused" in step:
                assert field(result, "isError"), (step, result)
                problem = json.loads(text)
                assert problem["error"] == step["refused"], (step, problem)
                assert problem.get("next") or problem.get("hint"), (step, problem)
                continue
            assert not field(result, "isError"), (step, result)
            said = field(result, "structuredContent")
            for name, value in step.get("gives", {}).items():
                assert said[name] == value, (name, step, said)
            content = said.get("content", "") if isinstance(said, dict) else ""
            assert step.get("has", "") in f"{text}\n{content}", (step, text)
            answers[step.get("as")] = said
        listed = {tool.name for tool in (await server.client.list_tools()).tools}
        assert called == listed, ("tools that were not called", listed - called)


name, _, rest = SCENARIO.partition(":")
asyncio.run(globals()[name](*rest.split(":") if rest else ()))
print("all is well")
