"""Batches: whole stories in blocks reach the floor, every token is asked for, nothing is lost."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from transformer_lib.data.batches import Batches, Lessons
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.packing import IGNORED, Packed, Windows, cover, pack
from transformer_lib.tokenizers import WordTokenizer

GRAMMAR = Grammar(give=0.2, give_it=0.1, ask=0.5, swap=0.2)
TOKENIZER = WordTokenizer(GRAMMAR.vocabulary)
STORIES = GRAMMAR.stories(7, seed=11)
SEQUENCES = [TOKENIZER.encode(story) for story in STORIES]
TEXT = torch.arange(100, 123)


class Empty:
    """A source without rows."""

    def __len__(self):
        return 0

    def rows(self, indices):
        return TEXT[indices], TEXT[indices]


def batches(rows=7, batch_size=3, **options):
    """Batches of rows that hold their own number."""
    return Batches(pack([[0] * 2 + [i] for i in range(rows)], length=3), batch_size, **options)


def numbers(batch):
    return batch[0][:, 2].tolist()


def test_a_model_that_knows_the_grammar_reaches_the_floor():
    """The floor is the loss of the grammar's own predictions, whatever the length of the blocks."""
    for length in (GRAMMAR.max_words, 170, 500):
        blocks = pack(SEQUENCES, length)
        logits = torch.full((*blocks.targets.shape, TOKENIZER.size), -math.inf, dtype=torch.float64)
        for (block, start, end), story in zip(blocks.spans.tolist(), STORIES, strict=True):
            words = story.split()
            for i in range(end - start):
                for word, chance in GRAMMAR.next_words(" ".join(words[: i + 1])).items():
                    logits[block, start + i, TOKENIZER.encode(word)[0]] = math.log(chance)
        logits[blocks.targets == IGNORED] = 0  # there, anything will do
        loss = F.cross_entropy(logits.flatten(0, 1), blocks.targets.flatten())
        assert math.isclose(loss.item(), GRAMMAR.floor(STORIES), rel_tol=1e-12)


def test_marked_answers_are_the_answers():
    blocks = pack(SEQUENCES, 170)
    questions = [GRAMMAR.questions(story) for story in STORIES]
    marked = blocks.mark([[question.position for question in asked] for asked in questions])
    answers = [question.answer for asked in questions for question in asked]
    assert TOKENIZER.decode(blocks.targets[marked]).split() == answers
    assert TOKENIZER.decode(blocks.inputs[marked]) == " ".join("?" for _ in answers)
    assert len(answers) > 10


def test_pack_by_hand():
    blocks = pack([[9, 1], [9, 2, 3, 4], [9, 5], [9, 6, 7]], length=5)
    assert blocks.inputs.tolist() == [[9, 1, 9, 9, 9], [9, 2, 3, 4, 9], [9, 5, 9, 6, 7]]
    assert blocks.targets.tolist() == [
        [1, 9, IGNORED, IGNORED, IGNORED],
        [2, 3, 4, 9, IGNORED],
        [5, 9, 6, 7, 9],
    ]
    assert blocks.spans.tolist() == [[0, 0, 2], [1, 0, 4], [2, 0, 2], [2, 2, 5]]
    assert repr(blocks) == "Packed(rows=3, tokens=5, sequences=4)"
    marked = blocks.mark([[1], [1, 3], [], [2]])
    assert marked.nonzero().tolist() == [[0, 0], [1, 0], [1, 2], [2, 3]]
    assert blocks.targets[marked].tolist() == [1, 2, 4, 7]
    assert blocks.targets[blocks.mark([[2], [], [2], []])].tolist() == [9, 9]  # their ends


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1), st.integers(7, 30))
def test_packed_sequences_come_back_whole(tails, length):
    sequences = [[9, *tail] for tail in tails]
    blocks = pack(sequences, length)
    asked = blocks.targets[blocks.targets != IGNORED].tolist()
    assert asked == [token for tail in tails for token in [*tail, 9]]  # each once, in order
    for (block, start, end), sequence in zip(blocks.spans.tolist(), sequences, strict=True):
        assert blocks.inputs[block, start:end].tolist() == sequence
    used = blocks.targets != IGNORED
    following = torch.cat([blocks.inputs[:, 1:], torch.full((len(blocks), 1), 9)], dim=1)
    assert following[used].equal(blocks.targets[used])  # the target is the next input


