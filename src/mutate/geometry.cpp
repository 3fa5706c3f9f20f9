// Translation, shift, scale, rotation, shear: the affine mutators.
#include <cmath>

#include "mutate/families.h"
#include "mutate/warp.h"

namespace galvani::mutate {
namespace {

constexpr double kDegree = 3.14159265358979323846 / 180;

MutatorTraits affine_traits(std::size_t shown = 1) {
  return {MutatorGroup::non_differentiable, true, shown};
}

class Translation : public ImageMutator {
 public:
  Translation() : ImageMutator(affine_traits(2)) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    move(std::lrint(v[0]), std::lrint(v[1]), shape, in, out);
  }
};

// By whole pixels all the same: half a pixel would blur, which is another mutation.
class Shift : public ImageMutator {
 public:
  Shift() : ImageMutator(affine_traits(2)) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    move(std::lround(v[0] * shape.width), std::lround(v[1] * shape.height), shape, in, out);
  }
};

class Scale : public ImageMutator {
 public:
  Scale() : ImageMutator(affine_traits()) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    warp(about_centre(shape, 1 / v[0], 0, 0, 1 / v[0]), shape, in, out);
  }
};

class Rotation : public ImageMutator {
 public:
  Rotation() : ImageMutator(affine_traits()) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    double cosine = std::cos(v[0] * kDegree);
    double sine = std::sin(v[0] * kDegree);
    // y points down, so this turns what is seen counter-clockwise.
    warp(about_centre(shape, cosine, -sine, sine, cosine), shape, in, out);
  }
};

class Shear : public ImageMutator {
 public:
  Shear() : ImageMutator(affine_traits(0)) {}

 private:
  void run(const double* v, const ImageShape& shape, const std::uint8_t* in, std::uint8_t* out) const override {
    warp(about_centre(shape, 1, -(std::tan(v[0] * kDegree) + v[1]), 0, 1), shape, in, out);
  }
};

}  // namespace

Made make_translation(const Options&, const MutationContext&) {
  return std::make_unique<Translation>();
}
Made make_shift(const Options&, const MutationContext&) {
  return std::make_unique<Shift>();
}
Made make_scale(const Options&, const MutationContext&) {
  return std::make_unique<Scale>();
}
Made make_rotation(const Options&, const MutationContext&) {
  return std::make_unique<Rotation>();
}
Made make_shear(const Options&, const MutationContext&) {
  return std::make_unique<Shear>();
}

}  // namespace galvani::mutate
