"""A real GPU: every wiring in every precision, what each option gains, and which bits repeat.

    python benchmarks/gpu.py        at most ten minutes on one GPU
    python benchmarks/gpu.py --few --device cpu --folder FOLDER    a try, where there is none

Writes transformer_lib/runs/gpu.json, after each part. It is part of the package, so that it can be
started where nothing else of the book is: `python -m transformer_lib.training.gpu` writes gpu.json
into the current folder. What it asks is in transformer_lib/training/gpu/.
"""

import sys

from transformer_lib.training.gpu import __main__ as program
from transformer_lib.training.run_log import RUNS_FOLDER


def main() -> int:
    return program.main(folder=RUNS_FOLDER)


if __name__ == "__main__":
    sys.exit(main())
