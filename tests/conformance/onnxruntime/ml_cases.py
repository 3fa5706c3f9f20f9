"""Classic machine learning: ai.onnx.ml."""

import numpy as np
from onnx import helper

f = np.float32


def N(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain='ai.onnx.ml', **attributes)


def forest(r, trees, depth, votes, modes=('BRANCH_LEQ',), targets=(0,), low=-1.0, missing=False):
    """Attributes of full trees whose leaves vote for all targets."""
    a = {'nodes_' + key: [] for key in ('treeids', 'nodeids', 'featureids', 'values', 'modes', 'truenodeids', 'falsenodeids')}
    v = {f'{votes}_' + key: [] for key in ('treeids', 'nodeids', 'ids', 'weights')}
    for tree in range(trees):
        inner = 2 ** depth - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            row = (tree, node, 0 if leaf else r.randint(5), 0.0 if leaf else float(f(r.randn())), 'LEAF' if leaf else modes[r.randint(len(modes))],
                   0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2)
            for key, value in zip(a, row):
                a[key].append(value)
            for target in targets if leaf else ():
                for key, value in zip(v, (tree, node, target, float(f(r.uniform(low, 1.0))))):
                    v[key].append(value)
    if missing:
        a['nodes_missing_value_tracks_true'] = [int(r.randint(2)) for _ in a['nodes_modes']]
    return {**a, **v}


