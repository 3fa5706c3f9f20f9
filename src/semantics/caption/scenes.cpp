#include "semantics/caption/scenes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace galvani {
namespace {

constexpr std::int64_t kPixels = kSceneSide * kSceneSide;
constexpr double kStray = 0.1;  // of the pictures show something else

struct Rgb {
  double red, green, blue;
};

// A colour of that name, not always the same.
Rgb paint(int colour, Rng& rng) {
  auto near = [&](double value, double by) { return std::clamp(value + rng.uniform(-by, by), 0.0, 1.0); };
  switch (colour) {
    case 0:
      return {near(.85, .12), near(.12, .1), near(.12, .1)};  // red
    case 1:
      return {near(.95, .05), near(.55, .07), near(.1, .1)};  // orange
    case 2:
      return {near(.92, .07), near(.87, .07), near(.15, .12)};
    case 3:
      return {near(.15, .12), near(.7, .15), near(.2, .12)};
    case 4:
      return {near(.12, .1), near(.25, .12), near(.85, .12)};
    case 5:
      return {near(.55, .08), near(.15, .1), near(.75, .12)};
    case 6:
      return {near(.4, .06), near(.24, .05), near(.12, .05)};  // brown
    default:
      break;
  }
  double level = colour == 7 ? rng.uniform(.88, 1) : colour == 8 ? rng.uniform(.35, .65) : rng.uniform(0, .12);
  return {level, level, level};
}

struct Thing {
  int colour, texture, shape;
  double x, y, radius;  // of the picture's side
};

// Is a point inside? dx, dy in units of the radius.
bool covers(int shape, double dx, double dy) {
  double length = std::sqrt(dx * dx + dy * dy);
  constexpr double kThin = 0.28;
  switch (shape) {
    case 0:
      return length < 1;  // discs
    case 1:
      return std::abs(dx) < .85 && std::abs(dy) < .85;  // squares
    case 2:
      return dy < .8 && dy > -.9 && std::abs(dx) < (dy + .9) * .6;  // triangles
    case 3:
      return length < 1 && length > .55;  // rings
    case 4:
      return (std::abs(dx) < kThin || std::abs(dy) < kThin) && length < 1.1;  // crosses
    case 5:
      return std::abs(dx) < kThin && std::abs(dy) < 1.3;  // vertical
    case 6:
      return std::abs(dy) < kThin && std::abs(dx) < 1.3;  // horizontal
    case 7:
      return std::abs(dx + dy) < kThin * 1.41 && length < 1.3;  // rising: y grows downwards
    default:
      return std::abs(dx - dy) < kThin * 1.41 && length < 1.3;  // falling
  }
}

// How bright the texture is at a point, 0..1.
double shade(int texture, std::int64_t x, std::int64_t y, double phase) {
  auto at = [phase](std::int64_t v) { return static_cast<double>(v) + phase; };
  switch (texture) {
    case 1:
      return std::fmod(at(x + y), 5) < 2.5 ? 1 : .35;  // striped
    case 2:
      return std::fmod(at(x), 5) < 2 && std::fmod(at(y), 5) < 2 ? .25 : 1;  // dotted
    case 3:
      return (static_cast<int>(at(x) / 3) + static_cast<int>(at(y) / 3)) % 2 == 0 ? 1 : .35;  // chequered
    default:
      return 1;  // plain
  }
}

struct Canvas {
  std::vector<double> values = std::vector<double>(3 * static_cast<std::size_t>(kPixels));
  void set(std::int64_t pixel, const Rgb& colour, double light) {
    const double rgb[3] = {colour.red, colour.green, colour.blue};
    for (std::int64_t c = 0; c < 3; ++c) values[static_cast<std::size_t>(c * kPixels + pixel)] = rgb[c] * light;
  }
};

// Draws it, and marks where it is if there is a mask.
void draw_thing(Canvas& canvas, const Thing& thing, Rng& rng, float* mask) {
  Rgb colour = paint(thing.colour, rng);
  double phase = rng.uniform(0, 5);
  auto side = static_cast<double>(kSceneSide);
  for (std::int64_t y = 0; y < kSceneSide; ++y) {
    for (std::int64_t x = 0; x < kSceneSide; ++x) {
      double dx = ((static_cast<double>(x) + .5) / side - thing.x) / thing.radius;
      double dy = ((static_cast<double>(y) + .5) / side - thing.y) / thing.radius;
      if (!covers(thing.shape, dx, dy)) continue;
      canvas.set(y * kSceneSide + x, colour, shade(thing.texture, x, y, phase));
      if (mask != nullptr) mask[y * kSceneSide + x] = 1;
    }
  }
}

void draw_ground(Canvas& canvas, Rng& rng) {
  Rgb colour = paint(static_cast<int>(rng.below(scene_words(SceneAttribute::colour).size())), rng);
  double pale = rng.uniform(.3, 1);  // towards grey
  double mean = (colour.red + colour.green + colour.blue) / 3;
  for (double* c : {&colour.red, &colour.green, &colour.blue}) *c = *c * (1 - pale) + mean * pale;
  double slope = rng.uniform(-.3, .3);
  for (std::int64_t p = 0; p < kPixels; ++p)
    canvas.set(p, colour, 1 + slope * (static_cast<double>(p % kSceneSide) / static_cast<double>(kSceneSide) - .5));
}

// The middle of a place, and how far from it things may be.
void put_at(Thing& thing, int place, Rng& rng) {
  constexpr double kThird = 1.0 / 3;
  auto column = place % 3;
  auto row = place / 3;
  thing.x = (column + rng.uniform(.3, .7)) * kThird;
  thing.y = (row + rng.uniform(.3, .7)) * kThird;
}

Thing any_thing(Rng& rng) {
  auto one_of = [&](SceneAttribute a) { return static_cast<int>(rng.below(scene_words(a).size())); };
  Thing thing{one_of(SceneAttribute::colour), rng.chance(.5) ? 0 : one_of(SceneAttribute::texture),
              one_of(SceneAttribute::shape),  rng.uniform(.15, .85),
              rng.uniform(.15, .85),          rng.uniform(.14, .24)};
  return thing;
}

// What a neuron attends to of a thing: all of it, its contour, or some places.
enum class SceneMask { whole, contour, sparse };
void choose_places(at::Tensor& mask, SceneMask kind, Rng& rng) {
  if (kind == SceneMask::contour) {
    at::Tensor inside = -at::max_pool2d(-mask.view({1, 1, kSceneSide, kSceneSide}), {3, 3}, {1, 1}, {1, 1})[0][0];
    mask.sub_(inside);
  }
  if (kind == SceneMask::sparse) {
    at::Tensor drawn = at::empty({kSceneSide, kSceneSide});
    rng.fill_uniform(drawn.data_ptr<float>(), static_cast<std::size_t>(kPixels));
    mask.mul_((drawn < rng.uniform(.08, .35)).to(at::kFloat));
  }
}

// Larger, smaller, blurred, or with holes.
void make_ragged(at::Tensor& mask, Rng& rng) {
  at::Tensor plane = mask.view({1, 1, kSceneSide, kSceneSide});
  auto kind = rng.below(4);
  if (kind == 1) mask.copy_(at::max_pool2d(plane, {3, 3}, {1, 1}, {1, 1})[0][0]);
  if (kind == 2) mask.copy_((at::avg_pool2d(plane, {5, 5}, {1, 1}, {2, 2}) > .3).to(at::kFloat)[0][0]);
  if (kind == 3) {
    at::Tensor holes = at::empty({kSceneSide, kSceneSide});
    rng.fill_uniform(holes.data_ptr<float>(), static_cast<std::size_t>(kPixels));
    mask.mul_((holes > .25).to(at::kFloat));
  }
}

}  // namespace

