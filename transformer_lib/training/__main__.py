"""``python -m transformer_lib.training``."""

import os
import sys

from transformer_lib.training.cli import main

if __name__ == "__main__":
    status = main()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # nobody reads any more; Python would try once more, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
