import assert from "node:assert/strict";
import { test } from "node:test";
import { loadWeights, unpackWeights } from "../../../transformer_lib/widgets/core/weights.js";
import { translate } from "../../../transformer_lib/widgets/math/beam.js";
import { encoderDecoder, gpt } from "../../../transformer_lib/widgets/math/transformer.js";
import { close, fakeModel, fixture } from "../support.js";

const library = fixture("transformer");
const weightsOf = ({ weights }) =>
  new Map(
    Object.entries(weights).map(([name, { data, shape }]) => [
      name,
      { data: Float32Array.from(data), shape },
    ]),
  );
/** { "blocks.0.attention": [head][row][column] } of what a model has found, by layer */
const named = (maps, name) =>
  Object.fromEntries(maps.map((layer, i) => [name.replace("#", i), layer]));

for (const known of [...library.gpt, ...library.activations]) {
  const { name, config, ids, maps, logits } = known;
  test(`a GPT is the library's: ${name}`, () => {
    const found = gpt(config, weightsOf(known)).start().read(ids);
    close(found.logits, logits, 1e-4);
    for (const [at, map] of Object.entries(named(found.maps, "blocks.#.attention"))) {
      close(map, maps[at], 1e-5);
    }
  });
  test(`piece by piece, and again after a rewind: ${name}`, () => {
    const text = gpt(config, weightsOf(known)).start();
    const found = [ids.slice(0, 4), ids.slice(4, 5)].flatMap((piece) => text.read(piece).logits);
    text.read([1, 2]);
    text.rewind(2);
    for (const id of ids.slice(5)) found.push(...text.read([id]).logits);
    close(found, logits, 1e-4);
    assert.deepEqual(text.tokens, ids);
  });
  for (const part of ["1.feed_forward", "0.attention", "1.attention.1"]) {
    test(`without ${part}: ${name}`, () => {
      const text = gpt(config, weightsOf(known)).start();
      close(text.read(ids, { off: new Set([part]) }).logits, known[`without_${part}`], 1e-4);
    });
  }
}

for (const [other, message] of [
  [{ attention: "latent" }, /attention is latent; the page computes multi/],
  [{ positions: "t5" }, /positions are t5; the page computes learned, sinusoidal/],
  [{ norm_kind: "tanh" }, /norm_kind is tanh, which the page/],
]) {
  test(`refused: ${JSON.stringify(other)}`, () => {
    const [known] = library.gpt;
    assert.throws(() => gpt({ ...known.config, ...other }, weightsOf(known)), message);
  });
}

for (const known of library.pairs) {
  const { name, config, source, target, maps, logits } = known;
  test(`a translator is the library's: ${name}`, () => {
    const text = encoderDecoder(config, weightsOf(known)).start(source);
    const found = text.read(target);
    close(found.logits, logits, 1e-4);
    const all = {
      ...named(text.source.maps, "encoder.#.attention"),
      ...named(found.maps, "decoder.#.attention"),
      ...named(found.cross, "decoder.#.cross_attention"),
    };
    assert.deepEqual(Object.keys(all).sort(), Object.keys(maps).sort());
    for (const [at, map] of Object.entries(all)) close(map, maps[at], 1e-5);
  });
  test(`word by word, and without a cross-attention: ${name}`, () => {
    const model = encoderDecoder(config, weightsOf(known));
    const text = model.start(source);
    close(
      target.flatMap((id) => text.read([id]).logits),
      logits,
      1e-4,
    );
    const off = new Set(["0.cross_attention"]);
    close(
      model.start(source).read(target, { off }).logits,
      known["without_0.cross_attention"],
      1e-4,
    );
  });
}

