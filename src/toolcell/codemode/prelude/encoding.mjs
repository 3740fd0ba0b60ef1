// TextEncoder and TextDecoder for UTF-8, in plain JavaScript. Above: guest code. Below: kit.
(function encoding(kit) {
  "use strict";
  const { intrinsics } = kit;
  const { uncurryThis, defineProperty, freeze, String, Uint8Array, ArrayBuffer, WeakMap, TypeError, RangeError, Reflect } = intrinsics;
  const charCodeAt = uncurryThis(String.prototype.charCodeAt);
  const fromCharCode = String.fromCharCode;
  const subarray = uncurryThis(Uint8Array.prototype.subarray);
  const { isView } = ArrayBuffer;
  const states = new WeakMap();
  const get = uncurryThis(WeakMap.prototype.get);
  const set = uncurryThis(WeakMap.prototype.set);

  // Calls put(byte) for each byte of the code point at index; returns how many units it took.
  function codePoint(text, index) {
    const first = charCodeAt(text, index);
    if (first < 0xd800 || first > 0xdfff) return first;
    const second = index + 1 < text.length ? charCodeAt(text, index + 1) : 0;
    const paired = first < 0xdc00 && second >= 0xdc00 && second <= 0xdfff;
    return paired ? 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00) : 0xfffd;
  }
  function width(point) {
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  function putPoint(bytes, at, point) {
    const size = width(point);
    if (size === 1) { bytes[at] = point; return 1; }
    const lead = size === 2 ? 0xc0 : size === 3 ? 0xe0 : 0xf0;
    for (let i = size - 1; i > 0; i--) { bytes[at + i] = 0x80 | (point & 0x3f); point >>>= 6; }
    bytes[at] = lead | point;
    return size;
  }
  function byteLength(text) {
    let total = 0;
    for (let i = 0; i < text.length;) {
      const point = codePoint(text, i);
      total += width(point);
      i += point > 0xffff ? 2 : 1;
    }
    return total;
  }
  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(input) {
      const text = input === undefined ? "" : String(input);
      const bytes = new Uint8Array(byteLength(text));
      for (let i = 0, at = 0; i < text.length;) {
        const point = codePoint(text, i);
        at += putPoint(bytes, at, point);
        i += point > 0xffff ? 2 : 1;
      }
      return bytes;
    }
    encodeInto(input, target) {
      const text = String(input);
      let read = 0, written = 0;
      while (read < text.length) {
        const point = codePoint(text, read);
        if (written + width(point) > target.length) break;
        written += putPoint(target, written, point);
        read += point > 0xffff ? 2 : 1;
      }
      return { read, written };
    }
  }

  function bytesOf(input) {
    if (input === undefined) return new Uint8Array(0);
    if (isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    try {
      return new Uint8Array(input);
    } catch {
      throw new TypeError("TextDecoder.decode takes an ArrayBuffer or a view of one");
    }
  }
  // How many bytes follow a lead byte, its bits, and the bounds of the second byte (Encoding Standard).
  function lead(byte) {
    if (byte >= 0xc2 && byte <= 0xdf) return [1, byte & 0x1f, 0x80, 0xbf];
    if (byte >= 0xe0 && byte <= 0xef) return [2, byte & 0xf, byte === 0xe0 ? 0xa0 : 0x80, byte === 0xed ? 0x9f : 0xbf];
    if (byte >= 0xf0 && byte <= 0xf4) return [3, byte & 7, byte === 0xf0 ? 0x90 : 0x80, byte === 0xf4 ? 0x8f : 0xbf];
    return undefined;
  }
  function fromPoint(point) {
    if (point < 0x10000) return fromCharCode(point);
    const rest = point - 0x10000;
    return fromCharCode(0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
  }
  function decode(bytes, state, stream) {
    let text = "";
    for (let i = 0; i <= bytes.length; i++) {
      if (i === bytes.length) {
        if (stream || state.need === 0) break;
        state.need = 0;
        text += bad(state);
        break;
      }
      const byte = bytes[i];
      if (state.need === 0) {
        const found = byte < 0x80 ? undefined : lead(byte);
        if (byte < 0x80) text += point(state, byte);
        else if (found === undefined) text += bad(state);
        else { state.need = found[0]; state.bits = found[1]; state.low = found[2]; state.high = found[3]; }
        continue;
      }
      if (byte < state.low || byte > state.high) {
        state.need = 0; state.low = 0x80; state.high = 0xbf;
        text += bad(state);
        i--;
        continue;
      }
      state.low = 0x80; state.high = 0xbf;
      state.bits = (state.bits << 6) | (byte & 0x3f);
      if (--state.need === 0) text += point(state, state.bits);
    }
    return text;
  }
  function point(state, value) {
    const first = !state.begun;
    state.begun = true;
    return first && value === 0xfeff && !state.ignoreBOM ? "" : fromPoint(value);
  }
  function bad(state) {
    state.begun = true;
    if (state.fatal) {
      state.need = 0; state.begun = false;
      throw new TypeError("the encoded data is not valid UTF-8");
    }
    return "\ufffd";
  }
  class TextDecoder {
    constructor(label = "utf-8", options = {}) {
      const name = String(label);
      if (name !== "utf-8" && name !== "utf8" && name !== "UTF-8" && name !== "UTF8") {
        throw new RangeError("TextDecoder supports utf-8 only, not '" + name + "'");
      }
      const { fatal = false, ignoreBOM = false } = options;
      set(states, this, { __proto__: null, fatal: !!fatal, ignoreBOM: !!ignoreBOM, begun: false, need: 0, bits: 0, low: 0x80, high: 0xbf });
    }
    get encoding() { return "utf-8"; }
    get fatal() { return get(states, this).fatal; }
    get ignoreBOM() { return get(states, this).ignoreBOM; }
    decode(input, options = {}) {
      const state = get(states, this);
      const stream = !!options.stream;
      const text = decode(bytesOf(input), state, stream);
      if (!stream) state.begun = false;
      return text;
    }
  }
  kit.define("TextEncoder", TextEncoder);
  kit.define("TextDecoder", TextDecoder);
})
