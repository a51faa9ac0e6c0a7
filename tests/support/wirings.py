"""The small models that several test files share: every kind of wiring, nothing zero or one."""

import torch

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