def add(suite):
    r = np.random.RandomState(2)
    x = r.randn(12, 5).astype(f)
    gaps = x.copy()
    gaps[r.rand(*x.shape) < 0.2] = np.nan
    rest = ('BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GTE', 'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ')
    both = dict(outputs=('label', 'y'), types=[7, 1])
    labels = dict(classlabels_int64s=[3, 7, 11])
    two = dict(classlabels_int64s=[4, 9])
    for how in ('NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO'):
        name = how.lower()
        suite.case(f'trees_three_{name}', [N('TreeEnsembleClassifier', ['x'], ['label', 'y'], post_transform=how, **labels, **forest(r, 4, 3, 'class', targets=(0, 1, 2)))], {'x': x}, **both)
        suite.case(f'trees_mixed_{name}', [N('TreeEnsembleClassifier', ['x'], ['label', 'y'], post_transform=how, **two, **forest(r, 4, 3, 'class'))], {'x': x}, **both)
        suite.case(f'trees_shares_{name}', [N('TreeEnsembleClassifier', ['x'], ['label', 'y'], post_transform=how, **two, **forest(r, 1, 3, 'class', low=0.0))], {'x': x}, **both)
        suite.case(f'trees_second_{name}', [N('TreeEnsembleClassifier', ['x'], ['label', 'y'], post_transform=how, **two, **forest(r, 2, 3, 'class', targets=(1,)))], {'x': x}, **both)
    suite.case('trees_base', [N('TreeEnsembleClassifier', ['x'], ['label', 'y'], base_values=[0.5, -0.25, 1.0], **labels, **forest(r, 3, 2, 'class', targets=(0, 1, 2)))], {'x': x}, **both)
    suite.case('trees_base_two', [N('TreeEnsembleClassifier', ['x'], ['label', 'y'], base_values=[0.5], post_transform='LOGISTIC', **two, **forest(r, 3, 2, 'class'))], {'x': x}, **both)
    suite.case('trees_gaps', [N('TreeEnsembleClassifier', ['x'], ['label', 'y'], **labels, **forest(r, 4, 3, 'class', targets=(0, 2), missing=True))], {'x': gaps}, **both)
    for how in ('SUM', 'AVERAGE', 'MIN', 'MAX'):
        suite.case(f'forest_{how.lower()}', [N('TreeEnsembleRegressor', ['x'], ['y'], n_targets=2, aggregate_function=how, **forest(r, 5, 3, 'target', modes=rest, targets=(0, 1)))], {'x': x})
    suite.case('forest_base', [N('TreeEnsembleRegressor', ['x'], ['y'], n_targets=1, base_values=[2.5], **forest(r, 5, 3, 'target'))], {'x': x})
    suite.case('forest_stumps', [N('TreeEnsembleRegressor', ['x'], ['y'], n_targets=1, **forest(r, 3, 0, 'target'))], {'x': x})

    w = lambda n: [float(v) for v in r.randn(n).astype(f)]
    for how in ('NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO'):
        suite.case(f'linear_three_{how.lower()}', [N('LinearClassifier', ['x'], ['label', 'y'], coefficients=w(15), intercepts=w(3), post_transform=how, classlabels_ints=[3, 7, 11])], {'x': x}, **both)
    a, b = w(5), w(1)
    for how in ('NONE', 'LOGISTIC'):
        suite.case(f'linear_two_{how.lower()}', [N('LinearClassifier', ['x'], ['label', 'y'], coefficients=[-v for v in a] + a, intercepts=[-b[0], b[0]], post_transform=how, classlabels_ints=[4, 9])], {'x': x}, **both)
        suite.case(f'linear_one_{how.lower()}', [N('LinearClassifier', ['x'], ['label', 'y'], coefficients=a, intercepts=b, post_transform=how, classlabels_ints=[4, 9])], {'x': x}, **both)
    suite.case('regression', [N('LinearRegressor', ['x'], ['y'], coefficients=w(10), intercepts=w(2), targets=2)], {'x': x})
    suite.case('regression_plain', [N('LinearRegressor', ['x'], ['y'], coefficients=w(5))], {'x': x})
    for kernel, parameters in (('LINEAR', [0.0, 0.0, 0.0]), ('POLY', [0.3, 0.7, 3.0]), ('RBF', [0.4, 0.0, 0.0]), ('SIGMOID', [0.2, 0.1, 0.0])):
        for one in (0, 1):
            suite.case(f'svm_{kernel.lower()}_{one}', [N('SVMRegressor', ['x'], ['y'], coefficients=w(4), support_vectors=w(20), n_supports=4, rho=[0.1], kernel_type=kernel, kernel_params=parameters, one_class=one)], {'x': x})
    suite.case('svm_plain', [N('SVMRegressor', ['x'], ['y'], coefficients=w(5), rho=[0.1], kernel_params=[0.0, 0.0, 0.0])], {'x': x})
    suite.case('scaler', [N('Scaler', ['x'], ['y'], offset=w(5), scale=w(5))], {'x': x})
    suite.case('scaler_one', [N('Scaler', ['x'], ['y'], offset=[1.5], scale=[0.5])], {'x': r.randint(0, 9, (3, 4))})
    with_zeros = np.abs(x)
    with_zeros[2] = 0
    for norm in ('MAX', 'L1', 'L2'):
        suite.case(f'normalizer_{norm.lower()}', [N('Normalizer', ['x'], ['y'], norm=norm)], {'x': with_zeros})
        suite.case(f'normalizer_signs_{norm.lower()}', [N('Normalizer', ['x'], ['y'], norm=norm)], {'x': x})
    suite.case('imputer', [N('Imputer', ['x'], ['y'], imputed_value_floats=w(5), replaced_value_float=float('nan'))], {'x': gaps})
    suite.case('imputer_integers', [N('Imputer', ['x'], ['y'], imputed_value_int64s=[8], replaced_value_int64=-1)], {'x': r.randint(-2, 2, (4, 5))}, types=[7])
    suite.case('binarizer', [N('Binarizer', ['x'], ['y'], threshold=0.5)], {'x': x})
    suite.case('one_hot', [N('OneHotEncoder', ['x'], ['y'], cats_int64s=[2, 0, 5])], {'x': np.array([[0, 2], [5, 3]])})
    suite.case('features', [N('ArrayFeatureExtractor', ['x', 'i'], ['y'])], {'x': x}, {'i': np.array([3, 0, 0])})
    suite.case('features_of_row', [N('ArrayFeatureExtractor', ['x', 'i'], ['y'])], {'x': x[0]}, {'i': np.array([3, 0])})
    suite.case('join_features', [N('FeatureVectorizer', ['x', 'z'], ['y'], inputdimensions=[5, 2])], {'x': x, 'z': x[:, :2]})
    suite.case('encode_to_float', [N('LabelEncoder', ['x'], ['y'], keys_int64s=[5, -1, 3], values_floats=[0.5, 1.5, 2.5], default_float=-7.0)], {'x': np.array([[3, 5], [4, -1]])})
    suite.case('encode_to_integer', [N('LabelEncoder', ['x'], ['y'], keys_floats=[1.5, 7.0, -2.0], values_int64s=[10, 20, 30])], {'x': np.array([1.5, np.nan, -2.0, 7.0], f)}, types=[7])
