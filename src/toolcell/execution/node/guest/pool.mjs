// The worker threads: which are warm, which run a cell, how they end. Above: supervisor.mjs.
// Below: worker.mjs, by messages. Knows deadlines and memory, not what a frame says.
import { Worker } from "node:worker_threads";

const WATCH_EVERY = 5; // ms between looks at the memory of running workers
const EXIT_PATIENCE = 250; // ms to wait for a thread that was told to stop before its cell is told
const STUCK_AFTER = 10_000; // ms after which a thread that does not stop takes the process with it
const PARK_AFTER = 1000; // ms
const SHRINK_EVERY = 30_000; // ms
const HEADER = 8;
const MIB = 1 << 20;

// Threads differ only in the hard limit of their heap, far above the limit of a cell: V8 ends the
// whole process when one large allocation passes it, so cells are ended earlier, from outside.
function heapClass(memory) {
  let megabytes = 64;
  while (megabytes * MIB < memory) megabytes *= 2;
  return megabytes;
}

export class Pool {
  #options; // {workers, idle, queue}
  #images; // number -> image
  #slots = new Set();
  #waiting = [];
  #running = new Set();
  #watch;
  #spare;
  #parking = []; // the first one is at it
  #low = 0; // the fewest idle workers since the last look
  #changed;
  started = 0;

  constructor(options, images, changed) {
    this.#options = options;
    this.#images = images;
    this.#changed = changed;
    setInterval(() => this.#shrink(), SHRINK_EVERY);
  }

  counts() {
    let idle = 0;
    for (const slot of this.#slots) idle += slot.cell === undefined && !slot.dying ? 1 : 0;
    return { workers: this.#slots.size, idle, started: this.started, queued: this.#waiting.length };
  }

  // Builds the image on a free worker; `done(error)`.
  prepare(number, done) {
    this.#take({ number, memory: 64 * MIB, begin: (slot, error) => {
      this.#release(slot, false);
      done(error);
    } });
  }

  // Gives `cell.begin(slot, error)` a worker that carries the image `cell.number`.
  start(cell) {
    this.#take(cell);
  }

