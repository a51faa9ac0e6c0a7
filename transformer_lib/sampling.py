"""From a distribution over the next token to text: sampling and greedy decoding.

A model is anything that gives ``model(ids, cache) -> logits [batch, tokens, vocabulary]``, has a
``config`` with ``vocabulary`` and ``context``, and makes caches by ``new_cache(batch, capacity)``.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.fast.decoding import decoder

Logits = Float[Tensor, "*batch vocabulary"]


def keep_top_k(logits: Logits, k: int) -> Logits:
    """The ``k`` largest logits; all others become -inf. Ties are broken as torch.topk breaks them.

    Raises:
        ValueError: ``k`` is smaller than 1. (Larger than the vocabulary: all are kept.)

    Source: Fan et al. 2018.

    >>> keep_top_k(torch.tensor([1.0, 3.0, 2.0]), k=2)
    tensor([-inf, 3., 2.])
    """
    checks.require_count(k, "top_k")
    values, indices = logits.topk(min(k, logits.shape[-1]), dim=-1)
    return torch.full_like(logits, -torch.inf).scatter(-1, indices, values)


def keep_top_p(logits: Logits, p: float) -> Logits:
    """The fewest tokens whose probability together reaches ``p``; all others become -inf.

    The most probable token is always among them; p = 1 keeps all. (On a GPU, cumulative sums may
    be rounded otherwise in each run, and with them a token at the very edge.)

    Raises:
        ValueError: ``p`` outside of (0, 1].

    Source: Holtzman et al. 2020 (nucleus sampling), section 3.1.

    >>> keep_top_p(torch.tensor([0.5, 0.125, 0.25, 0.125]).log(), p=0.7).exp()
    tensor([0.5000, 0.0000, 0.2500, 0.0000])
    """
    require_top_p(p)
    if p == 1:
        return logits
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(dim=-1)
    cut = probabilities.cumsum(dim=-1) - probabilities >= p  # enough comes before it
    cut[..., :1] = False  # even where p rounds to 0
    return torch.empty_like(logits).scatter(-1, order, ordered.masked_fill(cut, -torch.inf))


def filter_logits(
    logits: Logits,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Logits:
    """The logits of the distribution to draw from: temperature first, then top-k, then top-p.

    Temperature divides the logits: below 1 it favors what is probable, above 1 it evens out. In the
    limit of 0 all probability is on the largest logit (the first of equal ones): greedy decoding.
    ``top_p`` measures what temperature and ``top_k`` have left, as Hugging Face does.

    Raises:
        ValueError: a temperature that is neither 0 nor from 1e-30 to 1e30 (beyond, logits in 32
            bits would overflow); as :func:`keep_top_k`, :func:`keep_top_p`.

    >>> logits = torch.tensor([0.0, 2.0, 1.0])
    >>> filter_logits(logits, temperature=0.5, top_k=2)
    tensor([-inf, 4., 2.])
    >>> filter_logits(logits, temperature=0).softmax(dim=-1)
    tensor([0., 1., 0.])
    """
    require_sampling(temperature, top_k, top_p)
    if temperature == 0:
        best = logits.argmax(dim=-1, keepdim=True)
        return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)
    logits = logits / temperature
    logits = logits if top_k is None else keep_top_k(logits, top_k)
    return logits if top_p is None else keep_top_p(logits, top_p)


@torch.no_grad()
def next_logits(
    model: nn.Module, prompts: Sequence[Sequence[int]]
) -> Float[Tensor, "prompts vocabulary"]:
    """The logits of the token after each prompt; prompts may differ in length. Dropout is off.

    A prompt is a list, a tensor or an array of token ids.

    Raises:
        ValueError: no prompts, an empty one, ids beyond the vocabulary, more than the context.
        TypeError: ids that are not integers.

    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    >>> next_logits(model, [[3, 1, 4], [1]]).shape
    torch.Size([2, 7])
    """
    if len(prompts) == 0:
        raise ValueError("there are no prompts: give at least one, a list of token ids.")
    tensors = chain(model.parameters(), model.buffers())
    device = next((tensor.device for tensor in tensors), None)
    ids = [torch.as_tensor(prompt, device=device) for prompt in prompts]
    with evaluating(model):
        # An empty list is a tensor of floats; its own message is the better one.
        ids = [prompt if prompt.numel() else prompt.long() for prompt in ids]
        return torch.cat([model(prompt.unsqueeze(0))[:, -1] for prompt in ids])


@torch.no_grad()
def generate(
    model: nn.Module,
    ids: Int[Tensor, "batch prompt"],
    n_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    cache: bool = True,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "batch tokens"]:
    """``ids`` and ``n_tokens`` more, each drawn from :func:`filter_logits` of the model's logits.

    Temperature 0 is greedy: no chance is involved. With the cache, each step computes one token;
    without, the whole text again: the same numbers, up to rounding, slowly. Dropout is off.

    All must fit into the model's context. To go on beyond it, start again from the text's last
    tokens: every token then has a new position, so nothing in a cache would be of use.

    Raises:
        ValueError: an empty prompt, ids beyond the vocabulary, more tokens than the context,
            options out of range, logits that are NaN or infinite, a generator of another device.
        TypeError: ids that are not integers; options that are not numbers.

    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    >>> generate(model, torch.tensor([[3, 1, 4]]), n_tokens=5).shape
    torch.Size([1, 8])
    """
    require_sampling(temperature, top_k, top_p)
    require_generation(model, ids, n_tokens)
    require_generator(generator, ids.device)
    batch, prompt = ids.shape
    text = torch.cat((ids, ids.new_empty(batch, n_tokens)), dim=1)
    store = model.new_cache(batch, prompt + n_tokens - 1) if cache else None
    with evaluating(model):
        logits = model(ids, store)[:, -1]
        if cache and n_tokens > 1:
            step = decoder(model, store, (ids[:, -1], logits))
        for end in range(prompt, prompt + n_tokens):
            if end > prompt:
                logits = step(text[:, end - 1]) if cache else model(text[:, :end])[:, -1]
            require_sound(logits)
            text[:, end] = draw(logits, temperature, top_k, top_p, generator)
    return text


def draw(
    logits: Float[Tensor, "batch vocabulary"],
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator | None,
) -> Int[Tensor, " batch"]:
    """One token for each row, from :func:`filter_logits`."""
    if temperature == 0:
        return logits.argmax(dim=-1)  # what filter_logits would leave, without a draw
    left = filter_logits(logits.float(), temperature=temperature, top_k=top_k, top_p=top_p)
    return left.softmax(dim=-1).multinomial(1, generator=generator).squeeze(1)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode within; afterwards each module is in the mode in which it was."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def require_generation(model, ids, n_tokens: int) -> None:
    """A prompt and the number of tokens to come, for this model."""
    checks.require_count(n_tokens, "n_tokens")
    checks.require_ids(ids, model.config.vocabulary)
    checks.require_id_values(ids, model.config.vocabulary)
    checks.require_context(ids.shape[1], model.config.context, n_tokens)


def require_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """The options of sampling."""
    checks.require_number(temperature, "temperature")
    if temperature != 0 and not 1e-30 <= temperature <= 1e30:
        raise ValueError(
            f"temperature is {temperature}; it divides the logits, and in 32 bits the results must "
            f"be finite: choose a number from 1e-30 to 1e30, or 0 for greedy decoding."
        )
    if top_k is not None:
        checks.require_count(top_k, "top_k")
    if top_p is not None:
        require_top_p(top_p)


def require_top_p(p: float) -> None:
    """``p`` is a share of the probability, above 0 and at most 1."""
    checks.require_number(p, "top_p")
    if not 0 < p <= 1:
        raise ValueError(
            f"top_p is {p}; it is the share of the probability to keep: choose 0 < top_p <= 1 "
            f"(1 keeps all)."
        )


def require_sound(logits: Tensor) -> None:
    """The logits of one step hold neither NaN nor infinity: a GPU's program would end with them.

    The sum, which one such number spoils, takes less time than a look at each. (A GPU has to wait
    for it, at each step.)
    """
    if not math.isfinite(logits.float().sum().item()):
        checks.require_finite(logits, "the model's logits")


def require_generator(generator: torch.Generator | None, device: torch.device) -> None:
    """The generator draws on the model's device."""
    if generator is not None and generator.device.type != device.type:
        raise ValueError(
            f"generator is on {generator.device} and the model is on {device}; make it there: "
            f"torch.Generator({device.type!r}).manual_seed(...)."
        )
