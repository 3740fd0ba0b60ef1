// The supervisor process: reads commands from stdin, answers on stdout, one line each.
// Above: the Python side (supervisor.py, wire.py say what a line is). Below: pool.mjs.
// It runs no guest code itself, and ends when stdin does.
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { Pool } from "./pool.mjs";

// Before the first worker is made. On the command line they would make Node's own code cache useless.
for (const flag of [
  // Loops that Turbofan compiled may lack the check at which a thread can be stopped: seen with V8
  // 13.6 and `for (;;) a.push(new Array(1000))`. Maglev, the tier below, has it.
  "--no-turbofan",
  // No string becomes code in a realm of the host; contexts of cells allow it for themselves.
  "--disallow-code-generation-from-strings",
  // A collection asked for has freed the buffers when it returns.
  "--no-concurrent-array-buffer-sweeping",
  // Collect early, so that what a look from outside sees is mostly alive.
  "--initial-old-space-size=16",
  "--heap-growing-percent=30",
]) setFlagsFromString(flag);

const START = 1, SETTLE = 2;
const options = JSON.parse(process.argv[2]);
const images = new Map();
const cells = new Map();

function say(verb, id, payload) {
  process.stdout.write(verb + " " + id + " " + payload + "\n");
}
const pool = new Pool(options, images, () => say("workers", 0, JSON.stringify(pool.counts())));

function report(cell, result, frames) {
  const { kind, cause, refusedFrames, refusedMemory } = result;
  const gone = kind !== "step" || result.over;
  if (gone) cells.delete(cell.id);
  const head = JSON.stringify({ kind, cause, refusedFrames, refusedMemory, ...pool.counts() });
  say("end", cell.id, head.slice(0, -1) + ',"frames":' + frames + "}");
}
function step(cell, op, text, milliseconds) {
  pool.step(cell.slot, { op, text, frames: cell.frames, memory: op === START ? cell.memory : 0 },
    milliseconds, cell.memory, (result, frames) => report(cell, result, frames));
}
const verbs = {
  image(number, _, payload) {
    images.set(number, JSON.parse(payload));
  },
  forget(number) {
    images.delete(number);
  },
  prepare(token, [number]) {
    pool.prepare(number, (error) => say("ready", token, JSON.stringify({ error, ...pool.counts() })));
  },
  start(id, [number, milliseconds, memory, frames], payload) {
    const cell = { id, number, memory, frames, slot: undefined };
    cell.begin = (slot, error) => {
      if (error === "") {
        step(cell, START, payload, milliseconds);
      } else {
        if (slot !== undefined) pool.drop(cell);
        report(cell, { kind: error === "busy" ? "busy" : "image", cause: error }, "[]");
      }
    };
    cell.lost = () => cells.delete(id); // a later settle is told so
    cells.set(id, cell);
    pool.start(cell);
  },
  settle(id, [milliseconds], payload) {
    const cell = cells.get(id);
    if (cell === undefined) report({ id }, { kind: "crash", cause: "its worker ended" }, "[]");
    else step(cell, SETTLE, payload, milliseconds);
  },
  park(id) {
    const cell = cells.get(id);
    if (cell !== undefined) pool.park(cell.slot);
  },
  dispose(id) {
    const cell = cells.get(id);
    cells.delete(id);
    if (cell !== undefined) pool.drop(cell);
  },
  strip(token, _, payload) {
    stripper(token, payload);
  },
};

// ---- TypeScript: a thread of its own, because loading it takes a while -------------------------

let typescript;
const stripping = new Map();
function stripper(token, payload) {
  if (typescript === undefined) {
    typescript = new Worker(new URL("./typescript.mjs", import.meta.url), { env: {}, argv: [], stdout: true, stderr: true });
    typescript.on("message", ({ token: one, text }) => {
      stripping.delete(one);
      say("stripped", one, text);
    });
    typescript.on("error", (error) => { typescript.cause = String(error?.message ?? error); });
    typescript.on("exit", () => {
      const cause = typescript.cause ?? "the transformer ended";
      typescript = undefined;
      for (const one of stripping.keys()) say("stripped", one, JSON.stringify({ broken: cause }));
      stripping.clear();
    });
  }
  stripping.set(token, payload);
  typescript.postMessage({ token, payload });
}

// ---- lines -------------------------------------------------------------------------------------

function obey(line) {
  const [verb, id, numbers] = line.split(" ", 3);
  const payload = line.slice(verb.length + id.length + numbers.length + 3);
  verbs[verb](Number(id), numbers.split(",").map(Number), payload);
}
let parts = [];
process.stdin.on("data", (bytes) => {
  let from = 0;
  for (let to = bytes.indexOf(10); to !== -1; to = bytes.indexOf(10, from)) {
    parts.push(bytes.subarray(from, to));
    obey(parts.length === 1 ? parts[0].toString() : Buffer.concat(parts).toString());
    parts = [];
    from = to + 1;
  }
  if (from < bytes.length) parts.push(bytes.subarray(from));
});
// At once, whatever a thread is doing: an ordinary exit waits for threads that do not listen.
const leave = () => process.kill(process.pid, "SIGKILL");
process.stdin.on("end", leave).on("error", leave);
process.stdout.on("error", leave);
say("hello", 0, JSON.stringify({
  node: process.versions.node,
  sound: typeof Worker.prototype.getHeapStatistics === "function" && process.permission !== undefined,
}));
