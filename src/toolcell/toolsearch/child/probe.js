// Tries to get out of the locked child by every way there is and says which ways were shut. Run by
// launch.py before the first body. PORT is a listening port of the parent's.
"use strict";
const tried = { environment: Object.keys(process.env).length };
const attempt = (name, action) => {
  try {
    action();
    tried[name] = "done";
  } catch {
    tried[name] = "refused";
  }
};
const own = process.execPath;
attempt("read", () => require("node:fs").readFileSync(own));
attempt("write", () => require("node:fs").writeFileSync("/tmp/.toolcell-probe", ""));
attempt("report", () => process.report.writeReport("toolcell-probe.json"));
attempt("child", () => {
  const { error } = require("node:child_process").spawnSync(own, ["-v"]);
  if (error) throw error;
});
attempt("worker", () => new (require("node:worker_threads").Worker)("0", { eval: true }));
attempt("binding", () => process.binding("fs"));
attempt("addon", () => process.dlopen({ exports: {} }, own));
attempt("sqlite", () => new (require("node:sqlite").DatabaseSync)("/tmp/.toolcell-probe.db"));
attempt("inspector", () => require("node:inspector").open(0));
attempt("kill", () => process.kill(process.ppid, 0));

const net = require("node:net");
let open = 4;
const over = (name, verdict) => {
  if (tried[name] !== undefined) return;
  tried[name] = verdict;
  if (--open === 0) {
    require("node:fs").writeSync(1, JSON.stringify(tried));
    process.exit(0);
  }
};
const watch = (name, socket, event) => {
  socket.on(event, () => over(name, "done"));
  socket.on("error", (error) =>
    over(name, error.code === "EPERM" || error.code === "EACCES" ? "refused" : error.code));
};
watch("tcp", net.connect(PORT, "127.0.0.1"), "connect");
watch("unix", net.connect("\0toolcell-probe"), "connect");
const server = net.createServer();
watch("listen", server, "listening");
server.listen(0, "127.0.0.1");
const datagram = require("node:dgram").createSocket("udp4");
watch("udp", datagram, "listening");
datagram.bind(0);
