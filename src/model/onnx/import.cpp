#include "model/onnx/program.h"
