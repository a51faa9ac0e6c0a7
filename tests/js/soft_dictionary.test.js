import { test } from "node:test";

import { lookUp } from "../../transformer_lib/widgets/soft_dictionary/model.js";
import { close, fixture } from "./support.js";

test("weights and answers are the library's", () => {
  for (const { keys, values, query, temperature, weights, answer } of fixture("soft_dictionary")
    .cases) {
    const found = lookUp(keys, values, query, temperature);
    close(found.weights, weights);
    close(found.answer, answer);
  }
});
