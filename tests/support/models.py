"""Small models that several test files share: every kind of wiring, nothing zero or one.

`make` and `random_ids` give a GPT of any wiring and its tokens; `make_few` and `prompt` one of so
few words that all its texts can be counted; `small_gpt` and `stories` one that is trained in a
moment; `make_pair` and `padded` an encoder-decoder.
"""

import torch

from transformer_lib.data.packing import pack
from transformer_lib.encoder_decoder import END, EncoderDecoder, EncoderDecoderConfig
from transformer_lib.gpt import GPT, GPTConfig

VOCABULARY, CONTEXT, LAYERS, HEADS, D_MODEL = 23, 13, 2, 3, 12
SIZES = {
    "vocabulary": VOCABULARY,
    "context": CONTEXT,
    "n_layers": LAYERS,
    "n_heads": HEADS,
    "d_model": D_MODEL,
}
WIRINGS = {
    "gpt1": GPTConfig.gpt1(**SIZES, dropout=0.0),
    "gpt2": GPTConfig.gpt2(**SIZES, dropout=0.0),
    "fast": GPTConfig.fast(**SIZES),
    "fast, qk_norm": GPTConfig.fast(**SIZES, qk_norm=True, rms_norm=True),
    "sinusoidal": GPTConfig(**SIZES, positions="sinusoidal", rms_norm=True),
    "alibi, smear": GPTConfig(**SIZES, positions="alibi", smear=1, tied=False, bias=False),
    "llama": GPTConfig(
        **SIZES, positions="rotary", activation="swiglu", rms_norm=True, bias=False, n_kv_heads=1
    ),
    "latent": GPTConfig(
        **SIZES, positions="rotary", attention="latent", attention_options={"d_latent": 5}
    ),
    "window": GPTConfig(
        **SIZES, positions="rotary", n_kv_heads=1, attention="window",
        attention_options={"window": 4, "sinks": 2},
    ),
    "fast, smear 3": GPTConfig.fast(**SIZES, smear=3, smear_start=0.5),
}  # fmt: skip


def make(config: GPTConfig, dtype: torch.dtype = torch.float64) -> GPT:
    """A model in which nothing is zero or one, so that every part matters."""
    model = GPT(config).to(dtype)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def random_ids(batch: int = 2, tokens: int = CONTEXT) -> torch.Tensor:
    return torch.randint(VOCABULARY, (batch, tokens))


# --- few words

FEW = 5
SMALLEST = SIZES | {"vocabulary": FEW}


def make_few(config=None):
    """A small model with opinions."""
    model = GPT(GPTConfig.fast(**SMALLEST) if config is None else config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def prompt(batch=2, tokens=3):
    return torch.randint(FEW, (batch, tokens))


# --- what is trained in a moment

ELEVEN = 11


def small_gpt(**changes):
    sizes = {"vocabulary": ELEVEN, "context": 13, "n_layers": 2, "n_heads": 2, "d_model": 12}
    return GPT(GPTConfig(**sizes | changes))


def stories():
    """Blocks with padding of different lengths, so that no two parts have as many targets."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(2, 13, (40,), generator=generator).tolist()
    return pack(
        [[0, *torch.randint(1, ELEVEN, (n,), generator=generator).tolist()] for n in lengths],
        length=13,
    )


# --- encoder-decoders

VOCABULARY_OF_SOURCE, VOCABULARY_OF_TARGET, END_ID = 11, 5, END
SIZES_OF_PAIR = {
    "source_vocabulary": VOCABULARY_OF_SOURCE,
    "target_vocabulary": VOCABULARY_OF_TARGET,
    "context": 17,
    "n_layers": 2,
    "n_heads": 3,
    "d_model": 12,
}
PAIRS = {
    "paper": EncoderDecoderConfig(**SIZES_OF_PAIR),
    "pre-norm, one table": EncoderDecoderConfig(
        **SIZES_OF_PAIR | {"target_vocabulary": VOCABULARY_OF_SOURCE}, norm="pre", shared=True
    ),
    "fast": EncoderDecoderConfig.fast(**SIZES_OF_PAIR, qk_norm=True),
    "llama's parts": EncoderDecoderConfig(
        **SIZES_OF_PAIR, norm="pre", rms_norm=True, activation="swiglu", n_kv_heads=1,
        positions="alibi", tied=False, bias=False,
    ),
    "learned": EncoderDecoderConfig(**SIZES_OF_PAIR, positions="learned"),
}  # fmt: skip


def make_pair(config: EncoderDecoderConfig = PAIRS["paper"], dtype=torch.float64) -> EncoderDecoder:
    """A model in which nothing is zero or one, so that every part matters."""
    model = EncoderDecoder(config).to(dtype).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def padded(rows: list[list[int]]) -> torch.Tensor:
    """Rows of ids, filled up on the right with 0."""
    rows = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
