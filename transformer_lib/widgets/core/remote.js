// Computation in a thread of its own, so that the page stays quick while a model thinks.
//
//   const far = remote(model.get("_worker"));    // text of worker.js, from joining.worker
//   await far.call("load", bytes);               // a method of its default export, by name
//   far.end();
//   remote(text, { onEvent })                    what the worker posts as { event } while it computes
//
// The worker is made from a Blob, which also works from file://; in a task of its own, since that takes
// as long as half a figure. Where a page forbids workers, which browsers say by an exception or by an event, the
// same code runs in the page itself.

const ANSWER = [
  "self.onmessage = async ({ data: { id, method, values } }) => {",
  "  try {",
  "    self.postMessage({ id, value: await methods[method](...values) });",
  "  } catch (error) {",
  "    self.postMessage({ id, problem: error.message ?? String(error) });",
  "  }",
  "};",
  "self.postMessage({});",
].join("\n");

export function remote(text, { onEvent = () => {} } = {}) {
  const started = new Promise((resolve) => setTimeout(() => resolve(start(text, onEvent))));
  return {
    isApart: started.then(({ isApart }) => isApart),
    call: async (...asked) => (await started).call(...asked),
    end: () => started.then(({ end }) => end()),
  };
}

function start(text, onEvent) {
  const script = text.replace(/^export default\b/m, "const methods =");
  const address = URL.createObjectURL(
    new Blob([script, "\n", ANSWER], { type: "text/javascript" }),
  );
  const started = new Promise((resolve, reject) => {
    const worker = new Worker(address);
    worker.onmessage = () => resolve(apart(worker, onEvent)); // its script has run
    worker.onerror = reject;
  });
  return started.catch(() => local(text)).finally(() => URL.revokeObjectURL(address));
}

function apart(worker, onEvent) {
  const waiting = new Map();
  let count = 0;
  worker.onmessage = ({ data: { id, value, problem, event } }) => {
    if (event !== undefined) {
      onEvent(event);
      return;
    }
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (problem === undefined) resolve(value);
    else reject(new Error(problem));
  };
  worker.onerror = (event) => {
    for (const { reject } of waiting.values()) reject(new Error(event.message));
    waiting.clear();
  };
  return {
    isApart: true,
    call(method, ...values) {
      count += 1;
      const id = count;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        worker.postMessage({ id, method, values });
      });
    },
    end: () => worker.terminate(),
  };
}

function local(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const loaded = import(address).then((module) => module.default);
  return {
    isApart: false,
    call: async (method, ...values) => (await loaded)[method](...values),
    end: () => URL.revokeObjectURL(address),
  };
}
