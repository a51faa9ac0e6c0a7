// bertviz's own programs, run as they are: its head view, model view and neuron view.
//
//   await attached(root)                     they find their places in the document by id
//   await runBertviz(program, parameters)    the text of head_view.js, say, and what it is given

import { element } from "./dom.js";

/* bertviz's program begins with require.config({ paths: { d3, jquery } }) and then asks
 * requirejs(["jquery", "d3"], callback). It gets a substitute for both: on the book's page the two
 * libraries lie beside the page, in a notebook they come from the addresses that bertviz names. */
function libraries(paths) {
  const page = globalThis.afm?.load;
  if (page)
    return loadInTurn(
      [
        ["jQuery", "bertviz/jquery.js"],
        ["d3", "bertviz/d3.js"],
      ],
      page,
    );
  if (typeof globalThis.define === "function" && globalThis.define.amd && globalThis.require) {
    globalThis.require.config({ paths });
    return new Promise((resolve, reject) => {
      globalThis.require(["jquery", "d3"], (...both) => resolve(both), reject);
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

async function loadInTurn(wanted, load) {
  for (const [name, address] of wanted) if (!globalThis[name]) await load(address);
  return wanted.map(([name]) => globalThis[name]);
}

function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = element("script", { src: address });
    script.onload = resolve;
    script.onerror = () =>
      reject(new Error(`in a notebook it needs the network once, for ${address}`));
    document.head.append(script);
  });
}

/** Run a program with its parameters, without writing anything into its text. */
export async function runBertviz(program, parameters) {
  const names = "require, requirejs, PYTHON_PARAMS, window, console";
  const text = `export default function (${names}) {\n${program}\n}`;
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { default: start } = await import(address).finally(() => URL.revokeObjectURL(address));
  let paths = {};
  let ready = Promise.resolve();
  const require = { config: (settings) => (paths = settings.paths) };
  const requirejs = (_, callback) => (ready = libraries(paths).then((both) => callback(...both)));
  // The neuron view looks for them in the window.
  start(require, requirejs, parameters, { bertviz_params: parameters }, { log() {} });
  await ready;
}

/** It finds its places in the document by their ids, so it has to wait until they are there. */
export function attached(node) {
  return new Promise((resolve) => {
    const look = () => (node.isConnected ? resolve() : requestAnimationFrame(look));
    look();
  });
}
