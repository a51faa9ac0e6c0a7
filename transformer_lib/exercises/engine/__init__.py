"""What every check shares: running an answer, comparing its result, and naming its mistake.

runner     `Exercise` and `Case`: how to write a check
calling    one call of an answer, from which an outcome always comes back
guarding   what an answer may not do, and what is put back after it
comparing  is this the right result, and if not, where does it differ?
verdict    what the reader sees
"""
