"""Checks of the reader's own answers: one module a chapter, one `check_<name>` an exercise.

    from transformer_lib.exercises.self_attention import check_one_output

    check_one_output(my_function)     # shows ✓, ✗ with the mistake named, or ○ not attempted yet

A check never raises on an answer. How to write one: `transformer_lib.exercises.runner`.
"""
