"""Beam searches of a small GPT and of a small translator, by the library, for every width."""

import json

import numpy as np
import torch
from models import FEW, PAIRS, VOCABULARY_OF_TARGET, make_few, make_pair

from transformer_lib.beam import beam_search
from transformer_lib.encoder_decoder import BEGIN, END
from transformer_lib.sampling import next_logits
from transformer_lib.widgets import BeamTree

N_TOKENS = 7


def searches(model, prompt, end):
    """What is finished, for each width and penalty: the ids before the end, and the judgment."""
    found = []
    for width in range(1, 6):
        for penalty in (0.0, 0.6, 1.3, 2.0):
            texts, scores = beam_search(
                model,
                torch.tensor([prompt]),
                N_TOKENS,
                width=width,
                end=end,
                length_penalty=penalty,
            )
            ended = [
                {"ids": text[: text.index(end)] if end in text else text, "score": score}
                for text, score in zip(
                    texts[0, :, len(prompt) :].tolist(), scores[0].tolist(), strict=True
                )
                if score > -float("inf")
            ]
            found.append({"width": width, "penalty": penalty, "finished": ended})
    return found


def case(model, prompt, end, size):
    widget = BeamTree(
        lambda texts: next_logits(model, texts),
        prompt,
        list(map(str, range(size))),
        end=end,
        n_tokens=N_TOKENS,
    )
    return {
        "text": json.loads(widget._text),
        "logs": np.frombuffer(widget._logs, "<f8").tolist(),
        "searches": searches(model, prompt, end),
    }


def fixtures() -> dict:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        gpts = [case(make_few(), [3, 1, int(i)], end, FEW) for i, end in ((0, 2), (4, 0))]
        pairs = []
        for name in ("paper", "pre-norm, one table"):
            pair = make_pair(PAIRS[name])
            size = pair.config.target_vocabulary
            assert size in (VOCABULARY_OF_TARGET, 11)
            source = torch.tensor([[5, 3, 7, 4]])
            pairs.append(case(pair.given(source), [BEGIN], END, size))
    return {"cases": gpts + pairs}