const char* scene_attribute_name(SceneAttribute attribute) {
  constexpr const char* kNames[] = {"colour", "texture", "shape", "place"};
  return kNames[static_cast<std::size_t>(attribute)];
}

const std::vector<std::string>& scene_words(SceneAttribute attribute) {
  static const std::vector<std::string> words[kSceneAttributes] = {
      {"red", "orange", "yellow", "green", "blue", "purple", "brown", "white", "grey", "black"},
      {"plain", "striped", "dotted", "chequered"},
      {"discs", "squares", "triangles", "rings", "crosses", "vertical strokes", "horizontal strokes", "rising strokes",
       "falling strokes"},
      {"at the top left", "at the top", "at the top right", "on the left", "in the centre", "on the right",
       "at the bottom left", "at the bottom", "at the bottom right"}};
  return words[static_cast<std::size_t>(attribute)];
}

std::string scene_sentence(const SceneTruth& truth) {
  auto word = [&](SceneAttribute attribute) {
    int which = truth[static_cast<std::size_t>(attribute)];
    return which < 0 ? std::string() : scene_words(attribute)[static_cast<std::size_t>(which)];
  };
  std::string result;
  for (SceneAttribute attribute : {SceneAttribute::colour, SceneAttribute::texture}) {
    if (std::string found = word(attribute); !found.empty()) result += found + " ";
  }
  std::string shape = word(SceneAttribute::shape);
  result += shape.empty() ? "areas" : shape;
  std::string place = word(SceneAttribute::place);
  return place.empty() ? result : result + " " + place;
}

