"""Checks of the reader's own answers: a module for each chapter, a check for each exercise.

    from transformer_lib.exercises.self_attention import check_one_output

    check_one_output(my_function)     # shows ✓, ✗ with the mistake named, or ○ not attempted yet
    help(check_one_output)            # what is asked

A check never raises because of an answer. `transformer_lib.exercises.engine.runner` says how to
write one.
"""
