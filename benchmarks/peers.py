"""The peer: Hugging Face's GPT-2, trained as nanoGPT documents for a CPU.

nanoGPT's command (its README, "I only have a macbook"), without its printing and its evaluations:

    python train.py config/train_shakespeare_char.py --device=cpu --compile=False --block_size=64
        --batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 --lr_decay_iters=2000
        --dropout=0.0
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from transformer_lib.data.batches import Batches

BLOCK, BATCH, STEPS, WARMUP = 64, 12, 2000, 100
RATE, END_RATE, BETAS, DECAY, CLIP = 1e-3, 1e-4, (0.9, 0.99), 0.1, 1.0


class Peer(nn.Module):
    """GPT-2 with its logits as the result, as our own models have."""

    def __init__(self, vocabulary: int):
        super().__init__()
        config = GPT2Config(
            vocab_size=vocabulary, n_positions=BLOCK, n_layer=4, n_head=4, n_embd=128,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
            bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        self.gpt2 = GPT2LMHeadModel(config)

    def forward(self, ids: Tensor) -> Tensor:
        return self.gpt2(ids).logits


class PeerTrainer:
    """nanoGPT's loop: nothing in it but what it takes."""

    def __init__(self, model: Peer, batches: Batches):
        self.model, self.batches, self.step, self.n_steps = model, batches, 0, STEPS
        parameters = list(model.parameters())
        groups = [
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": DECAY},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS)

    def take_step(self) -> float:
        """The loss of the batch, before the step."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.step)
        inputs, targets = next(self.batches)
        loss = F.cross_entropy(self.model(inputs).flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.step += 1
        return loss.item()


def rate(step: int) -> float:
    """nanoGPT's schedule, steps counted from 0."""
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    share = (step - WARMUP) / (STEPS - WARMUP)
    return END_RATE + (RATE - END_RATE) * (1 + math.cos(math.pi * share)) / 2
