"""A GPT whose smear reaches the three tokens before: its start, cache, decoding and beams."""

import dataclasses

import pytest
import torch
from models import CONTEXT, D_MODEL, SIZES, VOCABULARY, WIRINGS, make, random_ids
from torch.testing import assert_close

from transformer_lib.beam import beam_search
from transformer_lib.fast.decoding import decoder
from transformer_lib.gpt import GPT, GPTConfig, current_names
from transformer_lib.layers import Smear
from transformer_lib.sampling import generate
from transformer_lib.training.checkpoints import load_checkpoint, save_checkpoint
from transformer_lib.training.optimizers import Muon, adamw, hidden_matrices

CONFIG = WIRINGS["fast, smear 3"]


def test_what_a_configuration_says_of_the_smear():
    assert [weight.tolist() for weight in GPT(CONFIG).embedding.smear.weights] == [
        [0.5] * D_MODEL
    ] * 3
    assert [weight.tolist() for weight in GPT(WIRINGS["fast"]).embedding.smear.weights] == [
        [0.0] * D_MODEL
    ]
    without = dataclasses.replace(CONFIG, smear=0)
    assert GPT(without).embedding.smear is None
    assert GPT(CONFIG).n_parameters == GPT(without).n_parameters + 3 * D_MODEL


def test_the_embeddings_before_reach_three_tokens_far_and_no_farther():
    """Blocks that begin as the identity: the logits are those of the smeared embeddings alone."""
    model, ids = GPT(CONFIG).double(), random_ids()
    other = ids.clone()
    other[:, 4] = (other[:, 4] + 1) % VOCABULARY
    changed = (model(ids) != model(other)).any(dim=-1).all(dim=0)
    assert changed.nonzero().flatten().tolist() == [4, 5, 6, 7]
    x = model.embedding.weight[ids]
    shares = sum(torch.nn.functional.pad(x[:, :-back], (0, 0, back, 0)) for back in (1, 2, 3))
    expected = model.logits(model.final_norm(x + 0.5 * shares))
    assert_close(model(ids), expected, rtol=0, atol=1e-12)


def test_optimizers_take_its_weights_for_vectors():
    model = GPT(CONFIG)
    names = {f"embedding.smear.weights.{k}" for k in range(3)}
    assert not names & set(hidden_matrices(model))
    for optimizer in (adamw(model, 0.1), Muon(model, 0.1, adamw_lr=0.1, weight_decay=0.1)):
        decays = {
            name: group["weight_decay"]
            for group in optimizer.param_groups
            for name in group["param_names"]
        }
        assert [decays[name] for name in sorted(names)] == [0.0] * 3


@pytest.mark.parametrize("prompt", [1, 2, 5])
@torch.no_grad()
def test_steps_pieces_and_other_rows_share_a_cache(prompt):
    model, ids = make(CONFIG), random_ids(batch=3)
    full, cache, rows = model(ids), model.new_cache(3), torch.tensor([2, 0, 2, 1])
    model(ids[:, :prompt], cache)
    advance = decoder(model, cache)
    for place in (prompt, prompt + 1):
        assert_close(advance(ids[:, place]), full[:, place], rtol=0, atol=1e-12)
    cache.select(rows)
    here = prompt + 2
    piece = model(ids[rows, here : here + 2], cache)
    assert_close(piece, full[rows, here : here + 2], rtol=0, atol=1e-12)
    for place in range(here + 2, CONTEXT):
        assert_close(advance(ids[rows, place]), full[rows, place], rtol=0, atol=1e-12)


@pytest.mark.parametrize("prompt", [1, 3])
@torch.no_grad()
def test_beams_are_scored_as_the_whole_text_is(prompt):
    model, ids = make(CONFIG), random_ids(batch=2, tokens=prompt)
    texts, scores = beam_search(model, ids, 7, width=4)
    steps = model(texts.flatten(0, 1))[:, prompt - 1 : -1].log_softmax(dim=-1)
    taken = steps.gather(2, texts.flatten(0, 1)[:, prompt:].unsqueeze(2)).sum(dim=(1, 2))
    assert_close(scores.flatten(), taken, rtol=0, atol=1e-12)
    greedy, _ = beam_search(model, ids, 7, width=1)
    assert greedy[:, 0].equal(generate(model, ids, 7, temperature=0))


def test_saved_and_loaded(tmp_path):
    model, ids = make(CONFIG, torch.float32), random_ids()
    about = {"configuration": dataclasses.asdict(CONFIG), "vocabulary": "ab"}
    save_checkpoint(tmp_path, 1, {"model": model.state_dict()}, **about)
    checkpoint = load_checkpoint(tmp_path)
    other = GPT(GPTConfig(**checkpoint.configuration))
    other.load_state_dict(checkpoint.state["model"])
    assert other(ids).equal(model(ids))
    old = {
        name.removeprefix("embedding.") if "smear" in name else name: weight
        for name, weight in model.state_dict().items()
    }  # as before the embedding held it
    other.initialize()
    other.load_state_dict(current_names(old))
    assert other(ids).equal(model(ids))
    with pytest.raises(ValueError, match=r"embedding\.smear\.weights\.0 is there twice"):
        current_names(old | model.state_dict())
    one_token = GPT(GPTConfig.fast(**SIZES))
    with pytest.raises(RuntimeError, match=r"smear\.weights\.1"):
        one_token.load_state_dict(checkpoint.state["model"])


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("x", "last", "message"),
    [
        (torch.zeros(5, 7), None, r"x has shape \(5, 7\); .* needs \[batch, tokens, d_model\]"),
        (torch.zeros(7), None, r"x has shape \(7,\)"),
        (torch.zeros(2, 3, 5, 7), None, r"x has shape \(2, 3, 5, 7\)"),
        (torch.zeros(2, 5, 7), torch.zeros(7), r"last has shape \(7,\); it must be \[2, 0 to 3, 7"),
        (torch.zeros(2, 5, 7), torch.zeros(2, 1, 1, 7), r"last has shape \(2, 1, 1, 7\)"),
    ],
)
def test_the_smear_takes_three_axes(x, last, message):
    with pytest.raises(ValueError, match=message):
        Smear(7, reach=3)(x, last)
