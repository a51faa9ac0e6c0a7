"""A small model at many moments of its training, in one file: for a slider over time.

save_timeline("markov.safetensors", config, {0: model.state_dict(), 10: ...})
timeline = load_timeline("markov")          # of the package, or by its path
timeline.steps, timeline.at(10)             # the model as it was after 10 steps
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors.torch
from torch import Tensor

from transformer_lib import storage
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.layers import shapes_only
from transformer_lib.training.checkpoints import NONSENSE
from transformer_lib.training.trained import TRAINED_FOLDER

MOST_BYTES = 4 * 2**20


@dataclass(frozen=True, eq=False)
class Timeline:
    """The weights of one model after some of its steps.

    Attributes:
        config: the model's.
        weights: for each step, in order, its weights by name, as ``GPT.state_dict`` has them.
    """

    config: GPTConfig
    weights: Mapping[int, Mapping[str, Tensor]]

    @property
    def steps(self) -> list[int]:
        return list(self.weights)

    def at(self, step: int) -> GPT:
        """The model after ``step`` steps, in evaluation mode.

        Raises:
            ValueError: it was not kept then.
        """
        if step not in self.weights:
            kept = ", ".join(map(str, self.steps))
            raise ValueError(f"step is {step!r}; the steps that were kept are {kept}.")
        model = GPT(self.config)
        model.load_state_dict(self.weights[step])
        return model.eval()


def save_timeline(
    path: str | os.PathLike, config: GPTConfig, weights: Mapping[int, Mapping[str, Tensor]]
) -> None:
    """Write them as one file, in 16 bits a number, whole or not at all.

    Raises:
        ValueError: nothing to write, a number that is NaN, infinite or too large for 16 bits, or
            what would not be read again: weights of another model, a step that is not a whole
            number, too many bytes.
        OSError: the disk is full, or cannot be written to.
    """
    tensors = {
        f"{step}/{name}": tensor.detach().cpu().half().contiguous()
        for step in sorted(weights)
        for name, tensor in weights[step].items()
    }
    if not tensors:
        raise ValueError("there are no weights to write.")
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds a number that is NaN, infinite, or above 65,504.")
    content = safetensors.torch.save(tensors, {"config": json.dumps(asdict(config))})
    try:
        _parsed(content)
    except NONSENSE as error:
        raise ValueError(
            f"they would not be read again ({error}). Give what GPT(config).state_dict() holds, by "
            f"the number of its step."
        ) from error
    if len(content) > MOST_BYTES:
        raise ValueError(
            f"they take {len(content):,} bytes, and at most {MOST_BYTES:,} are read again. Keep "
            f"fewer steps."
        )
    storage.write_file(Path(path), content)


def load_timeline(name_or_path: str | os.PathLike) -> Timeline:
    """What :func:`save_timeline` wrote: by its name, from the package; or by its path.

    Raises:
        FileNotFoundError: there is none.
        ValueError: the file is something else, or damaged so that it shows: a shape, a name, or a
            number that is not finite. (It holds no checksum.)

    >>> load_timeline("markov").at(0).config.n_layers
    2
    """
    path = Path(name_or_path)
    if not path.is_file():
        path = TRAINED_FOLDER / f"{name_or_path}.safetensors"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in TRAINED_FOLDER.glob("*.safetensors")))
        raise FileNotFoundError(
            f"there is no timeline {str(name_or_path)!r}. The package has: {known or 'none'}. "
            f"Another one is loaded by the path of its file."
        )
    try:
        content = storage.read_regular(path, MOST_BYTES)
        return _parsed(content)
    except storage.UnusableFileError as error:
        raise ValueError(f"{path} {error.cause} {error.fix or ''}".rstrip()) from error
    except NONSENSE as error:
        raise ValueError(f"{path} is not a timeline, or is damaged ({error}).") from error


def _parsed(content: bytes) -> Timeline:
    """What a file with this content holds; one of ``NONSENSE`` if that is not a timeline."""
    tensors = safetensors.torch.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    config = GPTConfig(**json.loads(header["__metadata__"]["config"]))
    if config.n_layers > len(tensors):  # each has some
        raise ValueError(f"it claims {config.n_layers:,} layers")
    with shapes_only():
        sizes = {name: w.shape for name, w in GPT(config).state_dict().items()}
    weights: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        step, name = key.split("/", 1)
        if not tensor.isfinite().all():
            raise ValueError(f"{key} holds a number that is NaN or infinite")
        weights.setdefault(int(step), {})[name] = tensor.float()
    ordered = {step: weights[step] for step in sorted(weights)}
    for step, kept in ordered.items():
        if {name: w.shape for name, w in kept.items()} != sizes:
            raise ValueError(f"the weights of step {step} are not those of this model")
    return Timeline(config, ordered)
