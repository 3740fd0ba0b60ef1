// MCP.<server>.<method>({...}): one object argument, answered by the same dispatcher as a found handle.
// Above: guest code, catalog.mjs. Below: kit. data: [[server, [method, …], …], …]
(function mcp(kit, data) {
  "use strict";
  const { defineProperty, freeze, isArray, indexOf, slice, TypeError } = kit.intrinsics;
  const SHAPE = "MCP namespace tools accept one object argument.";

  function method(server, name) {
    return async function (input, ...more) {
      const given = input === undefined ? {} : input;
      if (more.length > 0 || typeof given !== "object" || given === null || isArray(given)) {
        throw new TypeError(SHAPE);
      }
      return kit.request("namespace", [server, name, given]);
    };
  }
  function hide(space, $api) {
    defineProperty(space, "$api", { __proto__: null, value: freeze($api) });
  }
  const root = { __proto__: null };
  for (let i = 0; i < data.length; i++) {
    const { server, methods } = data[i];
    const space = { __proto__: null };
    hide(space, async (name, options) => kit.request("mcp.server", [
      server, name === undefined ? null : name, options !== undefined && options !== null && options.schema === true,
    ]));
    for (let j = 0; j < methods.length; j++) {
      const name = methods[j];
      const dot = indexOf(name, ".");
      if (dot === -1) {
        space[name] = freeze(method(server, name));
        continue;
      }
      const group = slice(name, 0, dot);
      if (space[group] === undefined) space[group] = { __proto__: null };
      space[group][slice(name, dot + 1)] = freeze(method(server, name));
    }
    for (const name of ["resources", "prompts"]) if (space[name] !== undefined) freeze(space[name]);
    root[server] = freeze(space);
  }
  hide(root, async () => kit.request("mcp.root", []));
  kit.define("MCP", freeze(root));
})
