// API.list(prefix?) and API.read(path): virtual declaration files, answered here.
// Above: guest code. Below: kit. data: null, or [{path, description, bytes, content}, …].
// An image made for a program that does not mention API has no files; such a program can still reach
// API by a computed name, and then the host is asked for the table once.
(function api(kit, data) {
  "use strict";
  const { freeze, indexOf, slice, TypeError, Error } = kit.intrinsics;
  let files = data;

  async function table() {
    if (files === null) files = await kit.request("api.files", []);
    return files;
  }
  function checked(path, what) {
    if (typeof path !== "string") throw new TypeError(what + " must be a string.");
    return path;
  }
  function refuseSegments(path) {
    for (let from = 0; from <= path.length; ) {
      let to = indexOf(path, "/", from);
      if (to === -1) to = path.length;
      const part = slice(path, from, to);
      if (part === "" || part === "." || part === "..") throw new Error("invalid API file path: " + path);
      from = to + 1;
    }
  }
  async function list(prefix) {
    let wanted = prefix === undefined ? "" : checked(prefix, "prefix");
    if (wanted.length > 1 && wanted[wanted.length - 1] === "/") wanted = slice(wanted, 0, -1);
    if (wanted !== "") refuseSegments(wanted);
    const all = await table();
    const found = [];
    for (let i = 0; i < all.length; i++) {
      const { path, description, bytes } = all[i];
      if (wanted === "" || path === wanted || indexOf(path, wanted + "/") === 0) {
        found[found.length] = { path, description, bytes };
      }
    }
    return found;
  }
  async function read(path) {
    refuseSegments(checked(path, "path"));
    const all = await table();
    for (let i = 0; i < all.length; i++) if (all[i].path === path) return all[i].content;
    throw new Error("Unknown API file: " + path);
  }
  kit.define("API", freeze({ __proto__: null, list: freeze(list), read: freeze(read) }));
})
