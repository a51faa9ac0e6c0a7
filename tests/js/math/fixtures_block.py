"""A classifier of one block at two stories, all parts on and with some of them off."""

from itertools import product

import torch

from transformer_lib.classifier import Classifier
from transformer_lib.widgets import BlockLab

PARTS = ("norm_1", "attention", "residual_1", "norm_2", "feed_forward", "residual_2")


def read(model: Classifier, ids: torch.Tensor, on: dict[str, bool]) -> torch.Tensor:
    """The scores, by the library's parts; one that is off gives zeros, or passes what it gets."""
    [block] = model.blocks
    x = model.embedding(ids)
    attended = block.attention(block.norm_1(x) if on["norm_1"] else x) * on["attention"]
    x = x * on["residual_1"] + attended
    thought = block.feed_forward(block.norm_2(x) if on["norm_2"] else x) * on["feed_forward"]
    return model.head((x * on["residual_2"] + thought)[:, -1])


@torch.no_grad()
def fixtures() -> dict:
    torch.manual_seed(0)
    model = Classifier(vocabulary=11, tokens=7, d_model=6, n_heads=3, n_classes=2, d_ff=13)
    for parameter in model.parameters():  # no bias is zero, no gain one
        torch.nn.init.normal_(parameter, std=0.5)
    ids = torch.randint(11, (2, 7))
    lab = BlockLab(model, {"which": ["a", "b"]}, ["a", "b"], ids, [0, 1], ["x", "y"], ["c", "d"])
    model = model.double()
    cases = []
    for values in product((True, False), repeat=len(PARTS)):
        on = dict(zip(PARTS, values, strict=True))
        cases.append({"on": on, "scores": read(model, ids, on).tolist()})
    torch.testing.assert_close(model(ids), torch.tensor(cases[0]["scores"]).double())
    z = torch.linspace(-5, 5, 21, dtype=torch.float64)
    return {
        "numbers": torch.frombuffer(bytearray(lab._arrays), dtype=torch.float32).tolist(),
        "text": lab._text.decode(),
        "cases": cases,
        "gelu": {"x": z.tolist(), "y": torch.nn.functional.gelu(z, approximate="tanh").tolist()},
    }
