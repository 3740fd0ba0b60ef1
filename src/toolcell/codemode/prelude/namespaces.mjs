// Plugin namespaces: a global for each, and `namespaces`. Above: guest code. Below: kit.
// Start values: [{id, name, bare, node}, …]; a node is ["v", value], ["c"], ["o", [[key, node], …]] or
// ["a", [node, …]]. A call carries the namespace's id, its path as "a.b" (no part holds a dot), and the
// argument; in place of several, null and their list. The host resolves id and path again.
(function install(kit) {
  "use strict";
  const { freeze } = kit.intrinsics;

  // One flat list: each nested one costs a fifth of the call.
  function caller(id, path) {
    return (...values) => {
      const count = values.length;
      const given = count === 0 ? [id, path] : count === 1 ? [id, path, values[0]] : [id, path, null, values];
      return kit.request("namespaces.call", given);
    };
  }
  function build(id, node, path) {
    const kind = node[0];
    if (kind === "v") return node[1];
    if (kind === "c") return freeze(caller(id, path));
    const inner = node[1];
    const made = kind === "a" ? [] : { __proto__: null };
    for (let i = 0; i < inner.length; i++) {
      const key = kind === "a" ? "" + i : inner[i][0];
      made[key] = build(id, kind === "a" ? inner[i] : inner[i][1], path === "" ? key : path + "." + key);
    }
    return freeze(made);
  }
  kit.onStart((given) => {
    const all = { __proto__: null };
    const list = given === undefined ? [] : given;
    for (let i = 0; i < list.length; i++) {
      const { id, name, bare, node } = list[i];
      all[name] = build(id, node, "");
      if (bare) kit.define(name, all[name]);
    }
    kit.define("namespaces", freeze(all));
  });
})
