// atob and btoa as the HTML standard has them, where the engine does not. Above: guest code. Below: kit.
(function base64(kit) {
  "use strict";
  const { intrinsics } = kit;
  const { uncurryThis, defineProperty, create, Error, String } = intrinsics;
  const charCodeAt = uncurryThis(String.prototype.charCodeAt);
  const charAt = uncurryThis(String.prototype.charAt);
  const fromCharCode = String.fromCharCode;
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const blanks = " \t\n\f\r";
  const values = create(null);
  for (let i = 0; i < digits.length; i++) values[charCodeAt(digits, i)] = i;
  for (let i = 0; i < blanks.length; i++) values[charCodeAt(blanks, i)] = -1;

  function invalid(message) {
    const error = new Error(message);
    defineProperty(error, "name", { __proto__: null, value: "InvalidCharacterError", configurable: true, writable: true });
    return error;
  }
  function btoa(data) {
    const text = String(data);
    let out = "";
    for (let i = 0; i < text.length; i += 3) {
      const left = text.length - i;
      const first = charCodeAt(text, i);
      const second = left > 1 ? charCodeAt(text, i + 1) : 0;
      const third = left > 2 ? charCodeAt(text, i + 2) : 0;
      if (first > 255 || second > 255 || third > 255) {
        throw invalid("btoa takes characters up to U+00FF; encode other text with TextEncoder first");
      }
      const bits = (first << 16) | (second << 8) | third;
      out += charAt(digits, bits >> 18) + charAt(digits, (bits >> 12) & 63)
        + (left > 1 ? charAt(digits, (bits >> 6) & 63) : "=") + (left > 2 ? charAt(digits, bits & 63) : "=");
    }
    return out;
  }
  function atob(data) {
    const text = String(data);
    let out = "", bits = 0, held = 0, count = 0, padding = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = charCodeAt(text, i);
      const value = values[unit];
      if (value === -1) continue;
      if (unit === 61 && ++padding < 3) continue;
      if (value === undefined || padding) throw invalid("atob: the string is not correctly encoded");
      bits = ((bits << 6) | value) & 0xffffff;
      held += 6;
      count++;
      if (held >= 8) { held -= 8; out += fromCharCode((bits >> held) & 255); }
    }
    // Padding is optional, but complete where it is there; one digit alone is no byte.
    if (count % 4 === 1 || (padding && (count + padding) % 4)) {
      throw invalid("atob: the string is not correctly encoded");
    }
    return out;
  }
  if (typeof globalThis.btoa !== "function") kit.define("btoa", btoa);
  if (typeof globalThis.atob !== "function") kit.define("atob", atob);
})
