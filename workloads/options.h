// The command line of the workloads: options that explain themselves, and the frame that every main() has.
#pragma once

#include <cerrno>
#include <chrono>
#include <functional>
#include <new>
#include <thread>

#include "common.h"

namespace workload {

// The options that every program has.
struct CommonOptions {
  long long iterations = 1;
  long long seed = 1;
  long long blocks = 0;
  long long gap = 0;
  Check check = Check::kFull;
  bool footprint = false;
};

// Parses `--name value` and `--name=value`, and writes the help. Numbers take the suffixes k, m and g (powers of 1024).
class Options {
 public:
  // `sampling` says in the help what `--check sample` looks at.
  Options(const char* program, std::string summary, CommonOptions* common, const char* sampling)
      : summary_(std::move(summary)), common_(common), sampling_(sampling) {
    program_name = program;
  }

  void number(const char* name, long long* value, long long least, long long most, const char* help) {
    numbers_.push_back({name, value, least, most, help});
  }
  void iterations(long long most, const char* help) { number("--iterations", &common_->iterations, 1, most, help); }
  void blocks() {
    number("--blocks", &common_->blocks, 0, std::numeric_limits<int>::max(),
           "at most so many blocks a launch, to use part of a device; 0: as many as the data asks for");
  }
  void gap(const char* help) { number("--gap", &common_->gap, 0, 1 << 20, help); }
  void choice(const char* name, std::string* value, std::vector<std::string> allowed, const char* help) {
    choices_.push_back({name, value, std::move(allowed), help});
  }

  // Ends the program after --help, and with kExitUsage after anything that it does not understand.
  void parse(int argc, char** argv) {
    std::string check = "full";
    number("--seed", &common_->seed, 0, std::numeric_limits<long long>::max(), "seed of the input data");
    choice("--check", &check, {"full", "sample", "none"}, sampling_);
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i];
      if (name == "--help" || name == "-h") help();
      if (name == "--footprint") {
        common_->footprint = true;
        continue;
      }
      const size_t equals = name.find('=');
      if (equals != std::string::npos) {
        assign(name.substr(0, equals), name.substr(equals + 1));
      } else {
        if (i + 1 == argc) usage("the option " + name + " is not known or lacks its value");
        assign(name, argv[++i]);
      }
    }
    common_->check = check == "full" ? Check::kFull : check == "sample" ? Check::kSample : Check::kNone;
  }

  [[noreturn]] static void usage(const std::string& problem) {
    std::fprintf(stderr, "%s: %s; see %s --help\n", program_name, problem.c_str(), program_name);
    std::exit(kExitUsage);
  }

 private:
  struct Number {
    std::string name;
    long long* value;
    long long least, most;
    const char* help;
  };
  struct Choice {
    std::string name;
    std::string* value;
    std::vector<std::string> allowed;
    const char* help;
  };

  void assign(const std::string& name, const std::string& text) {
    for (const Number& option : numbers_) {
      if (option.name == name) return assign_number(option, text);
    }
    for (const Choice& option : choices_) {
      if (option.name == name) return assign_choice(option, text);
    }
    usage("the option " + name + " is not known");
  }

  static void assign_number(const Number& option, const std::string& text) {
    char* end = nullptr;
    errno = 0;
    long long value = std::strtoll(text.c_str(), &end, 10);
    const char* suffixes = "kmg";
    const char* suffix = *end != 0 ? std::strchr(suffixes, *end | 0x20) : nullptr;
    bool fits = errno == 0 && end != text.c_str();
    if (suffix != nullptr) {
      fits = fits && !__builtin_mul_overflow(value, 1LL << (10 * (suffix - suffixes + 1)), &value);
      ++end;
    }
    if (!fits || *end != 0 || value < option.least || value > option.most) {
      usage(option.name + " is '" + text + "', but must be a number from " + std::to_string(option.least) + " to " +
            std::to_string(option.most));
    }
    *option.value = value;
  }

  static void assign_choice(const Choice& option, const std::string& text) {
    if (std::find(option.allowed.begin(), option.allowed.end(), text) == option.allowed.end()) {
      usage(option.name + " is '" + text + "', but must be one of " + joined(option.allowed));
    }
    *option.value = text;
  }

  static std::string joined(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
    return all;
  }

  [[noreturn]] void help() const {
    std::printf("%s: %s\n\nOptions (numbers take the suffixes k, m, g: powers of 1024):\n", program_name,
                summary_.c_str());
    for (const Number& option : numbers_) {
      std::printf("  %-13s %s (%lld)\n", option.name.c_str(), option.help, *option.value);
    }
    for (const Choice& option : choices_) {
      std::printf("  %-13s %s; one of %s (%s)\n", option.name.c_str(), option.help, joined(option.allowed).c_str(),
                  option.value->c_str());
    }
    std::printf("  %-13s print the bytes of device memory that these options need, and stop\n", "--footprint");
    std::printf(
        "  %-13s this text\n\nExit: 0 right, 1 a CUDA call or host memory failed, 2 wrong result, 64 wrong usage\n",
        "--help");
    std::exit(0);
  }

  std::string summary_;
  CommonOptions* common_;
  const char* sampling_;
  std::vector<Number> numbers_;
  std::vector<Choice> choices_;
};

// The host's time in an iteration, where a program has --gap.
inline void pause(const CommonOptions& common) {
  if (common.gap > 0) std::this_thread::sleep_for(std::chrono::milliseconds(common.gap));
}

// The same behind an iteration whose results the host waits for.
inline void wait_and_pause(const CommonOptions& common) {
  if (common.gap > 0) CUDA_CHECK(cudaDeviceSynchronize());
  pause(common);
}

// Prints the footprint in bytes, or runs the program; running out of host memory is an error like any other.
inline int run_or_print(const CommonOptions& common, size_t footprint, const std::function<int()>& run) {
  if (common.footprint) {
    std::printf("%zu\n", footprint);
    return 0;
  }
  try {
    return run();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of host memory\n", program_name);
    return kExitError;
  }
}

}  // namespace workload
