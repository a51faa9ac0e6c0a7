"""The engine of all checks: run an answer, compare its result, name its mistake.

runner     `Exercise` and `Case`: how to write a check
choosing   `Choice`: a letter, a line number, or several, with a sentence for each wrong one
repairing  `Repair`: a broken function is given, the answer is the mended one
calling    one call of an answer, which always ends in an outcome
guarding   keeps the notebook alive and unchanged while an answer runs
values     what an answer returns, as plain values without code of its own
comparing  is this the right result, and if not, where does it differ?
naming     the cause of what no sentence of an exercise names: it asks
  supposing  right for other arguments: transposed, one less, swapped?
  causes     an order, a step too many?
  factors    a factor, an amount; and its name in the sizes of the case
  weights    does the right axis sum to 1, has a hidden cell weight, how hard is the softmax?
  masks      too much, too little, inverted, one place off?
  shapes     an axis of size 1, a sum that is missing, a size that never changes?
  relations  how does the result relate to the arguments?
  rewiring   right with another softmax?
  probing    an argument that is ignored, a result that changes by itself?
  trials     the cases that they look at, and when two results count as the same
building   which of the steps that lead to a result is done otherwise, for an exercise's `also`
verdict    the sentence that the reader sees
"""
