"""GPT: against Hugging Face's GPT-2 and GPT-1, its sizes, start, configuration and errors."""

import copy
import dataclasses
import json

import pytest
import torch
import torch.nn.functional as F
from models import (
    CONTEXT,
    D_MODEL,
    HEADS,
    LAYERS,
    SIZES,
    VOCABULARY,
    WIRINGS,
    make,
    random_ids,
)
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from transformer_lib.beam import beam_search
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.sampling import generate

EVERY_WIRING = pytest.mark.parametrize("config", WIRINGS.values(), ids=WIRINGS)


def hugging_faces(kind, model):
    """Hugging Face's model with the weights of ours: all that it has, and none twice."""
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": D_MODEL, "n_layer": LAYERS, "n_head": HEADS, "n_positions": CONTEXT}
    dropouts = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    name = {"gpt1": "OpenAIGPT", "gpt2": "GPT2"}[kind]
    config = getattr(transformers, f"{name}Config")(vocab_size=VOCABULARY, **sizes, **dropouts)
    theirs = getattr(transformers, f"{name}LMHeadModel")(config).to(model.embedding.weight.dtype)
    body = theirs.transformer
    words, positions = {
        "gpt1": lambda: (body.tokens_embed, body.positions_embed),
        "gpt2": lambda: (body.wte, body.wpe),
    }[kind]()
    pairs = [
        (words.weight, [model.embedding.weight]),
        (positions.weight, [model.embedding.positions.table.weight]),
    ]
    norms = [] if kind == "gpt1" else [(body.ln_f, model.final_norm)]
    for their, our in zip(body.h, model.blocks, strict=True):
        attention, feed_forward = our.attention, our.feed_forward
        norms += [(their.ln_1, our.norm_1), (their.ln_2, our.norm_2)]
        for conv, layers in [
            (their.attn.c_attn, [attention.query, attention.key, attention.value]),
            (their.attn.c_proj, [attention.output]),
            (their.mlp.c_fc, [feed_forward.expand]),
            (their.mlp.c_proj, [feed_forward.contract]),
        ]:
            pairs += [(conv.weight.T, [layer.weight for layer in layers])]  # Conv1D: transposed
            pairs += [(conv.bias, [layer.bias for layer in layers])]
    for their, our in norms:
        pairs += [(their.weight, [our.weight]), (their.bias, [our.bias])]
    with torch.no_grad():
        for their, ours in pairs:
            their.copy_(torch.cat(ours))
    assert sum(their.numel() for their, _ in pairs) == theirs.num_parameters()
    return theirs


def test_greedy_texts_and_beams_equal_hugging_face():
    model = make(WIRINGS["gpt2"], torch.float64)
    theirs, prompt = hugging_faces("gpt2", model).eval(), random_ids(batch=5, tokens=3)
    n = CONTEXT - prompt.shape[1]
    options = {"max_new_tokens": n, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
    options |= {"eos_token_id": None, "pad_token_id": 0}
    greedy = generate(model, prompt, n, temperature=0)
    assert greedy.equal(theirs.generate(prompt, **options))
    best = beam_search(model, prompt, n, width=4)[0][:, 0]
    assert best.equal(theirs.generate(prompt, **options, num_beams=4, early_stopping=False))
    assert not best.equal(greedy)


@pytest.mark.parametrize("kind", ["gpt1", "gpt2"])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_logits_and_gradients_equal_hugging_face(kind, dtype, close):
    model = make(WIRINGS[kind], dtype)
    theirs, ids = hugging_faces(kind, model), random_ids()
    mine, reference = model(ids), theirs(ids).logits
    assert_close(mine, reference, rtol=0, atol=close)
    for logits in (mine, reference):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    # Our gradients under their names: a model whose weights are the gradients, copied likewise.
    body = copy.deepcopy(model)
    for weight, parameter in zip(body.parameters(), model.parameters(), strict=True):
        weight.data = parameter.grad
    of_mine = dict(hugging_faces(kind, body).named_parameters())
    for name, parameter in theirs.named_parameters():
        assert_close(of_mine[name].detach(), parameter.grad, rtol=0, atol=close, msg=name)
        assert parameter.grad.abs().max() > 100 * close


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (GPTConfig.gpt2(), 124_439_808),
        (GPTConfig.gpt1(), 116_534_784),
        (GPTConfig.gpt2(n_layers=48, n_heads=25, d_model=1600), 1_557_611_200),
    ],
)
def test_counting_published_models(config, count):
    with torch.device("meta"):
        assert GPT(config).n_parameters == count


