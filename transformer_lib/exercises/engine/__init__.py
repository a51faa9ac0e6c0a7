"""The engine of all checks: run an answer, compare its result, name its mistake and its line.

runner     `Exercise`, `Repair` and `Case`: how to write a check, and in which order it looks
choosing   `Choice`: a letter, a line number, or several, with a sentence for each wrong one
calling    one call of an answer, which always ends in an outcome
guarding   keeps the notebook alive and unchanged while an answer runs
comparing  results as plain values: is one right, and if not, where does it differ?
isolating  where changed copies of an answer run, without effects beyond themselves
mending    the one change, at its line, that makes the answer right
recording  the line at which its values leave those of the right computation
observing  what a wrong value has to do with the right one
verdict    the sentence that the reader sees
"""
