"""Random texts as GPT-2's tokens, by the library `tokenizers`, for tests/js/math/gpt2.test.js.

It gets GPT-2's merges and cuts words by its own rule for GPT-2.
"""

import base64
import random

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from transformer_lib.widgets.text_cutter.vocabulary import gpt2_merges

TEXTS = [
    "mary gave roses to susan",
    "ಮೇರಿ ಸುಸಾನ್‌ಗೆ ಗುಲಾಬಿಗಳನ್ನು ಕೊಟ್ಟಳು.",
    "I'll say we'd've known it's 1234567890, don't 'RE' 've",
    "3.14159 + 2025 = ²½ Ⅷ ٣٤",
    "👩‍👩‍👧‍👦🏳️‍🌈 “naïve” \t\u3000x",
    "   three   blanks \n\n  and ends  ",
    "\x85next\x1cline\ufeff\u200b\u2028x\u180e ",
    "<|endoftext|> is only text",
    "a" * 300,
    "",
]
ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz    ",
    "the of and in ing er to ",
    "aA1 '\n",
    "0123456789.,- ",
    "ಮೇರಿ ಸುಸಾನ್‌ಗೆ",
    "éßñ漢字かな한글Ж ",
    "👩🏽‍🚀🎉 x",
    " \t\n\r\x0b\x0c\x1c\x85\xa0\u2003\u3000\ufeffz",
    "'strevmldSTREVMLD ",
    "!?()[]{}#$%&*+/<=>@\\^_`|~ :;",
]


def fixtures() -> dict[str, object]:
    drawn = random.Random(0)
    texts = [
        *TEXTS,
        *(
            "".join(drawn.choices(alphabet, k=drawn.randint(1, 60)))
            for alphabet in [*ALPHABETS, "".join(ALPHABETS)]
            for _ in range(40)
        ),
    ]
    merges = gpt2_merges()
    theirs = gpt2_by_tokenizers(merges)
    return {
        "merges": base64.b64encode(merges).decode("ascii"),
        "cases": [{"text": text, "ids": theirs.encode(text).ids} for text in texts],
    }


def gpt2_by_tokenizers(merges: bytes) -> Tokenizer:
    # Each byte as that library writes it. In the order of these characters they have GPT-2's ids.
    letters = sorted(pre_tokenizers.ByteLevel.alphabet(), key=ord)
    pairs = np.frombuffer(merges, "<u2").reshape(-1, 2).tolist()
    for left, right in pairs:
        letters.append(letters[left] + letters[right])
    named = [(letters[left], letters[right]) for left, right in pairs]
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(letters)}, named))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return tokenizer
