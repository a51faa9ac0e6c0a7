"""The library behind the book *Attention You Can Touch*."""
