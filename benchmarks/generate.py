"""How fast text is generated: our cache, no cache, Hugging Face, and what the memory allows.

    python benchmarks/generate.py        about 3 minutes on 2 cores

Writes transformer_lib/runs/generate.json. A GPT-2 of 10.7 million parameters with random weights
continues a prompt of one token by TOKENS, greedily, in fp32 on 2 threads. Hugging Face's
GPT2LMHeadModel has the same weights and runs as it is documented: ``generate(use_cache=True,
do_sample=False)``, which grows its cache by joining tensors; and once more with its static cache,
not compiled. All must give the same tokens.

The limit: a step reads every weight once (one row of the position table only). The bandwidth for
that is measured in the same rounds, on a buffer as large as what a step reads, in two ways:
  copy   the buffer is copied into another one; its bytes count twice, once read and once written;
  read   the buffer, as a matrix of d_model columns, is multiplied by one vector: read and no more.
The limit in tokens a second is that bandwidth divided by the bytes that a step reads. (The cache's
own keys and values come on top of it: on average 5 % of the bytes here.) ``share_of_copies`` is
milder: it compares with one whole copy of the weights, read and written, for each token.

Everything is run once in each round, one after the other, so that whatever else the machine does
meets all alike. The results are from the medians over the rounds.
"""

import argparse
import os
import time
from collections.abc import Callable
from statistics import median

import torch
import transformers

from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.sampling import generate
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

TOKENS, ROUNDS, BATCHES, THREADS = 255, 9, (1, 2, 4, 8, 16, 32), 2
SIZES = {"vocabulary": 65, "context": 256, "n_layers": 6, "n_heads": 6, "d_model": 384}
SPREAD = 0.08  # of all weights: enough for a text that does not repeat one token


def our_model() -> GPT:
    model = GPT(GPTConfig.gpt2(**SIZES, dropout=0.0)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=SPREAD)
    return model


@torch.no_grad()
def their_model(model: GPT) -> transformers.GPT2LMHeadModel:
    """Hugging Face's GPT-2 with the weights of ours; its matrices are stored transposed."""
    config = model.config
    sizes = {"n_embd": config.d_model, "n_layer": config.n_layers, "n_head": config.n_heads}
    sizes |= {"vocab_size": config.vocabulary, "n_positions": config.context}
    ends = {"bos_token_id": None, "eos_token_id": None}  # no token ends the text
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ends)).eval()
    body = theirs.transformer
    body.wte.weight.copy_(model.embedding.weight)
    body.wpe.weight.copy_(model.embedding.positions.table.weight)
    norms = [(body.ln_f, model.final_norm)]
    for their, our in zip(body.h, model.blocks, strict=True):
        norms += [(their.ln_1, our.norm_1), (their.ln_2, our.norm_2)]
        three = (our.attention.query, our.attention.key, our.attention.value)
        for conv, layers in [
            (their.attn.c_attn, three),
            (their.attn.c_proj, [our.attention.output]),
            (their.mlp.c_fc, [our.feed_forward.expand]),
            (their.mlp.c_proj, [our.feed_forward.contract]),
        ]:
            conv.weight.copy_(torch.cat([layer.weight for layer in layers]).T)
            conv.bias.copy_(torch.cat([layer.bias for layer in layers]))
    for their, our in norms:
        their.load_state_dict(our.state_dict())
    return theirs