def test_counting_by_formula():
    d, v = D_MODEL, VOCABULARY
    fast = GPT(WIRINGS["fast"])
    assert fast.n_parameters == 2 * v * d + LAYERS * (12 * d**2 + 2 * d) + d + d
    gpt2 = GPT(WIRINGS["gpt2"])
    assert gpt2.n_parameters == (v + CONTEXT) * d + LAYERS * (12 * d**2 + 13 * d) + 2 * d


@pytest.mark.slow
def test_shapes_alone_by_fake_tensors():
    with FakeTensorMode():
        assert GPT(WIRINGS["fast"])(random_ids()).shape == (2, CONTEXT, VOCABULARY)


@EVERY_WIRING
def test_every_parameter_gets_a_gradient_and_one_batch_can_be_learned(config):
    model, ids = GPT(config), random_ids(batch=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    losses, ever = [], {name: False for name, _ in model.named_parameters()}
    for _ in range(60):
        loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        for name, parameter in model.named_parameters():
            ever[name] |= bool((parameter.grad != 0).any())
        optimizer.step()
        losses.append(loss.item())
    assert all(ever.values()), ever
    assert losses[-1] < losses[0] / 2


def test_the_initialization_of_each_wiring():
    sizes = SIZES | {"n_layers": 8, "d_model": 96}
    models = {
        "gpt1": GPT(GPTConfig.gpt1(**sizes)),
        "gpt2": GPT(GPTConfig.gpt2(**sizes)),
        "fast": GPT(GPTConfig.fast(**sizes)),
    }
    spread = {"gpt1": 0.02, "gpt2": 0.02 / 4, "fast": 0.0}  # √(2 · 8) = 4
    for name, model in models.items():
        table = 0.3 if name == "fast" else 0.02
        assert model.embedding.weight.std().item() == pytest.approx(table, rel=0.1)
        for block in model.blocks:
            for layer in (block.attention.output, block.feed_forward.contract):
                assert layer.weight.std().item() == pytest.approx(spread[name], rel=0.1)
            for layer in (block.attention.value, block.feed_forward.expand):
                assert layer.weight.std().item() == pytest.approx(0.02, rel=0.1)
        biases = [p for key, p in model.named_parameters() if key.endswith("bias")]
        assert bool(biases) == (name != "fast")
        assert all((bias == 0).all() for bias in biases)
    ids = random_ids()
    loss = F.cross_entropy(models["gpt2"](ids).flatten(0, 1), ids.roll(-1, 1).flatten())
    assert loss.item() == pytest.approx(torch.tensor(VOCABULARY).log().item(), rel=0.1)


def test_a_tied_table_stands_once_in_the_state():
    model = GPT(WIRINGS["gpt2"])
    state = model.state_dict()
    assert len({tensor.data_ptr() for tensor in state.values()}) == len(state)
    assert not [name for name in state if "head" in name]
    other = GPT(WIRINGS["gpt2"])
    other.load_state_dict(state)
    ids = random_ids()
    model.eval(), other.eval()
    assert other(ids).equal(model(ids))


def test_a_configuration_goes_through_json_and_back():
    for config in WIRINGS.values():
        assert GPTConfig(**json.loads(json.dumps(dataclasses.asdict(config)))) == config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.context = 5


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"vocabulary": 0}, ValueError, "vocabulary is 0; it must be at least 1"),
        ({"context": 2.5}, TypeError, "context is 2.5, of type float; it must be an int"),
        ({"n_layers": True}, TypeError, "n_layers is True"),
        ({"n_heads": 5}, ValueError, "d_model = 12 is not divisible by n_heads = 5.* from 1, 2, 3"),
        ({"d_ff": -1}, ValueError, "d_ff is -1"),
        ({"norm": "Pre"}, ValueError, "norm is 'Pre'; choose one of 'pre', 'post'"),
        ({"activation": "tanh"}, ValueError, "activation is 'tanh'"),
        ({"positions": None}, TypeError, "positions is None, of type NoneType; it must be a text"),
        ({"projections": "small"}, ValueError, "projections is 'small'"),
        ({"tied": "no"}, TypeError, "tied is 'no', of type str; it must be True or False"),
        ({"qk_norm": 1}, TypeError, "qk_norm is 1"),
        ({"smear": True}, TypeError, "smear is True, of type bool; it must be an int"),
        ({"smear": 1.0}, TypeError, r"smear is 1\.0, of type float; it must be an int"),
        ({"smear": -1}, ValueError, "smear is -1; .* choose 0 for none, 1 for the one before"),
        ({"smear_start": float("nan")}, ValueError, "smear_start is nan; .* a finite number"),
        ({"positions": "rotary", "n_heads": 4}, ValueError, "d_model / n_heads is 3, an odd"),
        (
            {"positions": "sinusoidal", "n_heads": 1, "d_model": 7},
            ValueError,
            "d_model is 7, an odd number",
        ),
        ({"dropout": 1.0}, ValueError, "dropout is 1.0"),
        ({"embedding_std": 0.0}, ValueError, "embedding_std is 0.0; .* a finite number above 0"),
        ({"dropout": None}, TypeError, "dropout is None, of type NoneType; it must be a number"),
        ({"embedding_std": None}, TypeError, "embedding_std is None, .* must be a number"),
        ({"smear_start": None}, TypeError, "smear_start is None, .* must be a number"),
        ({"smear_start": "0.5"}, TypeError, "smear_start is '0.5', of type str"),
        ({"activation": []}, TypeError, r"activation is \[\], of type list; it must be a text"),
        ({"layers": 3}, TypeError, "unexpected keyword argument 'layers'"),
    ],
)
def test_a_configuration_that_does_not_make_a_model(changes, error, message):
    with pytest.raises(error, match=message):
        GPTConfig(**SIZES | changes)


