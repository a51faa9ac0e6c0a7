"""Pairs as rows: begin, end and padding; bundles of like lengths; what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.data.batches import Batches
from transformer_lib.data.bitext import Bitext, Bundles, encoded, translation_corpus
from transformer_lib.data.packing import IGNORED
from transformer_lib.data.pairs import Pair
from transformer_lib.tokenizers import SPECIALS, PairTokenizer, WordTokenizer

WORDS = st.lists(st.integers(3, 9), min_size=1, max_size=7)
TOKENIZER = PairTokenizer(
    WordTokenizer([*SPECIALS, "Rosen", "gab", "Maria"]),
    WordTokenizer([*SPECIALS, "mary", "gave", "roses"]),
)


@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=9))
def test_the_decoder_predicts_what_it_reads_one_token_later(pairs):
    sources, targets = zip(*pairs, strict=True)
    source, inputs, wanted = Bitext(sources, targets).rows(torch.arange(len(pairs)))
    for i, (ids, words) in enumerate(pairs):
        assert source[i].tolist() == ids + [0] * (source.shape[1] - len(ids))
        padding = inputs.shape[1] - len(words) - 1
        assert inputs[i].tolist() == [1, *words] + [0] * padding
        assert wanted[i].tolist() == [*words, 2] + [IGNORED] * padding


@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30), tokens=st.integers(8, 40))
def test_bundles_hold_every_pair_once_and_are_no_larger_than_asked(pairs, tokens):
    sources, targets = zip(*pairs, strict=True)
    bundles = Bundles(Bitext(sources, targets), tokens)
    found = []
    for i in range(len(bundles)):
        source, inputs, wanted = bundles.rows(torch.tensor([i]))
        assert max(source.numel(), inputs.numel()) <= tokens
        for row, target in zip(source, wanted, strict=True):
            found.append((row[row > 0].tolist(), target[target > 2].tolist()))
    assert sorted(found) == sorted((list(a), list(b)) for a, b in pairs)


def test_batches_of_bundles_come_in_another_order_each_epoch():
    torch.manual_seed(0)
    rows = [torch.randint(3, 9, (n,)).tolist() for n in torch.randint(1, 9, (60,)).tolist()]
    bundles = Bundles(Bitext(rows, rows), tokens=20)
    batches = Batches(bundles, 1)
    epochs = [[next(batches)[0].tolist() for _ in range(len(bundles))] for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert sorted(map(str, epochs[0])) == sorted(map(str, epochs[1]))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([Pair("Maria", "mary"), Pair("Anna", "mary")], "the source of pair 2: word 'Anna'"),
        ([Pair("Maria", "mary </s> roses")], "the target of pair 1 holds '</s>', which is not a"),
        ([Pair("Maria <pad>", "mary")], "the source of pair 1 holds '<pad>'"),
        ([Pair("", "mary")], "the source of pair 1 is empty"),
    ],
)
def test_texts_that_make_no_pairs(pairs, message):
    with pytest.raises(ValueError, match=message):
        encoded(pairs, TOKENIZER)


def test_rows_and_sizes_that_make_no_sense():
    with pytest.raises(ValueError, match="there are 1 sources and 2 targets"):
        Bitext([[3]], [[3], [4]])
    with pytest.raises(ValueError, match="0 sources and 0 targets; give at least one"):
        Bitext([], [])
    with pytest.raises(ValueError, match="pair 2 has 5 tokens, and a batch is to have at most 4"):
        Bundles(Bitext([[3], [3]], [[3], [3] * 4]), tokens=4)
    pair = Pair("Maria gab Rosen", "mary gave roses")
    with pytest.raises(ValueError, match=r"'Maria gab Rosen' …\) has 4 tokens, more than .* of 3"):
        translation_corpus([pair], [pair], TOKENIZER, context=3)
    with pytest.raises(ValueError, match=r"'Maria gab Rosen' …\) has .* than a batch of 3"):
        translation_corpus([pair], [pair], TOKENIZER, context=4, batch_tokens=3)


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        ([[5.5]], [[4]], r"the source of pair 1 is \[5.5\]; give token ids"),
        ([[5]], [[4.5]], r"the target of pair 1 is \[4.5\]"),
        (["ab"], [[4]], "the source of pair 1 is 'ab'"),
        ([[5]], [[-1]], "the target of pair 1 holds the id -1, which"),
        ([[-7]], [[4]], "the source of pair 1 holds the id -7, which"),
    ],
)
def test_ids_are_ints_from_0_on(sources, targets, message, as_a_reader):
    with pytest.raises((TypeError, ValueError), match=message):
        Bitext(sources, targets)


def test_rows_are_asked_for_by_numbers_or_by_a_mask(as_a_reader):
    rows = torch.tensor([[5, 6], [7, 8]])
    bitext = Bitext(rows, rows)
    rows[0] = 0  # the caller's own
    chosen = torch.tensor([False, True])
    assert bitext.rows(chosen)[0].tolist() == bitext.rows([1])[0].tolist() == [[7, 8]]
    assert bitext.rows([0])[0].tolist() == [[5, 6]]
    assert Bundles(bitext, tokens=3).rows(chosen)[0].tolist() == [[7, 8]]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "there are no pairs"),
        (["ab"], "pair 1 is 'ab'; give a source and its target"),
        ([("Maria", "mary", "CC-BY")], "pair 1 is"),
        ([{"source": "Maria", "target": "mary"}], "pair 1 is {'source': 'Maria'"),
    ],
)
def test_records_and_triples_are_not_pairs(pairs, message, as_a_reader):
    good = [Pair("Maria", "mary")]
    for parts in ((pairs, good), (good, pairs)):
        with pytest.raises((TypeError, ValueError), match=message):
            translation_corpus(*parts, TOKENIZER, context=4)


def test_tokenizers_of_a_pair_begin_with_the_special_tokens():
    with pytest.raises(ValueError, match=r"the source's vocabulary begins with \('a', 'b'\)"):
        PairTokenizer(WordTokenizer(["a", "b"]))
    assert PairTokenizer(TOKENIZER.source).shared
    assert PairTokenizer(TOKENIZER.source).hash != TOKENIZER.hash
