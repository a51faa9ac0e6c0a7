"""A small GPT in the hands of a reader: whole, with parts off, with a vector of another story."""

from dataclasses import asdict

import torch
from figures import STORIES, make_trained

from transformer_lib.interpret.maps import attention_maps

HEAD, THINK = (0, 1), 1  # what is switched off: head 1 of block 0, the feed-forward of block 1
BLOCK, PLACE = 0, 5  # where a vector of the other story is put in
EXCHANGE = ("mary", "john")


def fixtures():
    trained = make_trained()
    model, tokenizer = trained.model, trained.tokenizer
    ids = torch.tensor([tokenizer.encode(STORIES[0])])
    one, other = (tokenizer.encode(name)[0] for name in EXCHANGE)
    twin = torch.where(ids == one, other, torch.where(ids == other, one, ids))
    with torch.no_grad():
        seen, theirs = streams(model, ids), streams(model, twin)
        return {
            "config": asdict(model.config),
            "weights": {
                key: {"data": w.flatten().tolist(), "shape": list(w.shape)}
                for key, w in model.state_dict().items()
            },
            "ids": ids[0].tolist(),
            "twin": twin[0].tolist(),
            "exchange": [one, other],
            "whole": model(ids)[0].softmax(-1).tolist(),
            "moved": (model(ids).softmax(-1) - model(twin).softmax(-1))[0]
            .abs()
            .sum(-1)
            .div(2)
            .tolist(),
            "parts": {name: x[0, -1].tolist() for name, x in seen.items()},
            "others": [theirs[f"{layer}.end"][0, -1].tolist() for layer in (0, 1)],
            "closeness": [
                torch.cosine_similarity(seen[f"{layer}.end"], theirs[f"{layer}.end"], -1)[
                    0
                ].tolist()
                for layer in (0, 1)
            ],
            "maps": [maps[0].tolist() for maps in attention_maps(model, ids).values()],
            "patched": patched(model, ids, theirs[f"{BLOCK}.end"]),
            "off": off(model, ids),
        }


def streams(model, ids):
    """What each part makes of the tokens, as math/transformer.js calls it."""
    seen = {}

    def keep(name, module, position=None):
        def hook(_, inputs, output):
            seen[name] = output if position is None else inputs[position]

        return module.register_forward_hook(hook)

    hooks = [keep("start", model.blocks[0], 0), keep("final_norm", model.final_norm)]
    for layer, block in enumerate(model.blocks):
        parts = {
            "norm_1": block.norm_1, "attention": block.attention, "norm_2": block.norm_2,
            "feed_forward": block.feed_forward, "end": block,
        }  # fmt: skip
        hooks += [keep(f"{layer}.{name}", module) for name, module in parts.items()]
    model(ids)
    for hook in hooks:
        hook.remove()
    return seen


def patched(model, ids, theirs):
    """The next word where one vector after a block is the other story's."""

    def put_in(_, __, output):
        output = output.clone()
        output[:, PLACE] = theirs[:, PLACE]
        return output

    hook = model.blocks[BLOCK].register_forward_hook(put_in)
    found = model(ids)[0].softmax(-1).tolist()
    hook.remove()
    return found


def off(model, ids):
    """The next word without a head and without a feed-forward layer."""
    model = make_trained().model
    layer, head = HEAD
    width = model.config.d_head
    model.blocks[layer].attention.output.weight[:, head * width : (head + 1) * width] = 0
    model.blocks[THINK].feed_forward.forward = lambda x: torch.zeros_like(x)
    return model(ids)[0].softmax(-1).tolist()
