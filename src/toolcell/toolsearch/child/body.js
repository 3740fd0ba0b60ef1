// The program of the locked child: runs one body in a context of its own and talks to the parent in
// JSON lines. Above: process.py, over stdin and stdout. Below: node:vm. Started with `node -e`, so no
// file is ever read. It does not live on the event loop: run, write, wait for a line, run.
"use strict";
{
  const vm = require("node:vm");
  const { readSync, writeSync } = require("node:fs");
  const { exit } = process;
  const bufferOf = Buffer.from, { concat } = Buffer;
  const { parse, stringify } = JSON;

  // ---- lines -------------------------------------------------------------------------------------

  let rest = Buffer.alloc(0);
  const block = Buffer.alloc(1 << 16);
  function readLine() {
    const parts = [rest];
    for (;;) {
      const last = parts[parts.length - 1];
      const end = last.indexOf(10);
      if (end >= 0) {
        parts[parts.length - 1] = last.subarray(0, end);
        rest = bufferOf(last.subarray(end + 1));
        return concat(parts).toString("utf8");
      }
      const count = readSync(0, block, 0, block.length, null);
      if (count === 0) exit(0); // the parent is gone, or wants no more
      parts.push(bufferOf(block.subarray(0, count)));
    }
  }
  function writeLines(text) {
    const data = bufferOf(text, "utf8");
    for (let at = 0; at < data.length; ) at += writeSync(1, data, at);
  }

  // ---- the guest's side: evaluated in its context, holds no object of this realm ---------------------

  const guest = function (limits) {
    "use strict";
    const { Promise, Error, TypeError, String, Symbol, Map, Object } = globalThis;
    const { stringify, parse } = JSON;
    const { apply } = Reflect;
    const then = Promise.prototype.then, slice = String.prototype.slice;
    const get = Map.prototype.get, set = Map.prototype.set, remove = Map.prototype.delete;
    const { freeze, defineProperty, create } = Object;
    const toStringTag = Symbol.toStringTag;

    let frames = "", count = 0, pending = 0, spent = 0, settled = false;
    const waiting = new Map();
    const textOf = (value) => {
      try {
        return stringify(value);
      } catch (error) {
        throw new TypeError("it is not JSON: " + error.message);
      }
    };
    const emit = (type, field, json, more) => {
      frames += '{"type":"' + type + '"' + (more ?? "") + ',"' + field + '":' + json + "}\n";
    };
    const request = (method, args) => {
      const json = textOf(args);
      if (json.length > limits.request)
        throw new Error("openclaw.tools." + method + ": the request takes " + json.length +
          " characters; at most " + limits.request + " fit");
      if (pending >= limits.pending)
        throw new Error("openclaw.tools." + method + ": " + pending +
          " requests are open already; await some of them first");
      const id = ++count;
      pending++;
      const promise = new Promise((resolve, reject) => {
        apply(set, waiting, [id, freeze({ __proto__: null, resolve, reject })]);
      });
      emit("request", "args", json, ',"id":' + id + ',"method":"' + method + '"');
      return promise;
    };
    const settle = (text) => {
      const reply = parse(text);
      const found = apply(get, waiting, [reply.id]);
      if (found === undefined) return;
      apply(remove, waiting, [reply.id]);
      pending--;
      if (reply.error === undefined) found.resolve(reply.value);
      else {
        const error = new Error(reply.error.message);
        error.code = reply.error.code;
        found.reject(error);
      }
    };
    // A call that nobody awaits never runs.
    const lazy = (start) => {
      let promise;
      const begun = () => (promise ??= start());
      const chained = (a, b) => apply(then, begun(), [a, b]);
      const value = create(Promise.prototype, {
        then: { value: chained },
        catch: { value: (b) => chained(undefined, b) },
        finally: { value: (f) => begun().finally(f) },
        [toStringTag]: { value: "Promise" },
      });
      return freeze(value);
    };
    const async = (method) => (...args) => {
      try {
        return request(method, args);
      } catch (error) {
        return Promise.reject(error);
      }
    };
    const tools = freeze({
      __proto__: null,
      search: async("search"),
      describe: async("describe"),
      call: (...args) => lazy(() => async("call")(...args)),
    });
    const shown = (value) => {
      if (typeof value === "string") return value;
      if (value instanceof Error) return value.name + ": " + value.message;
      try {
        return stringify(value) ?? String(value);
      } catch {
        return String(value);
      }
    };
    const log = (level) => (...values) => {
      let text = "";
      for (let i = 0; i < values.length; i++) text += (i ? " " : "") + shown(values[i]);
      if (spent + text.length > limits.logs)
        throw new Error("console." + level + ": at most " + limits.logs +
          " characters can be logged; log less, or return the data");
      spent += text.length + limits.entry;
      emit("log", "text", stringify(text), ',"level":"' + level + '"');
    };
    const constant = (name, value) =>
      defineProperty(globalThis, name, { value, writable: true, configurable: true });
    constant("openclaw", freeze({ __proto__: null, tools }));
    constant("console", freeze({
      __proto__: null, log: log("log"), warn: log("warn"), error: log("error"),
    }));
    const said = (error) => {
      try {
        const text = error instanceof Error ? error.name + ": " + error.message : shown(error);
        return text.length > limits.error ? apply(slice, text, [0, limits.error]) + "…" : text;
      } catch {
        return "something was thrown that has no text"; // its own getters threw
      }
    };
    const finish = (value) => {
      if (settled) return;
      settled = true;
      try {
        const json = value === undefined ? "null" : (textOf(value) ?? "null");
        if (json.length > limits.value)
          throw new Error("it takes " + json.length + " characters; at most " + limits.value +
            " fit: return less");
        emit("done", "value", json);
      } catch (error) {
        emit("failed", "error", stringify("the returned value cannot be handed over: " + said(error)));
      }
    };
    const fail = (error) => {
      if (settled) return;
      settled = true;
      emit("failed", "error", stringify(said(error)));
    };
    const start = (body) => {
      let promise;
      try {
        promise = body();
      } catch (error) {
        return fail(error);
      }
      apply(then, promise, [finish, fail]);
    };
    const drain = () => {
      const out = frames;
      frames = "";
      return out;
    };
    const state = () => (pending > 0 ? "waits" : settled ? "over" : "stuck");
    const noModules = () =>
      new TypeError("import is not available; use openclaw.tools.search, describe and call");
    return { start, settle, drain, state, noModules };
  };

  // ---- this realm: nothing that a hole could use -----------------------------------------------------

  for (const kind of [function () {}, async function () {}, function* () {}, async function* () {}]) {
    const prototype = Object.getPrototypeOf(kind);
    Object.defineProperty(prototype, "constructor", { value: undefined, writable: false });
  }
  for (const name of Object.getOwnPropertyNames(globalThis))
    if (["process", "require", "module", "exports", "Buffer", "fetch", "WebSocket", "eval"].includes(name))
      delete globalThis[name];

  const first = parse(readLine());
  const context = vm.createContext(vm.constants.DONT_CONTEXTIFY, {
    microtaskMode: "afterEvaluate",
    codeGeneration: { strings: false, wasm: false },
  });
  const inside = (text, options) => new vm.Script(text, options).runInContext(context);
  const { start, settle, drain, state, noModules } =
    inside("(" + guest + ")(" + stringify(first.limits) + ")", { filename: "bridge.js" });
  const microtasks = new vm.Script("0");

  const PREFIX = "(async function () {";
  let body;
  try {
    body = inside(PREFIX + first.code + "\n})", {
      filename: "tool_search_code.js",
      columnOffset: -PREFIX.length,
      importModuleDynamically: () => { throw noModules(); },
    });
  } catch (error) {
    const line = /:(\d+)$/.exec(String(error.stack).split("\n", 1)[0])?.[1];
    const where = line === undefined ? "" : " (line " + line + ")";
    writeLines('{"type":"failed","error":' + stringify(error.name + ": " + error.message + where) + "}\n");
    exit(0);
  }
  start(body);
  // An import() is refused by Node itself, one turn of the event loop later.
  const later = setImmediate;
  let turned = false;
  const step = () => {
    for (;;) {
      microtasks.runInContext(context);
      const out = drain();
      if (typeof out === "string" && out) {
        turned = false;
        writeLines(out);
      }
      const now = state();
      if (now === "over") exit(0);
      if (now === "stuck") {
        if (!turned) {
          turned = true;
          return later(step);
        }
        writeLines('{"type":"stuck"}\n');
        exit(0);
      }
      settle(readLine());
      turned = false;
    }
  };
  step();
}
