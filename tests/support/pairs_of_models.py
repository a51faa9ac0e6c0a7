"""Small encoder-decoders for several test files: every kind of wiring, nothing zero or one."""

import torch

from transformer_lib.encoder_decoder import END, EncoderDecoder, EncoderDecoderConfig

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
