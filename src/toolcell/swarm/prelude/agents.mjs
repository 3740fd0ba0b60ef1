// agents.run(prompt, options?), phase(title), log(message): child agents (rule 11.1).
// Above: guest code. Below: kit. A child that did not complete comes back as data and is thrown here.
(function agents(kit) {
  "use strict";
  const { freeze, isArray, keys, indexOf, uncurryThis, TypeError } = kit.intrinsics;
  const trim = uncurryThis("".trim);
  const KNOWN = " label model thinking agentId schema phase ";

  function filled(value) {
    return typeof value === "string" && trim(value) !== "";
  }
  function checked(options) {
    if (options === undefined) return { __proto__: null };
    if (typeof options !== "object" || options === null || isArray(options)) {
      throw new TypeError("agents.run options must be an object");
    }
    const given = { __proto__: null };
    const names = keys(options);
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      const value = options[name];
      if (indexOf(KNOWN, " " + name + " ") === -1) {
        throw new TypeError("agents.run has no option " + name + "; it takes label, model, thinking, agentId, schema and phase");
      }
      if (value === undefined) continue;
      if (name === "schema") {
        if (typeof value !== "object" || value === null || isArray(value)) {
          throw new TypeError("agents.run schema must be a JSON Schema object");
        }
      } else if (!filled(value)) {
        throw new TypeError("agents.run " + name + " must be a non-empty string");
      }
      given[name] = value;
    }
    return given;
  }
  function failed(message, runId, status) {
    return kit.error({ name: "SwarmAgentError", message, runId, status });
  }
  async function run(prompt, options) {
    if (!filled(prompt)) throw new TypeError("agents.run prompt must be a non-empty string");
    const given = checked(options);
    let answer;
    try {
      // A child still at work when the program has returned does not hold it: a race is over when it
      // is won, and the host gives the others up.
      answer = await kit.open("agentSpawn", [prompt, given], true).promise;
    } catch (error) {
      if (error.code === "blocked") throw failed(error.message, null, "forbidden");
      throw error;
    }
    if (answer.ok) return answer.value;
    throw failed(answer.message, answer.runId, answer.status);
  }
  async function forget(kind, text) {
    try {
      await kit.request("agentNote", [kind, text]);
    } catch (error) {
      // Notes are told and forgotten: one that could not be told must not fail the program.
    }
  }
  kit.define("agents", freeze({ __proto__: null, run: freeze(run) }));
  kit.define("phase", freeze((title) => {
    if (!filled(title)) throw new TypeError("phase title must be a non-empty string");
    forget("phase", title);
  }));
  kit.define("log", freeze((message) => {
    forget("log", kit.print(message));
  }));
})
