"""Operators of the default domain that the suites of ONNX 1.12 do not know, and graphs inside graphs."""

import numpy as np
from onnx import TensorProto, helper

f = np.float32
N = helper.make_node


def graph(nodes, inputs, outputs):
    port = lambda name, kind: helper.make_tensor_value_info(name, kind, None if kind == TensorProto.FLOAT else [])
    return helper.make_graph(nodes, 'inner', [port(*i) for i in inputs], [port(*o) for o in outputs])


def add_attention(suite, r):
    q, k, v = [r.randn(2, 3, n, 8).astype(f) for n in (4, 6, 6)]
    wide = dict(q=r.randn(2, 4, 24).astype(f), k=r.randn(2, 6, 12).astype(f), v=r.randn(2, 6, 18).astype(f))
    plain = dict(q=q, k=k, v=v)
    suite.case('attention', [N('Attention', ['q', 'k', 'v'], ['y'])], plain, opset=23)
    suite.case('attention_scale_cap', [N('Attention', ['q', 'k', 'v'], ['y'], scale=0.3, softcap=2.0)], plain, opset=23)
    suite.case('attention_causal', [N('Attention', ['q', 'k', 'v'], ['y'], is_causal=1)], plain, opset=23)
    suite.case('attention_mask', [N('Attention', ['q', 'k', 'v', 'm'], ['y'])], dict(plain, m=r.randn(4, 6).astype(f)), opset=23)
    mask = r.rand(2, 1, 4, 6) < 0.7
    mask[..., 0] = True
    suite.case('attention_bool_mask', [N('Attention', ['q', 'k', 'v', 'm'], ['y'])], dict(plain, m=mask), opset=23)
    suite.case('attention_groups', [N('Attention', ['q', 'k', 'v'], ['y'], q_num_heads=4, kv_num_heads=2)], wide, opset=23)
    past = dict(plain, pk=r.randn(2, 3, 5, 8).astype(f), pv=r.randn(2, 3, 5, 8).astype(f))
    suite.case('attention_past', [N('Attention', ['q', 'k', 'v', '', 'pk', 'pv'], ['y', 'nk', 'nv'])], past, outputs=('y', 'nk', 'nv'), opset=23)
    for name, shape, more in (('4d', (2, 3, 4, 8), {}), ('3d', (2, 4, 24), {'num_heads': 3})):
        for interleaved in (0, 1):
            suite.case(f'rotary_{name}_{interleaved}', [N('RotaryEmbedding', ['x', 'c', 's', 'p'], ['y'], interleaved=interleaved, **more)],
                       dict(x=r.randn(*shape).astype(f), p=r.randint(0, 9, (2, 4))), dict(c=r.randn(9, 4).astype(f), s=r.randn(9, 4).astype(f)), opset=23)
    suite.case('rotary_part', [N('RotaryEmbedding', ['x', 'c', 's'], ['y'], rotary_embedding_dim=4)],
               dict(x=r.randn(2, 3, 4, 8).astype(f)), dict(c=r.randn(2, 4, 2).astype(f), s=r.randn(2, 4, 2).astype(f)), opset=23)
    suite.case('rms_norm', [N('RMSNormalization', ['x', 'w'], ['y'], axis=1, epsilon=0.01)], dict(x=q), dict(w=r.randn(3, 4, 8).astype(f)), opset=23)
    suite.case('tensor_scatter', [N('TensorScatter', ['x', 'u', 'i'], ['y'])], dict(x=r.randn(2, 3, 6, 4).astype(f), u=r.randn(2, 3, 2, 4).astype(f)),
               dict(i=np.array([1, 4])), opset=24)
    suite.case('tensor_scatter_circular', [N('TensorScatter', ['x', 'u', 'i'], ['y'], mode='circular')],
               dict(x=r.randn(2, 3, 6, 4).astype(f), u=r.randn(2, 3, 2, 4).astype(f)), dict(i=np.array([5, 4])), opset=24)
    suite.case('swish', [N('Swish', ['x'], ['y'], alpha=1.5)], dict(x=q), opset=24)


