// The sliders of how a token is drawn, as machine and sampling lab have them.
//
//   temperatureSlider(hottest, (value) => send(model, "temperature", value))    -> slider() of dom.js
//   topPSlider((value) => send(model, "top_p", value))                          1 keeps all

import { slider } from "./dom.js";
import { fixed } from "./numbers.js";

export function temperatureSlider(hottest, onInput) {
  return slider({
    label: "temperature",
    min: 0,
    max: hottest,
    step: 0.05,
    value: 1,
    format: (value) => (value === 0 ? "0: greedy" : fixed(value)),
    onInput,
  });
}

export function topPSlider(onInput) {
  return slider({
    label: "top-p",
    min: 0.01,
    max: 1,
    step: 0.01,
    value: 1,
    format: (value) => (value === 1 ? "1: all" : fixed(value)),
    onInput,
  });
}
