// Resampling, regions of interest and a determinant.
#include <ATen/ATen.h>

#include "model/onnx/emit.h"

namespace galvani::onnx {

namespace {

// The position of a choice in a list of names: the numbers runtime_image.cpp reads back.
std::int64_t choice(const Node& node, const char* attribute, const std::string& value,
                    std::initializer_list<const char*> names) {
  std::int64_t i = 0;
  for (const char* name : names) {
    if (value == name) return i;
    ++i;
  }
  node.refuse("has the value '{}' of '{}', which is not supported", printable(value), attribute);
}

void resize(Node& node, const std::string& scales, const std::string& sizes, const std::string& region,
            const std::string& coordinates, const std::string& rounding) {
  std::int64_t mode = choice(node, "mode", node.text("mode", "nearest"), {"nearest", "linear", "cubic"});
  if (!at::isFloatingType(node.type(0)) && mode != 0) node.refuse("interpolates integers, which is not supported");
  std::int64_t coordinate = choice(node, "coordinate_transformation_mode", coordinates,
                                   {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                    "tf_crop_and_resize", "tf_half_pixel_for_nn", "half_pixel_symmetric"});
  std::int64_t nearest =
      choice(node, "nearest_mode", rounding, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  node.out(
      fmt::format("galvani_onnx.resize({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})", node.in(0), scales, sizes, region,
                  ints_text(node.integers("axes")), mode, coordinate, nearest,
                  number_text(node.real("cubic_coeff_a", -0.75)), bool_text(node.integer("exclude_outside", 0) != 0),
                  number_text(node.real("extrapolation_value", 0))),
      node.rank(0));
}

bool holds_anything(const Node& node, int i) {
  return node.has(i) && !(node.value(i).known && node.value(i).known->numel() == 0);
}

void emit_resize(Node& node) {
  std::string none = reals_text({});
  // The first version was Upsample with another name.
  if (node.opset() < 11) return resize(node, node.reals(1), ints_text({}), none, "asymmetric", "floor");
  if (node.integer("antialias", 0) != 0) node.refuse("filters before it shrinks (antialias), which is not supported");
  std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") node.refuse("keeps the aspect ratio, which is not supported");
  std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  std::string region = coordinates == "tf_crop_and_resize" && holds_anything(node, 1) ? node.reals(1) : none;
  std::string sizes = holds_anything(node, 3) ? node.integers(3) : ints_text({});
  std::string scales = holds_anything(node, 2) && !holds_anything(node, 3) ? node.reals(2) : none;
  resize(node, scales, sizes, region, coordinates, node.text("nearest_mode", "round_prefer_floor"));
}

void emit_upsample(Node& node) {
  std::string scales = node.opset() >= 9 ? node.reals(1) : reals_text(node.reals("scales"));
  resize(node, scales, ints_text({}), reals_text({}), "asymmetric", "floor");
}

void emit_grid_sample(Node& node) {
  if (node.rank(0) != 4 && node.rank(0) != 5 && node.rank(0) != -1)
    node.refuse("samples a tensor of {} axes, which is not supported", node.rank(0));
  std::string name = node.text("mode", "bilinear");
  // Opset 20 renamed two of them.
  if (name == "linear") name = "bilinear";
  if (name == "cubic") name = "bicubic";
  std::int64_t mode = choice(node, "mode", name, {"bilinear", "nearest", "bicubic"});
  // LibTorch rounds other halves in volumes than ONNX does.
  if (name == "nearest" && node.rank(0) == 5) node.refuse("takes nearest values of volumes, which is not supported");
  std::int64_t padding =
      choice(node, "padding_mode", node.text("padding_mode", "zeros"), {"zeros", "border", "reflection"});
  node.out(fmt::format("torch.grid_sampler({}, {}, {}, {}, {})", node.in(0), node.in(1), mode, padding,
                       bool_text(node.integer("align_corners", 0) != 0)),
           node.rank(0));
}

void emit_affine_grid(Node& node) {
  node.out(fmt::format("galvani_onnx.affine_grid({}, {}, {})", node.in(0), node.integers(1),
                       bool_text(node.integer("align_corners", 0) != 0)));
}

void emit_center_crop_pad(Node& node) {
  node.out(fmt::format("galvani_onnx.center_crop_pad({}, {}, {})", node.in(0), node.integers(1),
                       ints_text(node.integers("axes"))),
           node.rank(0));
}

void emit_col2im(Node& node) {
  auto image = node.known_integers(1);
  if (image && image->size() != 2) node.refuse("makes images of {} axes, which is not supported", image->size());
  node.out(fmt::format("galvani_onnx.col2im({}, {}, {}, {}, {}, {})", node.in(0), node.integers(1), node.integers(2),
                       ints_text(node.integers("dilations")), ints_text(node.integers("pads")),
                       ints_text(node.integers("strides"))));
}

void emit_roi_align(Node& node) {
  std::int64_t mode = choice(node, "mode", node.text("mode", "avg"), {"avg", "max"});
  // Before opset 16 there was only the coordinate system without the half-pixel shift.
  std::string fallback = node.opset() >= 16 ? "half_pixel" : "output_half_pixel";
  std::int64_t shifted =
      choice(node, "coordinate_transformation_mode", node.text("coordinate_transformation_mode", fallback),
             {"output_half_pixel", "half_pixel"});
  node.out(fmt::format("galvani_onnx.roi_align({}, {}, {}, {}, {}, {}, {}, {}, {})", node.in(0), node.in(1), node.in(2),
                       int_text(node.integer("output_height", 1)), int_text(node.integer("output_width", 1)),
                       int_text(node.integer("sampling_ratio", 0)), number_text(node.real("spatial_scale", 1)),
                       bool_text(shifted != 0), bool_text(mode != 0)),
           4);
}

void emit_non_max_suppression(Node& node) {
  std::string most = node.has(2) ? node.integer(2) : "0";
  std::string overlap = node.has(3) ? node.real(3) : "0.0";
  std::string score = node.has(4) ? node.real(4) : "None";
  node.out(fmt::format("galvani_onnx.non_max_suppression({}, {}, {}, {}, {}, {})", node.in(0), node.in(1), most,
                       overlap, score, bool_text(node.integer("center_point_box", 0) != 0)),
           at::kLong, 2);
}

void emit_det(Node& node) {
  node.out(fmt::format("torch.linalg_det({})", node.in(0)), node.rank(0) >= 2 ? node.rank(0) - 2 : -1);
}

}  // namespace

std::vector<Operator> image_operators() {
  return {
      {"Resize", 10, kNewestOpset, emit_resize},
      {"Upsample", 7, 9, emit_upsample},
      {"GridSample", 16, kNewestOpset, emit_grid_sample},
      {"AffineGrid", 20, kNewestOpset, emit_affine_grid},
      {"CenterCropPad", 18, kNewestOpset, emit_center_crop_pad, false, true},
      {"Col2Im", 18, kNewestOpset, emit_col2im},
      {"RoiAlign", 10, kNewestOpset, emit_roi_align},
      {"NonMaxSuppression", 10, kNewestOpset, emit_non_max_suppression},
      {"Det", 11, kNewestOpset, emit_det},
  };
}

}  // namespace galvani::onnx