for (const known of library.pairs) {
  for (const { width, best } of known.translations) {
    test(`translations by a search of width ${width}: ${known.name}`, () => {
      const model = encoderDecoder(known.config, weightsOf(known));
      const found = translate(model, known.source, { width });
      assert.deepEqual(
        found.map(({ ids }) => ids),
        best.map(({ ids }) => ids),
      );
      close(
        found.map(({ score }) => score),
        best.map(({ score }) => score),
        1e-4,
      );
    });
  }
}

test("a fork goes its own way", () => {
  const [known] = library.gpt;
  const text = gpt(known.config, weightsOf(known)).start();
  text.read(known.ids.slice(0, 3));
  const other = text.fork();
  other.read([1, 2]);
  close(text.read(known.ids.slice(3)).logits, known.logits.slice(3), 1e-4);
  assert.deepEqual(other.tokens, [...known.ids.slice(0, 3), 1, 2]);
});

test("the stream after each block can be seen and changed", () => {
  const [known] = library.gpt;
  const model = gpt(known.config, weightsOf(known));
  const seen = [];
  model
    .start()
    .read(known.ids, { record: (layer, x) => seen.push([layer, x.length]) && undefined });
  const size = known.ids.length * known.config.d_model;
  assert.deepEqual(
    seen,
    Array.from({ length: known.config.n_layers }, (_, layer) => [layer, size]),
  );
  const zeros = model.start().read(known.ids, { record: (_, x) => new Float32Array(x.length) });
  close(zeros.logits[0], Array.from(zeros.logits[1]));
});

for (const known of library.pairs) {
  test(`what each part of a translator gives can be seen: ${known.name}`, () => {
    const seen = [];
    const see = (name, i, found) => seen.push({ name, i, ...found });
    const text = encoderDecoder(known.config, weightsOf(known)).start(known.source, { see });
    text.read(known.target, { see });
    const layers = Array.from({ length: known.config.n_layers }, (_, layer) => layer);
    assert.deepEqual(
      seen.map(({ name, i }) => `${name}.${i}`),
      [
        ...layers.flatMap((layer) => [0, 1].map((i) => `encoder.${layer}.${i}`)),
        ...layers.flatMap((layer) => [0, 1, 2].map((i) => `decoder.${layer}.${i}`)),
      ],
    );
    for (const { name, i, result } of seen) close(result, known.parts[`${name}.${i}`], 1e-4);
    for (const [one, other] of seen.slice(1).map((later, at) => [seen[at], later])) {
      if (one.name === other.name) assert.equal(one.after, other.x);
    }
  });
}

test("what cannot be read is refused before anything changes", () => {
  const [known] = library.gpt;
  const text = gpt(known.config, weightsOf(known)).start();
  assert.throws(() => text.read([]), /nothing to read/);
  assert.throws(() => text.read([known.config.vocabulary]), /is not the id of a token/);
  assert.throws(() => text.read(new Array(known.config.context + 1).fill(0)), /at most/);
  assert.equal(text.tokens.length, 0);
});

for (const bits of ["8", "32"]) {
  test(`weights in ${bits} bits are read as the library reads them`, async () => {
    const { base64, weights } = library.packed[bits];
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const model = fakeModel({ _packed: new DataView(bytes.buffer) });
    const found = unpackWeights(await loadWeights(model, "_packed"));
    assert.deepEqual([...found.keys()], Object.keys(weights));
    for (const [name, data] of Object.entries(weights)) close(found.get(name).data, data, 1e-7);
  });
}

test("weights of a page come from the file that the trait names; others are refused", async () => {
  const view = new DataView(new ArrayBuffer(8));
  globalThis.window = { afm: { load: async (path) => (path === "w.js" ? view : undefined) } };
  const found = await loadWeights(fakeModel({ _packed: { load: "w.js" } }), "_packed");
  assert.equal(found.byteLength, 8);
  const missing = loadWeights(fakeModel({ _packed: { load: "x.js" } }), "_packed");
  await assert.rejects(missing, /could not be read/);
  assert.throws(() => unpackWeights(found), /the weights begin with/);
  delete globalThis.window;
});