def add_images(suite, r):
    x = r.randn(1, 2, 7, 8).astype(f)
    for ceil in (0, 1):
        for pads in ([0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1]):
            for counted in (0, 1):
                suite.case(f'average_pool_{ceil}{sum(pads)}{counted}', [N('AveragePool', ['x'], ['y'], kernel_shape=[3, 2], strides=[2, 2], pads=pads, ceil_mode=ceil,
                           dilations=[1, 2], count_include_pad=counted)], dict(x=x), opset=19)
    suite.case('lp_pool', [N('LpPool', ['x'], ['y'], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 0, 1], p=3)], dict(x=x), opset=18)
    suite.case('lp_pool_1d', [N('LpPool', ['x'], ['y'], kernel_shape=[3], auto_pad='SAME_UPPER', strides=[2])], dict(x=x[0]), opset=18)
    suite.case('global_lp_pool', [N('GlobalLpPool', ['x'], ['y'], p=1)], dict(x=x), opset=18)
    suite.case('col2im', [N('Col2Im', ['x', 's', 'k'], ['y'], pads=[1, 0, 0, 1], strides=[2, 1], dilations=[1, 2])], dict(x=r.randn(1, 12, 18).astype(f)),
               dict(s=np.array([6, 7]), k=np.array([2, 2])), opset=18)
    suite.case('center_crop_pad', [N('CenterCropPad', ['x', 's'], ['y'], axes=[-2, 3])], dict(x=x), dict(s=np.array([4, 11])), opset=18)
    for corners in (0, 1):
        suite.case(f'affine_grid_{corners}', [N('AffineGrid', ['t', 's'], ['y'], align_corners=corners)], dict(t=r.randn(2, 2, 3).astype(f)), dict(s=np.array([2, 3, 4, 5])), opset=20)
        suite.case(f'affine_grid_3d_{corners}', [N('AffineGrid', ['t', 's'], ['y'], align_corners=corners)], dict(t=r.randn(1, 3, 4).astype(f)), dict(s=np.array([1, 1, 2, 3, 4])), opset=20)
    grid = r.rand(1, 2, 3, 4, 3).astype(f) * 2.4 - 1.2
    suite.case('grid_sample_3d', [N('GridSample', ['x', 'g'], ['y'], mode='linear', padding_mode='border')], dict(x=r.randn(1, 2, 4, 5, 6).astype(f), g=grid), opset=20)


def add_integers(suite, r):
    a, b = r.randint(-1000, 1000, (2, 5)).astype(np.int32), r.randint(-1000, 1000, (5,)).astype(np.int32)
    for name in ('And', 'Or', 'Xor'):
        suite.case(f'bitwise_{name.lower()}', [N('Bitwise' + name, ['a', 'b'], ['y'])], dict(a=a, b=b), types=[6], opset=18)
    suite.case('bitwise_not', [N('BitwiseNot', ['a'], ['y'])], dict(a=a), types=[6], opset=18)


def add_control(suite, r):
    x = r.randn(3, 4).astype(f)
    i64, boolean, real = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
    half = graph([N('Mul', ['x', 'w'], ['h'])], [], [('h', real)])
    rest = graph([N('Neg', ['x'], ['n'])], [], [('n', real)])
    choice = [N('ReduceSum', ['x'], ['s'], keepdims=0), N('Greater', ['s', 'zero'], ['c']),
              N('If', ['c'], ['y'], then_branch=half, else_branch=rest)]
    for name, value in (('then', np.abs(x)), ('else', -np.abs(x))):
        suite.case(f'if_{name}', choice, dict(x=value), dict(zero=f(0), w=f(0.5)))
    # x, doubled until the sum is large or the trips are over, each step collected; a loop inside a branch of it.
    body = graph([N('Add', ['v', 'v'], ['twice']), N('ReduceSum', ['twice'], ['total'], keepdims=0), N('Less', ['total', 'limit'], ['go']),
                  N('Cast', ['i'], ['step'], to=1), N('Add', ['twice', 'step'], ['out'])],
                 [('i', i64), ('c', boolean), ('v', real)], [('go', boolean), ('twice', real), ('out', real)])
    for name, trips, limit in (('limit', 100, 300), ('trips', 3, 1e9), ('none', 0, 1e9)):
        suite.case(f'loop_{name}', [N('Loop', ['m', '', 'x'], ['y', 'all'], body=body)], dict(x=np.abs(x), m=np.array(trips)), dict(limit=f(limit)), outputs=('y', 'all')[:1 if trips == 0 else 2])
    inner = graph([N('Mul', ['w', 'x'], ['grown']), N('Identity', ['c2'], ['go2'])], [('i2', i64), ('c2', boolean), ('w', real)], [('go2', boolean), ('grown', real)])
    outer = graph([N('Loop', ['three', '', 'v'], ['power'], body=inner), N('Identity', ['c'], ['go'])], [('i', i64), ('c', boolean), ('v', real)], [('go', boolean), ('power', real)])
    suite.case('loop_in_loop', [N('Loop', ['m', '', 'x'], ['y'], body=outer)], dict(x=x, m=np.array(2)), dict(three=np.array(3)))
    suite.case('loop_in_loop_written', [N('Loop', ['two', '', 'x'], ['y'], body=outer)], dict(x=x), dict(three=np.array(3), two=np.array(2)))
    # A recurrent layer as Scan, read backwards.
    cell = graph([N('MatMul', ['row', 'w'], ['a']), N('Add', ['a', 'h'], ['b']), N('Tanh', ['b'], ['next']), N('Identity', ['next'], ['seen'])],
                 [('h', real), ('row', real)], [('next', real), ('seen', real)])
    suite.case('scan', [N('Scan', ['h0', 'x'], ['y', 'all'], body=cell, num_scan_inputs=1, scan_input_axes=[0], scan_input_directions=[1], scan_output_axes=[1])],
               dict(x=x), dict(h0=np.zeros(4, f), w=r.randn(4, 4).astype(f)), outputs=('y', 'all'))
    suite.case('sequences', [N('SplitToSequence', ['x', 'sizes'], ['s'], axis=1), N('SequenceAt', ['s', 'one'], ['p']), N('SequenceErase', ['s', 'one'], ['e']),
                             N('SequenceInsert', ['e', 'p'], ['i']), N('SequenceLength', ['i'], ['n']), N('ConcatFromSequence', ['i'], ['y'], axis=1)],
               dict(x=x), dict(sizes=np.array([1, 2, 1]), one=np.array(1)), outputs=('y', 'n'), types=[1, 7])
    suite.case('sequence_squeezed', [N('SplitToSequence', ['x'], ['s'], axis=0, keepdims=0), N('ConcatFromSequence', ['s'], ['y'], axis=-1, new_axis=1)], dict(x=x))
    grow = graph([N('Mul', ['x', 'step'], ['part']), N('SequenceInsert', ['s', 'part'], ['more']), N('Identity', ['c'], ['go']), ], [('i', i64), ('c', boolean)], [('go', boolean)])
    grow.node.insert(0, N('Cast', ['i'], ['step'], to=1))
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    grow.input.append(helper.make_value_info('s', kind))
    grow.output.append(helper.make_value_info('more', kind))
    suite.case('sequence_in_loop', [N('SequenceEmpty', [], ['s0'], dtype=1), N('Loop', ['m', '', 's0'], ['s'], body=grow), N('ConcatFromSequence', ['s'], ['y'], axis=0)],
               dict(x=x, m=np.array(3)))


