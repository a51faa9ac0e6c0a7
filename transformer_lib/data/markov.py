"""Markov chains that must be learned while they are read: chapter 14's task.

    2 0 1 2 0 1 2 0 2 2 0 1 ...

In each sequence the next state depends on the present one only, by a table of chances. But each
sequence has a table of its own, drawn anew: no table can be learned by heart. A reader has to
estimate it from the sequence so far. Three readers are known exactly
(:data:`READERS`), and a Transformer that is trained becomes one after the other (Edelman et al.,
"The Evolution of Statistical Induction Heads", 2024).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lib import checks

READERS = ("uniform", "unigram", "bigram")
MOST_STATES = 100


def chains(
    n: int, length: int, n_states: int = 3, *, generator: torch.Generator | None = None
) -> Int[Tensor, "n length"]:
    """Sequences of states, each from a chain of its own.

    Each row of a chain's table is drawn uniformly from all distributions over the states (a
    Dirichlet distribution with all parameters 1), and the first state is uniform.

    Raises:
        ValueError, TypeError: counts that are not counts, fewer than two states or too many.

    >>> chains(2, 5, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([2, 5])
    """
    checks.require_count(n, "n")
    checks.require_count(length, "length")
    _require_states(n_states)
    uniform = torch.rand(n, n_states, n_states, generator=generator, dtype=torch.float64)
    weights = -uniform.clamp(min=1e-300).log()  # exponential: divided by their sum, Dirichlet(1)
    up_to = (weights / weights.sum(-1, keepdim=True)).cumsum(-1)
    draws = torch.rand(length, n, 1, generator=generator, dtype=torch.float64)
    state = (draws[0, :, 0] * n_states).long()
    rows, states = torch.arange(n), [state]
    for draw in draws[1:]:
        # The last sum can round to less than 1.
        state = (up_to[rows, state] < draw).sum(-1).clamp(max=n_states - 1)
        states.append(state)
    return torch.stack(states, dim=1)


def read(
    ids: Int[Tensor, "n length"], n_states: int, reader: str
) -> Float[Tensor, "n predictions states"]:
    """What a reader of :data:`READERS` expects next after each state but the last.

    ``uniform`` expects all states alike; ``unigram`` counts the states so far, ``bigram`` those
    that followed the present state. Counts begin at 1, which is Laplace's rule. For ``bigram`` this
    is the posterior mean under the very distribution that the tables are drawn from: **no reader
    can do better on average**.

    Raises:
        ValueError: an unknown reader; states out of range; a sequence without a second state.

    >>> read(torch.tensor([[0, 1, 0, 2]]), 3, "bigram")[0, -1]  # after 0 came a 1, once
    tensor([0.2500, 0.5000, 0.2500], dtype=torch.float64)
    """
    _require_states(n_states)
    checks.require_choice(reader, "reader", READERS)
    if ids.ndim != 2 or ids.shape[0] < 1 or ids.shape[1] < 2:
        raise ValueError(
            f"ids has the shape {tuple(ids.shape)}; give [n, length], sequences of two states at "
            f"least."
        )
    if not 0 <= int(ids.min()) <= int(ids.max()) < n_states:
        raise ValueError(
            f"ids holds {int(ids.min())} to {int(ids.max())}; states are 0 to {n_states - 1}."
        )
    seen = torch.nn.functional.one_hot(ids, n_states).double()
    if reader == "uniform":
        counts = torch.zeros_like(seen)
    elif reader == "unigram":
        counts = seen.cumsum(dim=1)
    else:
        # [n, length, from, to]: one step of the sequence after the other, summed up.
        steps = seen[:, :-1, :, None] * seen[:, 1:, None, :]
        so_far = torch.nn.functional.pad(steps.cumsum(dim=1), (0, 0, 0, 0, 1, 0))
        counts = (so_far * seen[..., None]).sum(dim=2)
    counts = counts[:, :-1] + 1
    return counts / counts.sum(-1, keepdim=True)


def loss_of(ids: Int[Tensor, "n length"], n_states: int, reader: str) -> float:
    """The mean surprise, in nats, of the reader at all states but the first.

    >>> round(loss_of(torch.tensor([[0, 1, 0, 2]]), 3, "uniform"), 4)  # ln 3
    1.0986
    """
    expected = read(ids, n_states, reader)
    return -expected.gather(-1, ids[:, 1:, None]).log().mean().item()


def _require_states(n_states: int) -> None:
    checks.require_count(n_states, "n_states")
    if not 2 <= n_states <= MOST_STATES:
        raise ValueError(f"n_states is {n_states}; choose 2 to {MOST_STATES}.")
