"""The list of PyTorch's names in the page, and of those that are missing: read by MicroPython.

`SIGNATURES` says which names there are and what they take; they are computed in math/tensor/.
`MISSING` names others of PyTorch's, each of which gets the same sentence.
"""

# A line is a name with what it takes, and where PyTorch has it: t (torch), m (a method of tensors),
# _ (with _ at its end a method that writes into its tensor), F (torch.nn.functional). The order
# is that of the function in math/tensor/. *shape is a list of whole numbers, or these one by one.
SIGNATURES = """
tm_ abs(input)
tm acos(input)
tm asin(input)
tm atan(input)
tm_ ceil(input)
tm_ cos(input)
tm erf(input)
tm_ exp(input)
tm expm1(input)
tm_ floor(input)
tm_ log(input)
tm log10(input)
tm log1p(input)
tm log2(input)
tm_ neg(input)
tm reciprocal(input)
tmF_ relu(input)
tm_ round(input, decimals=0)
tm rsqrt(input)
tmF_ sigmoid(input)
tm sign(input)
F silu(input)
F softplus(input)
F logsigmoid(input)
F gelu(input, approximate='none')
tm_ sin(input)
tm_ sqrt(input)
tm tan(input)
tmF_ tanh(input)
tm trunc(input)
tm isfinite(input)
tm isinf(input)
tm isnan(input)
tm logical_not(input)
tm bitwise_not(input)
tm_ add(input, other)
tm_ sub(input, other)
tm_ mul(input, other)
tm_ div(input, other, rounding_mode=None)
tm floor_divide(input, other)
tm_ remainder(input, other)
tm_ pow(input, exponent)
tm maximum(input, other)
tm minimum(input, other)
tm eq(input, other)
tm ne(input, other)
tm lt(input, other)
tm le(input, other)
tm gt(input, other)
tm ge(input, other)
tm logical_and(input, other)
tm logical_or(input, other)
tm logical_xor(input, other)
tm bitwise_and(input, other)
tm bitwise_or(input, other)
tm bitwise_xor(input, other)
t where(condition, input, other)
tm_ masked_fill(input, mask, value)
tm_ clamp(input, min=None, max=None)
tm nan_to_num(input, nan=0.0, posinf=None, neginf=None)
tm isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False)
tm equal(input, other)
tm clone(input)
t cat(tensors, dim=0)
t stack(tensors, dim=0)
tm reshape(input, *shape)
m view(input, *shape)
m expand(input, *size)
m repeat(input, *repeats)
tm tile(input, *dims)
tm permute(input, *dims)
tm transpose(input, dim0, dim1)
tm t(input)
tm flatten(input, start_dim=0, end_dim=-1)
tm unflatten(input, dim, sizes)
tm squeeze(input, dim=None)
tm unsqueeze(input, dim)
tm select(input, dim, index)
tm narrow(input, dim, start, length)
tm unbind(input, dim=0)
tm split(input, split_size_or_sections, dim=0)
tm chunk(input, chunks, dim=0)
tm diagonal(input, offset=0, dim1=0, dim2=1)
t diag_embed(input, offset=0)
tm roll(input, shifts, dims=None)
tm flip(input, *dims)
tm repeat_interleave(input, repeats, dim=None)
m contiguous(input)
tm detach(input)
tm_ tril(input, diagonal=0)
tm_ triu(input, diagonal=0)
tm sum(input, dim=None, keepdim=False, dtype=None)
tm mean(input, dim=None, keepdim=False, dtype=None)
tm prod(input, dim=None, keepdim=False, dtype=None)
tm std(input, dim=None, correction=1, keepdim=False)
tm var(input, dim=None, correction=1, keepdim=False)
tm norm(input, p=None, dim=None, keepdim=False)
tm argmax(input, dim=None, keepdim=False)
tm argmin(input, dim=None, keepdim=False)
tm amax(input, dim=None, keepdim=False)
tm amin(input, dim=None, keepdim=False)
tm all(input, dim=None, keepdim=False)
tm any(input, dim=None, keepdim=False)
tm count_nonzero(input, dim=None)
tmF softmax(input, dim, dtype=None)
tmF log_softmax(input, dim, dtype=None)
tm logsumexp(input, dim, keepdim=False)
tm cumsum(input, dim, dtype=None)
tm cumprod(input, dim)
tm argsort(input, dim=-1, descending=False)
tm sort(input, dim=-1, descending=False)
tm topk(input, k, dim=-1, largest=True)
tm median(input, dim=None, keepdim=False)
tm gather(input, dim, index)
tm scatter(input, dim, index, src)
tm index_select(input, dim, index)
tm masked_select(input, mask)
tm nonzero(input)
m index_put_(input, indices, values, accumulate=False)
tm matmul(input, other)
tm mm(input, mat2)
tm bmm(input, mat2)
tm mv(input, vec)
tm dot(input, other)
tm outer(input, vec2)
F linear(input, weight, bias=None)
F one_hot(tensor, num_classes=-1)
F cross_entropy(input, target, ignore_index=-100, reduction='mean')
F nll_loss(input, target, ignore_index=-100, reduction='mean')
F mse_loss(input, target, reduction='mean')
F layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05)
F rms_norm(input, normalized_shape, weight=None, eps=None)
F embedding(input, weight)
F normalize(input, p=2.0, dim=1, eps=1e-12)
F scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, \
scale=None)
t zeros(*size, dtype=None)
t ones(*size, dtype=None)
t empty(*size, dtype=None)
t full(size, fill_value, dtype=None)
t eye(n, m=None, dtype=None)
t arange(start, end=None, step=None, dtype=None)
t linspace(start, end, steps, dtype=None)
t zeros_like(input, dtype=None)
t ones_like(input, dtype=None)
t empty_like(input, dtype=None)
t full_like(input, fill_value, dtype=None)
m new_zeros(input, *size, dtype=None)
m new_ones(input, *size, dtype=None)
m new_full(input, size, fill_value, dtype=None)
t rand(*size, dtype=None, generator=None)
t randn(*size, dtype=None, generator=None)
t randperm(n, generator=None, dtype=None)
m normal_(input, mean=0.0, std=1.0, generator=None)
m uniform_(input, from_=0.0, to=1.0, generator=None)
m backward(input, gradient=None, retain_graph=None, create_graph=None)
m retain_grad(input)
m requires_grad_(input, requires_grad=True)
m numel(input)
m is_contiguous(input)
m stride(input)
"""

