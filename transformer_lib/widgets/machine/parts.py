"""The text beside the drawing of the machine: each part, and the chapter that builds it."""

# part: (its name, a sentence or two of what it is for, the chapter that builds it)
PARTS = {
    "token": (
        "token",
        "The text is cut into tokens, here whole words. Each has a number, and the machine never "
        "sees anything but these numbers.",
        "06-tokens-and-embeddings",
    ),
    "embedding": (
        "embedding",
        "The number picks a row of a table. Training wrote the table, and a word gets the same row "
        "in every text.",
        "06-tokens-and-embeddings",
    ),
    "smear": (
        "smear",
        "Shares of the rows of the words just before are added, so that a word comes with its "
        "neighbors. It is a shortcut that GPT-2 does not have.",
        "08b-since-gpt-2",
    ),
    "position": (
        "position",
        "What tells the third word from the thirtieth. Every place has its own setting of these "
        "clock hands, and every head uses it when it looks back.",
        "07c-turn-do-not-add",
    ),
    "block": (
        "block",
        "Attention, then a feed-forward layer. What each of them makes is added to the vector that "
        "went in. All blocks are built alike, and each has learned something else.",
        "08-transformer-block",
    ),
    "norm": (
        "norm",
        "Brings the vector to a common size before a part reads it. The vector itself goes on as "
        "it was.",
        "08-transformer-block",
    ),
    "attention": (
        "attention",
        "The place where words see each other, however far apart. Every head looks back and "
        "fetches something; what they bring is added.",
        "05-multi-head",
    ),
    "head": (
        "head",
        "One pair of eyes. It gives every word up to here a weight, and brings the weighted "
        "average of what they offer.",
        "02-queries-keys-values",
    ),
    "feed_forward": (
        "feed-forward",
        "Works on each word alone. Small units light up where they find their pattern, and say "
        "what is to be added.",
        "08-transformer-block",
    ),
    "final_norm": (
        "final norm",
        "Brings the finished vector to a common size, to be compared with the words.",
        "08-transformer-block",
    ),
    "output": (
        "output",
        "The finished vector is compared with every word of the vocabulary. The better a word "
        "fits, the more probable it is as the next one.",
        "11-gpt",
    ),
}  # fmt: skip

# The part "position" of a machine that does not turn its queries and keys.
POSITIONS = {
    "added": "Every place has a vector of its own, which is added to the word's.",
    "bias": "Every head gives less weight to a word the farther back it stands.",
}


def parts_of(positions: str) -> dict[str, tuple[str, str, str]]:
    """The parts of a machine with such positions, as :data:`PARTS`.

    >>> parts_of("learned")["position"][2]
    '07-positional-encodings'
    """
    if positions == "rotary":
        return PARTS
    name, _, of_turned = PARTS["position"]
    added = positions in ("learned", "sinusoidal")
    chapter = "07-positional-encodings" if added else of_turned
    how = POSITIONS["added" if added else "bias"]
    text = f"What tells the third word from the thirtieth. {how}"
    return PARTS | {"position": (name, text, chapter)}


def places(n_layers: int, n_heads: int, *, smear: bool) -> list[str]:
    """The parts of a machine from the words to the output, by the names that links and facts use.

    >>> places(1, 2, smear=False)[3:]  # doctest: +NORMALIZE_WHITESPACE
    ['block-1', 'block-1-norm-1', 'block-1-attention', 'block-1-head-1', 'block-1-head-2',
     'block-1-norm-2', 'block-1-feed-forward', 'final-norm', 'output']
    """
    names = ["token", "embedding", *(["smear"] if smear else []), "position"]
    for layer in range(1, n_layers + 1):
        block = f"block-{layer}"
        heads = [f"{block}-head-{head}" for head in range(1, n_heads + 1)]
        names += [block, f"{block}-norm-1", f"{block}-attention", *heads, f"{block}-norm-2"]
        names.append(f"{block}-feed-forward")
    return [*names, "final-norm", "output"]


def is_switch(place: str) -> bool:
    """Whether a part can be switched off: what adds something to the vector.

    >>> [name for name in places(1, 1, smear=True) if is_switch(name)]
    ['block-1-attention', 'block-1-head-1', 'block-1-feed-forward']
    """
    return place.endswith(("-attention", "-feed-forward")) or "-head-" in place
