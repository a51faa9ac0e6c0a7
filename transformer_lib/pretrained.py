"""Models that other people have trained, under other people's names: GPT-2, from its files.

A folder as it is downloaded from a model hub (``openai-community/gpt2``, or its larger sisters):

    model.safetensors      the numbers
    config.json            the sizes
    tokenizer.json         the vocabulary; or vocab.json and merges.txt

    model, tokenizer = load_gpt2("gpt2")
    ids = tokenizer.encode("The meaning of").ids

Nothing is downloaded here, and nothing is unpickled: a file of weights that ends in ``.bin`` could
run code when it is read.

GPT-2 was written in TensorFlow, which leaves two traces. Its matrices are stored as
[inputs, outputs], where PyTorch's layers hold [outputs, inputs]: so each is transposed. And
queries, keys and values are one matrix, side by side: so it is cut into three.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import torch
from torch import Tensor

from transformer_lib import storage
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.layers import shapes_only
from transformer_lib.storage import UnusableFileError

if TYPE_CHECKING:
    import tokenizers

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
VOCABULARY, MERGES = "vocab.json", "merges.txt"
PICKLE = "pytorch_model.bin"
WHERE = "a folder with model.safetensors, config.json and tokenizer.json, as openai-community/gpt2"
# GPT-2's name of each field that gives a size.
SIZES = {
    "vocab_size": "vocabulary",
    "n_positions": "context",
    "n_layer": "n_layers",
    "n_head": "n_heads",
    "n_embd": "d_model",
}
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
ACTIVATIONS |= {"relu": "relu"}
# What a configuration may ask for that our GPT does not do, and the value that asks for nothing.
PLAIN = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "layer_norm_epsilon": 1e-5,
}
# Masks that old files carry along: they hold nothing that was learned.
MASKS = (".attn.bias", ".attn.masked_bias")
ENDS_TEXT = "<|endoftext|>"
POINTER = b"version https://git-lfs"  # how the file begins that git has in place of a large one


def load_gpt2(folder: str | os.PathLike) -> "tuple[GPT, tokenizers.Tokenizer]":
    """GPT-2, of any size, and its tokenizer, from the folder that holds its files.

    The model is on the CPU, in float32, without dropout, in evaluation mode. Memory: the weights
    once; they are the model's own, whatever becomes of the file.

    Raises:
        FileNotFoundError: there is no such folder, or a file is missing in it.
        ValueError: a file is damaged; it is of another kind of model, or of a GPT-2 with options
            that this GPT does not have; a tensor is missing, unknown, there twice, of another
            shape, or of whole numbers.
        ImportError: the package ``tokenizers`` is not installed.

    Source: Radford et al. 2019; the names are those of Hugging Face's ``GPT2LMHeadModel``.
    """
    folder = require_folder(folder)
    config = gpt2_config(folder)
    model = _filled(config, folder / WEIGHTS)
    return model, load_tokenizer(folder, config.vocabulary)


def gpt2_config(folder: str | os.PathLike) -> GPTConfig:
    """The sizes that ``config.json`` states, as a configuration of ours.

    Raises as :func:`load_gpt2` does.
    """
    path = require_folder(folder) / CONFIG
    stated = _json(path)
    kind = stated.get("model_type")
    if kind != "gpt2":
        raise ValueError(
            f"{path} describes a model of type {kind!r}, and this function reads GPT-2's: give "
            f"{WHERE} has it."
        )
    for name, plain in PLAIN.items():
        if stated.get(name, plain) != plain:
            raise ValueError(
                f"{path} says {name} = {stated[name]!r}, and this GPT computes as with {plain!r}: "
                f"its answers would differ. Take a model with that value."
            )
    activation = stated.get("activation_function", "gelu_new")
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"{path} says activation_function = {activation!r}; known here are "
            f"{', '.join(ACTIVATIONS)}."
        )
    missing = [name for name in SIZES if type(stated.get(name)) is not int]
    if missing:
        raise ValueError(
            f"{path} does not say {missing[0]} as a whole number (it says "
            f"{stated.get(missing[0])!r}). Download the file again."
        )
    sizes = {ours: stated[theirs] for theirs, ours in SIZES.items()}
    try:
        return GPTConfig(**sizes, d_ff=stated.get("n_inner"), activation=ACTIVATIONS[activation])
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} does not describe a model: {error}") from error


def load_tokenizer(
    folder: str | os.PathLike, vocabulary: int | None = None
) -> "tokenizers.Tokenizer":
    """The folder's tokenizer: ``encode(text).ids`` gives ids, ``decode(ids)`` the text.

    Args:
        vocabulary: how many ids the model has, if that is to be compared.

    Raises as :func:`load_gpt2` does.
    """
    folder = require_folder(folder)
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "the text of GPT-2 is cut by the package tokenizers, which is not installed here: "
            "pip install tokenizers (transformers brings it along)."
        ) from error
    file = folder / (TOKENIZER if (folder / TOKENIZER).exists() else VOCABULARY)
    require_file(file, f"give {WHERE} has it (or vocab.json and merges.txt in its place)")
    try:
        if file.name == TOKENIZER:
            tokenizer = tokenizers.Tokenizer.from_file(str(file))
            tokenizer.no_truncation()  # whoever saved it may have cut and filled up batches
            tokenizer.no_padding()
        else:
            require_file(folder / MERGES, "vocab.json is of use only together with it")
            tokenizer = _of_merges(folder)
    except Exception as error:  # the package raises nothing more precise
        if isinstance(error, FileNotFoundError):
            raise
        both = "" if file.name == TOKENIZER else f" with {MERGES}"
        raise ValueError(f"{file}{both} cannot be read ({error}). Download it again.") from error
    ids = [] if vocabulary is None else tokenizer.get_vocab().values()
    if (last := max(ids, default=-1)) >= (vocabulary or 0):
        raise ValueError(
            f"{file} has {tokenizer.get_vocab_size():,} tokens, and {CONFIG} says {vocabulary:,}: "
            f"the last id is {last:,}, so the two are of different models. Download both from one "
            f"place."
        )
    return tokenizer


def _of_merges(folder: Path) -> "tokenizers.Tokenizer":
    """What ``tokenizer.json`` says, from the two files that GPT-2 came with."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    merged = models.BPE.from_file(str(folder / VOCABULARY), str(folder / MERGES))
    tokenizer = Tokenizer(merged)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if tokenizer.token_to_id(ENDS_TEXT) is not None:
        tokenizer.add_special_tokens([ENDS_TEXT])
    # Each merge makes a token: of a file that was cut there are fewer. (None makes <pad> or [PAD].)
    found = (folder / MERGES).read_text("utf-8").splitlines()
    merges = sum(bool(line.strip()) and not line.startswith("#version") for line in found)
    tokens = (token for token in tokenizer.get_vocab() if len(token) > 1)
    made = sum(token[0] + token[-1] not in ("<>", "[]") for token in tokens)
    if merges < made:
        raise ValueError(f"{MERGES} has {merges:,} merges for the {made:,} tokens that they make")
    return tokenizer