SceneTruth scene_truth(const std::string& sentence) {
  SceneTruth truth;
  truth.fill(-1);
  std::string spaced = " " + sentence + " ";
  for (std::size_t a = 0; a < kSceneAttributes; ++a) {
    const std::vector<std::string>& words = scene_words(static_cast<SceneAttribute>(a));
    std::size_t longest = 0;  // "at the top left" is not "at the top"
    for (std::size_t w = 0; w < words.size(); ++w) {
      if (words[w].size() <= longest || spaced.find(" " + words[w] + " ") == std::string::npos) continue;
      truth[a] = static_cast<int>(w);
      longest = words[w].size();
    }
  }
  return truth;
}

SceneNeuron draw_neuron(std::int64_t count, const Rng& rng) {
  SceneNeuron neuron;
  Rng choice = rng.derive("truth");
  neuron.truth.fill(-1);
  constexpr double kShared[kSceneAttributes] = {.6, .35, .55, .35};
  bool any = false;
  while (!any) {
    for (std::size_t a = 0; a < kSceneAttributes; ++a) {
      bool shared = choice.chance(kShared[a]);
      auto words = scene_words(static_cast<SceneAttribute>(a)).size();
      neuron.truth[a] = shared ? static_cast<int>(choice.below(words)) : -1;
      any = any || shared;
    }
  }
  // A stroke is too thin to have a texture.
  constexpr int kFirstStroke = 4;
  if (neuron.truth[1] > 0 && neuron.truth[2] >= kFirstStroke) neuron.truth[1] = -1;
  neuron.sentence = scene_sentence(neuron.truth);
  auto places = choice.chance(.5) ? SceneMask::whole : choice.chance(.5) ? SceneMask::contour : SceneMask::sparse;
  neuron.images = at::empty({count, 3, kSceneSide, kSceneSide}, at::kByte);
  neuron.masks = at::zeros({count, kSceneSide, kSceneSide});
  for (std::int64_t i = 0; i < count; ++i) {
    Rng own = rng.derive(static_cast<std::uint64_t>(i));
    Canvas canvas;
    draw_ground(canvas, own);
    for (auto others = own.below(3); others > 0; --others) draw_thing(canvas, any_thing(own), own, nullptr);
    Thing thing = any_thing(own);
    if (!own.chance(kStray)) {
      if (neuron.truth[0] >= 0) thing.colour = neuron.truth[0];
      if (neuron.truth[1] >= 0) thing.texture = neuron.truth[1];
      if (neuron.truth[2] >= 0) thing.shape = neuron.truth[2];
      if (neuron.truth[3] >= 0) put_at(thing, neuron.truth[3], own);
    }
    if (thing.texture > 0) thing.radius = std::max(thing.radius, .2);
    at::Tensor mask = neuron.masks[i];
    draw_thing(canvas, thing, own, mask.data_ptr<float>());
    auto* pixels = neuron.images.data_ptr<std::uint8_t>() + i * 3 * kPixels;
    for (std::size_t p = 0; p < canvas.values.size(); ++p) {
      double value = canvas.values[p] * 255 + own.normal() * 4;
      pixels[p] = static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
    }
    choose_places(mask, places, own);
    if (places == SceneMask::whole) make_ragged(mask, own);
    if (mask.sum().item<float>() == 0) mask[kSceneSide / 2][kSceneSide / 2] = 1;
  }
  return neuron;
}

}  // namespace galvani