def test_the_fields_are_named():
    with pytest.raises(TypeError, match="positional"):
        GPTConfig(VOCABULARY, CONTEXT, LAYERS, HEADS, D_MODEL)


@pytest.mark.usefixtures("as_a_reader")
def test_parts_and_configs_that_were_replaced_by_some_that_do_not_fit():
    model = GPT(WIRINGS["gpt2"])
    model.config = dataclasses.replace(model.config, context=99)
    with pytest.raises(ValueError, match="only positions 0 to 12 were learned"):
        model(torch.zeros(1, 14).long())
    with pytest.raises(ValueError, match="only positions 0 to 12 were learned"):
        generate(model, torch.zeros(1, 3).long(), 20)
    model.embedding = nn.Embedding(VOCABULARY, D_MODEL)
    with pytest.raises(TypeError, match=r"the model's embedding is PyTorch's nn\.Embedding"):
        model(torch.zeros(1, 3).long())


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.zeros(2, 3), TypeError, "ids have dtype torch.float32; token ids are"),
        ([[1, 2]], TypeError, "ids are of type list"),
        (torch.zeros(3).long(), ValueError, r"ids have shape \(3,\); .* ids.unsqueeze\(0\)"),
        (torch.zeros(2, 0).long(), ValueError, r"ids have shape \(2, 0\); .* an empty prompt"),
        (torch.tensor([[1, 5], [22, 23]]), ValueError, r"ids\[1, 1\] is 23; .* ids 0 to 22"),
        (torch.tensor([[1, -1]]), ValueError, r"ids\[0, 1\] is -1"),
        (
            torch.zeros(1, 14).long(),
            ValueError,
            "14 tokens are more than the model's context of 13",
        ),
        (torch.zeros(1, 3, device="meta").long(), ValueError, "the model is on cpu and ids is on"),
    ],
)
def test_ids_that_do_not_fit(ids, error, message):
    with pytest.raises(error, match=message):
        GPT(WIRINGS["gpt2"])(ids)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("positions", ["learned", "alibi"])
def test_a_model_is_exported_for_batches_and_texts_of_any_size(positions):
    config = GPTConfig(
        vocabulary=11, context=12, n_layers=1, n_heads=2, d_model=8, positions=positions
    )
    model = GPT(config).eval()
    sizes = {0: torch.export.Dim("batch", min=2, max=64), 1: torch.export.Dim("tokens", max=12)}
    exported = torch.export.export(model, (torch.ones(2, 6).long(),), dynamic_shapes=(sizes,))
    ids = torch.randint(11, (5, 9))
    assert_close(exported.module()(ids), model(ids))
