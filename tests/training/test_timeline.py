"""A model at many moments, in one file."""

import json

import pytest
import safetensors.torch
import torch
from figures import make_timeline

from transformer_lib.data.markov import chains, loss_of
from transformer_lib.training.run_log import load_run
from transformer_lib.training.timeline import load_timeline, save_timeline


def test_what_is_written_is_read_again(tmp_path):
    timeline = make_timeline()
    path = tmp_path / "small.safetensors"
    save_timeline(path, timeline.config, timeline.weights)
    read = load_timeline(path)
    assert (read.config, read.steps) == (timeline.config, [0, 10, 20, 40])
    for name, weight in read.at(10).state_dict().items():
        torch.testing.assert_close(weight, timeline.weights[10][name], rtol=1e-3, atol=1e-6)
    with pytest.raises(ValueError, match=r"step is 5; .* 0, 10, 20, 40"):
        read.at(5)


def test_the_shipped_one_learned_what_its_log_says():
    log, timeline = load_run("markov"), load_timeline("markov")
    ids = chains(64, log.config["length"], generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        logits = timeline.at(timeline.steps[-1])(ids)[:, :-1]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).item()
    bigram, unigram = (loss_of(ids, 3, reader) for reader in ("bigram", "unigram"))
    assert bigram < loss < (bigram + unigram) / 2
    assert timeline.steps == log.config["kept"]


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no timeline 'chains'\. The package has: markov"):
        load_timeline("chains")
    timeline = make_timeline()
    path = tmp_path / "t.safetensors"
    save_timeline(path, timeline.config, timeline.weights)
    content = path.read_bytes()
    for damaged in (content[:-5], b"nothing", content.replace(b"n_layers", b"m_layers")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"t\.safetensors is not a timeline, or is damaged"):
            load_timeline(path)
    path.write_bytes(content[:-1] + bytes([0x7C]))  # the exponent of a number's 16 bits: all ones
    with pytest.raises(ValueError, match=r"damaged .* holds a number that is NaN or infinite"):
        load_timeline(path)
    tensors = {"0/other": torch.zeros(2)}
    sizes = {"vocabulary": 3, "context": 4, "n_heads": 2, "d_model": 4}
    for claimed in ({}, {"n_layers": 1}, {"n_layers": 10**9}, {"n_layers": 1, "vocabulary": 2**62}):
        header = json.dumps(sizes | claimed)
        path.write_bytes(safetensors.torch.save(tensors, {"config": header}))
        with pytest.raises(ValueError, match="damaged"):
            load_timeline(path)


def test_what_cannot_be_written_leaves_nothing(tmp_path, as_a_reader):
    timeline, path = make_timeline(), tmp_path / "t.safetensors"
    too_large = {0: {"embedding.weight": torch.full((2, 2), 1e6)}}
    with pytest.raises(ValueError, match=r"0/embedding.weight holds a number .* above 65,504"):
        save_timeline(path, timeline.config, too_large)
    with pytest.raises(ValueError, match="no weights"):
        save_timeline(path, timeline.config, {})
    whole = timeline.weights[0]
    for weights, cause in [
        ({"a": whole}, "'a'"),
        ({1.5: whole}, r"'1\.5'"),
        ({0: make_timeline(d_model=24).weights[0]}, "of step 0 are not those of this model"),
        ({0: dict([*whole.items()][1:])}, "of step 0 are not those of this model"),
        (dict.fromkeys(range(1000), whole), "bytes, and at most 4,194,304 are read"),
    ]:
        with pytest.raises(ValueError, match=cause):
            save_timeline(path, timeline.config, weights)
    assert not list(tmp_path.iterdir())
