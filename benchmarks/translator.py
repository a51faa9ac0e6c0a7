"""A translator against torch.nn.Transformer of the same size: a training step, a greedy search.

    python benchmarks/translator.py        about 4 minutes on 2 cores

Writes transformer_lib/runs/translator.json. All have the same weights (post-norm as in the paper,
sinusoidal positions, one table for both sides and the output, no dropout) and get the same batches:
64 pairs of random lengths, padded on the right, in fp32 on 2 threads. The losses must be the same,
and the tokens.

A training step is forward, backward, clipping, and a step of Adam. Our forward is the one of the
library's ``Trainer``: without the padding. PyTorch's module takes it along; it is measured with a
score for each place of the target, as it is commonly used, and with scores for those places alone
whose target counts.

The greedy search writes 32 tokens for each of 64 sources. PyTorch's module has no cache, so it
encodes the source once and reads the whole target again for each token, the last place of which is
scored.

Everything is run once in each round, one after the other, so that whatever else the machine does
meets all alike. The results are from the medians over the rounds.
"""

import argparse
import copy
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor, nn

from transformer_lib.beam import beam_search
from transformer_lib.data.bitext import Bitext
from transformer_lib.data.packing import IGNORED
from transformer_lib.encoder_decoder import (
    BEGIN,
    END,
    PADDING,
    EncoderDecoder,
    EncoderDecoderConfig,
)
from transformer_lib.training.losses import count, cross_entropy, scored, total
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

BATCH, TOKENS, ROUNDS, THREADS = 64, 32, 9, 2
LENGTHS = (6, 32)  # of a sentence, from and to, as in Multi30k
SIZES = {"context": 64, "n_layers": 3, "n_heads": 4, "d_model": 256, "d_ff": 1024}
VOCABULARY = 8000
PEERS = {"step": ("pytorch", "pytorch_counted"), "greedy": ("pytorch",)}
Scored = tuple[Tensor, Tensor]


class Peer(nn.Module):
    """nn.Transformer between a table of embeddings and the scores of tokens."""

    def __init__(self, ours: EncoderDecoder):
        super().__init__()
        config = ours.config
        self.embedding = ours.source_embedding
        sizes = (config.d_model, config.n_heads, config.n_layers, config.n_layers, config.d_ff)
        self.transformer = nn.Transformer(*sizes, dropout=0.0, batch_first=True)
        # Two norms that the paper does not have:
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        self.copy(ours)

    @torch.no_grad()
    def copy(self, ours: EncoderDecoder) -> None:
        """The weights of ``ours``."""
        for block, other in zip(ours.encoder, self.transformer.encoder.layers, strict=True):
            self._copy_attention(block.attention, other.self_attn)
            self._copy_rest(block, other, (other.norm1, other.norm2))
        for block, other in zip(ours.decoder, self.transformer.decoder.layers, strict=True):
            self._copy_attention(block.attention, other.self_attn)
            self._copy_attention(block.cross_attention, other.multihead_attn)
            self._copy_rest(block, other, (other.norm1, other.norm2, other.norm3))

    def _copy_attention(self, ours: nn.Module, other: nn.MultiheadAttention) -> None:
        three = (ours.query, ours.key, ours.value)
        other.in_proj_weight.copy_(torch.cat([layer.weight for layer in three]))
        other.in_proj_bias.copy_(torch.cat([layer.bias for layer in three]))
        other.out_proj.load_state_dict(ours.output.state_dict())

    def _copy_rest(self, ours: nn.Module, other: nn.Module, norms: tuple[nn.Module, ...]) -> None:
        other.linear1.load_state_dict(ours.feed_forward.expand.state_dict())
        other.linear2.load_state_dict(ours.feed_forward.contract.state_dict())
        for i, norm in enumerate(norms, start=1):
            norm.load_state_dict(getattr(ours, f"norm_{i}").state_dict())

    def forward(self, source: Tensor, target: Tensor, counted: Tensor | None = None) -> Tensor:
        """Logits of all of the target, or of what counts."""
        hidden = source == PADDING
        x = self.transformer(
            self.embedding(source), self.embedding(target),
            tgt_mask=self.future(target), tgt_is_causal=True,
            src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
        )  # fmt: skip
        return self.embedding.logits(x if counted is None else x[counted])

    def future(self, target: Tensor) -> Tensor:
        """True: hidden, as the padding's masks have it."""
        return torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)

    @torch.no_grad()
    def greedy(self, source: Tensor, n_tokens: int) -> Tensor:
        """The next token of the whole text, again and again; an end is followed by ends."""
        self.eval()
        hidden, decoder = source == PADDING, self.transformer.decoder
        memory = self.transformer.encoder(self.embedding(source), src_key_padding_mask=hidden)
        text, ended = torch.full((len(source), 1), BEGIN), torch.zeros(len(source), dtype=bool)
        for _ in range(n_tokens):
            x = decoder(
                self.embedding(text), memory, tgt_mask=self.future(text), tgt_is_causal=True,
                memory_key_padding_mask=hidden,
            )  # fmt: skip
            token = self.embedding.logits(x[:, -1]).argmax(dim=-1).masked_fill(ended, END)
            ended |= token == END
            text = torch.cat((text, token.unsqueeze(1)), dim=1)
        self.train()
        return text


