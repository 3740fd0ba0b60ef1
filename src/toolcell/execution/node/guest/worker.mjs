// One worker thread: builds a context that carries an image, runs one cell in it, then builds the
// next. Above: pool.mjs, by messages. Below: realm.mjs inside the context. Guest code sees nothing of
// this realm; should a hole let it in, there is no global worth having and no string becomes code here.
import { parentPort, workerData } from "node:worker_threads";
import { readFileSync } from "node:fs";
import module from "node:module";
import { types } from "node:util";
import v8 from "node:v8";
import vm from "node:vm";

const { isPromise, isNativeError } = types;
const { byteLength } = Buffer;
const bufferOf = Buffer.from;
const { process, performance } = globalThis;
const soon = setImmediate;
// `gc` is taken from one context and is in no other: the flag is off again before guests get theirs.
// It is the whole process's flag, so another worker that starts may have turned it off meanwhile.
function borrow() {
  for (;;) {
    v8.setFlagsFromString("--expose-gc");
    const found = vm.runInNewContext("[globalThis.gc, Object.getOwnPropertyNames(globalThis)]");
    v8.setFlagsFromString("--no-expose-gc");
    if (found[0] !== undefined) return found;
  }
}
const [gc, standardNames] = borrow();
const FAIL = 5, DONE = 4, START = 1, JUDGE = 3;
const HEADER = 8; // before each frame: kind, encoding, bytes (little endian at 4)
const FRAME_COST = 64; // what a frame costs the host beside its text
const FAIL_ROOM = 1 << 17;
const PREFIX = "(async function () {";

// ---- frames: written to shared memory, so that they outlive the thread -------------------------

const first = new SharedArrayBuffer(64 << 10);
let chunk, committed, at, spent, budget, over, refusedFrames;
let sharedBytes = first.byteLength;

function use(shared) {
  chunk = bufferOf(shared);
  committed = new Int32Array(shared, 0, 1);
  at = HEADER;
}
function beginFrames(bytes) {
  use(first);
  Atomics.store(committed, 0, HEADER);
  sharedBytes = first.byteLength;
  budget = bytes;
  spent = 0;
  over = refusedFrames = false;
}
function write(kind, text) {
  if (over) return false;
  const wellFormed = text.isWellFormed();
  const bytes = wellFormed ? byteLength(text) : text.length * 2;
  const cost = bytes + FRAME_COST;
  if (spent + cost > budget + (kind === FAIL ? FAIL_ROOM : 0)) {
    refusedFrames = true;
    return false;
  }
  const need = HEADER + bytes;
  if (at + need > chunk.length) {
    const shared = new SharedArrayBuffer(Math.max(Math.min(chunk.length * 2, 4 << 20), need + HEADER));
    new Int32Array(shared, 0, 1)[0] = HEADER;
    parentPort.postMessage({ type: "chunk", shared });
    sharedBytes += shared.byteLength;
    use(shared);
  }
  chunk[at] = kind;
  chunk[at + 1] = wellFormed ? 0 : 1;
  chunk.writeUInt32LE(bytes, at + 4);
  if (wellFormed) chunk.utf8Write(text, at + HEADER, bytes);
  else chunk.ucs2Write(text, at + HEADER, bytes);
  at += (need + 3) & ~3;
  spent += cost;
  over = kind === DONE || kind === FAIL;
  Atomics.store(committed, 0, at);
  return true;
}

// ---- memory outside the heap -----------------------------------------------------------------

let limit = 0, baseline = 0, refusedMemory = false;

function outside() {
  return process.memoryUsage().arrayBuffers - sharedBytes - baseline;
}
// How many bytes are left after taking `bytes`, at most a part so that it is asked again; or negative.
function room(bytes) {
  let left = limit - outside() - bytes;
  if (left < 0 && bytes <= limit) {
    gc();
    left = limit - outside() - bytes;
  }
  if (left < 0) refusedMemory = true;
  return Math.min(left, limit >> 3);
}

// ---- contexts --------------------------------------------------------------------------------

const realmScript = new vm.Script(readFileSync(new URL("./realm.mjs", import.meta.url), "utf8"),
  { filename: "realm.mjs" });
let context, realm, body, parsed, current = 0;
const images = new Map(); // number -> compiled scripts

const importModuleDynamically = () => { throw realm.moduleError(); };

