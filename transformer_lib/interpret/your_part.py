"""Your part put in: a function of your own takes the library's place in a trained GPT.

    machine = load_shipped("gifts-v3")
    asked = questions(machine)
    with machine.using(attention_weights=mine):
        print(accuracy(machine, asked))

What can be put in, and the chapter that writes it. A function gets what belongs to one sentence,
and of queries and keys what belongs to one head:

    attention_weights(q, k)        1 to 3   -> [1, keys]; called for each word by itself, with its
                                            query [1, d_k] and the keys [keys, d_k] of the words up
                                            to it
    attention_weights(q, k, mask)  4        -> [words, words], for all words together; the mask is
                                            [words, words], True = may see
    causal_mask(queries, keys)     4        -> this mask, from two numbers
    split_heads(x, n_heads)        5        [batch, words, d_model] -> [batch, heads, words, d_k]
    merge_heads(z)                 5        and back
    embedding(ids, table)          6        [words] and [vocabulary, d_model] -> [words, d_model]
    apply_rotary(x, angles)        7c       [words, d_k] and [words, d_k / 2] -> [words, d_k]

The model's numbers are not touched, and behind the ``with`` it computes as before.
"""

import copy
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.gpt import GPT
from transformer_lib.interpret.open_parts import OpenAttention, OpenEmbedding, Own, takes_mask
from transformer_lib.interpret.parts import require_gpt
from transformer_lib.layers import Embedding
from transformer_lib.positions import RotaryPositions

PARTS = (
    "attention_weights", "causal_mask", "split_heads", "merge_heads", "embedding", "apply_rotary",
)  # fmt: skip
# Whatever else is in their place, or in them, may compute what an open part does not.
OPENED = {MultiHeadAttention, OpenAttention, Embedding, OpenEmbedding, RotaryPositions, type(None)}
OF_A_HEAD = ("attention_weights", "causal_mask", "apply_rotary")


@contextmanager
def using(model: GPT, *, at: str | None = None, **parts: Callable[..., Any]) -> Iterator[GPT]:
    """A context in which functions of your own take the library's place in ``model``.

    What each one gets and returns is said at the top of this module. Contexts can be nested. (It is
    ``model`` itself that holds the functions meanwhile: a thread needs a copy of its own.)

    Args:
        at: where, by the names in the figure Machine: ``"block-2"``, ``"block-2-head-3"`` (heads
            have ``attention_weights``, ``causal_mask`` and ``apply_rotary``); everywhere if None.

    Raises:
        TypeError: there is no part of this name, or what is given is not a function, or no GPT.
            While the model computes: it returns no tensor.
        ValueError: ``at`` is not a block or head of this model, or the part is not there; the model
            has no such part; a function would not be used, as a mask beside weights that take none.
            While the model computes: a shape that does not fit, NaN, or a function that changes
            what it is given.
        RuntimeError: at its end, a context that began within this one goes on, or one around this
            one has ended: of another thread, for instance.

    >>> from transformer_lib.gpt import GPTConfig
    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    >>> model, ids = GPT(GPTConfig(**sizes)), torch.tensor([[3, 1, 4]])
    >>> with using(model, attention_weights=lambda q, k: (q @ k.mT).softmax(dim=-1)):
    ...     undivided = model(ids)
    >>> torch.equal(undivided, model(ids))
    False
    """
    require_gpt(model)
    require_parts(model, parts)
    layers, head = _place(model, at, parts)
    own = {name: Own(name, function, head) for name, function in parts.items()}
    inside = {name: one for name, one in own.items() if name != "embedding"}
    chosen = dict.fromkeys(model.blocks[layer] for layer in layers)  # a shared block once
    places = [(block, "attention") for block in chosen] if inside else []
    opened = [_opened(block.attention, OpenAttention, inside) for block, _ in places]
    if "embedding" in own:
        places.append((model, "embedding"))
        opened.append(_opened(model.embedding, OpenEmbedding, {"embedding": own["embedding"]}))
    kept = [getattr(where, name) for where, name in places]
    try:
        for (where, name), part in zip(places, opened, strict=True):
            setattr(where, name, part)
        yield model
    finally:
        found = [getattr(where, name) for where, name in places]
        for (where, name), part, now in zip(places, kept, found, strict=True):
            if isinstance(now, OpenAttention | OpenEmbedding):  # else the outermost has ended
                part.training = now.training
                setattr(where, name, part)
    require_nested(opened, found)


