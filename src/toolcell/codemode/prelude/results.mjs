// results.save(value), results.load(id), results.delete(id): kept by the host for later cells of the run.
// Above: guest code. Below: kit.
(function results(kit) {
  "use strict";
  const { freeze } = kit.intrinsics;
  kit.define("results", freeze({
    __proto__: null,
    save: freeze(async (value) => kit.request("results.save", [value === undefined ? null : value])),
    load: freeze(async (id) => kit.request("results.load", [id])),
    delete: freeze(async (id) => kit.request("results.delete", [id])),
  }));
})
