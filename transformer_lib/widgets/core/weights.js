// A model's weights, as transformer_lib/widgets/weights.py packs them.
//
//   const bytes = await loadWeights(model, "_packed");   // ArrayBuffer, to hand to a worker
//   const weights = unpackWeights(bytes);                 // Map: name -> { data: Float32Array, shape }
//
// In a notebook the bytes are in the trait. On a page they lie in a file beside it, which is loaded
// now (book/extensions/figures.py), so that a page weighs little until its figure is looked at.

export async function loadWeights(model, name) {
  const value = model.get(name);
  const view = value?.load ? await window.afm.load(value.load) : value;
  if (!ArrayBuffer.isView(view)) throw new Error(`the weights of ${name} could not be read`);
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

export function unpackWeights(buffer) {
  const view = new DataView(buffer);
  const magic = String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (magic !== "AFMW") throw new Error(`the weights begin with ${magic}`);
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const weights = new Map();
  const filled = (size) => size + ((4 - (size % 4)) % 4);
  let at = filled(8 + length);
  for (const [name, shape, bits] of header) {
    const count = shape.reduce((product, size) => product * size, 1);
    const data = new Float32Array(count);
    if (bits === 32) {
      for (let i = 0; i < count; i += 1) data[i] = view.getFloat32(at + 4 * i, true);
      at += 4 * count;
    } else {
      const [rows, columns] = shape;
      const numbers = new Int8Array(buffer, at + 4 * rows, count);
      for (let r = 0; r < rows; r += 1) {
        const factor = view.getFloat32(at + 4 * r, true);
        for (let c = 0; c < columns; c += 1) {
          data[r * columns + c] = numbers[r * columns + c] * factor;
        }
      }
      at += 4 * rows + filled(count);
    }
    weights.set(name, { data, shape });
  }
  return weights;
}
