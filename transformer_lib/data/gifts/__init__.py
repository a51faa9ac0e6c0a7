"""Gifts: short stories about who gives what to whom, in a language whose entropy is known exactly.

``grammar`` draws stories and computes their probabilities; ``world`` knows what may be said next.
"""

from .grammar import PLAIN, Grammar, Question
from .world import World

__all__ = ["PLAIN", "Grammar", "Question", "World"]
