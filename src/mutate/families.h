// The built-in mutators; each is made from its settings and the context.
#pragma once

#include <memory>

#include "galvani/mutate/mutator.h"

namespace galvani::mutate {

using Made = std::unique_ptr<Mutator>;

// Of sounds.
Made make_gain(const Options&, const MutationContext&);
Made make_snr_noise(const Options&, const MutationContext&);
Made make_time_shift(const Options&, const MutationContext&);
Made make_time_stretch(const Options&, const MutationContext&);
Made make_pitch(const Options&, const MutationContext&);
Made make_low_pass(const Options&, const MutationContext&);
Made make_high_pass(const Options&, const MutationContext&);
Made make_band_pass(const Options&, const MutationContext&);
Made make_echo(const Options&, const MutationContext&);
Made make_clipping(const Options&, const MutationContext&);
Made make_time_mask(const Options&, const MutationContext&);
Made make_quantise(const Options&, const MutationContext&);

// Of images.
Made make_translation(const Options&, const MutationContext&);
Made make_shift(const Options&, const MutationContext&);
Made make_scale(const Options&, const MutationContext&);
Made make_rotation(const Options&, const MutationContext&);
Made make_shear(const Options&, const MutationContext&);
Made make_contrast(const Options&, const MutationContext&);
Made make_brightness(const Options&, const MutationContext&);
Made make_blur(const Options&, const MutationContext&);
Made make_pixel_change(const Options&, const MutationContext&);
Made make_noise(const Options&, const MutationContext&);
Made make_colour_transfer(const Options&, const MutationContext&);
Made make_fourier_transfer(const Options&, const MutationContext&);
Made make_fog(const Options&, const MutationContext&);
Made make_rain(const Options&, const MutationContext&);
Made make_snow(const Options&, const MutationContext&);
Made make_frost(const Options&, const MutationContext&);
Made make_style_net(const Options&, const MutationContext&);

}  // namespace galvani::mutate
