// The official TypeScript SDK (`@agentclientprotocol/sdk`), used as its own documentation does.
// Called as the other clients are (see work.py); the SDK's entry file comes first.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [entry, work, ...words] = process.argv.slice(2);
const acp = await import(pathToFileURL(entry).href);
const at = words.indexOf("--");
const numbers = Object.fromEntries(words.slice(0, at).map((word) => word.split("=")).map(([n, v]) => [n, Number(v)]));
const [command, ...args] = words.slice(at + 1);

const allow = async ({ params }) => ({
  outcome: { outcome: "selected", optionId: params.options[0].optionId },
});

const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

const residentBytes = () => {
  globalThis.gc?.();
  return Number(readFileSync("/proc/self/statm", "ascii").split(" ")[1]) * 4096;
};

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// One child in one session; `use` gets a function that prompts and returns the whole text.
async function opened(use) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
  child.stderr.resume();
  child.stdin.on("error", () => {});
  const gone = new Promise((resolve) => child.on("exit", resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const app = acp.client({ name: "bench" }).onRequest(acp.methods.client.session.requestPermission, allow);
  try {
    return await app.connectWith(stream, async (context) => {
      await context.request(acp.methods.agent.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: {},
      });
      return await context.buildSession("/").withSession((session) =>
        use(async () => {
          const answered = session.prompt("go");
          const text = await session.readText();
          await answered;
          return text;
        }, child),
      );
    });
  } finally {
    child.stdin.end();
    await gone;
  }
}

const converse = () => opened((turn) => turn());

function stopwatch() {
  const cpu = cpuSeconds();
  const wall = performance.now();
  return () => ({ cpu_seconds: cpuSeconds() - cpu, wall_seconds: (performance.now() - wall) / 1e3 });
}

const works = {
  async stream() {
    return await opened(async (turn) => {
      const read = stopwatch();
      const text = await turn();
      const measured = read();
      const { crc32 } = await import("node:zlib");
      return { ...measured, characters: text.length, sum: crc32(text) };
    });
  },
  async ask() {
    return { p50_seconds: Number(await converse()) / 1e9 };
  },
  async first_byte() {
    return { characters: (await converse()).length };
  },
  async runs() {
    const seconds = [];
    await converse();
    for (let number = 0; number < numbers.count; number++) {
      const began = performance.now();
      await converse();
      seconds.push((performance.now() - began) / 1e3);
    }
    return { p50_seconds: median(seconds) };
  },
  async crowd() {
    await converse();
    let left = numbers.count;
    const worker = async () => {
      while (left-- > 0) await converse();
    };
    const read = stopwatch();
    await Promise.all(Array.from({ length: numbers.at_a_time }, worker));
    return read();
  },
  async children() {
    const processes = [];
    const held = [];
    const openUpTo = async (count) => {
      while (held.length < count) {
        await new Promise((ready) => {
          const one = opened((turn, child) => {
            processes.push(child);
            ready();
            return turn();
          });
          held.push(one.catch(() => {}));
        });
      }
      await pause(200);
      return residentBytes();
    };
    const few = await openUpTo(numbers.few);
    const many = await openUpTo(numbers.many);
    for (const child of processes) child.kill("SIGKILL");
    await Promise.all(held);
    return { bytes_per_child: (many - few) / (numbers.many - numbers.few) };
  },
};

console.log(JSON.stringify(await works[work]()));
process.exit(0);