def packed(name, kind, shape, data):
    tensor = TensorProto(name=name, data_type=kind, dims=shape, raw_data=bytes(int(value) for value in data))
    return tensor


def add_narrow(suite, r):
    """Weights of 4 bits and 8-bit floats, quantisation to 16 bits."""
    uint4, int4, e4m3, e5m2 = 21, 22, 17, 19
    for name, kind in (('uint4', uint4), ('int4', int4)):
        weight = packed('w', kind, [6, 5], r.randint(0, 256, 15))
        suite.case(f'dequantize_{name}', [N('DequantizeLinear', ['w', 's'], ['d'], axis=1), N('Add', ['d', 'x'], ['y'])], dict(x=np.zeros((6, 5), f)),
                   dict(s=r.rand(5).astype(f)), tensors=[weight], opset=21)
        suite.case(f'dequantize_{name}_blocks', [N('DequantizeLinear', ['w', 's', 'z'], ['d'], axis=0, block_size=2), N('Add', ['d', 'x'], ['y'])], dict(x=np.zeros((6, 5), f)),
                   dict(s=r.rand(3, 5).astype(f)), tensors=[weight, packed('z', kind, [3, 5], r.randint(0, 256, 8))], opset=21)
    for name, kind in (('e4m3', e4m3), ('e5m2', e5m2)):
        codes = [code for code in range(256) if code & 0x7f < (0x7f if kind == e4m3 else 0x7c)]
        suite.case(f'dequantize_{name}', [N('DequantizeLinear', ['w', 's'], ['d']), N('Add', ['d', 'x'], ['y'])], dict(x=np.zeros(len(codes), f)), dict(s=f(1)),
                   tensors=[packed('w', kind, [len(codes)], codes)], opset=21)
        wide = np.concatenate([r.randn(200) * 10.0 ** r.randint(-4, 6, 200), [0, 448, 464, 480, 57344, 61440, 0.017578125, 0.001953125, 0.0009765625]]).astype(f)
        suite.case(f'round_{name}', [N('Cast', ['x'], ['c'], to=kind), N('Cast', ['c'], ['y'], to=1)], dict(x=wide), opset=21)
    x = (r.randn(4, 6) * 300).astype(f)
    for name, zero, kind in (('uint16', np.uint16(500), 4), ('int16', np.int16(-7), 5)):
        suite.case(f'quantize_{name}', [N('QuantizeLinear', ['x', 's', 'z'], ['y'])], dict(x=x * 200), dict(s=f(1.5), z=zero), types=[kind], opset=21)
        suite.case(f'quantize_{name}_back', [N('QuantizeLinear', ['x', 's', 'z'], ['q']), N('DequantizeLinear', ['q', 's', 'z'], ['y'])], dict(x=x), dict(s=f(0.25), z=zero), opset=21)
    suite.case('quantize_blocks', [N('QuantizeLinear', ['x', 's', 'z'], ['y'], axis=1, block_size=3)], dict(x=x), dict(s=(r.rand(4, 2) * 3).astype(f), z=r.randint(0, 255, (4, 2)).astype(np.uint8)), types=[2], opset=21)


def add(suite):
    r = np.random.RandomState(1)
    for family in (add_attention, add_images, add_integers, add_control, add_narrow):
        family(suite, r)
