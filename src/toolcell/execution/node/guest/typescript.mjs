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
    prefix: open,
    map: at === -1 ? null : Buffer.from(code.slice(code.indexOf(",", at) + 1), "base64").toString(),
  };
}
function outcome({ source }) {
  try {
    return { mode: "strip", code: strip(source), map: null, prefix: PREFIX.length };
  } catch (error) {
    if (error.code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw error;
    return { mode: "transform", ...transform(source) };
  }
}
parentPort.on("message", ({ token, payload }) => {
  let text;
  try {
    text = JSON.stringify(outcome(JSON.parse(payload)));
  } catch (error) {
    text = JSON.stringify({ error: String(error.message), code: String(error.code ?? ""), name: error.name });
  }
  parentPort.postMessage({ token, text });
});
