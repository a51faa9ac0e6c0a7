"""Losses: functions of logits and targets that return one number for each target.

PyTorch's are such functions with ``reduction="none"``; its cross-entropy wants the classes on axis
1, so :func:`total` gives it one axis of targets. :func:`total` adds up the numbers of those
targets that count, so that the parts of a batch add up: the loop and the evaluation divide by how
many these are, in the whole batch or the whole text. Integers that are ``IGNORED`` do not count.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.data.packing import IGNORED

Loss = Callable[[Tensor, Tensor], Tensor]
# PyTorch's, which want classes on axis 1.
OF_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss)
FUNCTIONS_OF_CLASSES = (F.cross_entropy, F.nll_loss)


def cross_entropy(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """The cross-entropy of each target in nats, ``[...]``; 0 where it does not count.

    Args:
        logits: ``[..., classes]``.
        targets: ids of classes, of the shape ``[...]``.
        label_smoothing: the share of the probability that is asked for in equal parts from all
            classes, 0.1 in "Attention is all you need". For the loop, bind it:
            ``partial(cross_entropy, label_smoothing=0.1)``.

    Raises:
        ValueError: shapes that do not fit; a label smoothing outside of [0, 1).
        TypeError: targets that are not integers of 64 (or 8) bits.
        IndexError: a target that is not a class (on a GPU, PyTorch's own error).

    Source: label smoothing: Szegedy et al. 2016 (Rethinking the Inception Architecture).

    >>> cross_entropy(torch.zeros(3, 7), torch.tensor([0, 6, IGNORED]))  # ln 7, twice
    tensor([1.9459, 1.9459, 0.0000])
    """
    require_fitting(logits, targets, label_smoothing)
    try:
        return F.cross_entropy(
            logits.flatten(0, -2),
            targets.flatten().long(),
            ignore_index=IGNORED,
            reduction="none",
            label_smoothing=label_smoothing,
        ).view_as(targets)
    except IndexError as error:
        raise IndexError(
            f"{error} The logits have classes 0 to {logits.shape[-1] - 1}; a target that does not "
            f"count is {IGNORED}."
        ) from None


def total(loss: Loss, logits: Tensor, targets: Tensor) -> Tensor:
    """What ``loss`` gives for the targets that count, added up.

    Raises:
        ValueError: it gives another number of losses than there are targets; or it is PyTorch's,
            and the classes may be on the last axis or on axis 1.

    >>> total(cross_entropy, torch.zeros(3, 7), torch.tensor([0, 6, IGNORED]))  # 2 ln 7
    tensor(3.8918)
    """
    each = _of_each(loss, logits, targets)
    return each.where(counted(targets).view_as(each), 0.0).sum()


def _of_each(loss: Loss, logits: Tensor, targets: Tensor) -> Tensor:
    of_classes = isinstance(loss, OF_CLASSES) or getattr(loss, "func", loss) in FUNCTIONS_OF_CLASSES
    if of_classes and logits.shape[:-1] == targets.shape:
        require_one_meaning(logits, targets)
        logits, targets = logits.flatten(0, -2), targets.flatten()
    each = loss(logits, targets)
    shape = tuple(each.shape) if isinstance(each, Tensor) else type(each).__name__
    if shape != tuple(targets.shape):
        raise ValueError(
            f"the loss has shape {shape} and the targets {tuple(targets.shape)}; it "
            f'must be one number for each target, as from PyTorch\'s losses with reduction="none". '
            f"The loop takes the mean over the whole batch."
        )
    return each


def require_alone(loss: Loss, logits: Tensor, targets: Tensor) -> None:
    """A row's loss is the same without the other rows, so that the parts of a batch add up."""
    if len(targets) < 2 or getattr(loss, "func", loss) is cross_entropy:  # which does not
        return
    with torch.no_grad():
        among = _of_each(loss, logits, targets).flatten()[0].item()
        alone = _of_each(loss, logits[:1], targets[:1]).flatten()[0].item()
    if abs(among - alone) > 1e-3 * abs(among) + 1e-6:
        raise ValueError(
            f"the loss of the first target is {among:.4g} among the batch's rows and {alone:.4g} "
            f"alone: it looks at other rows, so a batch in parts would have another loss. Leave "
            f"accumulation at 1 and use one process, or let the loss divide by a number "
            f"that never changes."
        )


def scored(
    model: nn.Module, loss: Loss, inputs: Sequence[Tensor], targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Logits and targets for ``loss``: of all; or, for :func:`cross_entropy`, of those that count,
    where the model has a quicker way to them.

    >>> inputs, targets = [torch.zeros(1, 2, 3)], torch.tensor([[2, 1]])
    >>> scored(nn.Identity(), cross_entropy, inputs, targets)[0].shape
    torch.Size([1, 2, 3])
    """
    known = getattr(loss, "func", loss) is cross_entropy
    if known and hasattr(type(model), "counted_logits"):  # not what compiles it, or joins it
        which = counted(targets)
        logits = model.counted_logits(*inputs, which)
        if logits is not None:
            return logits, targets[which]
    logits = model(*inputs)
    require_logits(logits)
    return logits, targets


def counted(targets: Tensor) -> Tensor:
    """Which targets count: integers that are not ``IGNORED``, and all other numbers. (Of 8 bits
    without a sign, all do.)

    >>> counted(torch.tensor([3, IGNORED])), counted(torch.tensor([-100.0]))
    (tensor([ True, False]), tensor([True]))
    """
    if targets.is_floating_point() or targets.dtype == torch.uint8:  # IGNORED would be its 156
        return torch.ones_like(targets, dtype=torch.bool)
    return targets != IGNORED


def count(targets: Tensor) -> int:
    """How many targets count."""
    return int(counted(targets).sum())


def require_logits(logits: Tensor) -> None:
    """A model has returned one tensor."""
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"the model returns a {type(logits).__name__}; it must return one tensor here, the "
            f"logits. Wrap it in a module that returns only these."
        )


def require_one_meaning(logits: Tensor, targets: Tensor) -> None:
    """Classes on the last axis, as here, and not on axis 1, as PyTorch's losses have them."""
    classes = logits.shape[-1]
    if logits.ndim > 2 and logits.movedim(1, -1).shape[:-1] == targets.shape == logits.shape[:-1]:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)} and targets {tuple(targets.shape)}, so the "
            f"{classes} classes may be on the last axis or, as PyTorch has it, on axis 1. Say so: "
            f"cross_entropy of transformer_lib.training.losses has them on the last, and lambda "
            f"logits, targets: loss(logits, targets), of yours, on axis 1."
        )