def translated(config: GPTConfig, weights: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """GPT-2's tensors under our names: (name, tensor), transposed and cut as ours are.

    ``weights`` gives a tensor for each name, without a prefix.

    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 4}
    >>> named = {"wte.weight": torch.zeros(7, 4), "wpe.weight": torch.zeros(5, 4)}
    >>> names = translated(GPTConfig(**sizes), named)
    >>> next(names)[0], next(names)[0]
    ('embedding.weight', 'embedding.positions.table.weight')
    """
    yield "embedding.weight", weights["wte.weight"]
    yield "embedding.positions.table.weight", weights["wpe.weight"]
    for at in range(config.n_layers):
        ours, theirs = f"blocks.{at}", f"h.{at}"
        for kind in ("weight", "bias"):
            for norm, ln in (("norm_1", "ln_1"), ("norm_2", "ln_2")):
                yield f"{ours}.{norm}.{kind}", weights[f"{theirs}.{ln}.{kind}"]
            turned = {name: weights[f"{theirs}.{name}.{kind}"].t() for name in MATRICES}
            three = turned["attn.c_attn"].chunk(3)
            for part, piece in zip(("query", "key", "value"), three, strict=True):
                yield f"{ours}.attention.{part}.{kind}", piece
            for name, part in MATRICES.items():
                if part:
                    yield f"{ours}.{part}.{kind}", turned[name]
    for kind in ("weight", "bias"):
        yield f"final_norm.{kind}", weights[f"ln_f.{kind}"]


MATRICES = {
    "attn.c_attn": "",  # queries, keys and values
    "attn.c_proj": "attention.output",
    "mlp.c_fc": "feed_forward.expand",
    "mlp.c_proj": "feed_forward.contract",
}


def shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a GPT-2 of these sizes, by GPT-2's own name.

    >>> sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 4}
    >>> shapes(GPTConfig(**sizes))["h.0.attn.c_attn.weight"]
    (4, 12)
    """
    width, wide = config.d_model, config.d_ff or 4 * config.d_model
    found = {"wte.weight": (config.vocabulary, width), "wpe.weight": (config.context, width)}
    for at in range(config.n_layers):
        for norm in ("ln_1", "ln_2"):
            found |= {f"h.{at}.{norm}.{kind}": (width,) for kind in ("weight", "bias")}
        for name, (inputs, outputs) in {
            "attn.c_attn": (width, 3 * width),
            "attn.c_proj": (width, width),
            "mlp.c_fc": (width, wide),
            "mlp.c_proj": (wide, width),
        }.items():
            found[f"h.{at}.{name}.weight"] = (inputs, outputs)
            found[f"h.{at}.{name}.bias"] = (outputs,)
    return found | {f"ln_f.{kind}": (width,) for kind in ("weight", "bias")}


def _filled(config: GPTConfig, path: Path) -> GPT:
    """The model with the numbers of this file, after its header was seen to fit."""
    require_file(path, _instead(path))
    try:
        with safetensors.safe_open(path.resolve(), framework="pt") as file:
            names = _names(file.keys())
            require_tensors(path, config, {n: tuple(file.get_slice(names[n]).get_shape())
                                           for n in names})  # fmt: skip
            weights = {n: file.get_tensor(names[n]) for n in shapes(config)}
            copy = file.get_tensor(names["lm_head.weight"]) if "lm_head.weight" in names else None
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged ({error}). Download it again.") from error
    require_numbers(path, weights, copy)
    with shapes_only():  # no numbers of its own: those of the file take their places
        model = GPT(config)
    # Until here, the numbers are those in the file; a model that went on reading them there would
    # change, or die, with it.
    own = {"dtype": torch.float32, "memory_format": torch.contiguous_format, "copy": True}
    ours = {name: weight.to(**own) for name, weight in translated(config, weights)}
    model.load_state_dict(ours, assign=True)
    return model.requires_grad_(True).eval()


def _names(stored: Any) -> dict[str, str]:
    """The names without the prefix that some files have, and without masks: {name: as stored}."""
    names = {name.removeprefix("transformer."): name for name in stored}
    if len(names) < len(stored):
        twice = next(name for name in stored if names[name.removeprefix("transformer.")] != name)
        raise ValueError(f"the weights hold {twice} twice, with the prefix and without.")
    return {name: full for name, full in names.items() if not name.endswith(MASKS)}


def _instead(path: Path) -> str:
    if (path.parent / PICKLE).exists():
        return (
            f"there is {PICKLE}, a pickle, which could run code when it is read: download "
            f"{path.name} of the same model"
        )
    if (path.parent / f"{path.name}.index.json").exists():
        return "this model is stored in several files, which this function does not read"
    return f"give {WHERE} has it"


def _json(path: Path) -> dict[str, Any]:
    require_file(path, f"give {WHERE} has it")
    try:
        stated = storage.parse_json(storage.read_regular(path.resolve(), storage.MOST_JSON_BYTES))
    except (UnusableFileError, ValueError) as error:
        cause = error.cause if isinstance(error, UnusableFileError) else f"is not JSON ({error})"
        raise ValueError(f"{path} {cause.rstrip('.')}. Download it again.") from error
    if not isinstance(stated, dict):
        raise ValueError(f"{path} holds {type(stated).__name__}, not the fields of a model.")
    return stated


def require_folder(folder: str | os.PathLike) -> Path:
    """``folder`` is a folder."""
    path = Path(folder)
    if not path.is_dir():
        said = "is a file" if path.exists() else "is not there"
        raise FileNotFoundError(f"the folder {path} {said}; give {WHERE} has them.")
    return path


def require_file(path: Path, instead: str) -> None:
    """The file is there. (It may be a link: so download tools keep one copy of a file.)"""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; {instead}.")
    if not path.is_file():  # to read a pipe or a device could take forever
        raise ValueError(f"{path} is not a regular file; {instead}.")
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise ValueError(
                f"{path} is git-lfs's pointer to a file that was not fetched: run `git lfs pull` "
                f"in its folder."
            )


def require_tensors(path: Path, config: GPTConfig, found: Mapping[str, tuple[int, ...]]) -> None:
    """The file holds the tensors of a GPT-2 of these sizes, and no others."""
    needed = shapes(config) if config.n_layers <= len(found) else {}
    if not needed:
        raise ValueError(
            f"{path} holds {len(found)} tensors, too few for the {config.n_layers} layers that "
            f"{CONFIG} states: the two are of different models. Download both from one place."
        )
    if missing := [name for name in needed if name not in found]:
        raise ValueError(
            f"{path} lacks {len(missing)} of the {len(needed)} tensors of this model, the first of "
            f"them {missing[0]}: is it another kind of model? Give {WHERE} has it."
        )
    if strangers := sorted(found.keys() - needed.keys() - {"lm_head.weight"}):
        raise ValueError(
            f"{path} holds {strangers[0]}, which no GPT-2 of {config.n_layers} layers has: "
            f"{CONFIG} and the weights are of different models, or this one has other parts."
        )
    for name, shape in needed.items():
        if found[name] != shape:
            raise ValueError(
                f"{name} in {path} has the shape {found[name]}, and {CONFIG} calls for {shape}: "
                f"the two are of different models. Download both from one place."
            )


def require_numbers(path: Path, weights: Mapping[str, Tensor], copy: Tensor | None) -> None:
    """Finite numbers, not codes; and an output that is the embedding's table, as the configuration
    says.
    """
    for name, weight in weights.items():
        if not weight.is_floating_point() or weight.dtype.itemsize < 2:
            raise ValueError(
                f"{name} in {path} holds {weight.dtype}, as quantized models do: these are not the "
                f"weights, but stand for them. Take the model in floating point of 16 or 32 bits."
            )
        if not weight.float().isfinite().all():
            raise ValueError(f"{name} in {path} holds numbers that are NaN or infinite.")
    table = weights["wte.weight"]
    if copy is not None and not (copy.shape == table.shape and copy.float().equal(table.float())):
        raise ValueError(
            f"lm_head.weight in {path} is not the embedding's table, as GPT-2's is. Take a model "
            f"with a tied output."
        )