def our_model() -> EncoderDecoder:
    config = EncoderDecoderConfig.paper(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, dropout=0.0, **SIZES
    )
    return EncoderDecoder(config)


def random_batch() -> tuple[Tensor, ...]:
    """Pairs of random tokens; where a pair has one length, its translation has nearly the same."""
    lengths = torch.randint(*LENGTHS, (BATCH,)).tolist()
    sides = [[torch.randint(3, VOCABULARY, (n,)).tolist() for n in lengths] for _ in range(2)]
    return Bitext(*sides).rows(torch.arange(BATCH))


def ours_scored(model: nn.Module, source: Tensor, target: Tensor, wanted: Tensor) -> Scored:
    """As the library's Trainer does it."""
    return scored(model, cross_entropy, (source, target), wanted)


def all_scored(model: nn.Module, source: Tensor, target: Tensor, wanted: Tensor) -> Scored:
    return model(source, target), wanted


def counted_scored(model: nn.Module, source: Tensor, target: Tensor, wanted: Tensor) -> Scored:
    counted = wanted != IGNORED
    return model(source, target, counted), wanted[counted]


class Training:
    """A model, how it scores tokens (the logits, and their targets), its Adam, and a step."""

    def __init__(self, model: nn.Module, scored: Callable[..., Scored]):
        self.model, self.scored = model.train(), scored
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step(self, source: Tensor, target: Tensor, wanted: Tensor) -> float:
        self.optimizer.zero_grad()
        scores = self.scored(self.model, source, target, wanted)
        loss = total(cross_entropy, *scores) / count(wanted)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


def our_greedy(model: EncoderDecoder, source: Tensor, n_tokens: int) -> Tensor:
    begin = torch.full((len(source), 1), BEGIN)
    model.eval()
    # No end token: both write the same number of tokens.
    texts, _ = beam_search(model.given(source), begin, n_tokens, width=1)
    model.train()
    return texts[:, 0]


def contenders(n_tokens: int) -> dict[str, Callable[[], object]]:
    """The cases that are measured, by name, after a check that they do the same."""
    torch.manual_seed(0)
    ours = our_model()
    theirs, counting = (Peer(copy.deepcopy(ours)) for _ in range(2))
    batch = random_batch()
    source = batch[0]
    trainings = {
        "ours": Training(ours, ours_scored),
        "pytorch": Training(theirs, all_scored),
        "pytorch_counted": Training(counting, counted_scored),
    }
    losses = {name: [t.step(*batch) for _ in range(3)] for name, t in trainings.items()}
    if any(max(values) - min(values) > 1e-3 for values in zip(*losses.values(), strict=True)):
        raise RuntimeError(f"the losses of three steps differ: {losses}.")
    theirs.copy(ours)
    theirs.embedding.load_state_dict(ours.source_embedding.state_dict())
    texts = our_greedy(ours, source, n_tokens), theirs.greedy(source, n_tokens)
    if not texts[0].equal(texts[1]):
        raise RuntimeError(f"{int((texts[0] != texts[1]).any(1).sum())} of the texts differ.")
    steps = {f"step_{name}": partial(t.step, *batch) for name, t in trainings.items()}
    return steps | {
        "greedy_ours": lambda: our_greedy(ours, source, n_tokens),
        "greedy_pytorch": lambda: theirs.greedy(source, n_tokens),
    }


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--tokens", type=int, default=TOKENS)
    given = options.parse_args()
    torch.set_num_threads(THREADS)
    named = contenders(given.tokens)
    curve: dict[str, list[float]] = {name: [] for name in named}
    for number in range(given.rounds):
        for name, run in named.items():
            begin = time.perf_counter()
            run()
            curve[name].append(time.perf_counter() - begin)
        print(f"round {number + 1}:", *(f"{n} {v[-1]:.3f}" for n, v in curve.items()), flush=True)
    result = {f"{name}_seconds": median(values) for name, values in curve.items()}
    for kind, peers in PEERS.items():
        for peer in peers:
            name = f"{kind}_times" + peer.removeprefix("pytorch")
            result[name] = result[f"{kind}_{peer}_seconds"] / result[f"{kind}_ours_seconds"]
            print(f"{name}: {result[name]:.2f} times {peer}")
    config = SIZES | {
        "wiring": "paper", "dtype": "float32", "vocabulary": VOCABULARY, "batch": BATCH,
        "tokens": given.tokens, "rounds": given.rounds, "lengths": list(LENGTHS),
        "curve": "seconds of each run, by round",
    }  # fmt: skip
    log = new_run("translator", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
