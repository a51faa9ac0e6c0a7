"""Models of every wiring with their weights; logits and maps, whole and with parts taken out."""

import base64
import copy
from dataclasses import asdict, replace

import torch
from models import PAIRS, VOCABULARY, VOCABULARY_OF_SOURCE, WIRINGS, make, make_pair

from transformer_lib.beam import beam_search, cut
from transformer_lib.encoder_decoder import BEGIN, END
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.layers import ACTIVATIONS
from transformer_lib.widgets.weights import pack_weights, unpack_weights


def fixtures():
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        return {
            "gpt": [
                of_gpt(name, config)
                for name, config in WIRINGS.items()
                if config.attention == "multi_head"  # the page computes no other
            ],
            "pairs": [of_pair(name, config) for name, config in PAIRS.items()],
            "packed": packed(),
            "activations": [
                of_gpt(name, replace(WIRINGS["gpt1"], activation=name)) for name in ACTIVATIONS
            ],
        }


def described(name, config, model, *inputs):
    """The model, and what it makes of these inputs."""
    weights = {
        key: {"data": w.flatten().tolist(), "shape": list(w.shape)}
        for key, w in model.state_dict().items()
    }
    maps = {key: value[0].tolist() for key, value in attention_maps(model, *inputs).items()}
    found = {"name": name, "config": asdict(config), "weights": weights, "maps": maps}
    return found | {"logits": model(*inputs)[0].tolist()}


def of_gpt(name, config):
    model, ids = make(config, torch.float32).eval(), torch.randint(VOCABULARY, (1, 9))
    found = described(name, config, model, ids) | {"ids": ids[0].tolist()}
    found["without_1.feed_forward"] = without(model, "blocks.1.feed_forward")(ids)[0].tolist()
    found["without_0.attention"] = without(model, "blocks.0.attention")(ids)[0].tolist()
    output = model.blocks[1].attention.output.weight
    output[:, config.d_head : 2 * config.d_head] = 0
    found["without_1.attention.1"] = model(ids)[0].tolist()
    return found


def of_pair(name, config):
    model = make_pair(config, torch.float32)
    source = torch.randint(3, VOCABULARY_OF_SOURCE, (1, 6))
    target = torch.randint(1, config.target_vocabulary, (1, 5))
    found = described(name, config, model, source, target)
    found |= {"source": source[0].tolist(), "target": target[0].tolist()}
    found["translations"] = translations(model, source)
    found["parts"] = parts(model, source, target)
    cut = without(model, "decoder.0.cross_attention")
    return found | {"without_0.cross_attention": cut(source, target)[0].tolist()}


def parts(model, source, target):
    """What each part of each block gives, by block and order: ``decoder.0.1``."""
    found, hooks = {}, []
    kinds = {
        "encoder": ("attention", "feed_forward"),
        "decoder": ("attention", "cross_attention", "feed_forward"),
    }
    for side, names in kinds.items():
        for layer, block in enumerate(getattr(model, side)):
            for i, name in enumerate(names):

                def keep(part, inputs, result, key=f"{side}.{layer}.{i}"):
                    found[key] = result.flatten().tolist()

                hooks.append(getattr(block, name).register_forward_hook(keep))
    model(source, target)
    for hook in hooks:
        hook.remove()
    return found


def translations(model, source):
    """By beams of three widths, of a model that says something."""
    begin, found = torch.full((1, 1), BEGIN), []
    for width in (1, 3, 5):
        options = {"width": width, "length_penalty": 0.6 if width > 1 else 0.0, "end": END}
        texts, scores = beam_search(model.given(source), begin, 16, **options)
        ended = zip(texts[0, :, 1:].tolist(), scores[0].tolist(), strict=True)
        best = [{"ids": cut(text), "score": score} for text, score in ended]
        found.append({"width": width, "best": best})
    return found


def without(model, name):
    """A copy in which this part adds nothing."""
    model = copy.deepcopy(model)
    model.get_submodule(name).forward = lambda x, *args, **kwargs: torch.zeros_like(x)
    return model


def packed():
    weights = {"table": torch.randn(5, 3), "gain": torch.randn(7), "zeros": torch.zeros(2, 2)}
    found = {}
    for bits in (8, 32):
        content = pack_weights(weights, bits=bits)
        read = {name: array.flatten().tolist() for name, array in unpack_weights(content).items()}
        found[bits] = {"base64": base64.b64encode(content).decode("ascii"), "weights": read}
    return found
