"""From a distribution over the next token to text: sampling and greedy decoding.

A model is anything that gives ``model(ids, cache) -> logits [batch, tokens, vocabulary]``, has a
``config`` with ``vocabulary`` and ``context``, and makes caches by ``new_cache(batch, capacity)``.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.cache import require_new_cache
from transformer_lib.fast.decoding import decoder, lengths_to_look_at, warn_unless_cached
from transformer_lib.layers import evaluating

Logits = Float[Tensor, "*batch vocabulary"]


def keep_top_k(logits: Logits, k: int) -> Logits:
    """The ``k`` largest logits; all others become -inf. Ties are broken as torch.topk breaks them.

    Raises:
        ValueError: ``k`` is smaller than 1. (Larger than the vocabulary: all are kept.)

    Source: Fan et al. 2018.

    >>> keep_top_k(torch.tensor([1.0, 3.0, 2.0]), k=2)
    tensor([-inf, 3., 2.])
    """
    require_scores(logits)
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
    require_scores(logits)
    require_top_p(p)
    if p == 1:
        return logits
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    # In 16 bits a sum of many small numbers stops growing.
    probabilities = ordered.softmax(dim=-1, dtype=torch.promote_types(ordered.dtype, torch.float32))
    cut = probabilities.cumsum(dim=-1) - probabilities >= p  # enough comes before it
    cut[..., :1] = False  # even where p rounds to 0
    return torch.empty_like(logits).scatter(-1, order, ordered.masked_fill(cut, -torch.inf))


def keep_min_p(logits: Logits, m: float) -> Logits:
    """The tokens at least ``m`` times as probable as the most probable one; all others become -inf.

    Where the model is sure, few remain; where it is not, many. m = 0 keeps all, m = 1 the largest.

    Raises:
        ValueError: ``m`` outside of [0, 1].

    Source: Nguyen et al. 2025, section 3.

    >>> keep_min_p(torch.tensor([0.5, 0.125, 0.25, 0.125]).log(), m=0.3).exp()
    tensor([0.5000, 0.0000, 0.2500, 0.0000])
    """
    require_scores(logits)
    require_min_p(m)
    probabilities = logits.softmax(dim=-1)
    cut = probabilities < m * probabilities.amax(dim=-1, keepdim=True)
    return logits.masked_fill(cut, -torch.inf)


def penalize_repetition(
    logits: Float[Tensor, "batch vocabulary"], ids: Int[Tensor, "batch tokens"], penalty: float
) -> Float[Tensor, "batch vocabulary"]:
    """Logits in which each token that occurs in ``ids``, however often, is less probable.

    A positive logit is divided by ``penalty`` and a negative one multiplied by it; 1 changes
    nothing. What that does to the probabilities depends on where the logits have their zero, which
    no probability depends on, so a penalty that suits one model need not suit another.

    Raises:
        ValueError: a penalty outside of [1e-30, 1e30]; ``ids`` of another batch size, or beyond the
            vocabulary.
        TypeError: ids that are not integers.

    Source: Keskar et al. 2019 (CTRL), section 4.1, which divides negative logits, too, and so makes
    their tokens more probable; corrected as in Hugging Face's library.

    >>> penalize_repetition(torch.tensor([[3.0, -1.0, 2.0]]), torch.tensor([[0, 1, 1]]), 2.0)
    tensor([[ 1.5000, -2.0000,  2.0000]])
    """
    require_scores(logits)
    require_penalty(penalty)
    checks.require_ids(ids, logits.shape[-1])
    if len(ids) != len(logits):
        raise ValueError(
            f"ids have shape {tuple(ids.shape)} and logits {tuple(logits.shape)}; they must be "
            f"[batch, tokens] and [batch, vocabulary], of the same batch."
        )
    found = logits.gather(-1, ids.long())
    lower = torch.where(found < 0, found * penalty, found / penalty)
    return logits.scatter(-1, ids.long(), lower)


def filter_logits(
    logits: Logits,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Logits:
    """The logits of the distribution to draw from: temperature, then top-k, top-p and min-p.

    Temperature divides the logits: below 1 it favors what is probable, above 1 it evens out. In the
    limit of 0 all probability is on the largest logit (the first of equal ones): greedy decoding.
    Each filter measures what those before it have left, in Hugging Face's order. Logits in float16,
    which a low temperature would make infinite, come back in float32.

    Raises:
        ValueError: a temperature that is neither 0 nor from 1e-30 to 1e30 (beyond, logits in 32
            bits would overflow); as :func:`keep_top_k`, :func:`keep_top_p`, :func:`keep_min_p`.

    >>> logits = torch.tensor([0.0, 2.0, 1.0])
    >>> filter_logits(logits, temperature=0.5, top_k=2)
    tensor([-inf, 4., 2.])
    >>> filter_logits(logits, temperature=0).softmax(dim=-1)
    tensor([0., 1., 0.])
    """
    require_scores(logits)
    require_sampling(temperature, top_k, top_p, min_p)
    if temperature == 0:
        best = logits.argmax(dim=-1, keepdim=True)
        return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)
    if logits.dtype == torch.float16:
        logits = logits.float()
    logits = logits / temperature
    logits = logits if top_k is None else keep_top_k(logits, top_k)
    logits = logits if top_p is None else keep_top_p(logits, top_p)
    return logits if min_p is None else keep_min_p(logits, min_p)


@torch.no_grad()
def next_logits(
    model: nn.Module, prompts: Sequence[Sequence[int]]
) -> Float[Tensor, "prompts vocabulary"]:
    """The logits of the token after each prompt; prompts may differ in length. Dropout is off.

    A prompt is a list, a tensor or an array of token ids.

    Raises:
        ValueError: no prompts, an empty one, ids beyond the vocabulary, more than the context; a
            model of several sources.
        TypeError: ids that are not integers.

    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    >>> next_logits(model, [[3, 1, 4], [1]]).shape
    torch.Size([2, 7])
    """
    if prompts is None or len(prompts) == 0:
        raise ValueError("there are no prompts: give at least one, a list of token ids.")
    tensors = chain(model.parameters(), model.buffers())
    device = next((tensor.device for tensor in tensors), None)
    ids = [checks.require_listed(prompt, "the prompt", device=device) for prompt in prompts]
    if (sources := getattr(model, "sources", 1)) > 1:
        raise ValueError(
            f"this model reads {sources} sources, and each prompt is read by itself here. Give it "
            f"one source (model.given(source[:1])), or call it: model(ids)[:, -1]."
        )
    with evaluating(model):
        # An empty list is a tensor of floats; its own message is the better one.
        ids = [prompt if prompt.numel() else prompt.long() for prompt in ids]
        return torch.cat([model(prompt.unsqueeze(0))[:, -1] for prompt in ids])


def generate(
    model: nn.Module,
    ids: Int[Tensor, "batch prompt"],
    n_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    end: int | None = None,
    cache: bool = True,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "batch tokens"]:
    """``ids`` and ``n_tokens`` more, each drawn from :func:`filter_logits` of the model's logits.

    Temperature 0 is greedy: no chance is involved. With the cache, each step computes one token;
    without, the whole text again: the same numbers, up to rounding, slowly. Dropout is off.

    ``repetition_penalty`` is applied first (:func:`penalize_repetition`, over the prompt and what
    has been written). A text that has drawn the token ``end`` is finished and filled up with it;
    when all are, nothing more is computed, and fewer than ``n_tokens`` may come back.

    All must fit into the model's context. To go on beyond it, start again from the text's last
    tokens: every token then has a new position, so nothing in a cache would be of use.

    Raises:
        ValueError: an empty prompt, ids beyond the vocabulary, more tokens than the context,
            options out of range, an end beyond the vocabulary, logits that are NaN or infinite, a
            generator of another device.
        TypeError: ids that are not integers; options that are not numbers.

    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    >>> generate(model, torch.tensor([[3, 1, 4]]), n_tokens=5).shape
    torch.Size([1, 8])
    """
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    options |= {"repetition_penalty": repetition_penalty, "end": end, "cache": cache}
    tokens = stream(model, ids, n_tokens, generator=generator, **options)
    return torch.cat((ids, torch.stack(list(tokens), dim=1)), dim=1)


def stream(
    model: nn.Module,
    ids: Int[Tensor, "batch prompt"],
    n_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    end: int | None = None,
    cache: bool = True,
    generator: torch.Generator | None = None,
) -> Iterator[Int[Tensor, " batch"]]:
    """The tokens of :func:`generate` one by one, each as soon as it is drawn, at no more cost.

    The model is in evaluation mode from the first token to the last, or until the stream is closed,
    also where several streams take turns. What it keeps in its cache is not computed again: whoever
    changes its weights meanwhile gets a text of which half is the old model's.

    Raises as :func:`generate` does: for its arguments at once, for logits when they are computed.

    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    >>> for token in stream(model, torch.tensor([[3, 1, 4]]), n_tokens=2):
    ...     print(token.shape)
    torch.Size([1])
    torch.Size([1])
    """
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    require_sampling(**options)
    require_generation(model, ids, n_tokens)
    checks.require_flag(cache, "cache")
    require_generator(generator, ids.device)
    if repetition_penalty is not None:
        require_penalty(repetition_penalty)
    if end is not None:
        require_end(end, model.config.vocabulary)
    if cache:
        require_new_cache(model)
    store = model.new_cache(len(ids), ids.shape[1] + n_tokens - 1) if cache else None
    with torch.inference_mode(False):  # it may be read outside
        text = torch.cat((ids, ids.new_empty(len(ids), n_tokens)), dim=1)  # as it is now
    return _drawn(model, text, n_tokens, store, repetition_penalty, end, generator, options)


def _drawn(model, text, n_tokens, store, penalty, end, generator, options) -> Iterator[Tensor]:
    """:func:`stream`, its arguments checked."""
    batch, prompt = len(text), text.shape[1] - n_tokens
    finished = torch.zeros(batch, dtype=torch.bool, device=text.device)
    step = None
    looks = lengths_to_look_at(prompt + 1, prompt + n_tokens - 1) if store is not None else ()

    @torch.no_grad()  # not around a yield, where it would hold for whoever reads the stream
    def write(t: int) -> Tensor:
        """Token t of every text."""
        nonlocal step, finished
        if t > prompt and store is not None:
            logits = step(text[:, t - 1])
        else:
            logits = model(text[:, :t], store)
            require_logits(logits, batch, model.config.vocabulary)
            logits = logits[:, -1]
        if t == prompt and store is not None and n_tokens > 1:
            step = decoder(model, store, (text[:, t - 1], logits))
        require_sound(logits)
        if t in looks:
            warn_unless_cached(model, text[:, :t], logits, again=t > prompt + 1)
        if penalty is not None:
            logits = penalize_repetition(logits.float(), text[:, :t], penalty)
        tokens = draw(logits, generator, **options).to(text.dtype)
        if end is not None:
            tokens = tokens.masked_fill(finished, end)
            finished = finished | (tokens == end)
        text[:, t] = tokens
        return tokens

    with evaluating(model):  # not around the last one, after which nobody may ask again
        for t in range(prompt, prompt + n_tokens):
            tokens = write(t)
            if t + 1 == prompt + n_tokens or (end is not None and finished.all()):
                break
            yield tokens
    yield tokens


def draw(
    logits: Float[Tensor, "batch vocabulary"],
    generator: torch.Generator | None,
    *,
    temperature: float,
    **options,
) -> Int[Tensor, " batch"]:
    """One token for each row, from :func:`filter_logits`."""
    if temperature == 0:
        return logits.argmax(dim=-1)  # what filter_logits would leave, without a draw
    left = filter_logits(logits.float(), temperature=temperature, **options)
    return left.softmax(dim=-1).multinomial(1, generator=generator).squeeze(1)


def require_generation(model, ids, n_tokens: int) -> None:
    """A prompt and the number of tokens to come, for this model."""
    require_language_model(model)
    checks.require_count(n_tokens, "n_tokens")
    checks.require_ids(ids, model.config.vocabulary)
    checks.require_id_values(ids, model.config.vocabulary)
    checks.require_context(ids.shape[1], model.config.context, n_tokens)


def require_language_model(model) -> None:
    """``model`` is a module that goes on with a text."""
    config = getattr(model, "config", None)
    if not (isinstance(model, nn.Module) and hasattr(config, "context")):
        raise TypeError(
            f"model is of type {type(model).__name__}; it must be a language model: a module with "
            f"`config` and `new_cache`, such as a GPT. (Of one that is wrapped: model.module.)"
        )
    if not hasattr(config, "vocabulary"):
        raise TypeError(
            f"model is of type {type(model).__name__}, which needs a source to write a target. "
            f"Give model.given(source), or call translate(model, source)."
        )


def require_logits(logits: Tensor, batch: int, vocabulary: int) -> None:
    """One logit for each sequence, token and token id."""
    checks.require_float_tensor(logits, "what the model returns")
    if logits.ndim != 3 or logits[:, -1].shape != (batch, vocabulary):
        raise ValueError(
            f"the model's logits have shape {tuple(logits.shape)}; for {batch} sequences and the "
            f"vocabulary of its config they must be {(batch, 'tokens', vocabulary)}. A model whose "
            f"output layer was replaced needs a config that fits."
        )


def require_scores(logits) -> None:
    """``logits`` are ``[..., vocabulary]``."""
    checks.require_float_tensor(logits, "logits")
    if logits.ndim == 0:
        raise ValueError("logits are one number; they must be [..., vocabulary], one for each id.")


def require_sampling(
    temperature: float, top_k: int | None, top_p: float | None, min_p: float | None
) -> None:
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
    if min_p is not None:
        require_min_p(min_p)


def require_top_p(p: float) -> None:
    """``p`` is a share of the probability, above 0 and at most 1."""
    checks.require_number(p, "top_p")
    if not 0 < p <= 1:
        raise ValueError(
            f"top_p is {p}; it is the share of the probability to keep: choose 0 < top_p <= 1 "
            f"(1 keeps all)."
        )


def require_min_p(p: float) -> None:
    """``p`` is a share of the largest probability."""
    checks.require_number(p, "min_p")
    if not 0 <= p <= 1:
        raise ValueError(
            f"min_p is {p}; it is the least share of the largest probability that a token must "
            f"have: choose 0 <= min_p <= 1 (0 keeps all; 0.05 to 0.1 is usual)."
        )


def require_penalty(penalty: float) -> None:
    """A factor on logits, with which they stay finite in 32 bits."""
    checks.require_number(penalty, "repetition_penalty")
    if not 1e-30 <= penalty <= 1e30:
        raise ValueError(
            f"repetition_penalty is {penalty}; positive logits are divided by it, and in 32 bits "
            f"the results must be finite: choose a number above 1, about 1.2 (1 changes nothing, "
            f"and below 1 repetition is rewarded)."
        )


def require_end(end: int, vocabulary: int) -> None:
    """The id of a token."""
    checks.require_whole(end, "end")
    if not 0 <= end < vocabulary:
        raise ValueError(f"end is {end}; it is a token's id: choose 0 <= end < {vocabulary}.")


def require_sound(logits: Tensor) -> None:
    """The logits of one step hold neither NaN nor infinity: a GPU's program would end with them.

    The sum, which one such number spoils, takes less time than a look at each. (A GPU has to wait
    for it, at each step.)
    """
    if not math.isfinite(logits.float().sum().item()):
        banned = logits.isneginf()
        if banned.any() and (banned | logits.isfinite()).all():
            raise ValueError(
                f"the model's logits hold -inf, the first for the token "
                f"{int(banned.nonzero()[0, -1])}. To ban a token, add a large negative number to "
                f"its logit, such as -1e4."
            )
        checks.require_finite(logits, "the model's logits")


def require_generator(generator: torch.Generator | None, device: torch.device) -> None:
    """The generator draws where the ids are."""
    if generator is not None and not hasattr(generator, "device"):
        raise TypeError(
            f"generator is {generator!r}; it must be a torch.Generator: "
            f"torch.Generator({device.type!r}).manual_seed(0)."
        )
    if generator is not None and generator.device.type != device.type:
        raise ValueError(
            f"generator is on {generator.device} and ids are on {device}; both must be where the "
            f"model is. For ids there: torch.Generator({device.type!r}).manual_seed(...)."
        )
