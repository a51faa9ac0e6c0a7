"""Every example in the library's docstrings runs and prints what it says.

The docstrings are read from the syntax trees: doctest's own search overlooks functions that a
decorator has wrapped, as all are in these tests.
"""

import ast
import doctest
import importlib
from pathlib import Path

import pytest
import torch

import transformer_lib

PACKAGE = Path(transformer_lib.__file__).parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def examples():
    """(name of the module, name of the object, docstring, its line), where there is an example."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            docstring = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if docstring and ">>>" in docstring:
                name = getattr(node, "name", "module")
                line = node.body[0].lineno - 1
                yield pytest.param(
                    module.removesuffix(".__init__"), docstring, line, id=f"{module}.{name}"
                )


EXAMPLES = list(examples())


@pytest.mark.parametrize(("module", "docstring", "line"), EXAMPLES)
def test_example(module, docstring, line):
    loaded = importlib.import_module(module)
    names = {"torch": torch} | vars(loaded)
    test = doctest.DocTestParser().get_doctest(docstring, names, module, loaded.__file__, line)
    assert test.examples
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_the_public_functions_of_the_core_have_examples():
    found = {example.id for example in EXAMPLES}
    for module, names in {
        "attention": ["attention_weights", "attention", "MultiHeadAttention"],
        "masks": ["causal_mask", "padding_mask", "sliding_window_mask", "combine_masks"],
        "positions": ["sinusoidal_encoding", "shift_matrix", "apply_rotary", "alibi_bias"],
        "cache": ["KeyValueCache", "ModelCache"],
        "layers": ["FeedForward", "SwiGLU", "LayerNorm", "RMSNorm", "Smear", "Embedding"],
        "blocks": ["PreNorm", "PostNorm"],
        "gpt": ["GPTConfig", "GPT"],
        "encoder_decoder": ["EncoderDecoderConfig", "EncoderDecoder", "Conditioned"],
        "sampling": ["filter_logits", "generate"],
        "beam": ["beam_search", "translate"],
        "interpret.maps": ["attention_maps"],
        "interpret.parts": ["part_names", "logits_with", "parts_of"],
        "interpret.lens": ["logit_lens", "direct_logits"],
        "interpret.patching": ["logits_without", "patched_logits"],
        "interpret.scores": ["previous_token_score", "induction_score"],
    }.items():
        assert {f"transformer_lib.{module}.{name}" for name in names} <= found
