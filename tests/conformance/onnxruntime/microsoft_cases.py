"""Operators of com.microsoft."""

import numpy as np
from onnx import helper
f = np.float32


def N(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain='com.microsoft', **attributes)


def add(suite):
    case = suite.case
    r = np.random.RandomState(0)
    q = lambda *s: r.randint(0, 256, s).astype(np.uint8)
    qs = lambda *s: r.randint(-128, 128, s).astype(np.int8)
    S = lambda v: np.array(v, f)
    for tag, g, t, z in (('u8', q, np.uint8, (128, 120, 7)), ('s8', qs, np.int8, (3, -20, 10))):
        zz = [np.array(v, t) for v in z]
        T = 2 if t == np.uint8 else 3
        i = {'as': S(0.02), 'az': zz[0], 'bs': S(0.03), 'bz': zz[1], 'cs': S(0.05), 'cz': zz[2]}
        case('add_' + tag, [N('QLinearAdd', ['a', 'as', 'az', 'b', 'bs', 'bz', 'cs', 'cz'], ['y'])], {'a': g(2, 3, 4), 'b': g(4)}, i, types=[T])
        case('mul_' + tag, [N('QLinearMul', ['a', 'as', 'az', 'b', 'bs', 'bz', 'cs', 'cz'], ['y'])], {'a': g(2, 3, 4), 'b': g(3, 1)}, i, types=[T])
        case('sigmoid_' + tag, [N('QLinearSigmoid', ['a', 'as', 'az', 'cs2', 'cz'], ['y'])], {'a': g(2, 30)}, dict(i, cs2=S(1 / 256)), types=[T])
        case('leaky_' + tag, [N('QLinearLeakyRelu', ['a', 'as', 'az', 'cs', 'cz'], ['y'], alpha=0.3)], {'a': g(2, 30)}, i, types=[T])
        case('softmax_' + tag, [N('QLinearSoftmax', ['a', 'as', 'az', 'cs2', 'cz0'], ['y'], axis=1, opset=13)], {'a': g(2, 5, 3)}, dict(i, cs2=S(1 / 256), cz0=np.array(0 if t == np.uint8 else -128, t)), types=[T])
        case('softmax12_' + tag, [N('QLinearSoftmax', ['a', 'as', 'az', 'cs2', 'cz0'], ['y'], axis=1, opset=11)], {'a': g(2, 5, 3)}, dict(i, cs2=S(1 / 256), cz0=np.array(0 if t == np.uint8 else -128, t)), types=[T])
        case('concat_' + tag, [N('QLinearConcat', ['cs', 'cz', 'a', 'as', 'az', 'b', 'bs', 'bz'], ['y'], axis=1)], {'a': g(2, 3, 4), 'b': g(2, 2, 4)}, i, types=[T])
        case('avg_' + tag, [N('QLinearAveragePool', ['a', 'as', 'az', 'cs3', 'cz'], ['y'], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])], {'a': g(1, 2, 7, 7)}, dict(i, cs3=S(0.017)), types=[T])
        case('avgpad_' + tag, [N('QLinearAveragePool', ['a', 'as', 'az', 'cs3', 'cz'], ['y'], kernel_shape=[2, 3], pads=[1, 0, 0, 1], count_include_pad=1)], {'a': g(1, 2, 6, 7)}, dict(i, cs3=S(0.017)), types=[T])
        case('avglast_' + tag, [N('QLinearAveragePool', ['a', 'as', 'az', 'cs3', 'cz'], ['y'], kernel_shape=[2, 2], channels_last=1)], {'a': g(1, 5, 6, 3)}, dict(i, cs3=S(0.017)), types=[T])
        case('gap_' + tag, [N('QLinearGlobalAveragePool', ['a', 'as', 'az', 'cs3', 'cz'], ['y'])], {'a': g(2, 3, 5, 6)}, dict(i, cs3=S(0.013)), types=[T])
        case('gaplast_' + tag, [N('QLinearGlobalAveragePool', ['a', 'as', 'az', 'cs3', 'cz'], ['y'], channels_last=1)], {'a': g(2, 5, 6, 3)}, dict(i, cs3=S(0.013)), types=[T])
        case('where_' + tag, [N('QLinearWhere', ['c', 'a', 'as', 'az', 'b', 'bs', 'bz', 'cs', 'cz'], ['y'])], {'c': r.rand(2, 3) < 0.5, 'a': g(2, 3), 'b': g(2, 3)}, i, types=[T])
        case('quant_' + tag, [N('QuantizeLinear', ['x', 'cs', 'cz'], ['y'])], {'x': r.randn(3, 4).astype(f) * 4}, i, types=[T])
        case('dequant_' + tag, [N('DequantizeLinear', ['a', 'as', 'az'], ['y'])], {'a': g(3, 4)}, i)
        w = {'w': qs(6, 4), 'ws': (r.rand(4) * 0.02 + 0.01).astype(f), 'wz': np.zeros(4, np.int8), 'c': r.randint(-2000, 2000, 4).astype(np.int32)}
        case('qgemm_' + tag, [N('QGemm', ['a', 'as', 'az', 'w', 'ws', 'wz', 'c', 'ys', 'cz'], ['y'])], {'a': g(3, 6)}, dict(i, ys=S(0.9), **w), types=[T])
        case('qgemmt_' + tag, [N('QGemm', ['a', 'as', 'az', 'wt', 'ws1', 'wz1', '', 'ys', 'cz'], ['y'], alpha=0.5, transB=1)], {'a': g(3, 6)}, dict(i, ys=S(0.4), wt=qs(4, 6), ws1=S(0.02), wz1=np.array(0, np.int8)), types=[T])
        case('qgemmf_' + tag, [N('QGemm', ['a', 'as', 'az', 'w', 'ws', 'wz', 'c'], ['y'])], {'a': g(3, 6)}, dict(i, **w))
        case('mmf_' + tag, [N('MatMulIntegerToFloat', ['a', 'w', 'as', 'ws', 'az', 'wz', 'bb'], ['y'])], {'a': g(3, 6)}, dict(i, bb=r.randn(4).astype(f), **w))
    x = r.randn(2, 3, 8).astype(f)
    case('dqmm', [N('DynamicQuantizeMatMul', ['x', 'w', 'ws', 'wz', 'b'], ['y'])], {'x': x}, {'w': q(8, 5), 'ws': (r.rand(5) * 0.02 + 0.01).astype(f), 'wz': q(5), 'b': r.randn(5).astype(f)})
    case('fmm', [N('FusedMatMul', ['x', 'w'], ['y'], alpha=0.25, transB=1)], {'x': x}, {'w': r.randn(5, 8).astype(f)})
    case('fmma', [N('FusedMatMul', ['x', 'w'], ['y'], transA=1)], {'x': x}, {'w': r.randn(2, 3, 5).astype(f)})
    im = r.randn(1, 2, 6, 6).astype(f)
    cw = r.randn(3, 2, 3, 3).astype(f)
    cb = r.randn(3).astype(f)
    for a, p in (('Relu', None), ('LeakyRelu', [0.2]), ('Tanh', None), ('Sigmoid', None), ('Clip', [-0.5, 1.5]), ('HardSigmoid', [0.3, 0.4])):
        k = {'activation': a}
        if p:
            k['activation_params'] = p
        case('fconv_' + a.lower(), [N('FusedConv', ['x', 'w', 'b'], ['y'], kernel_shape=[3, 3], pads=[1, 1, 1, 1], **k)], {'x': im}, {'w': cw, 'b': cb})
    case('fconvz', [N('FusedConv', ['x', 'w', 'b', 'z'], ['y'], kernel_shape=[3, 3], pads=[1, 1, 1, 1], activation='Relu')], {'x': im, 'z': r.randn(1, 3, 6, 6).astype(f)}, {'w': cw, 'b': cb})
    case('fgemm', [N('FusedGemm', ['x', 'w', 'b'], ['y'], activation='LeakyRelu', activation_alpha=0.1, alpha=0.5, beta=2.0, transB=1)], {'x': x[0]}, {'w': r.randn(5, 8).astype(f), 'b': r.randn(5).astype(f)})
    case('gelu', [N('Gelu', ['x'], ['y'])], {'x': x})
    case('biasgelu', [N('BiasGelu', ['x', 'b'], ['y'])], {'x': x}, {'b': r.randn(8).astype(f)})
    case('fastgelu', [N('FastGelu', ['x', 'b'], ['y'])], {'x': x}, {'b': r.randn(8).astype(f)})
    case('fastgelu1', [N('FastGelu', ['x'], ['y'])], {'x': x})
    case('quickgelu', [N('QuickGelu', ['x'], ['y'], alpha=1.5)], {'x': x})
    g8 = dict(g=r.randn(8).astype(f), b=r.randn(8).astype(f), bias=r.randn(8).astype(f))
    sk = r.randn(2, 3, 8).astype(f)
    case('skipln', [N('SkipLayerNormalization', ['x', 's', 'g', 'b', 'bias'], ['y', '', '', 'sum'], epsilon=1e-05)], {'x': x, 's': sk}, g8, outputs=('y', 'sum'))
    case('skipln0', [N('SkipLayerNormalization', ['x', 's', 'g'], ['y'])], {'x': x, 's': sk}, {'g': g8['g']})
    case('skiprms', [N('SkipSimplifiedLayerNormalization', ['x', 's', 'g', 'bias'], ['y', '', '', 'sum'], epsilon=1e-05)], {'x': x, 's': sk}, {'g': g8['g'], 'bias': g8['bias']}, outputs=('y', 'sum'))
    case('rms', [helper.make_node('SimplifiedLayerNormalization', ['x', 'g'], ['y'], epsilon=1e-05, axis=-1)], {'x': x}, {'g': g8['g']})
    K, NN, B = (40, 6, 16)
    nb = (K + B - 1) // B
    x2 = r.randn(3, K).astype(f)
    case('nbits', [N('MatMulNBits', ['x', 'w', 's', 'z'], ['y'], K=K, N=NN, bits=4, block_size=B)], {'x': x2}, {'w': q(NN, nb, B // 2), 's': (r.rand(NN * nb) * 0.1 + 0.01).astype(f), 'z': q(NN * ((nb + 1) // 2))})
    case('nbits_noz', [N('MatMulNBits', ['x', 'w', 's'], ['y'], K=K, N=NN, bits=4, block_size=B)], {'x': x2}, {'w': q(NN, nb, B // 2), 's': (r.rand(NN * nb) * 0.1 + 0.01).astype(f)})
    case('nbits8', [N('MatMulNBits', ['x', 'w', 's', 'z'], ['y'], K=K, N=NN, bits=8, block_size=B)], {'x': x2}, {'w': q(NN, nb, B), 's': (r.rand(NN * nb) * 0.1 + 0.01).astype(f), 'z': q(NN * nb)})
    hidden = r.randn(2, 4, 6).astype(f)
    held = dict(w=r.randn(6, 18).astype(f), b=r.randn(18).astype(f))
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    case('self_attention', [N('Attention', ['x', 'w', 'b'], ['y'], num_heads=3)], {'x': hidden}, held)
    case('self_attention_mask', [N('Attention', ['x', 'w', 'b', 'm'], ['y'], num_heads=2, scale=0.3)], {'x': hidden, 'm': mask}, held)
    case('self_attention_causal', [N('Attention', ['x', 'w', 'b'], ['y'], num_heads=2, unidirectional=1)], {'x': hidden}, held)
    case('self_attention_sizes', [N('Attention', ['x', 'w', 'b', '', '', 'a'], ['y'], num_heads=2, qkv_hidden_sizes=[4, 4, 10])], {'x': hidden, 'a': r.randn(1, 2, 4, 4).astype(f)}, held)
    keys, values = (r.randn(2, 5, 6).astype(f), r.randn(2, 5, 8).astype(f))
    heads = {'q': hidden, 'k': keys, 'v': values}
    case('multi_head_attention', [N('MultiHeadAttention', ['q', 'k', 'v'], ['y'], num_heads=2)], heads)
    case('multi_head_attention_bias', [N('MultiHeadAttention', ['q', 'k', 'v', 'b'], ['y'], num_heads=2)], heads, {'b': r.randn(20).astype(f)})
    case('multi_head_attention_mask', [N('MultiHeadAttention', ['q', 'k', 'v', '', 'm', 'a'], ['y'], num_heads=2)], {**heads, 'm': np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32), 'a': r.randn(2, 2, 4, 5).astype(f)})
