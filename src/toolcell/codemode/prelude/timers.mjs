// Timers: setTimeout and clearTimeout, slept by the host (BEHAVIOURS 113), and queueMicrotask.
// Above: guest code. Below: kit.
(function timers(kit, data) {
  "use strict";
  const { intrinsics } = kit;
  const { apply, uncurryThis, Number, Promise, TypeError, Math } = intrinsics;
  const then = uncurryThis(Promise.prototype.then);
  const soon = Promise.resolve();
  const { maxMilliseconds } = data;

  function delay(value) {
    const number = Number(value);
    return number > 0 ? Math.min(Math.floor(number), maxMilliseconds) : 0;
  }
  async function ring(promise, callback, values) {
    await promise;
    apply(callback, undefined, values);
  }
  kit.define("setTimeout", (callback, milliseconds, ...values) => {
    if (typeof callback !== "function") throw new TypeError("setTimeout needs a function to call");
    // A timer still open when the program has returned does not hold it: a race against a time-out
    // is over when the race is.
    const opened = kit.open("sleep", [delay(milliseconds)], true);
    ring(opened.promise, callback, values);
    return opened.id;
  });
  kit.define("clearTimeout", (id) => {
    if (typeof id === "number") kit.withdraw(id);
  });
  // An error in it is a rejection that nobody handles, and fails the program.
  kit.define("queueMicrotask", (callback) => {
    if (typeof callback !== "function") throw new TypeError("queueMicrotask needs a function to call");
    then(soon, () => { apply(callback, undefined, []); });
  });
})
