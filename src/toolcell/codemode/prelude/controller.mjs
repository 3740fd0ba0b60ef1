// The guest controller: owns requests, output, the value adapter and the end of a program.
// Above: the extensions, through `kit`. Below: the engine's primitives. See README.md.
// Everything it needs is taken from the built-ins before guest code runs, and nothing it calls
// later can be replaced: no method is looked up on a value that guest code can reach.
(function controller(engine, extensions, data) {
  "use strict";
  const { emit, compile, unhandled, watch, isPromise } = engine;
  const { apply } = Reflect;
  const { parse, stringify } = JSON;
  const { defineProperty, create, freeze, keys, hasOwn } = Object;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { isError } = Error;
  const PromiseCtor = Promise;
  const ErrorCtor = Error;
  const TypeErrorCtor = TypeError;
  const RangeErrorCtor = RangeError;
  const StringCtor = String;
  const uncurryThis = (method) => (self, ...args) => apply(method, self, args);
  const tagOf = uncurryThis(Object.prototype.toString);
  const indexOf = uncurryThis(String.prototype.indexOf);
  const slice = uncurryThis(String.prototype.slice);
  const mapGet = uncurryThis(WeakMap.prototype.get);
  const mapSet = uncurryThis(WeakMap.prototype.set);
  const mapHas = uncurryThis(WeakMap.prototype.has);

  const REQUEST = 1, TEXT = 2, JSON_OUTPUT = 3, DONE = 4, FAIL = 5, WITHDRAW = 6;
  const START = 1, SETTLE = 2, JUDGE = 3;
  const UNAWAITED =
    "[Unawaited Promise: use await or Promise.all(...) before emitting or returning values.]";
  const STUCK = "code mode program is pending without host work: nothing that could settle the " +
    "promise it awaits is outstanding";
  const OVER_BUDGET = "one step handed over more than the host takes; emit or request less at once";
  const UNSHOWABLE = "an error that cannot be shown";
  const MAX_MESSAGE = 16384, MAX_STACK = 8192, MAX_LINE = 512;
  const LARGE = 4096, MAX_PARTS = 8; // texts of one frame, as many as `emit` takes
  const MAX_FRAMES = 100000; // of one step: each costs the host something, however small it is

  const refusals = new WeakMap(); // error of a refused request -> what it was when it was made
  const overBudget = new WeakMap(); // error of a refused frame -> true
  const plainForms = new WeakMap(); // object of an extension -> what JSON shows instead
  const starters = [];
  const open = create(null); // id -> {resolve, reject, site}
  let openCount = 0;
  let idleCount = 0; // of those, the ones that do not hold a returned program open
  let lastId = 0;
  let frames = 0;
  let userFile = "";
  let state = "idle"; // idle, running, returned, threw, over
  let outcome;

  // ---- values ------------------------------------------------------------------------------

  function put(target, key, value) {
    defineProperty(target, key, {
      __proto__: null, value, writable: true, enumerable: true, configurable: true,
    });
  }
  function putHidden(target, key, value) {
    defineProperty(target, key, {
      __proto__: null, value, writable: true, enumerable: false, configurable: true,
    });
  }
  function plainError(error) {
    const plain = { __proto__: null };
    put(plain, "name", StringCtor(error.name));
    put(plain, "message", StringCtor(error.message));
    if (hasOwn(error, "cause")) put(plain, "cause", error.cause);
    const own = keys(error);
    for (let i = 0; i < own.length; i++) put(plain, own[i], error[own[i]]);
    return plain;
  }
  function adaptMember(key, value) {
    if (typeof value === "bigint") return StringCtor(value);
    if (typeof value === "function") return mapGet(plainForms, value);
    if (typeof value !== "object" || value === null) return value;
    if (isPromise(value)) return UNAWAITED;
    if (mapHas(plainForms, value)) return mapGet(plainForms, value);
    if (isError(value)) return plainError(value);
    if (isView(value)) return tagOf(value);
    return value;
  }
  function isCycleError(error) {
    if (!isError(error)) return false;
    const message = error.message;
    return typeof message === "string" && indexOf(message, "circular") !== -1;
  }
  // JSON text of any value; what JSON cannot carry becomes a plain string (rule 3.11).
  function adapt(value) {
    let text;
    try {
      text = stringify(value, adaptMember);
    } catch (error) {
      if (!isCycleError(error)) throw error;
      text = stringify(isArray(value) ? "[object Array]" : "[object Object]");
    }
    return text === undefined ? "null" : text;
  }
  function print(value) {
    if (typeof value === "string") return value;
    const text = adapt(value);
    return text[0] === '"' ? parse(text) : text;
  }
  function sendable(key, value) {
    if (typeof value === "function") return mapGet(plainForms, value);
    if (typeof value !== "object" || value === null) return value;
    if (isPromise(value)) throw new TypeErrorCtor("an argument is a promise; await it first");
    return mapHas(plainForms, value) ? mapGet(plainForms, value) : value;
  }
  // The arguments of a request as text; with large ones all that `emit` takes, since joining copies
  // them. Reading them may run the program's own getters.
  function argumentText(args) {
    let frame;
    let text = "[";
    for (let i = 0; i < args.length; i++) {
      let one = stringify(args[i], sendable);
      if (one === undefined) one = "null";
      if (i) text += ",";
      if (one.length < LARGE || (frame !== undefined && frame.length >= MAX_PARTS - 1)) {
        text += one;
        continue;
      }
      frame = frame === undefined ? [REQUEST] : frame;
      put(frame, frame.length, text);
      put(frame, frame.length, one);
      text = "";
    }
    text += "]";
    if (frame === undefined) return text;
    put(frame, frame.length, text);
    return frame;
  }
  // Reading a hostile value may throw.
  function attempt(read, otherwise) {
    try {
      return read();
    } catch {
      return otherwise;
    }
  }
  function describe(thrown) {
    return attempt(() => StringCtor(isError(thrown) ? thrown.message : thrown), UNSHOWABLE);
  }

  // ---- errors ------------------------------------------------------------------------------

  // Keeps the frames of the user's own file.
  function userFrames(stack) {
    let kept = "";
    if (typeof stack !== "string" || userFile === "") return kept;
    for (let from = 0; from < stack.length && kept.length < MAX_STACK;) {
      let to = indexOf(stack, "\n", from);
      if (to === -1) to = stack.length;
      const line = slice(stack, from, to);
      if (indexOf(line, userFile) !== -1) kept += slice(line, 0, MAX_LINE) + "\n";
      from = to + 1;
    }
    return kept;
  }
  function makeError(fields) {
    const error = new ErrorCtor(fields.message === undefined ? "" : StringCtor(fields.message));
    putHidden(error, "stack", "");
    const names = keys(fields);
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (name === "message" || name === "stack") continue;
      if (name === "name") putHidden(error, "name", StringCtor(fields.name));
      else put(error, name, fields[name]);
    }
    return error;
  }
  function ownName(error) {
    return hasOwn(error, "name") ? error.name : undefined;
  }
  function refusalOf(error) {
    if (typeof error !== "object" || error === null || !mapHas(refusals, error)) return undefined;
    const made = mapGet(refusals, error);
    const same = error.message === made.message && ownName(error) === made.name;
    return same ? made.id : undefined;
  }
  function fail(thrown) {
    state = "over";
    outcome = undefined;
    const report = {
      __proto__: null, name: "Error", message: "", stack: "", request_id: undefined, syntax: false,
      frames: false,
    };
    if (isError(thrown)) {
      report.name = attempt(() => StringCtor(thrown.name), "Error");
      report.message = attempt(() => StringCtor(thrown.message), UNSHOWABLE);
      report.stack = attempt(() => userFrames(thrown.stack), "");
      report.request_id = attempt(() => refusalOf(thrown), undefined);
      report.frames = mapHas(overBudget, thrown);
    } else {
      const shown = () => {
        if (typeof thrown !== "object" || !thrown) return StringCtor(thrown);
        const text = print(thrown);
        // An engine's own exceptions may be no Error and have nothing that JSON would show.
        return text === "{}" && typeof thrown.message === "string"
          ? StringCtor(thrown.name) + ": " + thrown.message
          : text;
      };
      report.name = "";
      report.message = "Uncaught " + attempt(shown, UNSHOWABLE);
    }
    report.name = slice(report.name, 0, 256);
    if (report.message.length > MAX_MESSAGE) {
      report.message = slice(report.message, 0, MAX_MESSAGE) + " [error truncated]";
    }
    emitFailure(report);
  }
  // Put together from strings: an engine may consult prototypes while it writes an object.
  function emitFailure(report) {
    let text = '{"name":' + stringify(report.name) + ',"message":' + stringify(report.message) +
      ',"stack":' + stringify(report.stack);
    if (report.request_id !== undefined) text += ',"request_id":' + report.request_id;
    if (report.syntax) text += ',"syntax":true';
    if (report.frames) text += ',"frames":true';
    emit(FAIL, text + "}");
  }

  // ---- requests and output -----------------------------------------------------------------

  function budgetError() {
    const error = new RangeErrorCtor(OVER_BUDGET);
    mapSet(overBudget, error, true);
    return error;
  }
  function handOver(kind, text) {
    if (++frames > MAX_FRAMES) return false;
    return typeof text === "string" ? emit(kind, text) : apply(emit, undefined, text);
  }
  function send(kind, text) {
    if (!handOver(kind, text)) throw budgetError();
  }
  function openRequest(method, args, owner, idle) {
    const entry = {
      __proto__: null, resolve: undefined, reject: undefined, site: undefined, method, owner,
      idle: idle === true,
    };
    const promise = new PromiseCtor((resolve, reject) => {
      entry.resolve = resolve;
      entry.reject = reject;
    });
    let text;
    try {
      if (indexOf(method, " ") !== -1) throw new TypeErrorCtor("a method is one word");
      text = argumentText(args);
    } catch (error) {
      entry.reject(new TypeErrorCtor("arguments cannot be sent as JSON: " + describe(error)));
      return { __proto__: null, id: 0, promise };
    }
    // Only now: a getter among the arguments may have sent requests of its own.
    const id = lastId + 1;
    const head = id + " " + method + " ";
    let sent = false, refusal;
    try {
      if (typeof text === "string") text = head + text;
      else put(text, 1, head + text[1]);
      sent = handOver(REQUEST, text);
    } catch (error) {
      refusal = error; // out of memory
    }
    if (!sent) {
      entry.reject(refusal === undefined ? budgetError() : refusal);
      return { __proto__: null, id: 0, promise };
    }
    lastId = id;
    open[id] = entry;
    openCount++;
    if (entry.idle) idleCount++;
    entry.site = new ErrorCtor().stack;
    return { __proto__: null, id, promise };
  }
  // Guest code may hand in any number; only the owner's own open requests can be given up.
  function withdraw(id, owner) {
    if (typeof id !== "number" || open[id] === undefined || open[id].owner !== owner) return;
    if (open[id].idle) idleCount--;
    delete open[id];
    openCount--;
    send(WITHDRAW, StringCtor(id));
  }
  function settle(list) {
    for (let i = 0; i < list.length; i++) {
      const item = list[i];
      const entry = open[item.id];
      if (entry === undefined) continue;
      if (entry.idle) idleCount--;
      delete open[item.id];
      openCount--;
      if (hasOwn(item, "error")) {
        const error = makeError(item.error);
        putHidden(error, "stack", userFrames(entry.site));
        mapSet(refusals, error, {
          __proto__: null, id: item.id, message: error.message, name: ownName(error),
        });
        entry.reject(error);
      } else if (hasOwn(item, "oversize")) {
        const error = makeError({
          __proto__: null, message: item.oversize, code: "invalid_input", effectStatus: "unknown",
          location: "bridge:" + entry.method + ":" + item.id,
        });
        putHidden(error, "stack", userFrames(entry.site));
        entry.reject(error);
      } else {
        entry.resolve(item.value);
      }
    }
  }

  // ---- the program -------------------------------------------------------------------------

  function start(message) {
    userFile = message.filename;
    state = "running";
    for (let i = 0; i < starters.length; i++) {
      const { name, run } = starters[i];
      run(hasOwn(message.start, name) ? message.start[name] : undefined);
    }
    let main;
    try {
      main = compile(message.source, userFile);
    } catch (error) {
      failCompile(error);
      return;
    }
    watch(main(), (value) => {
      state = "returned";
      outcome = value;
    }, (error) => {
      state = "threw";
      outcome = error;
    });
  }
  function failCompile(error) {
    state = "over";
    const name = isError(error) ? attempt(() => StringCtor(error.name), "Error") : "Error";
    emitFailure({
      __proto__: null,
      name,
      message: slice(describe(error), 0, MAX_MESSAGE),
      stack: isError(error) ? userFrames(error.stack) : "",
      request_id: undefined,
      syntax: name === "SyntaxError",
    });
  }
  // Nothing is left to run: is the program over?
  function judge() {
    if (state === "threw") {
      fail(outcome);
    } else if (state === "running") {
      if (openCount > 0) return;
      const reasons = unhandled();
      fail(reasons.length > 0 ? reasons[0] : new ErrorCtor(STUCK));
    } else if (state === "returned" && openCount === idleCount) {
      const reasons = unhandled();
      if (reasons.length > 0) {
        fail(reasons[0]);
        return;
      }
      let text;
      try {
        text = adapt(outcome);
        outcome = undefined; // the value is let go of before its text is copied
      } catch (error) {
        fail(error);
        return;
      }
      state = "over";
      if (!emit(DONE, text)) fail(budgetError());
    }
  }

  // ---- extensions --------------------------------------------------------------------------

  const { floor, max, min } = Math;
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const intrinsics = freeze({
    __proto__: null,
    // functions that need no `this`
    apply, parse, stringify, defineProperty, create, freeze, keys, hasOwn, isArray, isError,
    isPromise, ownKeys, getOwnPropertyDescriptor, getPrototypeOf, uncurryThis,
    // methods that take it as their first argument
    tagOf, indexOf, slice, mapGet, mapSet, mapHas,
    Math: freeze({ __proto__: null, floor, max, min }),
    Reflect: freeze({ __proto__: null, apply, ownKeys, getOwnPropertyDescriptor, getPrototypeOf }),
    Array, ArrayBuffer, Boolean, Date, Error, Map, Number, Object, Promise, Proxy, RangeError,
    ReferenceError, Set, String, Symbol, TypeError, Uint8Array, WeakMap,
  });
  function kitFor(name) {
    return freeze({
      __proto__: null,
      request: (method, args) => openRequest(method, args).promise,
      open: (method, args, idle) => openRequest(method, args, name, idle),
      withdraw: (id) => withdraw(id, name),
      text: (text) => send(TEXT, text),
      json: (value) => send(JSON_OUTPUT, adapt(value)),
      print,
      define: (key, value) => putHidden(globalThis, key, value),
      onStart: (run) => { starters[starters.length] = { __proto__: null, name, run }; },
      error: makeError,
      serialise: (object, plain) => { mapSet(plainForms, object, plain); },
      intrinsics,
    });
  }
  for (let i = 0; i < extensions.length; i++) {
    const { name, install } = extensions[i];
    install(kitFor(name), hasOwn(data, name) ? data[name] : undefined);
  }

  return function dispatch(op, message) {
    if (state === "over") return;
    if (op !== JUDGE) frames = 0;
    if (op === START) start(message);
    else if (op === SETTLE) settle(message);
    else if (op === JUDGE) judge();
  };
})
