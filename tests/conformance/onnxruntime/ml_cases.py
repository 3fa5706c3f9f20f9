"""Classic machine learning: ai.onnx.ml."""


def add(suite):
    pass
