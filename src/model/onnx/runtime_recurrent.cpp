// Recurrent layers, a step at a time. Shapes as ONNX has them: X [T, B, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H].
#include <torch/library.h>
#include <torch/script.h>

#include <functional>

#include "model/onnx/runtime.h"

namespace galvani::onnx {

namespace {

using at::IntArrayRef;
using at::Tensor;
using OptionalTensor = c10::optional<Tensor>;

Tensor activate(std::int64_t code, const Tensor& x) {
  switch (code) {
    case 0:
      return x.sigmoid();
    case 1:
      return x.tanh();
    case 2:
      return x.relu();
    case 3:
      return (x * 0.2 + 0.5).clamp(0, 1);
    case 4:
      return x / (x.abs() + 1);
    default:
      return at::softplus(x);
  }
}

// What one direction of a layer needs at a step.
struct Cell {
  Tensor weight;          // [G*H, I]
  Tensor recurrence;      // [G*H, H]
  Tensor input_bias;      // [G*H]
  Tensor recurrent_bias;  // [G*H]
  Tensor peephole;        // [3*H] of an LSTM, or undefined
  IntArrayRef codes;
  c10::optional<double> clip;

  Tensor clipped(const Tensor& x) const { return clip ? x.clamp(-*clip, *clip) : x; }
  Tensor act(std::size_t which, const Tensor& x) const { return activate(codes[which], clipped(x)); }
};

constexpr std::int64_t kMostSteps = 1 << 20;

struct State {
  Tensor hidden;
  Tensor memory;  // of an LSTM
};

using Step = std::function<State(const Cell&, const Tensor& x, const State&)>;

struct Layer {
  Tensor all;     // [T, D, B, H]
  Tensor hidden;  // [D, B, H]
  Tensor memory;
};

struct Arguments {
  const Tensor& x;
  const Tensor& weight;
  const Tensor& recurrence;
  const OptionalTensor& bias;
  const OptionalTensor& lengths;
  const OptionalTensor& hidden;
  OptionalTensor memory;
  OptionalTensor peephole;
  std::int64_t direction;  // 0 forward, 1 reverse, 2 both
  IntArrayRef codes;
  c10::optional<double> clip;
  bool batch_first;
};

Layer run(const Arguments& a, std::int64_t gates, const Step& step) {
  TORCH_CHECK(a.x.dim() == 3 && a.weight.dim() == 3 && a.recurrence.dim() == 3, "inputs and weights have three axes");
  Tensor x = a.batch_first ? a.x.transpose(0, 1) : a.x;
  std::int64_t steps = x.size(0), batch = x.size(1), size = a.recurrence.size(2);
  std::int64_t directions = a.direction == 2 ? 2 : 1;
  // Steps cost time even where a batch of size 0 makes them cost no memory.
  TORCH_CHECK(steps <= kMostSteps, "a sequence of ", steps, " steps");
  TORCH_CHECK(size > 0 && a.weight.size(0) == directions && a.weight.size(1) == gates * size &&
                  a.recurrence.size(0) == directions && a.recurrence.size(1) == gates * size &&
                  (!a.peephole || (a.peephole->dim() == 2 && a.peephole->size(1) == 3 * size)),
              "the weights do not fit the layer");
  auto initial = [&](const OptionalTensor& given, std::int64_t d) {
    if (!given) return at::zeros({batch, size}, x.options());
    return (a.batch_first ? given->transpose(0, 1) : *given).select(0, d);
  };
  std::vector<Tensor> outputs, hiddens, memories;
  for (std::int64_t d = 0; d < directions; ++d) {
    Tensor bias = a.bias ? a.bias->select(0, d) : at::zeros({2 * gates * size}, x.options());
    std::size_t each = a.codes.size() / static_cast<std::size_t>(directions);
    Cell cell{a.weight.select(0, d),
              a.recurrence.select(0, d),
              bias.narrow(0, 0, gates * size),
              bias.narrow(0, gates * size, gates * size),
              a.peephole ? a.peephole->select(0, d) : Tensor(),
              a.codes.slice(static_cast<std::size_t>(d) * each, each),
              a.clip};
    State state{initial(a.hidden, d), initial(a.memory, d)};
    std::vector<Tensor> sequence(steps);
    bool backwards = a.direction == 1 || d == 1;
    for (std::int64_t i = 0; i < steps; ++i) {
      std::int64_t t = backwards ? steps - 1 - i : i;
      State next = step(cell, x.select(0, t), state);
      Tensor output = next.hidden;
      if (a.lengths) {
        // Beyond a sequence's end its state stands still and its output is 0.
        Tensor alive = (a.lengths->to(at::kLong) > t).unsqueeze(1);
        output = at::where(alive, output, at::zeros_like(output));
        next.hidden = at::where(alive, next.hidden, state.hidden);
        if (next.memory.defined()) next.memory = at::where(alive, next.memory, state.memory);
      }
      sequence[t] = output;
      state = next;
    }
    outputs.push_back(steps > 0 ? at::stack(sequence) : at::zeros({0, batch, size}, x.options()));
    hiddens.push_back(state.hidden);
    if (state.memory.defined()) memories.push_back(state.memory);
  }
  Layer layer{at::stack(outputs, 1), at::stack(hiddens), memories.empty() ? Tensor() : at::stack(memories)};
  if (a.batch_first) {
    layer.all = layer.all.permute({2, 0, 1, 3});
    layer.hidden = layer.hidden.transpose(0, 1);
    if (layer.memory.defined()) layer.memory = layer.memory.transpose(0, 1);
  }
  return layer;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& x, const Tensor& weight, const Tensor& recurrence,
                                        const OptionalTensor& bias, const OptionalTensor& lengths,
                                        const OptionalTensor& hidden, const OptionalTensor& memory,
                                        const OptionalTensor& peephole, std::int64_t direction, IntArrayRef codes,
                                        c10::optional<double> clip, bool batch_first, bool input_forget) {
  auto step = [&](const Cell& cell, const Tensor& input, const State& state) {
    Tensor sums = at::linear(input, cell.weight, cell.input_bias) +
                  at::linear(state.hidden, cell.recurrence, cell.recurrent_bias);
    auto gate = sums.chunk(4, 1);  // input, output, forget, cell
    std::vector<Tensor> peep(3);
    if (cell.peephole.defined()) peep = cell.peephole.chunk(3);
    auto with = [&](int which, const Tensor& content) {
      return peep[which].defined() ? gate[which] + peep[which] * content : gate[which];
    };
    Tensor in = cell.act(0, with(0, state.memory));
    Tensor forget = input_forget ? 1 - in : cell.act(0, with(2, state.memory));
    Tensor content = forget * state.memory + in * cell.act(1, gate[3]);
    Tensor out = cell.act(0, with(1, content));
    return State{out * activate(cell.codes[2], content), content};
  };
  Layer layer = run(
      {x, weight, recurrence, bias, lengths, hidden, memory, peephole, direction, codes, clip, batch_first}, 4, step);
  return {layer.all, layer.hidden, layer.memory};
}

std::tuple<Tensor, Tensor> gru(const Tensor& x, const Tensor& weight, const Tensor& recurrence,
                               const OptionalTensor& bias, const OptionalTensor& lengths, const OptionalTensor& hidden,
                               std::int64_t direction, IntArrayRef codes, c10::optional<double> clip, bool batch_first,
                               bool linear_before_reset) {
  auto step = [&](const Cell& cell, const Tensor& input, const State& state) {
    auto from_input = at::linear(input, cell.weight, cell.input_bias).chunk(3, 1);  // update, reset, hidden
    auto rows = cell.recurrence.chunk(3);
    auto biases = cell.recurrent_bias.chunk(3);
    Tensor update = cell.act(0, from_input[0] + at::linear(state.hidden, rows[0], biases[0]));
    Tensor reset = cell.act(0, from_input[1] + at::linear(state.hidden, rows[1], biases[1]));
    Tensor inner = linear_before_reset ? reset * at::linear(state.hidden, rows[2], biases[2])
                                       : at::linear(reset * state.hidden, rows[2], biases[2]);
    Tensor candidate = cell.act(1, from_input[2] + inner);
    return State{(1 - update) * candidate + update * state.hidden, Tensor()};
  };
  Layer layer = run(
      {x, weight, recurrence, bias, lengths, hidden, c10::nullopt, c10::nullopt, direction, codes, clip, batch_first},
      3, step);
  return {layer.all, layer.hidden};
}

std::tuple<Tensor, Tensor> rnn(const Tensor& x, const Tensor& weight, const Tensor& recurrence,
                               const OptionalTensor& bias, const OptionalTensor& lengths, const OptionalTensor& hidden,
                               std::int64_t direction, IntArrayRef codes, c10::optional<double> clip,
                               bool batch_first) {
  auto step = [](const Cell& cell, const Tensor& input, const State& state) {
    Tensor sums = at::linear(input, cell.weight, cell.input_bias) +
                  at::linear(state.hidden, cell.recurrence, cell.recurrent_bias);
    return State{cell.act(0, sums), Tensor()};
  };
  Layer layer = run(
      {x, weight, recurrence, bias, lengths, hidden, c10::nullopt, c10::nullopt, direction, codes, clip, batch_first},
      1, step);
  return {layer.all, layer.hidden};
}

}  // namespace

void define_recurrent(torch::Library& library) {
  library.def(
      "lstm(Tensor x, Tensor weight, Tensor recurrence, Tensor? bias, Tensor? lengths, Tensor? hidden, Tensor? memory, "
      "Tensor? peephole, int direction, int[] codes, float? clip, bool batch_first, bool input_forget) -> "
      "(Tensor, Tensor, Tensor)",
      lstm);
  library.def(
      "gru(Tensor x, Tensor weight, Tensor recurrence, Tensor? bias, Tensor? lengths, Tensor? hidden, int direction, "
      "int[] codes, float? clip, bool batch_first, bool linear_before_reset) -> (Tensor, Tensor)",
      gru);
  library.def(
      "rnn(Tensor x, Tensor weight, Tensor recurrence, Tensor? bias, Tensor? lengths, Tensor? hidden, int direction, "
      "int[] codes, float? clip, bool batch_first) -> (Tensor, Tensor)",
      rnn);
}

}  // namespace galvani::onnx