  // Runs one step of the cell on its worker; `ended({kind, …, frames})` comes exactly once.
  step(slot, message, milliseconds, memory, ended) {
    slot.ended = ended;
    slot.parked = false;
    slot.memory = memory;
    slot.since = performance.now();
    slot.chunks.length = 1;
    slot.deadline = setTimeout(() => this.#stop(slot, "timeout"), milliseconds);
    this.#running.add(slot);
    this.#watch ??= setInterval(() => this.#look(), WATCH_EVERY);
    slot.worker.postMessage({ type: "step", ...message });
  }

  // The cell waits for long: its worker gives back what it can. One after the other and not at once,
  // since it takes a core for tens of milliseconds and many cells may be parked together.
  park(slot) {
    slot.parked = true;
    setTimeout(() => {
      this.#parking.push(slot);
      if (this.#parking.length === 1) this.#shed();
    }, PARK_AFTER).unref();
  }
  #shed() {
    while (this.#parking.length > 0) {
      const [slot] = this.#parking;
      if (slot.parked && !slot.dying) {
        slot.worker.postMessage({ type: "park" });
        return;
      }
      this.#parking.shift();
    }
  }
  #shedded(slot) {
    if (this.#parking[0] !== slot) return;
    this.#parking.shift();
    this.#shed();
  }

  // The cell is not wanted any more.
  drop(cell) {
    const queued = this.#waiting.indexOf(cell);
    if (queued !== -1) this.#waiting.splice(queued, 1);
    clearTimeout(cell.patience);
    const { slot } = cell;
    if (slot === undefined || slot.cell !== cell) return;
    if (slot.ended !== undefined) {
      slot.ended = () => {};
      this.#stop(slot, "dropped");
    } else if (slot.ready) {
      this.#release(slot, true);
    } else {
      slot.cell = { number: slot.number, begin: (one) => this.#release(one, false) };
    }
  }

  // ---- choosing ------------------------------------------------------------------------------

  #take(cell) {
    const slot = this.#choose(cell);
    if (slot === undefined) {
      this.#waiting.push(cell);
      cell.patience = setTimeout(() => {
        this.drop(cell);
        cell.begin(undefined, "busy");
      }, this.#options.queue);
      return;
    }
    cell.slot = slot;
    slot.cell = cell;
    if (slot.ready && slot.number === cell.number) cell.begin(slot, "");
    else if (slot.ready) this.#build(slot, cell.number);
    const { idle } = this.counts();
    this.#low = Math.min(this.#low, idle);
    if (idle === 0 || (!slot.ready && idle < this.#options.idle)) this.#topUp(cell);
  }
  #choose(cell) {
    const size = heapClass(cell.memory);
    let other, building;
    for (const slot of this.#slots) {
      if (slot.cell !== undefined || slot.dying || slot.size !== size) continue;
      if (slot.number === cell.number) {
        if (slot.ready) return slot;
        building = slot;
      } else if (slot.ready) {
        other = slot;
      }
    }
    if (building ?? other) return building ?? other;
    if (this.#slots.size < this.#options.workers) return this.#open(size, cell.number);
    for (const slot of this.#slots) {
      if (slot.cell === undefined && !slot.dying) this.#close(slot);
    }
    return undefined;
  }
  // One warm worker more, because a cell took the last one or had to wait for one. Soon but not
  // now: the cell that starts goes first.
  #topUp({ number, memory }) {
    this.#spare ??= setTimeout(() => {
      this.#spare = undefined;
      if (this.#slots.size >= this.#options.workers || !this.#images.has(number)) return;
      if (this.counts().idle < this.#options.idle) this.#open(heapClass(memory), number);
    }, 10);
  }
  // Workers that nobody needed for a while go, but for two.
  #shrink() {
    let surplus = this.#low - 2;
    this.#low = this.counts().idle;
    for (const slot of this.#slots) {
      if (surplus-- <= 0) return;
      if (slot.cell === undefined && slot.ready) this.#close(slot);
    }
  }
  #open(size, number) {
    const worker = new Worker(new URL("./worker.mjs", import.meta.url), {
      workerData: { number, image: this.#images.get(number) },
      env: {}, argv: [], stdin: false, stdout: true, stderr: true, trackUnmanagedFds: false,
      resourceLimits: { maxOldGenerationSizeMb: size * 2 + 512, maxYoungGenerationSizeMb: 4 },
    });
    const slot = {
      worker, size, number, ready: false, dying: false, cell: undefined, ended: undefined, looked: true,
      chunks: [], known: [], used: 0, floor: undefined, parked: false, verdict: undefined, memory: 0, cause: "",
    };
    this.started += 1;
    this.#slots.add(slot);
    worker.on("message", (message) => this.#hear(slot, message));
    worker.on("error", (error) => {
      slot.verdict ??= error?.code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "crash";
      slot.cause = String(error?.message ?? error).slice(0, 1024);
    });
    worker.on("exit", () => this.#gone(slot));
    this.#changed();
    return slot;
  }
  #build(slot, number) {
    slot.ready = false;
    slot.number = number;
    const image = slot.known.includes(number) ? undefined : this.#images.get(number);
    slot.worker.postMessage({ type: "prepare", number, image });
  }
  // The cell is over: the next one gets a fresh context, made now.
  #release(slot, dirty) {
    slot.cell = slot.ended = undefined;
    slot.parked = false;
    const heavy = slot.used > slot.floor + 24 * MIB;
    if (slot.dying) return;
    if (heavy || slot.number === 0 || !this.#images.has(slot.number)
        || this.counts().idle > this.#options.idle) this.#close(slot);
    else if (dirty) this.#build(slot, slot.number);
    this.#next(slot);
  }
  #next(slot) {
    const cell = this.#waiting.shift();
    if (cell === undefined) return;
    clearTimeout(cell.patience);
    this.#take(cell);
  }

  // ---- running -------------------------------------------------------------------------------

  #hear(slot, message) {
    switch (message.type) {
      case "boot":
        slot.chunks = [message.shared];
        break;
      case "chunk":
        slot.chunks.push(message.shared);
        break;
      case "parked":
        this.#shedded(slot);
        break;
      case "ready":
        slot.ready = true;
        slot.number = message.number;
        slot.known = message.known;
        slot.used = message.used;
        slot.floor ??= message.used;
        if (slot.cell !== undefined) this.#begin(slot, message.error);
        else if (message.number === 0) this.#close(slot);
        break;
      case "end":
        slot.used = message.used;
        this.#end(slot, { kind: message.broken === undefined ? "step" : "crash", cause: message.broken, ...message });
        break;
    }
  }
  #begin(slot, error) {
    const { cell } = slot;
    if (error === "" && slot.number !== cell.number) this.#build(slot, cell.number);
    else cell.begin(slot, error);
  }
  #end(slot, result) {
    const { ended } = slot;
    if (ended === undefined) return;
    slot.ended = undefined;
    clearTimeout(slot.deadline);
    this.#running.delete(slot);
    if (this.#running.size === 0) {
      clearInterval(this.#watch);
      this.#watch = undefined;
    }
    ended(result, readFrames(slot.chunks));
    if (result.kind === "step" && result.over) this.#release(slot, !result.untouched);
    else if (result.kind !== "step") this.#close(slot);
  }
  #look() {
    const now = performance.now();
    for (const slot of this.#running) {
      if (!slot.looked || slot.dying || now - slot.since < WATCH_EVERY) continue;
      slot.looked = false;
      slot.worker.getHeapStatistics().then((heap) => {
        slot.looked = true;
        let shared = 0;
        for (const chunk of slot.chunks) shared += chunk.byteLength;
        // Half of the limit is for garbage that is not collected yet, the rest for the young
        // generation and what running at all takes.
        const allowed = slot.used + slot.memory + slot.memory / 2 + 8 * MIB;
        if (heap.used_heap_size + heap.external_memory - shared > allowed) this.#stop(slot, "memory");
      }, () => { slot.looked = true; });
    }
  }
  #stop(slot, verdict) {
    if (slot.dying) return;
    slot.verdict ??= verdict;
    this.#close(slot);
    setTimeout(() => this.#end(slot, { kind: slot.verdict }), EXIT_PATIENCE).unref();
  }
  #close(slot) {
    if (slot.dying) return;
    slot.dying = true;
    slot.worker.terminate();
    slot.stuck = setTimeout(() => {
      process.stderr.write("a worker thread could not be stopped\n");
      process.kill(process.pid, "SIGKILL");
    }, STUCK_AFTER).unref();
  }
  #gone(slot) {
    slot.dying = true;
    clearTimeout(slot.stuck);
    this.#shedded(slot);
    this.#slots.delete(slot);
    const { cell } = slot;
    if (slot.ended !== undefined) {
      this.#end(slot, { kind: slot.verdict ?? "crash", cause: slot.cause });
    } else if (cell !== undefined) {
      if (slot.ready) cell.lost?.(slot.cause);
      else cell.begin(undefined, slot.cause || "the worker ended while it started");
    }
    if (cell !== undefined && this.counts().idle === 0) {
      this.#topUp({ number: cell.number, memory: slot.size * MIB });
    }
    this.#next();
    this.#changed();
  }
}

function readFrames(chunks) {
  const frames = [];
  for (const shared of chunks) {
    const bytes = Buffer.from(shared);
    const end = Atomics.load(new Int32Array(shared, 0, 1), 0);
    for (let at = HEADER; at < end;) {
      const length = bytes.readUInt32LE(at + 4);
      const from = at + HEADER;
      const text = bytes.toString(bytes[at + 1] === 0 ? "utf8" : "utf16le", from, from + length);
      frames.push("[" + bytes[at] + "," + JSON.stringify(text) + "]");
      at += (HEADER + length + 3) & ~3;
    }
  }
  return "[" + frames.join(",") + "]";
}