@given(st.integers(2, 40), st.integers(1, 45))
def test_cover_asks_for_every_token_but_the_first_once(tokens, length):
    ids = torch.randperm(tokens)
    blocks = cover(ids, length)
    assert blocks.inputs.shape == blocks.targets.shape == (math.ceil((tokens - 1) / length), length)
    used = blocks.targets != IGNORED
    assert blocks.targets[used].equal(ids[1:])
    assert blocks.inputs[used].equal(ids[:-1])
    assert blocks.spans.shape == (0, 3)


def test_windows_of_a_text():
    windows = Windows(TEXT, length=5)
    assert len(windows) == 23 - 5
    inputs, targets = windows.rows(torch.arange(len(windows)))
    assert inputs[0].tolist() == [100, 101, 102, 103, 104]
    assert targets.equal(inputs + 1)
    assert targets[-1, -1] == TEXT[-1]
    assert len(Windows(TEXT, length=22)) == 1


def test_small_integers_become_what_the_loss_takes():
    small = TEXT.to(torch.uint8)
    for inputs, targets in (
        Windows(small, 5).rows(torch.tensor([3, 1])),
        cover(small, 5).rows(torch.tensor([4, 0])),
    ):
        assert inputs.dtype == targets.dtype == torch.int64
    assert (cover(small, 5).targets == IGNORED).sum() == 3