def contenders(n_tokens: int) -> tuple[dict[str, Callable[[], torch.Tensor]], int]:
    """The cases that are measured, by name, and the bytes of weights that one step reads."""
    torch.manual_seed(0)
    model = our_model()
    theirs = their_model(model)
    prompts = {batch: torch.arange(batch).unsqueeze(1) for batch in BATCHES}

    def ours(batch: int, cache: bool = True) -> torch.Tensor:
        return generate(model, prompts[batch], n_tokens, temperature=0, cache=cache)

    def hugging_face(**options) -> torch.Tensor:
        options |= {"max_new_tokens": n_tokens, "do_sample": False, "use_cache": True}
        mask = torch.ones_like(prompts[1])
        return theirs.generate(prompts[1], attention_mask=mask, pad_token_id=0, **options)

    d_model = model.config.d_model
    n_read = model.n_parameters - (model.config.context - 1) * d_model
    buffer, other = torch.randn(2, n_read // d_model, d_model)
    vector = torch.randn(d_model)
    static = {"cache_implementation": "static", "disable_compile": True}
    named = {
        "no_cache": lambda: ours(1, cache=False),
        "hugging_face": hugging_face,
        "hugging_face_static": lambda: hugging_face(**static),
        "copy": lambda: other.copy_(buffer),
        "read": lambda: torch.mv(buffer, vector),
    }
    named |= {f"cache_{batch}": lambda batch=batch: ours(batch) for batch in BATCHES}
    return named, 4 * n_read


def check_same_tokens(named: dict[str, Callable[[], torch.Tensor]]) -> torch.Tensor:
    """The text of batch 1, after it is found to be everybody's; this warms all up, too."""
    text = named["cache_1"]()
    for name in ("no_cache", "hugging_face", "hugging_face_static"):
        if not named[name]().equal(text):
            raise RuntimeError(f"{name} gives other tokens than our cache.")
    for batch in BATCHES:
        if not named[f"cache_{batch}"]()[:1].equal(text):
            raise RuntimeError(f"a batch of {batch} begins with another text than a batch of 1.")
    return text


def seconds(run: Callable[[], torch.Tensor], name: str) -> float:
    """The time of one run; the short ones are the median of 25."""
    times = []
    for _ in range(25 if name in ("copy", "read") else 1):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return median(times)


def summary(curve: dict[str, list[float]], n_tokens: int, n_bytes: int) -> dict[str, float]:
    """Tokens a second, limits and ratios, from the medians over the rounds."""
    middle = {name: median(values) for name, values in curve.items()}
    result = {}
    for name in ("no_cache", "hugging_face", "hugging_face_static"):
        result[f"{name}_tokens_per_second"] = n_tokens / middle[name]
    for batch in BATCHES:
        result[f"cache_{batch}_tokens_per_second"] = batch * n_tokens / middle[f"cache_{batch}"]
    for name, times_moved in (("copy", 2), ("read", 1)):
        result[f"{name}_bytes_per_second"] = times_moved * n_bytes / middle[name]
        result[f"{name}_limit_tokens_per_second"] = times_moved / middle[name]
        result[f"share_of_{name}_limit"] = middle[name] / times_moved * n_tokens / middle["cache_1"]
    result["share_of_copies"] = middle["copy"] * n_tokens / middle["cache_1"]
    for name in ("no_cache", "hugging_face", "hugging_face_static"):
        result[f"times_{name}"] = middle[name] / middle["cache_1"]
    result["batch_16_over_batch_1"] = 16 * middle["cache_1"] / middle["cache_16"]
    return result


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--tokens", type=int, default=TOKENS)
    given = options.parse_args()
    torch.set_num_threads(THREADS)
    named, n_bytes = contenders(given.tokens)
    text = check_same_tokens(named)
    curve: dict[str, list[float]] = {name: [] for name in named}
    for number in range(given.rounds):
        for name, run in named.items():
            curve[name].append(seconds(run, name))
        faster = curve["hugging_face"][-1] / curve["cache_1"][-1]
        print(f"round {number + 1}: {faster:.2f} times Hugging Face", flush=True)
    result = summary(curve, given.tokens, n_bytes)
    for name, value in result.items():
        print(f"{name:36} {value:.4g}")
    config = SIZES | {
        "wiring": "gpt2", "dtype": "float32", "prompt": 1, "tokens": given.tokens,
        "rounds": given.rounds, "weights_spread": SPREAD, "bytes_read_a_step": n_bytes,
        "distinct_tokens": len(text.unique()), "transformers": transformers.__version__,
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "default"),
        "curve": "seconds of each run, by round; copy and read: the median of 25",
        "same_tokens": "all of batch 1, and the first row of every batch",
    }  # fmt: skip
    log = new_run("generate", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
