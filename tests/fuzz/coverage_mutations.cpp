// Loads damaged profiles and coverage states, half of them with a checksum made right again so that the damage gets
// past it. Each must load and be of use, or be refused with an Error; anything else, a crash or ten seconds of work
// included, is a failure.
//
//   fuzz_coverage [cases] [seed]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "coverage/testing.h"
#include "galvani/base/error.h"
#include "galvani/base/files.h"
#include "galvani/base/runtime.h"
#include "mutate_bytes.h"

namespace galvani {
namespace {

constexpr unsigned kSecondsPerCase = 10;
constexpr const char* kCriteria =
    "nc,kmnc,nbc,snac,tknc,tknp,cc,lsc,dsc:upper=2,mdsc,cac:splits=3,nlc,npc:clusters=2,nlc:order=free";

class Target {
 public:
  Target()
      : layout_(testing::layout_of({5, 1, 12})),
        traces_(testing::made_up(layout_, 40, 2)),
        profile_(testing::profile_of(layout_, kCriteria, testing::made_up(layout_, 60, 1))) {
    profile_->save(profile_file());
    auto criteria = make(profile_);
    for (const auto& criterion : criteria) criterion->add(traces_);
    save_states(state_file(), criteria, layout_);
    profile_bytes_ = read_file(profile_file());
    state_bytes_ = read_file(state_file());
    profile_payload_ = read_sealed(profile_file(), "profile", 1);
    state_payload_ = read_sealed(state_file(), "coverage state", 1);
  }

  std::string damaged(bool profile, Rng& rng) const {
    if (rng.chance(0.5)) return mutate(profile ? profile_bytes_ : state_bytes_, rng);
    std::string payload = mutate(profile ? profile_payload_ : state_payload_, rng);
    return sealed_bytes(profile ? "profile" : "coverage state", 1, payload);
  }

  // True if it was loaded.
  bool try_profile(const std::string& bytes) const {
    write_quickly(profile_file(), bytes);
    try {
      use(make(Profile::load(profile_file(), layout_)));
      return true;
    } catch (const Error& e) {
      check(e);
      return false;
    }
  }
  bool try_state(const std::string& bytes) const {
    write_quickly(state_file(), bytes);
    try {
      auto criteria = make(profile_);
      merge_states(state_file(), criteria, layout_);
      use(criteria);
      return true;
    } catch (const Error& e) {
      check(e);
      return false;
    }
  }

 private:
  std::filesystem::path profile_file() const { return folder_ / "p"; }
  std::filesystem::path state_file() const { return folder_ / "s"; }

  static void write_quickly(const std::filesystem::path& path, const std::string& bytes) {
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::vector<std::unique_ptr<Criterion>> make(const std::shared_ptr<const Profile>& profile) const {
    return make_criteria(kCriteria, {layout_, profile});
  }
  void use(const std::vector<std::unique_ptr<Criterion>>& criteria) const {
    for (const auto& criterion : criteria) {
      criterion->add(traces_);
      criterion->by_tap();
      criterion->notes();
    }
  }
  static void check(const Error& e) {
    // A profile whose parts were renamed lacks what a criterion asks for, which is a usage error; the rest is the
    // file's fault.
    bool lacking = e.code() == ErrorCode::usage && std::string(e.what()).find("does not have") != std::string::npos;
    if (e.code() != ErrorCode::bad_input && !lacking)
      throw std::runtime_error(std::string("wrong error code: ") + e.what());
  }

  TemporaryFolder folder_{"galvani-fuzz"};
  TraceLayout layout_;
  Traces traces_;
  std::shared_ptr<const Profile> profile_;
  std::string profile_bytes_, state_bytes_, profile_payload_, state_payload_;
};

int run(long cases, std::uint64_t seed) {
  init_runtime();
  Target target;
  long loaded = 0;
  int failures = 0;
  for (long i = 0; i < cases; ++i) {
    Rng rng = Rng(seed).derive(static_cast<std::uint64_t>(i));
    bool profile = i % 2 == 0;
    std::string bytes = target.damaged(profile, rng);
    alarm(kSecondsPerCase);
    try {
      loaded += (profile ? target.try_profile(bytes) : target.try_state(bytes)) ? 1 : 0;
    } catch (const std::exception& e) {
      std::printf("case %ld (%s): %s\n", i, profile ? "profile" : "state", e.what());
      ++failures;
    }
    alarm(0);
  }
  std::printf("%ld cases, %ld loaded, %ld refused, %d failures\n", cases, loaded, cases - loaded - failures, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace galvani

int main(int argc, char** argv) {
  long cases = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  return galvani::run(cases, seed);
}