function parseBody(source, filename) {
  if (body !== undefined && parsed === source) return "";
  try {
    parsed = source;
    body = new vm.Script(PREFIX + source + "\n})",
      { filename, columnOffset: -PREFIX.length, importModuleDynamically });
    return "";
  } catch (error) {
    return whereItBroke(error, source);
  }
}
// Name, line, column, message. Node writes the place into the head of the stack.
function whereItBroke(error, source) {
  const [place = "", , carets = ""] = String(error.stack).split("\n", 3);
  const line = Number(/:(\d+)$/.exec(place)?.[1] ?? 1);
  const caret = Math.max(carets.indexOf("^"), 0);
  const lines = source.split("\n", line + 1).length;
  const column = line > lines ? 1 : caret + 1 - (line === 1 ? PREFIX.length : 0);
  return `${error.name}\n${line}\n${Math.max(column, 1)}\n${error.message}`;
}
function evaluateBody() {
  const run = body.runInContext(context);
  body = parsed = undefined;
  return run;
}
const host = {
  write, parseBody, evaluateBody, room, isNativeError,
  isPromiseOf: isPromise,
  now: () => performance.now(),
};
function build(number) {
  limit = Number.MAX_SAFE_INTEGER;
  const image = images.get(number);
  context = vm.createContext(vm.constants.DONT_CONTEXTIFY, { codeGeneration: { strings: true, wasm: false } });
  realm = realmScript.runInContext(context)(host);
  for (const { name, script } of image.extensions) realm.add(name, script.runInContext(context));
  realm.boot(image.controller.runInContext(context), image.data);
  current = number;
}
function compileImage({ controller, extensions, data }) {
  const compile = ({ name, source }) =>
    new vm.Script(source, { filename: name, importModuleDynamically });
  return {
    controller: compile(controller),
    extensions: extensions.map((one) => ({ name: one.name, script: compile(one) })),
    data,
  };
}

// ---- steps -----------------------------------------------------------------------------------

function used() {
  const { used_heap_size: heap } = v8.getHeapStatistics();
  return heap + process.memoryUsage().arrayBuffers - sharedBytes;
}
function finish(broken, untouched = false) {
  parentPort.postMessage({
    type: "end", over: over || broken !== undefined, broken, untouched, refusedFrames, refusedMemory,
    used: over ? used() : 0,
  });
}
// A source that does not parse ends here: nothing ran, so the context is as fresh as before.
function refusesSource(text) {
  const { source, filename } = JSON.parse(text);
  const report = parseBody(source, filename);
  if (report === "") return false;
  const [name, line, column, ...rest] = report.split("\n");
  const message = rest.join("\n").slice(0, 16384);
  write(FAIL, JSON.stringify({
    name, message, stack: `    at ${filename}:${line}:${column}`, syntax: name === "SyntaxError",
  }));
  return true;
}
// Jobs run when this returns, then what was rejected is known, then the controller judges; at the
// end once more, because a getter of the result can start jobs too.
function step({ op, text, frames, memory }) {
  beginFrames(frames);
  if (memory) {
    limit = memory;
    baseline = process.memoryUsage().arrayBuffers - sharedBytes;
    refusedMemory = false;
  }
  if (op === START && refusesSource(text)) {
    finish(undefined, true);
    return;
  }
  let broken = realm.step(op, text);
  soon(() => {
    broken ??= realm.step(JUDGE);
    if (over) soon(() => finish(broken));
    else finish(broken);
  });
}
function prepare({ number, image }) {
  let error = "";
  try {
    if (image) {
      if (images.size > 3) images.delete(images.keys().next().value);
      images.set(number, compileImage(image));
    }
    context = realm = undefined;
    build(number);
  } catch (thrown) {
    current = 0;
    error = isNativeError(thrown) ? String(thrown.stack).slice(0, 4096) : "the prelude threw";
  }
  parentPort.postMessage({ type: "ready", number: current, error, used: used(), known: [...images.keys()] });
}
process.on("unhandledRejection", (reason, promise) => realm?.rejected(promise, reason));
process.on("rejectionHandled", (promise) => realm?.handled(promise));
parentPort.on("message", (message) => {
  if (message.type === "step") {
    step(message);
  } else if (message.type === "park") {
    gc({ type: "major", flavor: "last-resort" });
    parentPort.postMessage({ type: "parked" });
  } else {
    prepare(message);
  }
});

// ---- nothing to gain here --------------------------------------------------------------------

beginFrames(0);
parentPort.postMessage({ type: "boot", shared: first });
prepare({ number: workerData.number, image: workerData.image });
const standard = new Set(standardNames);
for (const name of Object.getOwnPropertyNames(globalThis)) {
  if (!standard.has(name) || name === "WebAssembly") delete globalThis[name];
}
module.registerHooks({ resolve() { throw new Error("modules cannot be loaded"); } });