def require_loss(loss: Loss) -> None:
    """A function of logits and targets, which learns nothing itself."""
    checks.require_object(loss, "loss")
    if not callable(loss):
        raise TypeError(
            f"loss is {loss!r}; it must be a function of logits and targets that gives one number "
            f'for each target, such as cross_entropy or nn.MSELoss(reduction="none").'
        )
    options = vars(loss) if isinstance(loss, OF_CLASSES) else getattr(loss, "keywords", {})
    ignored = options.get("ignore_index", IGNORED)
    if ignored != IGNORED:
        raise ValueError(
            f"the loss has ignore_index={ignored}, and the loop would count these targets in its "
            f"mean. Make them {IGNORED} (targets.masked_fill(targets == {ignored}, {IGNORED})), "
            f"and leave ignore_index out."
        )
    own = dict(loss.named_parameters()) if isinstance(loss, nn.Module) else {}
    if learned := [name for name, one in own.items() if one.requires_grad]:
        raise ValueError(
            f"the loss has parameters of its own ({', '.join(learned[:3])}), which the run would "
            f"neither save nor share between processes. Make them part of the model "
            f"(model.{learned[0].replace('.', '_')} = ...) and let the loss read them there."
        )


def require_fitting(logits: Tensor, targets: Tensor, label_smoothing: float) -> None:
    """Logits for each target, and a share."""
    if logits.ndim < 2 or logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)} and targets {tuple(targets.shape)}; logits "
            f"need the axes of the targets and then one of classes. (The last tensor of a batch "
            f"is its targets; the model is called with the others.)"
        )
    if targets.dtype not in (torch.long, torch.uint8):
        raise TypeError(
            f"targets are {targets.dtype}; they must be the ids of classes: targets.long()."
        )
    require_label_smoothing(label_smoothing)


def require_label_smoothing(label_smoothing: float) -> None:
    """A share of the probability that leaves some for the right class."""
    checks.require_number(label_smoothing, "label_smoothing")
    if not 0 <= label_smoothing < 1:
        raise ValueError(
            f"label_smoothing is {label_smoothing}; it is a share of the probability: choose "
            f"0 <= label_smoothing < 1."
        )
