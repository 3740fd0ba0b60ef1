// Plugin namespaces: a global for each, and `namespaces`. Above: guest code. Below: kit.
// Start values: [{id, name, bare, node}, …]; a node is ["v", value], ["c"], ["o", [[key, node], …]] or
// ["a", [node, …]]. A call carries the namespace's id and its path; the host resolves both again.
(function install(kit) {
  "use strict";
  const { freeze } = kit.intrinsics;

  function build(id, node, path) {
    const kind = node[0];
    if (kind === "v") return node[1];
    if (kind === "c") return freeze(async (...values) => kit.request("namespaces.call", [id, path, values]));
    const inner = node[1];
    const made = kind === "a" ? [] : { __proto__: null };
    for (let i = 0; i < inner.length; i++) {
      const key = kind === "a" ? "" + i : inner[i][0];
      const next = [];
      for (let j = 0; j < path.length; j++) next[j] = path[j];
      next[path.length] = key;
      made[key] = build(id, kind === "a" ? inner[i] : inner[i][1], next);
    }
    return freeze(made);
  }
  kit.onStart((given) => {
    const all = { __proto__: null };
    const list = given === undefined ? [] : given;
    for (let i = 0; i < list.length; i++) {
      const { id, name, bare, node } = list[i];
      all[name] = build(id, node, []);
      if (bare) kit.define(name, all[name]);
    }
    kit.define("namespaces", freeze(all));
  });
})
