"""A pretended accelerator: IPython's kernel runs this file at its start, before a chapter's cells.

Who asks for the best device then gets one that refuses to meet the CPU's tensors, as a GPU does.
(It is `meta`, which PyTorch has everywhere.) A chapter that leaves the choice to the machine would
stop on every machine with a GPU, and stops here.

The file belongs into profile_default/startup/ of the folder that IPYTHONDIR names. It runs among
the names of the reader's cells, so it must leave none behind.
"""


def _pretend():
    import torch

    from transformer_lib.training import device

    device.best_device = lambda: torch.device("meta")


_pretend()
del _pretend
