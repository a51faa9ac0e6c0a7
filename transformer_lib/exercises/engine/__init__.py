"""The engine of all checks: run an answer, compare its result, name its mistake.

runner     `Exercise` and `Case`: how to write a check
choosing   `Choice`: a letter, a line number, or several, with a sentence for each wrong one
repairing  `Repair`: a broken function is given, the answer is the mended one
calling    one call of an answer, which always ends in an outcome
guarding   keeps the notebook alive and unchanged while an answer runs
comparing  is this the right result, and if not, where does it differ?
verdict    the sentence that the reader sees
"""
