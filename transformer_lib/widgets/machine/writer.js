// The machine's own writing: a word, a pause, a word, until there is none or it is stopped.
//
//   const writer = slowly({ next: () => true, onChange(isRunning) })     next: false: it was the last
//   slowly({ ..., pause: () => 180 })                                    milliseconds before the next
//   writer.start();   writer.stop();   writer.isRunning

const PAUSE = 180;

export function slowly({ next, onChange, pause = () => PAUSE }) {
  let timer = 0;
  const stop = () => {
    if (!timer) return;
    clearTimeout(timer);
    timer = 0;
    onChange(false);
  };
  const step = () => {
    timer = setTimeout(step, pause());
    if (!next()) stop();
  };
  return {
    get isRunning() {
      return timer !== 0;
    },
    start() {
      onChange(true);
      timer = setTimeout(step, 0);
    },
    stop,
  };
}
