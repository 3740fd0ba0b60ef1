// Output globals: text, json, console, yield_control. Above: guest code. Below: kit.
// Bounds of console are those of BEHAVIOURS 130 to 134; a getter is never run by it.
(function output(kit, data) {
  "use strict";
  const { intrinsics } = kit;
  const { freeze, keys, isArray, isError, isPromise, slice, stringify, Reflect, String, Error } = intrinsics;
  const { getOwnPropertyDescriptor } = Reflect;
  const charCodeAt = intrinsics.uncurryThis(String.prototype.charCodeAt);
  const { maxString, maxMessage, maxNodes, maxKeys, maxDepth, maxTotal } = data;
  const TRUNCATED = "…[truncated]";
  let spent = 0;
  let closed = false;

  // Cuts before a pair of surrogates rather than through it.
  function clip(text, limit) {
    if (text.length <= limit) return text;
    const last = charCodeAt(text, limit - 1);
    const end = last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit;
    return slice(text, 0, end) + TRUNCATED;
  }

  function scalar(value) {
    switch (typeof value) {
      case "string": return stringify(clip(value, maxString));
      case "number": case "boolean": return String(value);
      case "object": return "null";
      default: return stringify(word(value));
    }
  }
  // What JSON has no form for, as people write it.
  function word(value) {
    if (typeof value === "bigint") return String(value) + "n";
    if (typeof value === "undefined") return "undefined";
    return typeof value === "function" ? "[Function]" : "[Symbol]";
  }
  function member(owner, key, walk, depth) {
    let descriptor;
    try {
      descriptor = getOwnPropertyDescriptor(owner, key);
    } catch {
      return "[Unreadable]";
    }
    if (descriptor === undefined) return "null";
    if (descriptor.get !== undefined || descriptor.set !== undefined) return '"[Accessor]"';
    return show(descriptor.value, walk, depth);
  }
  function show(value, walk, depth) {
    if (typeof value !== "object" || value === null) return scalar(value);
    if (isPromise(value)) return '"[Promise]"';
    for (let i = 0; i < walk.path.length; i++) if (walk.path[i] === value) return '"[Circular]"';
    if (depth >= maxDepth) return isArray(value) ? '"[Array]"' : '"[Object]"';
    if (++walk.nodes > maxNodes) return '"[Truncated]"';
    if (isError(value)) return stringify(clip(errorLine(value), maxString));
    walk.path[walk.path.length] = value;
    let text;
    try {
      text = isArray(value) ? showArray(value, walk, depth) : showObject(value, walk, depth);
    } catch {
      text = '"[Unreadable]"';
    }
    walk.path.length--;
    return text;
  }
  function showArray(value, walk, depth) {
    let text = "[";
    const length = value.length;
    for (let i = 0; i < length; i++) {
      if (i >= maxNodes || walk.nodes > maxNodes) { text += (i ? "," : "") + '"…"'; break; }
      text += (i ? "," : "") + member(value, String(i), walk, depth + 1);
    }
    return text + "]";
  }
  function showObject(value, walk, depth) {
    const names = keys(value);
    let text = "{";
    for (let i = 0; i < names.length; i++) {
      if (i >= maxKeys || walk.nodes > maxNodes) { text += (i ? "," : "") + '"…":' + (names.length - i); break; }
      text += (i ? "," : "") + stringify(clip(names[i], 128)) + ":" + member(value, names[i], walk, depth + 1);
    }
    return text + "}";
  }
  function dataMember(owner, key, fallback) {
    for (let at = owner, hops = 0; at !== null && hops < 8; at = Reflect.getPrototypeOf(at), hops++) {
      const descriptor = getOwnPropertyDescriptor(at, key);
      if (descriptor !== undefined) return typeof descriptor.value === "string" ? descriptor.value : fallback;
    }
    return fallback;
  }
  function errorLine(error) {
    return dataMember(error, "name", "Error") + ": " + dataMember(error, "message", "");
  }
  function shown(value) {
    if (typeof value === "string") return clip(value, maxString);
    if (typeof value === "object" || typeof value === "number" || typeof value === "boolean") {
      if (isPromise(value)) return "[Promise]";
      if (isError(value)) return clip(errorLine(value), maxString);
      return show(value, { __proto__: null, nodes: 0, path: [] }, 0);
    }
    return word(value);
  }
  function write(prefix, values) {
    if (closed) return;
    let message = prefix;
    for (let i = 0; i < values.length && message.length <= maxMessage; i++) {
      message += (i ? " " : "") + shown(values[i]);
    }
    message = clip(message, maxMessage);
    spent += stringify(message).length;
    if (spent > maxTotal) {
      closed = true;
      kit.text("[console output truncated]");
      return;
    }
    kit.text(message);
  }

  const console = { __proto__: null };
  const levels = [["log", ""], ["info", "[info] "], ["warn", "[warn] "], ["error", "[error] "], ["debug", "[debug] "]];
  for (let i = 0; i < levels.length; i++) {
    const prefix = levels[i][1];
    console[levels[i][0]] = (...values) => write(prefix, values);
  }
  kit.define("console", freeze(console));
  kit.define("text", (value) => { kit.text(kit.print(value)); });
  kit.define("json", (value) => { kit.json(value); });
  kit.define("yield_control", (reason) => kit.request("yield", reason === undefined ? [] : [String(reason)]));
})
