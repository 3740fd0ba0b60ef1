// The catalog API: a bare async global per tool, catalog.search, catalog.all, and handles.
// Above: guest code. Below: kit; MCP, when it is there.
// data: {"native": [[name, metadata JSON], …], "mcp": {"MCP.server.method": metadata JSON}}; a
// metadata text is parsed when it is looked at, so that a cell pays for what it reads.
(function catalog(kit, data) {
  "use strict";
  const { intrinsics } = kit;
  const { parse, create, getPrototypeOf, defineProperty, freeze, uncurryThis, apply, Proxy, WeakMap, TypeError } = intrinsics;
  const { setPrototypeOf } = intrinsics.Object;
  const get = uncurryThis(WeakMap.prototype.get);
  const set = uncurryThis(WeakMap.prototype.set);
  const FIELDS = ["callableName", "toolName", "label", "description", "source", "input", "output", "apiPath"];
  const texts = new WeakMap(); // handle -> metadata JSON
  const handles = { __proto__: null }; // callable name -> handle
  const native = data.native;
  const remote = { __proto__: null };
  const MCP = globalThis.MCP;

  function metadata(handle) {
    const text = get(texts, handle);
    if (text === undefined) throw new TypeError("this is not a catalog handle");
    return parse(text);
  }
  const accessors = [];
  // One prototype for all globals: ten properties on each of a thousand tools would cost every image a
  // thousand times ten definitions. A handle that was asked for has them as its own.
  const shared = create(getPrototypeOf(function () {}));
  for (let i = 0; i < FIELDS.length; i++) {
    const field = FIELDS[i];
    accessors[i] = {
      __proto__: null, enumerable: true, configurable: false,
      get() { return metadata(this)[field]; },
    };
    defineProperty(shared, field, accessors[i]);
  }
  const describe = { __proto__: null, value() { return kit.request("describe", [metadata(this).callableName]); } };
  const toJSON = { __proto__: null, value() { return metadata(this); } };
  defineProperty(shared, "describe", describe);
  defineProperty(shared, "toJSON", toJSON);
  freeze(shared);

  function caller(name) {
    return (input) => kit.request("callValue", input === undefined ? [name] : [name, input]);
  }
  function makeHandle(call, name, text) {
    defineProperty(call, "name", { __proto__: null, value: name });
    for (let i = 0; i < FIELDS.length; i++) defineProperty(call, FIELDS[i], accessors[i]);
    defineProperty(call, "describe", describe);
    defineProperty(call, "toJSON", toJSON);
    set(texts, call, text);
    return freeze(call);
  }
  const nativeText = { __proto__: null };
  for (let i = 0; i < native.length; i++) {
    const name = native[i][0];
    const call = caller(name);
    nativeText[name] = native[i][1];
    setPrototypeOf(call, shared);
    defineProperty(call, "name", { __proto__: null, value: name });
    set(texts, call, native[i][1]);
    kit.define(name, freeze(call));
  }
  const remoteNames = intrinsics.keys(data.mcp);
  for (let i = 0; i < remoteNames.length; i++) {
    const name = remoteNames[i];
    const { server, method, text } = data.mcp[name];
    remote[name] = { __proto__: null, call: MCP[server][method], text };
  }
  // Handles are made when one is asked for.
  function handleOf(name) {
    if (handles[name] === undefined) {
      if (nativeText[name] !== undefined) {
        handles[name] = makeHandle(caller(name), name, nativeText[name]);
      } else if (remote[name] !== undefined) {
        const { call, text } = remote[name];
        handles[name] = makeHandle((...values) => apply(call, undefined, values), name, text);
      }
    }
    return handles[name];
  }
  async function search(query, options) {
    const limit = options === undefined || options === null ? undefined : options.limit;
    const { hits: names, note } = await kit.request("search", limit === undefined ? [query] : [query, limit]);
    if (note !== null) kit.text(note);
    const found = [];
    for (let i = 0; i < names.length; i++) {
      const handle = handleOf(names[i]);
      if (handle !== undefined) found[found.length] = handle;
    }
    return freeze(found);
  }
  let everyNative;
  function all() {
    if (everyNative === undefined) {
      everyNative = [];
      for (let i = 0; i < native.length; i++) everyNative[i] = handleOf(native[i][0]);
      freeze(everyNative);
    }
    return everyNative;
  }
  kit.define("catalog", freeze({ __proto__: null, search: freeze(search), all: freeze(all) }));

  function foreign(name) {
    const refuse = () => {
      throw new TypeError(
        "'" + name + "' belongs to the other guest API: this run has tools.codeMode.guestApi set to " +
        '"catalog". Call tools as bare async globals and find them with catalog.search(...).');
    };
    const traps = { __proto__: null };
    const names = ["get", "set", "has", "deleteProperty", "ownKeys", "getOwnPropertyDescriptor", "defineProperty", "getPrototypeOf", "apply", "construct"];
    for (let i = 0; i < names.length; i++) traps[names[i]] = refuse;
    return new Proxy({}, traps);
  }
  kit.define("tools", foreign("tools"));
  kit.define("ALL_TOOLS", foreign("ALL_TOOLS"));
})
