"""The expectations of the library's readers, for tests/js/math/markov.test.js."""

import torch

from transformer_lib.data.markov import READERS, chains, read


def fixtures() -> dict[str, object]:
    """Chains, and after each of their states but the last what each reader expects."""
    ids = chains(2, 12, 4, generator=torch.Generator().manual_seed(0))
    expected = {reader: read(ids, 4, reader).tolist() for reader in READERS}
    return {"ids": ids.tolist(), "states": 4, "expected": expected}
