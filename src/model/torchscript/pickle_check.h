// LibTorch's unpickler trusts what it reads. This reads a pickle before it does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace galvani::torchscript {

// The bytes of a tensor's storage record, or nothing if there is no such record.
using StorageSize = std::function<std::optional<std::uint64_t>(const std::string& key)>;

enum class PickleRoot { object, tuple };

// Throws Error(bad_input) unless the pickle consists of what torch.jit writes: known opcodes on operands of the right
// kind, known globals, tensors inside their storage, no cycles, bounded depth. `where` names it in errors.
void check_pickle(std::string_view bytes, PickleRoot root, const StorageSize& storage_size, const std::string& where);

}  // namespace galvani::torchscript
