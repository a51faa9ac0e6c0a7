// The sliders of how a token is drawn, as machine and sampling lab have them.
//
//   temperatureSlider(model, (value) => send(model, "temperature", value))    -> slider() of dom.js
//   topPSlider(model, (value) => send(model, "top_p", value))                 1 keeps all

import { slider } from "./dom.js";
import { fixed } from "./numbers.js";
import { endsOf } from "./state.js";

export function temperatureSlider(model, onInput) {
  return slider({
    label: "temperature",
    ...endsOf(model, "temperature"),
    step: 0.05,
    value: 1,
    format: (value) => (value === 0 ? "0: greedy" : fixed(value)),
    onInput,
  });
}

export function topPSlider(model, onInput) {
  return slider({
    label: "top-p",
    ...endsOf(model, "top_p"),
    step: 0.01,
    value: 1,
    format: (value) => (value === 1 ? "1: all" : fixed(value)),
    onInput,
  });
}