# Other names for the same, in torch, as a method or in torch.nn.functional.
SAME = {
    "absolute": "abs", "multiply": "mul", "subtract": "sub", "divide": "div", "negative": "neg",
    "concat": "cat", "concatenate": "cat", "swapaxes": "transpose", "greater": "gt", "less": "lt",
    "clip": "clamp", "true_divide": "div", "arccos": "acos", "arcsin": "asin", "arctan": "atan",
    "greater_equal": "ge", "less_equal": "le", "not_equal": "ne", "swapdims": "transpose",
    "ger": "outer", "ravel": "flatten",
}  # fmt: skip

# Known to PyTorch, not to this page. "torch." and so on: where it would be asked for.
MISSING = """
torch: acosh addcdiv addcmul addmm adjoint aminmax angle argwhere asinh atanh atleast_1d
torch: atleast_2d autocast baddbmm bernoulli bfloat16 bilinear broadcast_tensors broadcast_to
torch: bucketize cartesian_prod cdist celu cholesky column_stack combinations compile complex
torch: complex64 conj conv1d corrcoef cosh cosine_similarity cov cross cuda cummax cummin
torch: cumulative_trapezoid deg2rad det diagflat diff digamma dist dropout dsplit dstack erfc
torch: exp2 fft fix fliplr flipud float16 float_power fmax fmin fmod frac from_numpy func gcd
torch: gradient half histc histogram hsplit hstack hypot i0 imag index_copy index_fill index_put
torch: inner int16 int32 int8 inverse is_complex is_nonzero isin isneginf isposinf isreal jit
torch: kl_div kron kthvalue lcm ldexp lerp lgamma load logaddexp logcumsumexp logdet logit
torch: logspace masked_scatter matrix_exp meshgrid mode moveaxis movedim mps msort multinomial
torch: nanmean nanmedian nanquantile nansum nested nextafter normal optim pairwise_distance
torch: pinverse polar polygamma positive qr quantile rad2deg real renorm rot90 row_stack rsub
torch: save scatter_add scatter_reduce searchsorted selu sgn signbit sinc sinh sparse std_mean
torch: stft take take_along_dim tensor_split tensordot trapezoid trapz tril_indices triu_indices
torch: uint8 unique_consecutive unravel_index utils vander var_mean vdot view_as_complex
torch: view_as_real vmap vsplit vstack xlogy
Tensor: apply_ as_strided bernoulli_ bfloat16 byte char cpu cuda exponential_
Tensor: half index_add_ int is_cuda map_ put_ register_hook scatter_add_
Tensor: scatter_reduce short to_sparse unfold unique_consecutive
nn.functional: adaptive_avg_pool1d avg_pool1d avg_pool2d batch_norm binary_cross_entropy
nn.functional: conv1d conv2d cosine_similarity elu glu
nn.functional: group_norm gumbel_softmax huber_loss interpolate kl_div leaky_relu
nn.functional: max_pool2d mish multi_head_attention_forward selu smooth_l1_loss softmin unfold
linalg: cholesky cond det eig eigh eigvals eigvalsh inv lstsq lu matrix_exp
linalg: matrix_rank multi_dot pinv qr slogdet solve
autograd: Function
autograd.functional: hessian hvp jvp vhp vjp
nn: attention BatchNorm1d Conv1d Conv2d CrossEntropyLoss GELU GRU LSTM
nn: MSELoss MultiheadAttention ParameterList RNN Sigmoid Softmax Tanh Transformer TransformerDecoder
nn: TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer utils
special: bessel_j0 digamma erf erfc erfinv exp2 expit expm1 gammaln i0 log1p log_ndtr log_softmax
special: logit logsumexp ndtr ndtri psi round sinc softmax xlog1py xlogy zeta
"""
