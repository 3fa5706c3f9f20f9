#include <benchmark/benchmark.h>

#include "galvani/base/runtime.h"

int main(int argc, char** argv) {
  galvani::init_runtime();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
