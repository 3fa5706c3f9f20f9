// Loads damaged files of every format. Each must load or be refused with an Error; anything else, a crash or ten
// seconds of work included, is a failure. The case under way is kept in fuzz-case-<format>.bin if it fails.
//
//   fuzz_data [cases] [seed]
#include <ATen/ATen.h>
#include <sndfile.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <opencv2/imgcodecs.hpp>

#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/runtime.h"
#include "galvani/data/export.h"
#include "galvani/data/npy.h"
#include "galvani/data/view.h"
#include "mutate_bytes.h"

namespace galvani {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSecondsPerCase = 10;

struct Seed {
  std::string format;
  std::string file;    // the name the damaged bytes get
  std::string loaded;  // what is then loaded: that file, or the folder it is part of
  std::string bytes;
};

struct Tally {
  long loaded = 0;
  long refused = 0;
};

Dataset small_data(std::int64_t n, std::int64_t channels, std::int64_t side) {
  Dataset data;
  data.name = "seed";
  data.images = at::arange(n * channels * side * side).remainder(251).to(at::kByte).reshape({n, channels, side, side});
  data.labels = at::arange(n, at::kLong).remainder(4);
  return data;
}

std::string encoded(const std::string& extension, int type) {
  cv::Mat image(12, 9, type);
  for (std::size_t i = 0; i < image.total() * image.elemSize(); ++i) image.data[i] = static_cast<unsigned char>(i * 7);
  std::vector<unsigned char> bytes;
  cv::imencode(extension, image, bytes);
  return {bytes.begin(), bytes.end()};
}

// With an EXIF directory that says that the image lies on its side.
std::string turned(const std::string& jpeg) {
  std::string exif("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 32);
  return jpeg.substr(0, 2) + "\xff\xe1" + std::string("\0\x22", 2) + exif + jpeg.substr(2);
}

std::string cifar_records() {
  std::string records;
  for (char i = 0; i < 2; ++i) records += std::string(1, i) + std::string(3072, static_cast<char>(i + 65));
  return records;
}

std::string gzipped(const std::string& bytes, const fs::path& scratch) {
  gzFile file = gzopen(scratch.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return read_file(scratch);
}

// Makes the checksums of a damaged PNG right again, so that the damage gets past them to the decoder.
void repair_png(std::string& bytes) {
  auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    std::size_t length = word(at);
    if (length > bytes.size() - at - 12) return;
    const auto* chunk = reinterpret_cast<const unsigned char*>(bytes.data()) + at + 4;
    auto checksum = static_cast<std::uint32_t>(crc32(0, chunk, static_cast<unsigned>(length + 4)));
    for (std::size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<char>(checksum >> (24 - 8 * i));
    at += 12 + length;
  }
}

// Without waiting for the disk, as write_file does and as file systems do when a file is truncated and rewritten.
void write_quickly(const fs::path& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string sound(const fs::path& scratch, int format) {
  SF_INFO info{};
  info.samplerate = 8000;
  info.channels = 2;
  info.format = format;
  std::vector<short> frames(2 * 300);
  for (std::size_t i = 0; i < frames.size(); ++i) frames[i] = static_cast<short>(i * 7919);
  SNDFILE* file = sf_open(scratch.c_str(), SFM_WRITE, &info);
  if (file == nullptr) throw std::runtime_error(sf_strerror(nullptr));
  sf_writef_short(file, frames.data(), 300);
  sf_close(file);
  return read_file(scratch);
}

std::vector<Seed> make_seeds(const fs::path& folder) {
  Dataset gray = small_data(5, 1, 7);
  Dataset colour = small_data(4, 3, 8);
  write_idx(gray, folder / "pair", "t10k");
  write_npz_dataset(colour, folder / "deflated.npz");
  write_npz(folder / "stored.npz", {{"x", gray.images.squeeze(1)}, {"y", gray.labels.to(at::kInt)}});
  fs::create_directory(folder / "table");
  for (const char* name : {"a.png", "b.png"}) write_file(folder / "table" / name, encoded(".png", CV_8UC1));
  std::string images = read_file(folder / "pair/t10k-images-idx3-ubyte");
  std::string labels = read_file(folder / "pair/t10k-labels-idx1-ubyte");
  return {
      {"idx", "seed-idx3-ubyte", "seed-idx3-ubyte", images},
      {"idx-gz", "seed-idx3-ubyte.gz", "seed-idx3-ubyte.gz", gzipped(images, folder / "scratch.gz")},
      {"idx-labels", "pair/t10k-labels-idx1-ubyte", "pair", labels},
      {"cifar", "seed.bin", "seed.bin", cifar_records()},
      {"npy", "images.npy", "images.npy", npy_bytes(gray.images)},
      {"npz-stored", "stored.npz", "stored.npz", read_file(folder / "stored.npz")},
      {"npz-deflated", "deflated.npz", "deflated.npz", read_file(folder / "deflated.npz")},
      {"png-gray", "gray.png", "gray.png", encoded(".png", CV_8UC1)},
      {"png-colour", "colour.png", "colour.png", encoded(".png", CV_8UC3)},
      {"png-alpha", "alpha.png", "alpha.png", encoded(".png", CV_8UC4)},
      {"jpeg", "seed.jpg", "seed.jpg", encoded(".jpg", CV_8UC3)},
      {"jpeg-exif", "turned.jpg", "turned.jpg", turned(encoded(".jpg", CV_8UC3))},
      {"webp", "seed.webp", "seed.webp", encoded(".webp", CV_8UC3)},
      {"tiff", "seed.tiff", "seed.tiff", encoded(".tiff", CV_8UC3)},
      {"tiff-deep", "deep.tif", "deep.tif", encoded(".tif", CV_16UC1)},
      {"bmp", "seed.bmp", "seed.bmp", encoded(".bmp", CV_8UC3)},
      {"pgm", "seed.pgm", "seed.pgm", encoded(".pgm", CV_8UC1)},
      {"wav", "seed.wav", "seed.wav", sound(folder / "scratch.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16)},
      {"wav-float", "float.wav", "float.wav", sound(folder / "scratch.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT)},
      {"wav-adpcm", "adpcm.wav", "adpcm.wav", sound(folder / "scratch.wav", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM)},
      {"aiff", "seed.aiff", "seed.aiff", sound(folder / "scratch.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_24)},
      {"flac", "seed.flac", "seed.flac", sound(folder / "scratch.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16)},
      {"labels-csv", "table/labels.csv", "table", "file,label\na.png,cat\nb.png,\"dog, big\"\na.png,3\n"},
  };
}

void run_case(const Seed& seed, const fs::path& folder, Tally& tally) {
  try {
    OpenedData opened((folder / seed.loaded).string());
    opened.view().for_each_piece(3, [](const at::Tensor&, std::int64_t) {});
    InputNeeds needs;
    needs.shape = {3, 8, 8};
    needs.intake.resize = Intake::Resize::fit;
    opened.view(needs).for_each_piece(3, [](const at::Tensor&, std::int64_t) {});
    ++tally.loaded;
  } catch (const Error& e) {
    // The fault is the file's, and the sentence must say so.
    if (e.code() != ErrorCode::bad_input) throw std::runtime_error(std::string("wrong error code: ") + e.what());
    ++tally.refused;
  }
}

int run(long cases, std::uint64_t seed_number) {
  init_runtime();
  TemporaryFolder folder("galvani-fuzz");
  std::vector<Seed> seeds = make_seeds(folder.path());
  std::vector<Tally> tallies(seeds.size());
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    write_file(folder / seeds[i].file, seeds[i].bytes);
    run_case(seeds[i], folder.path(), tallies[i]);
    if (tallies[i].refused != 0) {
      std::printf("%s: the undamaged file was refused\n", seeds[i].format.c_str());
      return 1;
    }
    tallies[i] = {};
  }
  int failures = 0;
  for (long i = 0; i < cases; ++i) {
    std::size_t which = static_cast<std::size_t>(i) % seeds.size();
    const Seed& seed = seeds[which];
    Rng rng = Rng(seed_number).derive(static_cast<std::uint64_t>(i));
    std::string damaged = mutate(seed.bytes, rng);
    if (seed.format.rfind("png", 0) == 0 && rng.chance(0.7)) repair_png(damaged);
    // Written before it is tried: a crash or an alarm leaves it behind.
    std::string kept = "fuzz-case-" + seed.format + ".bin";
    write_quickly(kept, damaged);
    write_quickly(folder / seed.file, damaged);
    alarm(kSecondsPerCase);
    bool good = true;
    try {
      run_case(seed, folder.path(), tallies[which]);
    } catch (const std::exception& e) {
      std::printf("%s, case %ld: %s\n", seed.format.c_str(), i, e.what());
      good = false;
    }
    alarm(0);
    if (good) {
      ::unlink(kept.c_str());
    } else {
      ::rename(kept.c_str(), ("fuzz-case-" + seed.format + "-" + std::to_string(i) + ".bin").c_str());
      ++failures;
    }
    write_quickly(folder / seed.file, seed.bytes);
  }
  for (std::size_t i = 0; i < seeds.size(); ++i)
    std::printf("%-14s %6ld loaded %6ld refused\n", seeds[i].format.c_str(), tallies[i].loaded, tallies[i].refused);
  std::printf("%ld cases, %d failures\n", cases, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace galvani

int main(int argc, char** argv) {
  long cases = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  return galvani::run(cases, seed);
}
