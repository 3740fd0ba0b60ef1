// The tools API: ALL_TOOLS, tools.search/describe/call/callValue, tools.<safeName>, by exact ids.
// Above: guest code. Below: kit. data: {"entries": [entry JSON, …], "shortcuts": {name: id}}
(function tools(kit, data) {
  "use strict";
  const { parse, freeze, keys, defineProperty, Object } = kit.intrinsics;
  const setPrototypeOf = Object.setPrototypeOf;

  const every = [];
  for (let i = 0; i < data.entries.length; i++) every[i] = freeze(parse(data.entries[i]));
  kit.define("ALL_TOOLS", freeze(every));

  const withInput = (method) => (id, input) =>
    kit.request(method, input === undefined ? [id] : [id, input]);
  const members = {
    search: async (query, options) => {
      const limit = options === undefined || options === null ? undefined : options.limit;
      const { hits, note } = await kit.request("search", limit === undefined ? [query] : [query, limit]);
      if (note !== null) kit.text(note);
      return hits;
    },
    describe: (id) => kit.request("describe", [id]),
    call: withInput("call"),
    callValue: withInput("callValue"),
  };
  setPrototypeOf(members, null);
  const names = keys(data.shortcuts);
  for (let i = 0; i < names.length; i++) {
    const id = data.shortcuts[names[i]];
    const call = (input) => kit.request("callValue", input === undefined ? [id] : [id, input]);
    defineProperty(members, names[i], { __proto__: null, value: call, enumerable: true });
  }
  const methods = keys(members);
  for (let i = 0; i < methods.length; i++) freeze(members[methods[i]]);
  kit.define("tools", freeze(members));
})
