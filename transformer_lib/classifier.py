"""An encoder that reads a whole text and gives one answer out of a few."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.blocks import PreNorm
from transformer_lib.layers import Embedding, FeedForward, LayerNorm
from transformer_lib.positions import LearnedPositions


class Classifier(nn.Module):
    """Embedding, blocks without a mask, and a score for each answer, read at the last token.

    The scores are a matrix times the stream itself: there is no norm before it, so that what each
    part adds to the stream adds to the scores. (Deep pre-norm models have one more norm there.)

    Args:
        vocabulary: number of token ids.
        tokens: how many tokens a text has at most.
        d_model, n_heads, n_layers: width, heads and number of the blocks.
        n_classes: how many answers there are.
        d_ff: width of the feed-forward layers, 4 · d_model if None.

    Raises:
        ValueError: a size that does not make a model.

    Source: the encoder of Vaswani et al. 2017, section 3.1, with the norms of Radford et al. 2019;
    one token's vector as the answer to a question about all: Devlin et al. 2019, section 3.

    >>> model = Classifier(vocabulary=11, tokens=5, d_model=8, n_heads=2, n_classes=3)
    >>> model(torch.zeros(7, 5, dtype=torch.int64)).shape
    torch.Size([7, 3])
    """

    def __init__(
        self,
        vocabulary: int,
        tokens: int,
        d_model: int,
        n_heads: int,
        n_classes: int,
        *,
        n_layers: int = 1,
        d_ff: int | None = None,
    ):
        super().__init__()
        checks.require_count(n_classes, "n_classes")
        checks.require_count(n_layers, "n_layers")
        checks.require_count(tokens, "tokens")
        positions = LearnedPositions(tokens, d_model)
        self.embedding = Embedding(vocabulary, d_model, positions=positions)
        self.blocks = nn.ModuleList(
            PreNorm(
                MultiHeadAttention(d_model, n_heads),
                FeedForward(d_model, d_ff, activation="gelu_tanh"),
                LayerNorm(d_model),
                LayerNorm(d_model),
            )
            for _ in range(n_layers)
        )
        self.head = nn.Linear(d_model, n_classes)
        for table in (self.embedding.weight, positions.table.weight):
            nn.init.normal_(table, std=0.3)  # small beside what the blocks will add

    def forward(self, ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch n_classes"]:
        """Scores; a softmax makes probabilities of them.

        Raises:
            ValueError: ids that are not ``[batch, tokens]``, one beyond the vocabulary, more tokens
                than the model reads, another device.
            TypeError: ids that are not integers.
        """
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, -1])