@pytest.mark.parametrize("batch_size", [1, 3, 7, 10, 16])
def test_each_epoch_has_every_row_once(batch_size):
    drawn, source = [], batches(7, batch_size)
    while len(drawn) < 70:
        drawn += numbers(next(source))
        assert math.isclose(source.epoch, len(drawn) / 7)
    epochs = [drawn[i : i + 7] for i in range(0, 70, 7)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 10  # in another order each time


def test_the_order_depends_on_the_seed_and_on_nothing_else():
    def first(seed):
        source = batches(7, 3, seed=seed)
        return [numbers(next(source)) for _ in range(8)]

    expected = first(1)
    torch.manual_seed(17)
    state = torch.get_rng_state()
    assert first(1) == expected != first(2)
    assert torch.get_rng_state().equal(state)


def test_resuming_at_every_step():
    source = batches(7, 3, seed=5)
    states, drawn = [], []
    for _ in range(12):
        states.append(json.dumps(source.state_dict()))
        drawn.append(numbers(next(source)))
    for step, state in enumerate(states):
        again = batches(7, 3, seed=5)
        for _ in range((step * 5) % 7):
            next(again)  # wherever it stood
        again.load_state_dict(json.loads(state))
        assert [numbers(next(again)) for _ in drawn[step:]] == drawn[step:]


def test_rows_that_a_source_gains_are_not_drawn():
    class Growing(Empty):
        known = 3

        def __len__(self):
            return self.known

    source = Growing()
    growing, plain = Batches(source, 2), batches(3, 2)
    for known in (3, 6, 9):
        source.known = known
        assert (next(growing)[0] - 100).tolist() == numbers(next(plain))


def test_a_source_that_fails_does_not_lose_its_batch():
    class Failing(Packed):
        def rows(self, indices):
            raise OSError("the disk is gone")

    good = pack(SEQUENCES, 140)
    source = Batches(Failing(good.inputs, good.targets, good.spans), 2)
    with pytest.raises(OSError, match="the disk is gone"):
        next(source)
    assert source.state_dict()["drawn"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 6}, "batches with seed = 6, and these have 5: their order is different"),
        ({"batch_size": 4}, "batch_size = 4, and these have 3"),
        ({"rows": 8}, "rows = 8, and these have 7"),
        ({"drawn": -1}, "says that -1 batches were drawn"),
        ({"drawn": 1.5}, "says that 1.5 batches were drawn"),
        ({"epoch": 2}, "has the entries drawn, seed, batch_size, rows, epoch; the state of"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_the_state_of_other_batches_is_refused(change, message):
    source = batches(7, 3, seed=5)
    next(source)
    before = source.state_dict()
    with pytest.raises(ValueError, match=message):
        source.load_state_dict(before | change)
    assert source.state_dict() == before


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pack([], 5), ValueError, "there are no sequences to pack"),
        (lambda: pack([[9], []], 5), ValueError, r"sequence 1 has 0 tokens.* Leave it out"),
        (lambda: pack([[9] * 6], 5), ValueError, "sequence 0 has 6 tokens, .* Choose length=6"),
        (
            lambda: pack([[9, 1], [8]], 5),
            ValueError,
            "sequence 1 begins with token 8 and .* 9; all",
        ),
        (lambda: pack([[9]], 0), ValueError, "length is 0; it must be at least 1"),
        (lambda: pack([[9, 1]], 5).mark([[1], [1]]), ValueError, "for 2 sequences, and 1 were"),
        (lambda: pack([[9, 1]], 5).mark([[3]]), ValueError, "position 3 .* of 2 tokens; .* 1 to 2"),
        (lambda: pack([[9, 1]], 5).mark([[0]]), ValueError, "position 0 is marked"),
        (lambda: cover(TEXT[:1], 5), ValueError, r"shape \(1,\); a text of at least 2 tokens"),
        (lambda: cover(TEXT.float(), 5), TypeError, "ids must be a tensor of integers"),
        (
            lambda: Windows(TEXT, 23),
            ValueError,
            r"\(23,\); a text of at least 24 tokens .* shorter",
        ),
        (lambda: Windows(TEXT.view(1, 23), 5), ValueError, r"shape \(1, 23\); .* in one axis"),
        (lambda: Windows([1, 2, 3], 2), TypeError, "ids must be a tensor of integers"),
        (lambda: Windows(TEXT, 5.0), TypeError, "length is 5.0, of type float"),
        (lambda: batches(batch_size=0), ValueError, "batch_size is 0"),
        (lambda: batches(seed=1.0), TypeError, "seed is 1.0; it must be an int"),
        (lambda: Batches([], 2), TypeError, "source is of type list; it needs a length and rows"),
        (lambda: Batches(Empty(), 2), ValueError, "has no rows, so there is nothing to draw"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_what_makes_no_batches_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_lessons_come_first_and_in_their_order():
    """2 batches of 3 rows, 1 of 4 rows, then 7 rows without end: each by its own order."""
    lessons = Lessons([(batches(3, 2), 2), (batches(4, 2), 1)], then=batches(7, 3))
    first, second, then = batches(3, 2), batches(4, 2), batches(7, 3)
    expected = [next(first), next(first), next(second), *(next(then) for _ in range(5))]
    assert [numbers(next(lessons)) for _ in range(8)] == list(map(numbers, expected))


@pytest.mark.parametrize("drawn", range(6))
def test_lessons_go_on_wherever_they_were_stopped(drawn):
    def made(rows=4):
        return Lessons([(batches(3, 2), 2), (batches(rows, 2), 1)], then=batches(7, 3))

    lessons, again = made(), made()
    for _ in range(drawn):
        next(lessons)
    state = json.loads(json.dumps(lessons.state_dict()))
    again.load_state_dict(state)
    for _ in range(4):
        assert numbers(next(again)) == numbers(next(lessons))
    other = made(rows=5)
    with pytest.raises(ValueError, match="rows = 4, and these have 5"):
        other.load_state_dict(state)
    assert numbers(next(other)) == numbers(next(made(rows=5)))  # nothing has changed
    with pytest.raises(ValueError, match=r"of 3 kinds of batches.* are 1"):
        Lessons([], then=batches()).load_state_dict(state)


def test_lessons_count_the_steps_of_each():
    twice = batches()
    with pytest.raises(ValueError, match="two of these are the same Batches"):
        Lessons([(twice, 1), (batches(), 1), (twice, 1)], then=batches())


def test_a_lesson_has_a_number_of_steps():
    with pytest.raises(ValueError, match="the steps of a lesson is 0"):
        Lessons([(batches(), 0)], then=batches())


@pytest.mark.parametrize(
    "sequences", [[[7, 1.5, 2]], [[7.0, 2]], ["ab"], [7, 1], [(x for x in [7])]]
)
def test_what_is_packed_are_ints(sequences, as_a_reader):
    with pytest.raises(TypeError, match=r"give (token ids|a list of token ids)"):
        pack(sequences, 4)
