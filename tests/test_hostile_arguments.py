"""Arguments that were taken for something else or failed deep inside get their own messages."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import torch
from models import make_pair
from torch import nn

from transformer_lib.attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    merge_heads,
    split_heads,
)
from transformer_lib.beam import beam_search, translate
from transformer_lib.blocks import PreNorm
from transformer_lib.cache import KeyValueCache, ModelCache
from transformer_lib.classifier import Classifier
from transformer_lib.encoder_decoder import EncoderDecoder
from transformer_lib.fast.decoding import lengths_to_look_at
from transformer_lib.fast.ragged import RealTokens
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.latent import LatentAttention
from transformer_lib.layers import Embedding, FeedForward, LayerNorm, RMSNorm, Smear
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.positions import RotaryPositions, alibi_slopes, sinusoidal_encoding
from transformer_lib.sampling import (
    generate,
    next_logits,
    penalize_repetition,
    require_generator,
)
from transformer_lib.tokenizers import CharacterTokenizer
from transformer_lib.window import WindowAttention

pytestmark = pytest.mark.usefixtures("as_a_reader")

X = torch.ones(2, 3, 8)
SIZES = {"vocabulary": 7, "context": 8, "n_layers": 1, "n_heads": 2, "d_model": 12}
IDS = torch.tensor([[3, 1]])
WINDOW = WindowAttention(8, 2, window=2, sinks=0)


class NoCache(nn.Module):
    """A model with a loss beside its logits."""

    config = GPTConfig(**SIZES)

    def forward(self, ids, cache=None):
        return torch.zeros(*ids.shape, 7), None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: attention(X, X, X, causal="no"), TypeError, "causal is 'no', .* True or False"),
        (lambda: attention_weights(X, X, causal=1), TypeError, "causal is 1, of type int"),
        (lambda: attention(X, X, X, scale=float("nan")), ValueError, "scale is nan; .* finite"),
        (lambda: attention(X, X, X, scale=Fraction(1, 2)), TypeError, "a number, an int or a"),
        (lambda: Classifier(7, 0, 8, 2, n_classes=3), ValueError, "tokens is 0"),
        (lambda: attention_maps({}, IDS), TypeError, "model is of type dict; it must be an nn.Mod"),
        (lambda: attention(X, X, X, dropout="0.1"), TypeError, "dropout is '0.1', .* a number"),
        (lambda: MultiHeadAttention(8, 2, bias="no"), TypeError, "bias is 'no', of type str"),
        (lambda: MultiHeadAttention(8, 2)(X, causal=1), TypeError, "causal is 1, of type int"),
        (lambda: merge_heads(X), ValueError, r"x has shape \(2, 3, 8\); heads are merged from"),
        (lambda: merge_heads(X[None, None]), ValueError, r"\(1, 1, 2, 3, 8\); heads are merged"),
        (lambda: split_heads(X, 0), ValueError, "n_heads is 0; it must be at least 1"),
        (lambda: split_heads(X, -2), ValueError, "n_heads is -2; it must be at least 1"),
        (lambda: padding_mask([], 3), ValueError, "lengths are empty; give one length for each"),
        (
            lambda: generate(GPT(GPTConfig(**SIZES)), IDS, 3, temperature=None),
            TypeError,
            "temperature is None, of type NoneType; it must be a number",
        ),
        (
            lambda: generate(GPT(GPTConfig(**SIZES)), IDS, 3, top_p="0.9"),
            TypeError,
            "top_p is '0.9', of type str; it must be a number",
        ),
        (
            lambda: MultiHeadAttention(10**15 + 1, 4),
            ValueError,
            "d_model = 1000000000000001 is not divisible by n_heads = 4",
        ),
        (lambda: split_heads([[1.0]], 2), TypeError, "x is of type list; it must be a tensor"),
        (lambda: merge_heads([[1.0]]), TypeError, "x is of type list; it must be a tensor"),
        (
            lambda: penalize_repetition([[1.0]], IDS, 2.0),
            TypeError,
            "logits is of type list; it must be a tensor",
        ),
        (
            lambda: sinusoidal_encoding(3, 4, dtype="float32"),
            TypeError,
            "dtype is 'float32'; choose a floating point type",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(X, cache=True),
            TypeError,
            r"cache is of type bool, which has no batch; make it by new_cache\(batch, capacity\)",
        ),
        (lambda: ModelCache([3]), TypeError, "cache is of type int, which has no batch"),
        (lambda: KeyValueCache(1, 1, 4, 4).rewind(0.0), TypeError, "tokens is 0.0, of type float"),
        (
            lambda: MultiHeadAttention(8, 2, positions=RotaryPositions),
            TypeError,
            r"positions is the class RotaryPositions; give an object of it: RotaryPositions\(",
        ),
        (
            lambda: PreNorm(MultiHeadAttention, FeedForward, LayerNorm, LayerNorm),
            TypeError,
            "a part of the block is the class MultiHeadAttention; give an object",
        ),
        (lambda: GPT(SIZES), TypeError, "config is .* of type dict; it must be of GPTConfig"),
        (lambda: GPT(GPTConfig), TypeError, "config is the class GPTConfig; give an object"),
        (lambda: EncoderDecoder({}), TypeError, "config is {}, .* of EncoderDecoderConfig"),
        (lambda: Embedding(7, 4, smear=1), TypeError, "smear is 1; .* a Smear, or None"),
        (
            lambda: Embedding(7, 4, positions=RotaryPositions(4)),
            TypeError,
            r"positions is RotaryPositions\(.*such as LearnedPositions.* are for the attention",
        ),
        (lambda: Embedding(7, 4)(IDS + 9), ValueError, r"ids\[0, 0\] is 12; .* 0 to 6"),
        (lambda: Embedding(7, 4)(IDS / 2), TypeError, "ids have dtype torch.float32"),
        (
            lambda: Embedding(7, 4)(IDS.to("meta")),
            ValueError,
            r"the embedding is on cpu and ids is on meta; .* ids.to\('cpu'\)",
        ),
        (
            lambda: Classifier(7, 5, 8, 2, n_classes=3)(IDS.to("meta")),
            ValueError,
            "the embedding is on cpu and ids is on meta",
        ),
        (
            lambda: translate(GPT(GPTConfig(**SIZES)), IDS),
            TypeError,
            "model is of type GPT; to translate, it must be an EncoderDecoder",
        ),
        (
            lambda: translate(make_pair(), IDS, width="3"),
            TypeError,
            "width is '3', of type str; it must be an int",
        ),
        (lambda: generate(NoCache(), IDS, 3), TypeError, "NoCache makes no cache, .* cache=False"),
        (
            lambda: generate(NoCache(), IDS, 3, cache=False),
            TypeError,
            "what the model returns is of type tuple; it must be a tensor",
        ),
        (
            lambda: GPTConfig(**SIZES, attention="latent", attention_options={"d_latent": "2"}),
            TypeError,
            r"must be an int\. Its documentation lists",
        ),
        (
            lambda: LatentAttention(8, 2, d_latent=2, d_rotary=-2),
            ValueError,
            "d_rotary is -2; it must be at least 0",
        ),
        (
            lambda: dataclasses.replace(make_pair().config, source_vocabulary=2),
            ValueError,
            "source_vocabulary is 2; .* it must be at least 3",
        ),
        (
            lambda: PreNorm(lambda x, **options: x, FeedForward(8), LayerNorm(8), LayerNorm(8)),
            TypeError,
            "a part of the block is <function .* it must be an nn.Module",
        ),
        (
            lambda: make_pair().config.make_cross_block()(torch.ones(2, 3, 12), None, causal=True),
            TypeError,
            r"memory is None; .* model\.encode\(source\)",
        ),
        (
            lambda: make_pair().decode(IDS, make_pair().encode(IDS), None),
            TypeError,
            r"readable is None, .* give model\.readable\(source\)",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(X, cache=ModelCache([KeyValueCache(2, 2, 4, 4)])),
            TypeError,
            "cache is of type ModelCache, which has no extend",
        ),
        (
            lambda: MultiHeadAttention(8, 2)(X, cache=WINDOW.new_cache(2, 9)),
            ValueError,
            "the cache keeps window=2, and window of this MultiHeadAttention is None. Make",
        ),
        (
            lambda: WindowAttention(8, 2, window=2, sinks=2)(X, cache=WINDOW.new_cache(2, 9)),
            ValueError,
            "the cache keeps sinks=0, and sinks of this WindowAttention is 2",
        ),
        (lambda: MultiHeadAttention(8, 2)(X, X, X), TypeError, "and not the values, .* leave it"),
        (
            lambda: attention(*[torch.nested.nested_tensor([X[0]])] * 3),
            TypeError,
            "q is nested; give its texts one by one, or padded",
        ),
        (lambda: ModelCache([]), ValueError, r"layers are \[\]; there must be one at least"),
        (lambda: ModelCache([KeyValueCache(1, 1, 4, 4)] * 2), ValueError, "a cache of its own"),
        (lambda: LayerNorm(4, eps=-1.0), ValueError, "eps is -1.0; it keeps a root away from 0"),
        (lambda: RMSNorm(4, eps=float("nan")), ValueError, "eps is nan"),
        (lambda: Embedding(7, 4, smear=Smear(5)), ValueError, r"5 wide; .* Make it by Smear\(4\)"),
        (
            lambda: beam_search(GPT(GPTConfig(**SIZES)), IDS, torch.tensor([2.9]), width=2, end=0),
            TypeError,
            r"n_tokens is 2\.9.* it must be an int",
        ),
        (lambda: next_logits(GPT(GPTConfig(**SIZES)), None), ValueError, "there are no prompts"),
        (lambda: GPTConfig(**SIZES, smear=2**70), ValueError, "smear is .* at most 1000"),
        (lambda: lengths_to_look_at(0, 4), ValueError, "first is 0; it must be at least 1"),
        (lambda: RealTokens(torch.ones(2, 3)), TypeError, "mask has dtype torch.float32"),
        (
            lambda: RealTokens(torch.ones(2, 3).bool()).packed(torch.ones(3, 3, 4)),
            ValueError,
            r"x has shape \(3, 3, 4\); the mask of the real tokens has \(2, 3\)",
        ),
    ],
)
def test_a_message_of_its_own(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert causal_mask(np.int64(3)).equal(causal_mask(3))
    assert alibi_slopes(np.int64(3)).equal(alibi_slopes(3))
    assert sinusoidal_encoding(np.int64(2), np.int64(4)).equal(sinusoidal_encoding(2, 4))
    assert MultiHeadAttention(np.int64(8), np.int64(2))(X).shape == X.shape
    assert CharacterTokenizer("abc").decode([*np.array([2, 0])]) == "ca"


def test_a_generator_of_another_device():
    class OnAGPU:
        device = torch.device("cuda", 0)

    with pytest.raises(ValueError, match=r"generator is on cuda:0 .* torch.Generator\('cpu'\)"):
        require_generator(OnAGPU(), torch.device("cpu"))
    assert require_generator(torch.Generator(), torch.device("cpu")) is None
