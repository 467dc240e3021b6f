// A client built on the official TypeScript SDK: `node typescript_sdk_client.mjs SDK_FOLDER AGENT [ARG ...]`.
// It goes through the scenario `tour`: prompt, permission, files, terminal, cancel, load. It prints the stop reasons.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, command, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(`${sdk}/dist/acp.js`).href);
const ours = acp.methods.client;
const agents = acp.methods.agent;

const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

let said = () => {};

const client = acp
  .client({ name: "typescript-sdk-client" })
  .onNotification(ours.session.update, ({ params }) => {
    if (params.update.sessionUpdate === "agent_message_chunk") said();
  })
  .onRequest(ours.session.requestPermission, ({ params }) => {
    const chosen = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  })
  .onRequest(ours.fs.readTextFile, () => ({ content: "notes" }))
  .onRequest(ours.fs.writeTextFile, () => ({}))
  .onRequest(ours.terminal.create, () => ({ terminalId: "t-1" }))
  .onRequest(ours.terminal.waitForExit, () => ({ exitCode: 0 }))
  .onRequest(ours.terminal.output, () => ({ output: "hello", truncated: false }))
  .onRequest(ours.terminal.release, () => ({}));

const reasons = await client.connectWith(stream, async (connection) => {
  await connection.request(agents.initialize, {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
  });
  const { sessionId } = await connection.request(agents.session.new, { cwd: "/srv", mcpServers: [] });
  const prompt = { sessionId, prompt: [{ type: "text", text: "the tour" }] };
  const first = await connection.request(agents.session.prompt, prompt);
  const begun = new Promise((resolve) => (said = resolve));
  const turn = connection.request(agents.session.prompt, prompt);
  await begun;
  await connection.notify(agents.session.cancel, { sessionId });
  const second = await turn;
  await connection.request(agents.session.load, { sessionId, cwd: "/srv", mcpServers: [] });
  return [first.stopReason, second.stopReason];
});

agent.stdin.end();
if (agent.exitCode === null) await once(agent, "exit");
console.log(reasons.join(" "));
process.exit(0);
