// A thread that turns TypeScript into JavaScript with Node's own transformer; no type check.
// Above: supervisor.mjs. A source is the body of an async function, so it is wrapped to be parsed.
import { parentPort } from "node:worker_threads";
import module from "node:module";

const PREFIX = "async function _() {", SUFFIX = "\n}";

function strip(source) {
  const code = module.stripTypeScriptTypes(PREFIX + source + SUFFIX, { mode: "strip" });
  return code.slice(PREFIX.length, code.length - SUFFIX.length);
}
function transform(source) {
  const code = module.stripTypeScriptTypes(PREFIX + source + SUFFIX, { mode: "transform", sourceMap: true });
  const at = code.lastIndexOf("//# sourceMappingURL=");
  const open = code.indexOf("{") + 1;
  return {
    code: code.slice(open, code.lastIndexOf("}", at === -1 ? code.length : at)),
    map_prefix: open,
    source_prefix: PREFIX.length,
    map: at === -1 ? null : Buffer.from(code.slice(code.indexOf(",", at) + 1), "base64").toString(),
  };
}
function outcome({ source }) {
  try {
    return { mode: "strip", code: strip(source), map: null };
  } catch (error) {
    if (error.code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw error;
    return { mode: "transform", ...transform(source) };
  }
}
// Node writes the place into the head of the stack: `:<line>`, lines of source, carets.
function place(stack) {
  const line = Number(/^[^\n]*:(\d+)\n/.exec(stack)?.[1] ?? 0);
  const carets = /^ *(?=\^+$)/m.exec(stack);
  if (line === 0 || carets === null) return {};
  return { line, column: Math.max(carets[0].length + 1 - (line === 1 ? PREFIX.length : 0), 1) };
}
parentPort.on("message", ({ token, payload }) => {
  let text;
  try {
    text = JSON.stringify(outcome(JSON.parse(payload)));
  } catch (error) {
    text = JSON.stringify({ error: String(error.message), ...place(String(error.stack)) });
  }
  parentPort.postMessage({ token, text });
});
