"""GPT-2 from the files that people download: equal to Hugging Face's, and what is refused."""

import json
import os
import shutil

import pytest
import safetensors.torch
import torch
from torch.testing import assert_close

from transformer_lib.bpe import train_bpe
from transformer_lib.pretrained import gpt2_config, load_gpt2, load_tokenizer
from transformer_lib.sampling import generate

VOCABULARY, CONTEXT, LAYERS, HEADS, D_MODEL = 269, 29, 3, 5, 35
TEXT = "mary gave roses to susan. who has roses? susan has them."


@pytest.fixture(scope="module")
def theirs():
    transformers = pytest.importorskip("transformers")
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    sizes = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": D_MODEL, "n_positions": CONTEXT}
    config = transformers.GPT2Config(vocab_size=VOCABULARY, **sizes, **ends)
    model = transformers.GPT2LMHeadModel(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.fixture(scope="module")
def tokenizer():
    return train_bpe(TEXT, VOCABULARY, ["<|endoftext|>"])


@pytest.fixture(scope="module")
def saved(theirs, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    theirs.save_pretrained(folder)
    tokenizer.as_fast().save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy, to be spoiled."""
    return shutil.copytree(saved, tmp_path / "gpt2")


def random_ids():
    return torch.randint(VOCABULARY, (2, 23), generator=torch.Generator().manual_seed(1))


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_weights(folder, change, file="model.safetensors"):
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    safetensors.torch.save_file(change(weights), folder / file)


def test_logits_equal_hugging_faces(theirs, saved):
    model, _ = load_gpt2(saved)
    assert_close(model(random_ids()), theirs(random_ids()).logits, rtol=1e-5, atol=1e-5)
    assert model.n_parameters == theirs.num_parameters()
    assert not model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_it_writes_what_hugging_faces_writes(theirs, saved):
    model, _ = load_gpt2(saved)
    prompt = random_ids()[:1, :7]
    ours = generate(model, prompt, 11, temperature=0)
    options = {"do_sample": False, "max_new_tokens": 11, "pad_token_id": 0, "eos_token_id": None}
    reference = theirs.generate(prompt, **options)
    assert ours.equal(reference)


def test_the_layout_of_openais_own_file(theirs, folder):
    """No prefix, a mask in each block, half precision, and a copy of the tied table."""

    def change(weights):
        named = {name.removeprefix("transformer."): w.half() for name, w in weights.items()}
        mask = torch.ones(1, 1, CONTEXT, CONTEXT).tril()
        masks = {f"h.{at}.attn.bias": mask.clone() for at in range(LAYERS)}
        masks |= {f"h.{at}.attn.masked_bias": torch.tensor(-1e4) for at in range(LAYERS)}
        return named | masks | {"lm_head.weight": named["wte.weight"].clone()}

    change_weights(folder, change)
    model, _ = load_gpt2(folder)
    rounded = {name: p.half().float() for name, p in theirs.named_parameters()}
    expected = torch.func.functional_call(theirs, rounded, (random_ids(),)).logits
    assert_close(model(random_ids()), expected, rtol=1e-4, atol=1e-4)


def test_files_may_be_links(saved, tmp_path):
    for path in saved.iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert load_gpt2(tmp_path)[0].config == load_gpt2(saved)[0].config


def test_text_is_cut_as_by_the_tokenizer_that_was_saved(saved, tokenizer):
    _, loaded = load_gpt2(saved)
    assert loaded.encode(TEXT).ids == tokenizer.encode(TEXT)
    assert loaded.decode(loaded.encode(TEXT).ids) == TEXT
    loaded.enable_truncation(2)
    loaded.enable_padding(length=9)
    loaded.save(str(saved / "tokenizer.json"))  # as who cut and filled batches with it may
    assert load_gpt2(saved)[1].encode(TEXT).ids == tokenizer.encode(TEXT)


def test_vocabulary_and_merges_do_as_well(saved, folder):
    (folder / "tokenizer.json").unlink()
    model = json.loads((saved / "tokenizer.json").read_text())["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n")
    pieces = load_tokenizer(folder)
    text = "mary gave roses"
    assert pieces.decode(pieces.encode(text).ids) == text
    assert pieces.encode("<|endoftext|>").ids == [0]
    shorter = merges.rsplit("\n", 2)[0]
    (folder / "merges.txt").write_text(f"#version: 0.2\n{shorter}\n")
    with pytest.raises(ValueError, match=r"vocab\.json with merges\.txt cannot .* merges for the"):
        load_tokenizer(folder)
    (folder / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"merges\.txt is missing; vocab\.json is of use"):
        load_tokenizer(folder)


def without(name):
    return lambda weights: {k: w for k, w in weights.items() if k != f"transformer.{name}"}


def replaced(name, tensor):
    return lambda weights: weights | {f"transformer.{name}": tensor}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (without("h.1.attn.c_attn.weight"), r"lacks 1 of the 40 .* h\.1\.attn\.c_attn\.weight"),
        (
            replaced("h.0.mlp.c_fc.weight", torch.zeros(140, 35)),
            r"h\.0\.mlp\.c_fc\.weight in .* has the shape \(140, 35\), .* calls for \(35, 140\)",
        ),
        (replaced("h.0.mlp.gate.weight", torch.zeros(2)), r"holds h\.0\.mlp\.gate\.weight, which"),
        (replaced("ln_f.bias", torch.full((35,), torch.nan)), r"ln_f\.bias in .* NaN or infinite"),
        (replaced("lm_head.weight", torch.zeros(269, 35)), r"lm_head\.weight in .* tied output"),
        (lambda _: {"a": torch.zeros(1)}, "holds 1 tensors, too few for the 3 layers"),
        (lambda w: {k: v.to(torch.int8) for k, v in w.items()}, r"wte\.weight in .* torch\.int8"),
        (lambda w: {k: v.to(torch.float8_e4m3fn) for k, v in w.items()}, "16 or 32 bits"),
        (lambda w: w | {"wte.weight": torch.zeros(269, 35)}, r"transformer\.wte\.weight twice"),
    ],
)
def test_weights_that_do_not_fit(folder, change, problem):
    change_weights(folder, change)
    with pytest.raises(ValueError, match=problem):
        load_gpt2(folder)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model_type": "llama"}, "describes a model of type 'llama', .* openai-community/gpt2"),
        ({"n_embd": 36}, r"wte\.weight in .* \(269, 35\), and config\.json calls for \(269, 36\)"),
        ({"n_embd": 37}, "does not describe a model: .*37"),
        ({"n_layer": 10**9}, "too few for the 1000000000 layers"),
        ({"n_head": None}, "does not say n_head as a whole number .it says None"),
        ({"n_head": True}, "does not say n_head as a whole number .it says True"),
        (
            {"activation_function": "swish"},
            "activation_function = 'swish'; known here are gelu_new",
        ),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon = 1e-06, .* 1e-05"),
        ({"vocab_size": 257}, r"\(269, 35\), and config\.json calls for \(257, 35\)"),
    ],
)
def test_configurations_that_do_not_fit(folder, changes, problem):
    changed = {"n_head": 6} if changes == {"n_embd": 36} else {}
    change_config(folder, **changes | changed)
    with pytest.raises(ValueError, match=problem):
        load_gpt2(folder)


def test_a_tokenizer_of_another_model(folder):
    with pytest.raises(ValueError, match=r"has 269 tokens, and config\.json says 100"):
        load_tokenizer(folder, 100)


def test_a_tokenizer_with_an_id_that_the_model_has_not(folder):
    path = folder / "tokenizer.json"
    pieces = json.loads(path.read_text())
    pieces["model"]["vocab"] |= {"zz": 9999}
    pieces["model"]["vocab"].pop(max(pieces["model"]["vocab"], key=len))
    path.write_text(json.dumps(pieces | {"model": pieces["model"] | {"merges": []}}))
    with pytest.raises(ValueError, match=r"the last id is 9,999"):
        load_gpt2(folder)


def test_what_becomes_of_the_file_is_nothing_to_the_model(folder):
    model, _ = load_gpt2(folder)
    expected, path = model(random_ids()), folder / "model.safetensors"
    with path.open("r+b") as file:  # in place, where a model that is mapped onto it would see it
        file.write(bytes(path.stat().st_size))
    assert model(random_ids()).equal(expected)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder", "git-lfs"])
@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "vocab.json"])
def test_special_files(folder, file, kind):
    if file == "vocab.json":
        (folder / "tokenizer.json").unlink()
    path, said = folder / file, "is not a regular file; give a folder with"
    path.unlink(missing_ok=True)
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a folder":
        path.mkdir()
    else:
        path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 9\n")
        said = "git-lfs's pointer .* `git lfs pull`"
    with pytest.raises(ValueError, match=rf"{file} (is )?{said}"):
        load_gpt2(folder)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_damaged_files(folder, file):
    (folder / file).write_text("{")
    with pytest.raises(ValueError, match=rf"{file}.*Download it again"):
        load_gpt2(folder)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_files(folder, file):
    (folder / file).unlink()
    with pytest.raises(FileNotFoundError, match=r"is missing; give a folder with model\.safe"):
        load_gpt2(folder)


def test_a_pickle_is_not_read(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"pytorch_model\.bin, a pickle, which could run"):
        load_gpt2(folder)


def test_no_folder(tmp_path):
    for path, said in ((tmp_path / "gpt2", "is not there"), (__file__, "is a file")):
        with pytest.raises(FileNotFoundError, match=f"{said}; give a folder with model.safeten"):
            gpt2_config(path)
