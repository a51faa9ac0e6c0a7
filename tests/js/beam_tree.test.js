import assert from "node:assert/strict";
import { test } from "node:test";

import { keyOf, makeTree, wayTo } from "../../transformer_lib/widgets/beam_tree/model.js";
import { close, fixture } from "./support.js";

const CASES = fixture("beam_tree").cases;
const textOf = (words, ids) => ids.map((id) => Number(words[id]));

test("every width and penalty finds what the library finds", () => {
  let compared = 0;
  for (const { text, logs, searches } of CASES) {
    const tree = makeTree(text, logs);
    for (const { width, penalty, finished } of searches) {
      const found = tree.search(width, penalty).finished;
      const where = `width ${width}, penalty ${penalty}`;
      close(
        found.map(({ score }) => score),
        finished.map(({ score }) => score),
        1e-9,
        where,
      );
      const ids = found.map((each) => textOf(text.words, each.ids));
      assert.deepEqual(
        ids,
        finished.map((each) => each.ids),
        where,
      );
      compared += found.length;
    }
  }
  assert.ok(compared > 150, `${compared} texts`);
});

test("columns hold the beams, in the order of what they follow", () => {
  for (const { text, logs } of CASES) {
    const tree = makeTree(text, logs);
    for (const width of [1, 3, 5]) {
      let before = [""];
      let kept = [""];
      for (const [step, nodes] of tree.columns(width, 0.6).entries()) {
        const { going, ended } = tree.search(width, 0.6).steps[step];
        const count = (kind) => nodes.filter((node) => node.kind === kind).length;
        assert.deepEqual([count("kept"), count("ended")], [going.length, ended.length]);
        assert.ok(going.length <= width && ended.length <= width);
        const places = nodes.map(({ parent }) => before.indexOf(parent));
        assert.deepEqual(
          places,
          [...places].sort((a, b) => a - b),
        );
        for (const { key, ids, parent, kind } of nodes) {
          assert.ok(kept.includes(parent), "only what is kept goes on");
          assert.equal(keyOf(ids), key);
          assert.equal(wayTo(key).at(-2) ?? "", parent);
          if (kind === "ended") assert.equal(ids.at(-1), text.end);
          if (kind === "kept") assert.notEqual(ids.at(-1), text.end);
        }
        before = nodes.map(({ key }) => key);
        kept = nodes.filter(({ kind }) => kind === "kept").map(({ key }) => key);
      }
    }
  }
});

test("width 1 shows the greedy text, and its nodes are marked", () => {
  for (const { text, logs } of CASES) {
    const tree = makeTree(text, logs);
    const way = tree.columns(1, 0).flatMap((nodes) => nodes.filter(({ greedy }) => greedy));
    assert.deepEqual(way.at(-1).ids, [...tree.greedy.ids, text.end]);
    assert.ok(way.every(({ kind }) => kind !== "cut"));
    for (const { greedy, plain } of tree.ranked(1, 0, way.length)) {
      assert.deepEqual([greedy, plain], [true, 1]);
    }
  }
});

test("ranks without a penalty are those of the probability", () => {
  const { text, logs } = CASES[0];
  const tree = makeTree(text, logs);
  for (let step = 0; step <= tree.search(5, 2).steps.length; step += 1) {
    const ranked = tree.ranked(5, 2, step);
    const byRank = [...ranked].sort((a, b) => a.plain - b.plain).map(({ log }) => log);
    assert.deepEqual(
      byRank,
      [...byRank].sort((a, b) => b - a),
    );
  }
  assert.deepEqual(tree.ranked(5, 2, 0), []);
});
