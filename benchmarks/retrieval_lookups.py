"""Chapter 03's retrieval task at its largest width: which rates work, with how many lookups a step?

    python benchmarks/retrieval_lookups.py        a minute or two on one core

Writes transformer_lib/runs/retrieval-lookups.json, which stands behind a sentence of chapter 03: for
each number of lookups in a step, with and without √d_k, the rates of gradient descent at which all
ten runs of `retrieval_scaling.py` learn in 100 steps (their loss ends below 0.3).
"""

import torch
from retrieval_scaling import BATCH, RATES, train

from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

LOOKUPS, D_K, STEPS, LEARNED = (BATCH, 64), 1024, 100, 0.3
DESCENT = "gradient descent"


def main() -> None:
    torch.set_num_threads(1)
    result = {}
    for lookups in LOOKUPS:
        for kind in ("raw", "scaled"):
            worst = train(D_K, kind, DESCENT, lookups, (STEPS,))[STEPS].amax(dim=1)
            learn = [rate for rate, loss in zip(RATES[DESCENT], worst, strict=True) if loss < LEARNED]
            result[f"{kind}, {lookups} lookups"] = {"rates": learn, "count": len(learn)}
            print(f"{lookups} lookups a step, {kind}: {len(learn)} rates", flush=True)
    config = {"d_k": D_K, "steps": STEPS, "optimizer": DESCENT, "learned": f"below {LEARNED}"}
    log = new_run("retrieval-lookups", config=config, curve={}, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
