// bertviz's own programs, run as they are: its head view, model view and neuron view.
//
//   startBertviz(fig, model, { root, vis, onDrawn: () => {}, parameters: () => ({ attention, ... }) })
//                      runs the model's `_program`, the text of head_view.js, say, which draws into
//                      `vis` in `root`; onDrawn() after each change there
//   weightRows(attention, tokens)            what a file has of them

import { element, uniqueId } from "./dom.js";

const PATIENCE = 2000; // ms for a kernel to answer before the network is asked: it may be at work

/* bertviz's program begins with require.config({ paths: { d3, jquery } }) and then asks
 * requirejs(["jquery", "d3"], callback). It gets a substitute for both: on the book's page the two
 * libraries lie beside the page. In a notebook they come from the kernel's environment, and if they
 * are not there, from the addresses that bertviz names. */
async function libraries(paths, { model, say }) {
  const page = globalThis.afm?.load;
  if (page)
    return loadInTurn(
      [
        ["jQuery", "bertviz/jquery.js"],
        ["d3", "bertviz/d3.js"],
      ],
      page,
    );
  globalThis.afmLibraries ??= await inNotebook(paths, model, say);
  return globalThis.afmLibraries;
}

async function inNotebook(paths, model, say) {
  const kernel = fromKernel(model);
  const pause = new Promise((resolve) => setTimeout(resolve, PATIENCE));
  const soon = await Promise.race([kernel, pause]);
  if (soon) return soon;
  const failed = await fromNetwork(paths).catch((error) => error);
  if (!(failed instanceof Error)) return failed;
  say(`${failed.message} It waits for the kernel, in case that has them.`);
  const late = await kernel; // without a kernel, this is the end
  if (late) return late;
  throw failed;
}

/** jQuery and d3 out of the kernel's environment; null if they are not there. */
function fromKernel(model) {
  return new Promise((resolve, reject) => {
    const answer = (message, buffers) => {
      if (!message?.libraries) return;
      model.off("msg:custom", answer);
      if (buffers.length) Promise.all(buffers.map(evaluate)).then(resolve, reject);
      else resolve(null);
    };
    model.on("msg:custom", answer);
    model.set("_wanted", model.get("_wanted") + 1);
    model.save_changes();
  });
}

/** What a library in one file exports: it is given a `module`, and leaves the window alone. */
async function evaluate(bytes) {
  const parts = ["export default function (module, exports, define) {\n", bytes, "\n}"];
  const address = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
  const { default: run } = await import(address).finally(() => URL.revokeObjectURL(address));
  const module = { exports: {} };
  run(module, module.exports);
  return module.exports;
}

function fromNetwork(paths) {
  if (typeof globalThis.define === "function" && globalThis.define.amd && globalThis.require) {
    globalThis.require.config({ paths });
    return new Promise((resolve, reject) => {
      const fail = () => reject(missing(`${paths.jquery}.js and ${paths.d3}.js`));
      globalThis.require(["jquery", "d3"], (...both) => resolve(both), fail);
    });
  }
  return loadInTurn(
    [
      ["jQuery", `${paths.jquery}.js`],
      ["d3", `${paths.d3}.js`],
    ],
    loadScript,
  );
}

function missing(address) {
  return new Error(
    `bertviz needs jQuery and d3. The kernel has not sent them, and ${address} cannot be reached. ` +
      "`make book` installs them for the kernel: run it, then this cell again.",
  );
}

async function loadInTurn(wanted, load) {
  for (const [name, address] of wanted) if (!globalThis[name]) await load(address);
  return wanted.map(([name]) => globalThis[name]);
}

function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = element("script", { src: address });
    script.onload = resolve;
    script.onerror = () => reject(missing(address));
    document.head.append(script);
  });
}

/** Run a program with its parameters, without writing anything into its text. */
async function runBertviz(program, parameters, notebook) {
  const names = "require, requirejs, PYTHON_PARAMS, window, console";
  const text = `export default function (${names}) {\n${program}\n}`;
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { default: start } = await import(address).finally(() => URL.revokeObjectURL(address));
  let paths = {};
  let ready = Promise.resolve();
  const require = { config: (settings) => (paths = settings.paths) };
  const requirejs = (_, callback) =>
    (ready = libraries(paths, notebook).then((both) => callback(...both)));
  // The neuron view looks for them in the window.
  start(require, requirejs, parameters, { bertviz_params: parameters }, { log() {} });
  await ready;
}

/** All weights [layers, heads, queries, keys] as the rows of a table. */
export function weightRows(attention, tokens) {
  const rows = [["layer", "head", "query", "key", "weight"]];
  attention.forEach((heads, layer) =>
    heads.forEach((weights, head) =>
      weights.forEach((row, query) =>
        row.forEach((weight, key) =>
          rows.push([layer + 1, head + 1, tokens[query], tokens[key], weight]),
        ),
      ),
    ),
  );
  return rows;
}

/** It finds its places in the document by their ids, so it has to wait until they are there. */
function attached(node) {
  return new Promise((resolve) => {
    const look = () => (node.isConnected ? resolve() : requestAnimationFrame(look));
    look();
  });
}

export async function startBertviz(fig, model, { root, vis, onDrawn, parameters }) {
  root.id = uniqueId("bertviz");
  const observer = new MutationObserver(onDrawn);
  observer.observe(vis, { childList: true, subtree: true });
  fig.onEnd(() => observer.disconnect());
  try {
    await attached(root);
    const given = { ...parameters(), root_div_id: root.id };
    await runBertviz(model.get("_program"), given, { model, say: fig.say });
  } catch (error) {
    console.error(error);
    fig.say(`This figure could not start: ${error.message ?? error}`);
  }
}
