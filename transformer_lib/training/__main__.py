"""``python -m transformer_lib.training``."""

import sys

from transformer_lib.training.cli import main

if __name__ == "__main__":
    sys.exit(main())
