// What comes from Python: JSON and arrays in `Bytes` traits, which arrive as a DataView.
//
//   const { tokens } = readJson(model, "_text");      // base.json_bytes({"tokens": [...]})
//   const weights = readFloats(model, "_weights");    // base.float_bytes(array), a Float32Array
//
// Text from outside never travels in string traits (see base.py), and on the page it goes through
// textContent only.

/** The JSON value in a Bytes trait. */
export function readJson(model, name) {
  return JSON.parse(new TextDecoder().decode(bytesOf(model, name)));
}

/** The float32 numbers in a Bytes trait, little endian. */
export function readFloats(model, name) {
  const view = bytesOf(model, name);
  if (view.byteLength % 4) throw new Error(`${name} holds ${view.byteLength} bytes, not float32`);
  const numbers = new Float32Array(view.byteLength / 4);
  for (let i = 0; i < numbers.length; i += 1) numbers[i] = view.getFloat32(4 * i, true);
  return numbers;
}

/** Set one trait and send it to Python, if there is a Python. */
export function send(model, name, value) {
  model.set(name, value);
  model.save_changes();
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
