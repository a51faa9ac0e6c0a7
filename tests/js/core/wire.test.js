import assert from "node:assert/strict";
import { test } from "node:test";
import { readDoubles, readFloats, readJson } from "../../../transformer_lib/widgets/core/wire.js";

test("bytes are read from a view that starts in the middle of a buffer", () => {
  const buffer = new ArrayBuffer(13);
  const values = { _floats: new DataView(buffer, 5, 8), _json: new TextEncoder().encode('["ಗೆ"]') };
  values._floats.setFloat32(0, 1.5, true);
  values._floats.setFloat32(4, -2, true);
  const model = { get: (name) => values[name] };
  assert.deepEqual([...readFloats(model, "_floats")], [1.5, -2]);
  assert.deepEqual(readJson(model, "_json"), ["ಗೆ"]);
  assert.throws(() => readFloats({ get: () => new DataView(buffer, 0, 7) }, "_floats"), /7 bytes/);
  assert.throws(() => readJson({ get: () => "text" }, "_text"), /_text holds no bytes/);
});

test("doubles keep what float32 would round to zero", () => {
  const view = new DataView(new ArrayBuffer(16));
  view.setFloat64(0, 1e-50, true);
  view.setFloat64(8, 0.1, true);
  assert.deepEqual([...readDoubles({ get: () => view }, "_p")], [1e-50, 0.1]);
  const short = { get: () => new DataView(new ArrayBuffer(12)) };
  assert.throws(() => readDoubles(short, "_p"), /_p holds 12 bytes, not float64/);
});
