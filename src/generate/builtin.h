// The entries of this room's table; each is defined in a file of its own.
#pragma once

#include "galvani/generate/generator.h"

namespace galvani {

using GeneratorEntry = GeneratorRegistry::Entry;
GeneratorEntry mutate_generator_entry();
GeneratorEntry noise_generator_entry();
GeneratorEntry attack_generator_entry();
GeneratorEntry deepxplore_generator_entry();
GeneratorEntry dlfuzz_generator_entry();
GeneratorEntry swarm_generator_entry();
GeneratorEntry genetic_generator_entry();
GeneratorEntry aeg_generator_entry();
GeneratorEntry mix_generator_entry();

}  // namespace galvani
