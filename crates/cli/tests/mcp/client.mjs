// A client on the official SDK: SDK (1 or 2) MODE (auto or legacy) TOOLSET SERVER [KEY]. The calls are in calls.json.
//
// SERVER is the program, or an address of streamable HTTP to which KEY is shown.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const [sdk, mode, toolset, server, key] = process.argv.slice(2);
const calls = JSON.parse(readFileSync("calls.json", "utf8"))[toolset];

const load = {
  1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  }),
  2: async () => ({
    ...(await import("@modelcontextprotocol/client")),
    ...(await import("@modelcontextprotocol/client/stdio")),
  }),
};
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await load[sdk]();

function transport() {
  if (!server.startsWith("http://")) {
    const args = ["mcp", "--toolset", toolset, "--vault", "v", "--agent", "sdk"];
    return new StdioClientTransport({ command: server, args, env: process.env });
  }
  const address = new URL(`${server}/mcp?vault=v&toolset=${toolset}`);
  return new StreamableHTTPClientTransport(address, { requestInit: { headers: { authorization: `Bearer ${key}` } } });
}

const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
await client.connect(transport());
if (sdk === "2") {
  const expected = mode === "auto" ? "2026-07-28" : "2025-11-25";
  assert.equal(client.getNegotiatedProtocolVersion(), expected);
}
assert.equal(client.getServerVersion().name, "agentvfs");
assert.ok(client.getInstructions().length > 100);

const { tools } = await client.listTools();
const answers = {};

// "$job.id" is a field of the answer that was kept as "job".
function filled(value) {
  if (typeof value === "string" && value.startsWith("$")) {
    const [name, field] = value.slice(1).split(".");
    return answers[name][field];
  }
  if (Array.isArray(value)) return value.map(filled);
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, filled(inner)]));
  return value;
}

const called = new Set();
for (const step of calls) {
  const result = await client.callTool({ name: step.call, arguments: filled(step.with) });
  const told = `${JSON.stringify(step)}: ${JSON.stringify(result)}`;
  called.add(step.call);
  const text = result.content[0].text;
  if (step.refused) {
    assert.ok(result.isError, told);
    const problem = JSON.parse(text);
    assert.equal(problem.error, step.refused, told);
    assert.ok(problem.next || problem.hint, told);
    continue;
  }
  assert.ok(!result.isError, told);
  const said = result.structuredContent;
  for (const [name, value] of Object.entries(step.gives ?? {})) assert.deepEqual(said[name], value, `${name}: ${told}`);
  if (step.has) assert.ok(`${text}\n${said?.content ?? ""}`.includes(step.has), told);
  if (step.as) answers[step.as] = said;
}
const missed = tools.map((tool) => tool.name).filter((name) => !called.has(name));
assert.deepEqual(missed, [], "tools that were not called");

if (toolset === "core") {
  const heard = [];
  const slow = { command: "for i in 1 2 3; do echo $i; sleep 0.4; done" };
  const onprogress = (progress) => heard.push(progress.message);
  const options = { onprogress };
  const params = { name: "exec", arguments: slow };
  const ran = await (sdk === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options));
  assert.equal(ran.structuredContent.stdout, "1\n2\n3\n");
  assert.ok(heard.length >= 2 && heard[0].includes("1\n"), JSON.stringify(heard));
  const { resources } = await client.listResources();
  assert.ok(resources.length > 0);
  const read = await client.readResource({ uri: "avfs://vault/v/file/d/a.txt" });
  assert.equal(read.contents[0].text, "alpha\ngamma\n");
  const { prompts } = await client.listPrompts();
  const got = await client.getPrompt({ name: prompts[0].name, arguments: { task: "this" } });
  assert.ok(got.messages[0].content.text.includes("this"));
}
await client.close();
console.log("all is well");