def _opened(part: Any, kind: type, own: Mapping[str, Own]) -> Any:
    """``part`` as one of ``kind``, with its layers and numbers, and a reader's functions."""
    require_openable(part)
    opened = copy.copy(part)
    opened.__class__ = kind
    held = getattr(part, "own", {})
    for name, one in own.items():
        if one.head is not None and name in held and held[name].head != one.head:
            raise ValueError(
                f"{name} of this block has a function already, which would not be used: a block "
                f"takes one of a name. Put in one for all its heads, without nesting."
            )
    opened.own = {**held, **own}
    require_mask_used({name: one.function for name, one in opened.own.items()})
    return opened


def _place(model: GPT, at: str | None, parts: Mapping[str, Any]) -> tuple[list[int], int | None]:
    """The blocks (from 0) and the head that ``at`` names."""
    if at is None:
        return list(range(len(model.blocks))), None
    found = re.fullmatch(r"block-(\d+)(?:-head-(\d+))?", str(at))
    layer, head = (int(n) if n else None for n in found.groups()) if found else (0, None)
    layers, heads = len(model.blocks), model.config.n_heads
    if not found or not 1 <= layer <= layers or not (head is None or 1 <= head <= heads):
        raise ValueError(
            f"at is {at!r}; this model has block-1 to block-{layers}, and in each head-1 to "
            f"head-{heads}: write block-{layers}-head-1, for instance."
        )
    for name in parts:
        if name == "embedding" or (head is not None and name not in OF_A_HEAD):
            where = "before all blocks" if name == "embedding" else "the same for all heads"
            raise ValueError(f"{name} is {where}, so at = {at!r} does not fit. Leave it out.")
    return [layer - 1], None if head is None else head - 1


def require_parts(model: GPT, parts: Mapping[str, Any]) -> None:
    """Functions for parts that the model has, in place of the library's own."""
    for name, function in parts.items():
        if name not in PARTS:
            close = difflib.get_close_matches(name, PARTS, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise TypeError(f"there is no part {name!r}; there are {', '.join(PARTS)}.{hint}")
        if not callable(function):
            raise TypeError(
                f"{name} is {function!r:.60}, of type {type(function).__name__}; give a function."
            )
    config = model.config
    plain = config.n_kv_heads in (None, config.n_heads) and not config.qk_norm
    if not plain or config.positions == "alibi":
        raise ValueError(
            f"this GPT has more between its queries and its weights than the functions of the book "
            f"(positions = {config.positions!r}, n_kv_heads = {config.n_kv_heads}, qk_norm = "
            f"{config.qk_norm}). Take one with rotary or added positions and neither of the others."
        )
    if "apply_rotary" in parts and config.positions != "rotary":
        raise ValueError(
            f"the positions of this GPT are {config.positions!r}, so it turns nothing and has no "
            f"apply_rotary. Put your own into embedding."
        )
    require_mask_used(parts)


def require_mask_used(parts: Mapping[str, Any]) -> None:
    """No mask beside weights that take none."""
    weigh = parts.get("attention_weights")
    if "causal_mask" in parts and weigh is not None and not takes_mask(weigh):
        raise ValueError(
            "your attention_weights(q, k) takes no mask, so your causal_mask would not be used. "
            "Let it take (q, k, mask)."
        )


def require_nested(opened: list[Any], found: list[Any]) -> None:
    """What a context finds in the model at its end is what it has put in."""
    if any(now is not part for now, part in zip(found, opened, strict=True)):
        raise RuntimeError(
            "this context of your functions and another one of the same model overlap, so each has "
            "computed with parts of the other. End the inner one first; in another thread, use a "
            "copy: copy.deepcopy(model)."
        )


def require_openable(part: Any) -> None:
    """What ``part`` computes is the library's own, which an open part computes, too."""
    kinds = {type(part), type(vars(part).get("forward"))}
    if isinstance(part, MultiHeadAttention):
        kinds.add(type(part.positions))  # maybe a module, which is not among its own variables
    if others := [kind.__name__ for kind in kinds if kind not in OPENED]:
        raise ValueError(
            f"this GPT has another part ({', '.join(others)}), and what that computes would be "
            f"lost with your functions. Take a GPT with the library's MultiHeadAttention and "
            f"Embedding, and with rotary or added positions."
        )
