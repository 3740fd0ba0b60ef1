// One expression, evaluated inside the fresh context of a cell: what a context is before the image
// is made. Above: worker.mjs. Below: `host`, five functions of the worker that take and give
// primitives only (and one context function); each is called through a strict wrapper that lets no
// value and no error of the host realm out. What leaves here is called by the worker, never by guests.
(function realm(host) {
  "use strict";
  const { write, isPromiseOf, parseBody, evaluateBody, now, room } = host;
  const { apply, construct, deleteProperty, getPrototypeOf } = Reflect;
  const { defineProperty, freeze } = Object;
  const { isView } = ArrayBuffer;
  const { isArray } = Array;
  const { parse } = JSON;
  const PromiseCtor = Promise, RangeErrorCtor = RangeError, SyntaxErrorCtor = SyntaxError;
  const ErrorCtor = Error, TypeErrorCtor = TypeError, StringCtor = String, NumberCtor = Number;
  const AsyncFunction = getPrototypeOf(async () => {}).constructor;
  const uncurryThis = (method) => (self, ...args) => apply(method, self, args);
  const errorText = uncurryThis(ErrorCtor.prototype.toString);
  const mapSet = uncurryThis(Map.prototype.set);
  const mapDelete = uncurryThis(Map.prototype.delete);
  const mapEach = uncurryThis(Map.prototype.forEach);
  const slice = uncurryThis(String.prototype.slice);
  const indexOf = uncurryThis(String.prototype.indexOf);
  const OVERFLOW = "Maximum call stack size exceeded";
  let userFile = "";

  function lock(target, key, value) {
    defineProperty(target, key, {
      __proto__: null, value, writable: false, enumerable: false, configurable: false,
    });
  }
  function replace(target, key, value) {
    defineProperty(target, key, {
      __proto__: null, value, writable: true, enumerable: false, configurable: true,
    });
  }

  // ---- what is taken away ------------------------------------------------------------------

  // Code that would run after its cell (finalizers, waits with a time of their own), threads,
  // native code, and what the embedder added.
  const gone = ["FinalizationRegistry", "WebAssembly", "SharedArrayBuffer", "Atomics", "console", "gc"];
  for (let i = 0; i < gone.length; i++) {
    if (!deleteProperty(globalThis, gone[i])) globalThis[gone[i]] = undefined;
  }

  // Node hands call sites to whatever `Error.prepareStackTrace` it finds; it finds ours, which keeps
  // the frames of the user's file.
  lock(ErrorCtor, "prepareStackTrace", (error, sites) => {
    let text;
    try {
      text = errorText(error);
    } catch {
      text = "<error>";
    }
    try {
      for (let i = 0; i < sites.length; i++) {
        if (userFile !== "" && sites[i].getFileName() === userFile) text += "\n    at " + sites[i];
      }
    } catch {
      // A stack is a help, not a promise.
    }
    return text;
  });
  lock(globalThis, "Error", ErrorCtor);
  if (ErrorCtor.isError === undefined) {
    const { isNativeError } = host;
    replace(ErrorCtor, "isError", { isError: (value) => guarded(isNativeError, value) }.isError);
  }

  // ---- memory that the heap limit does not count ---------------------------------------------

  let credit = 0; // bytes that may be taken before the worker is asked again
  function outOfMemory() {
    return new RangeErrorCtor("out of memory: the allocation exceeds what is left of the cell's memory");
  }
  function charge(bytes) {
    if (!(bytes > 0)) return;
    credit -= bytes;
    if (credit >= 0) return;
    const left = guarded(room, bytes);
    if (!(left >= 0)) {
      credit = 0;
      throw outOfMemory();
    }
    credit = left;
  }
  function chargeText(units) {
    if (units > 1048576 && !(guarded(room, units) >= 0)) throw outOfMemory();
  }
  function guarded(run, argument) {
    try {
      return run(argument);
    } catch {
      throw new RangeErrorCtor(OVERFLOW);
    }
  }
  function limitConstructor(name, cost) {
    const original = globalThis[name];
    if (typeof original !== "function") return;
    const limited = new Proxy(original, freeze({
      __proto__: null,
      construct(target, args, newTarget) {
        if (args.length > 0) charge(cost(args[0], original));
        return construct(target, args, newTarget);
      },
    }));
    replace(original.prototype, "constructor", limited);
    replace(globalThis, name, limited);
  }
  function limitMethod(target, name, cost) {
    const original = target[name];
    if (typeof original !== "function") return;
    const limited = { [name](...args) {
      cost(this, args.length > 0 ? args[0] : undefined);
      return apply(original, this, args);
    } }[name];
    defineProperty(limited, "length", { __proto__: null, value: original.length, configurable: true });
    replace(target, name, limited);
  }
  const TypedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
  const getter = (prototype, name) =>
    uncurryThis(Object.getOwnPropertyDescriptor(prototype, name).get);
  const viewBytes = getter(TypedArrayPrototype, "byteLength");
  const viewLength = getter(TypedArrayPrototype, "length");
  const viewTag = getter(TypedArrayPrototype, Symbol.toStringTag);
  const bufferBytes = getter(ArrayBuffer.prototype, "byteLength");
  function elementCount(first) {
    if (typeof first !== "object" || first === null) return NumberCtor(first);
    if (isView(first)) return viewTag(first) === undefined ? 0 : viewLength(first);
    if (isArray(first)) return first.length;
    try {
      bufferBytes(first);
      return 0; // a view of a buffer that is paid for
    } catch {
      return NumberCtor(first.length);
    }
  }
  const asView = (self) => charge(viewTag(self) === undefined ? 0 : viewBytes(self));
  const asBuffer = (self) => charge(bufferBytes(self));
  const toSize = (self, size) => {
    if (size !== undefined) charge(NumberCtor(size) - bufferBytes(self));
  };
  const typed = ["Uint8Array", "Int8Array", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array",
    "BigUint64Array", "BigInt64Array", "Uint8ClampedArray", "Float16Array", "Float32Array", "Float64Array"];
  for (let i = 0; i < typed.length; i++) {
    limitConstructor(typed[i], (first, original) =>
      typeof first === "symbol" || typeof first === "bigint" ? 0
        : elementCount(first) * original.BYTES_PER_ELEMENT);
  }
  limitConstructor("ArrayBuffer", (first) =>
    typeof first === "symbol" || typeof first === "bigint" ? 0 : NumberCtor(first));
  const copies = ["slice", "map", "filter", "toReversed", "toSorted", "with"];
  for (let i = 0; i < copies.length; i++) limitMethod(TypedArrayPrototype, copies[i], asView);
  limitMethod(ArrayBuffer.prototype, "slice", asBuffer);
  limitMethod(ArrayBuffer.prototype, "resize", toSize);
  limitMethod(ArrayBuffer.prototype, "transfer", toSize);
  limitMethod(ArrayBuffer.prototype, "transferToFixedLength", toSize);
  // One call that makes a string or an array near the engine's own size limits would end the process.
  limitMethod(String.prototype, "repeat", (self, count) => {
    if (typeof self === "string") chargeText(self.length * NumberCtor(count));
  });
  const padded = (self, length) => chargeText(NumberCtor(length));
  limitMethod(String.prototype, "padStart", padded);
  limitMethod(String.prototype, "padEnd", padded);
  limitMethod(String.prototype, "split", (self) => {
    if (typeof self === "string" && self.length > 1048576) chargeText(self.length * 8);
  });
  limitMethod(Array.prototype, "fill", (self) => {
    if (isArray(self) && self.length > 131072) chargeText(self.length * 8);
  });

  // ---- the engine's side of the controller's protocol ------------------------------------------

  const clock = { now: () => guarded(now), timeOrigin: Date.now() - guarded(now) };
  replace(globalThis, "performance", clock);

  const lost = new Map(); // promise that is rejected and not handled -> reason
  function unhandled() {
    const reasons = [];
    mapEach(lost, (reason) => {
      defineProperty(reasons, reasons.length, {
        __proto__: null, value: reason, writable: true, enumerable: true, configurable: true,
      });
    });
    return reasons;
  }
  async function settled(promise, fulfilled, rejected) {
    let value;
    try {
      value = await promise;
    } catch (error) {
      rejected(error);
      return;
    }
    fulfilled(value);
  }
  // With its own `constructor` the promise is awaited as it is: no look-up reaches guest code.
  function watch(promise, fulfilled, rejected) {
    lock(promise, "constructor", PromiseCtor);
    settled(promise, fulfilled, rejected);
  }
  function emit(kind, text, ...rest) {
    for (let i = 0; i < rest.length; i++) text += rest[i];
    try {
      return write(kind, text);
    } catch {
      throw new RangeErrorCtor(OVERFLOW);
    }
  }
  function isPromise(value) {
    return guarded(isPromiseOf, value);
  }
  // The worker's report of a source that does not parse: name, line, column, message in lines.
  function syntaxError(report) {
    const parts = [];
    for (let i = 0; i < 3; i++) {
      const end = indexOf(report, "\n");
      lock(parts, i, slice(report, 0, end));
      report = slice(report, end + 1);
    }
    const error = parts[0] === "SyntaxError" ? new SyntaxErrorCtor(report) : new RangeErrorCtor(report);
    replace(error, "stack", parts[0] + ": " + report + "\n    at " + userFile + ":" + parts[1] + ":" + parts[2]);
    return error;
  }
  function compile(source, filename) {
    userFile = filename;
    const report = parseBody(source, filename);
    if (report !== "") throw syntaxError(report);
    try {
      new AsyncFunction(source); // by the standard, body and wrapper are parsed apart here
    } catch (error) {
      if (!(error instanceof SyntaxErrorCtor)) throw error;
      throw syntaxError("SyntaxError\n1\n1\nthe program closes the function it is the body of");
    }
    return evaluateBody();
  }

  // ---- what the worker calls -------------------------------------------------------------------

  const extensions = [];
  let dispatch;
  return freeze({
    __proto__: null,
    add: (name, install) => { extensions[extensions.length] = { __proto__: null, name, install }; },
    boot(controller, data) {
      dispatch = controller(
        { __proto__: null, emit, compile, unhandled, watch, isPromise }, extensions, parse(data));
    },
    // What went wrong in the controller itself, or undefined.
    step(op, message) {
      try {
        dispatch(op, message === undefined ? undefined : parse(message));
      } catch (error) {
        try {
          return "the controller broke: " + StringCtor(error);
        } catch {
          return "the controller broke";
        }
      }
    },
    rejected: (promise, reason) => { mapSet(lost, promise, reason); },
    handled: (promise) => { mapDelete(lost, promise); },
    moduleError: () => new TypeErrorCtor("modules cannot be loaded in a cell"),
  });
})
