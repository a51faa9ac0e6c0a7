// Reading traits from Python: JSON and arrays in `Bytes` traits, which arrive as a DataView.
//
//   const { tokens } = readJson(model, "_text");      // base.json_bytes({"tokens": [...]})
//   const weights = readFloats(model, "_weights");    // base.float_bytes(array), a Float32Array
//   const p = readDoubles(model, "_probabilities");   // base.double_bytes(array), a Float64Array
//
// Text from outside never travels in string traits (see base.py), and on the page it goes through
// textContent only.

/** The JSON value in a Bytes trait. */
export function readJson(model, name) {
  return JSON.parse(new TextDecoder().decode(bytesOf(model, name)));
}

/** The float32 numbers in a Bytes trait, little endian. */
export function readFloats(model, name) {
  const view = numbersOf(model, name, 4);
  return Float32Array.from({ length: view.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

/** The float64 numbers in a Bytes trait, little endian. */
export function readDoubles(model, name) {
  const view = numbersOf(model, name, 8);
  return Float64Array.from({ length: view.byteLength / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/** Set one trait and send it to Python, if there is a Python. */
export function send(model, name, value) {
  model.set(name, value);
  model.save_changes();
}

function numbersOf(model, name, size) {
  const view = bytesOf(model, name);
  if (view.byteLength % size === 0) return view;
  throw new Error(`${name} holds ${view.byteLength} bytes, not float${8 * size}`);
}

function bytesOf(model, name) {
  const value = model.get(name);
  if (value instanceof DataView) return value;
  if (value instanceof ArrayBuffer) return new DataView(value);
  if (ArrayBuffer.isView(value)) {
    return new DataView(value.buffer, value.byteOffset, value.byteLength);
  }
  throw new Error(`the trait ${name} holds no bytes`);
}
