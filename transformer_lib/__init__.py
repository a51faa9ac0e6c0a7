"""The library behind the book *Attention You Can Touch*.

Import what you need from its module: ``from transformer_lib.attention import attention``. The
package itself imports nothing, so that it costs nothing.
"""
