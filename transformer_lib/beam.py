"""Beam search: the most probable texts that a search of a given width finds; and translation."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.cache import require_new_cache
from transformer_lib.encoder_decoder import BEGIN, END, PADDING, EncoderDecoder
from transformer_lib.fast.decoding import decoder, lengths_to_look_at, warn_unless_cached
from transformer_lib.layers import evaluating
from transformer_lib.sampling import (
    require_end,
    require_generation,
    require_logits,
    require_sound,
)

MOST_BEAMS, MOST_PENALTY = 1000, 10.0  # a step is a batch of so many texts; a usual exponent is 1


@torch.no_grad()
def beam_search(
    model: nn.Module,
    ids: Int[Tensor, "batch prompt"],
    n_tokens: int | Int[Tensor, " batch"],
    *,
    width: int,
    end: int | None = None,
    length_penalty: float = 0.0,
) -> tuple[Int[Tensor, "batch beams tokens"], Float[Tensor, "batch beams"]]:
    """The ``width`` best continuations that a search of that width finds, best first.

    At each step every beam is continued by every token, and the best ``width`` survive. Width 1
    without a length penalty is greedy decoding; a width of vocabulary^(n_tokens - 1) loses nothing
    and finds the best of all. (There are fewer beams than ``width`` if there are no more
    continuations.)

    With an ``end`` token, a beam is finished by it where that is among the best ``width``
    continuations, and others take its place. The search of a sequence goes on until none of its
    beams can end better than the ``width`` that are finished; the last of its ``n_tokens`` can only
    be ``end``. Texts are filled up with ``end``. (Where there are fewer than ``width``, the others
    hold nothing but ``end``, with a score of -inf.)

    Args:
        model: as for :func:`~transformer_lib.sampling.generate`.
        ids: the prompts.
        n_tokens: of a continuation; with ``end``, at most, and one number for each if you like.
        width: how many beams, at most 1000.
        end: the id of the token that ends a text; None: all have ``n_tokens``.
        length_penalty: the exponent α. A text is judged by the logarithm of its probability over
            ((5 + length) / 6)^α; the length counts ``end``. With 0 the short are at an advantage;
            at most 10.

    Returns:
        the texts, ``ids`` included, and what they are judged by.

    Raises:
        ValueError, TypeError: as :func:`~transformer_lib.sampling.generate`; a width below 1 or
            above 1000; an end beyond the vocabulary; a length penalty below 0 or above 10, or
            without an end.

    Source: Sutskever et al. 2014, section 3.2; the length penalty: Wu et al. 2016, equation 14.

    >>> from transformer_lib.gpt import GPT, GPTConfig
    >>> model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    >>> texts, log_probabilities = beam_search(model, torch.tensor([[3, 1]]), 4, width=5)
    >>> texts.shape, log_probabilities.shape
    (torch.Size([1, 5, 6]), torch.Size([1, 5]))
    """
    limits = require_beams(model, ids, n_tokens, width, end, length_penalty)
    (batch, prompt), vocabulary = ids.shape, model.config.vocabulary
    shortest, longest = int(limits.min()), int(limits.max())
    require_new_cache(model)
    cache = model.new_cache(batch, prompt + longest - 1)
    texts = ids.unsqueeze(1)  # [batch, beams, tokens]: at first, the prompt is the only beam
    with evaluating(model):
        logits = model(ids, cache)
        require_logits(logits, batch, vocabulary)
        logits = logits[:, -1]
        advance = decoder(model, cache)
        exact = torch.promote_types(logits.dtype, torch.float32)  # sums of many, even of 16 bits
        scores = torch.zeros(batch, 1, dtype=exact, device=ids.device)
        finished = scores.new_full((batch, width), -torch.inf)
        finished_texts = ids.new_zeros(batch, width, prompt + longest)
        best_possible = penalty_of(limits, length_penalty).to(exact).unsqueeze(1)
        looks = lengths_to_look_at(prompt + 1, prompt + longest - 1)
        for step in range(longest):
            beams = scores.shape[1]
            if step > 0:
                logits = advance(texts[:, :, -1].flatten())
            require_sound(logits)
            if prompt + step in looks:
                warn_unless_cached(model, texts.flatten(0, 1), logits, again=step > 1)
            following = logits.to(exact).log_softmax(dim=-1).unflatten(0, (batch, beams))
            candidates = (scores.unsqueeze(2) + following).flatten(start_dim=1)
            kept = min(width, beams * vocabulary)
            if end is not None:
                if step + 1 >= shortest:
                    over, forced = (limits <= step).unsqueeze(1), (limits == step + 1).unsqueeze(1)
                    others = torch.arange(beams * vocabulary, device=ids.device) % vocabulary != end
                    candidates.masked_fill_(over | forced & others, -torch.inf)
                ended = candidates[:, end::vocabulary].clone()
                if kept == 1:  # of equal ones the first, as argmax has it
                    ended[candidates.argmax(dim=1) != end] = -torch.inf
                else:
                    ended[ended < candidates.topk(kept, dim=1).values[:, -1:]] = -torch.inf
                judged = torch.cat((finished, ended / penalty_of(step + 1, length_penalty)), dim=1)
                filled = nn.functional.pad(texts, (0, longest - step), value=end)
                filled = torch.cat((finished_texts, filled), dim=1)
                finished, best = judged.topk(width, dim=1)
                finished_texts = _rows(filled, best)
                candidates[:, end::vocabulary] = -torch.inf
            if kept == 1:
                scores, best = candidates.max(dim=1, keepdim=True)
            else:
                scores, best = candidates.topk(kept, dim=1)
            parents, tokens = best // vocabulary, best % vocabulary
            texts = torch.cat((_rows(texts, parents), tokens.unsqueeze(2).to(ids.dtype)), dim=2)
            # A probability only falls, and no length makes more of it than the largest:
            if end is not None and (finished[:, -1:] >= scores[:, :1] / best_possible).all():
                break
            if (beams, kept) != (1, 1):  # else each goes on from itself
                first_rows = beams * torch.arange(batch, device=ids.device).unsqueeze(1)
                cache.select((first_rows + parents).flatten())
    if end is None:
        return texts, scores
    finished_texts[finished.isneginf()] = end
    return finished_texts[:, :, : prompt + step + 1], finished


def translate(
    model: EncoderDecoder,
    source: Int[Tensor, "batch keys"],
    *,
    width: int = 1,
    length_penalty: float = 0.6,
    n_tokens: int | None = None,
) -> list[list[int]]:
    """The best translation of each source, as ids without begin and end.

    Each is translated as if it were alone, whatever else is in the batch.

    Args:
        model: the translator.
        source: ids, padded on the right.
        width: of the beam search; 1 is greedy.
        length_penalty: see :func:`beam_search`; it plays no part in a greedy search.
        n_tokens: of a translation, at most, its end included; None: twice those of its source and
            ten more, as far as the context reaches.

    Raises:
        ValueError, TypeError: as ``EncoderDecoder.forward`` and :func:`beam_search`.

    >>> from transformer_lib.encoder_decoder import EncoderDecoderConfig
    >>> config = EncoderDecoderConfig(source_vocabulary=11, target_vocabulary=13, context=9,
    ...                               n_layers=1, n_heads=2, d_model=12)
    >>> len(translate(EncoderDecoder(config), torch.tensor([[3, 4, 5], [6, 7, 0]]), width=2))
    2
    """
    require_translator(model)
    checks.require_count(width, "width")
    with evaluating(model):
        given = model.given(source)
        if n_tokens is None:
            limits = 2 * (source != PADDING).sum(dim=1) + 10
            n_tokens = limits.clamp(max=model.config.context - 1)
        begin = source.new_full((len(source), 1), BEGIN)
        penalty = length_penalty if width > 1 else 0.0
        texts, _ = beam_search(given, begin, n_tokens, width=width, end=END, length_penalty=penalty)
    return [cut(text) for text in texts[:, 0, 1:].tolist()]


def cut(text: list[int]) -> list[int]:
    """The ids before the first end.

    >>> cut([7, 3, END, END])
    [7, 3]
    """
    return text[: text.index(END)] if END in text else text


def penalty_of(length, exponent: float):
    """The divisor of a text's log-probability: Wu et al. 2016, equation 14.

    >>> penalty_of(1, 0.6)
    1.0
    """
    return ((5 + length) / 6) ** exponent


def _rows(texts: Int[Tensor, "batch beams tokens"], which: Int[Tensor, "batch kept"]) -> Tensor:
    return texts.gather(1, which.unsqueeze(2).expand(-1, -1, texts.shape[2]))


def require_translator(model) -> None:
    """``model`` writes a target, given a source."""
    if not hasattr(model, "given"):
        raise TypeError(
            f"model is of type {type(model).__name__}; to translate, it must be an EncoderDecoder. "
            f"(A GPT, and a translator that is given its source, write by generate or beam_search.)"
        )


def require_beams(
    model, ids, n_tokens, width: int, end: int | None, length_penalty: float
) -> Int[Tensor, " batch"]:
    """All arguments of a beam search; how many tokens each sequence may get."""
    checks.require_count(width, "width")
    if width > MOST_BEAMS:
        raise ValueError(
            f"width is {width}; each step computes that many texts, so choose at most {MOST_BEAMS} "
            f"(4 to 10 are usual)."
        )
    limits = n_tokens if isinstance(n_tokens, Tensor) else None
    require_generation(model, ids, n_tokens if limits is None else limits.max().item())
    if limits is None:
        limits = torch.full((len(ids),), n_tokens, device=ids.device)
    if limits.shape != (len(ids),) or int(limits.min()) < 1 or (end is None and n_tokens is limits):
        raise ValueError(
            f"n_tokens are {limits.tolist()} for {len(ids)} prompts; give one number of at least 1 "
            f"for all, or, with an end token, one for each."
        )
    if end is not None:
        require_end(end, model.config.vocabulary)
    checks.require_number(length_penalty, "length_penalty")
    if not 0 <= length_penalty <= MOST_PENALTY:
        raise ValueError(
            f"length_penalty is {length_penalty}; it is an exponent: choose 0 for none, or about "
            f"0.6 to 1 (at most {MOST_PENALTY:g})."
        )
    if length_penalty and end is None:
        raise ValueError(
            "a length penalty is given without an end token: all texts are of one length then, and "
            "nothing would change. Give end=..., or leave the penalty out."
        )
    return limits
