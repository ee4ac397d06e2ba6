#include "worker/variables.h"

#include <algorithm>

#include "core/clock.h"
#include "core/log.h"

namespace heddle::worker {
namespace {

// What a save takes, it may take again after so many times that.
constexpr int kRest = 100;

constexpr uint64_t kAlignment = 16;

}  // namespace

void Variables::note_modules() {
  for (; noted_ < modules_.loaded_count(); ++noted_) {
    const Modules::Loaded& loaded = modules_.loaded_at(noted_);
    if (!commit_.loaded({loaded.id, loaded.addresses})) note(protocol::Obstacle::kModules);
    if (loaded.holds_addresses) tell_addresses();
  }
}

// Modules were loaded since the last were noted, and noting them will obstruct.
bool Variables::new_modules_obstruct() const {
  if (modules_.loaded_count() > protocol::ControlPage::kMostModules) return true;
  for (uint64_t index = noted_; index < modules_.loaded_count(); ++index) {
    if (modules_.loaded_at(index).holds_addresses && !stay_) return true;
  }
  return false;
}

bool Variables::would_obstruct(bool names_one) const {
  if (obstructed_) return false;
  const bool writes = names_one || modules_.writable_bytes() != 0;
  return new_modules_obstruct() || (writes && modules_.variable_bytes() > protocol::ControlPage::kVariableBytes.value);
}

bool Variables::would_obstruct(const KernelTraits& kernel) const {
  if (obstructed_) return false;
  const bool writes = kernel.writes_variables || (kernel.writes_through_parameters && addresses_told_);
  return kernel.allocates || (kernel.tells_addresses && !stay_) || new_modules_obstruct() ||
         (writes && would_obstruct(false));
}

void Variables::about_to_run(uint64_t sequence, bool names_one) {
  if (noted_ != modules_.loaded_count()) note_modules();
  if (!names_one && modules_.writable_bytes() == 0) return;
  if (modules_.variable_bytes() > protocol::ControlPage::kVariableBytes.value) note(protocol::Obstacle::kVariables);
  written_ = sequence;
  if (!commit_.holding()) commit_.writes_variables(sequence);
}

void Variables::about_to_launch(uint64_t sequence, const KernelTraits& kernel) {
  if (noted_ != modules_.loaded_count()) note_modules();
  if (kernel.allocates) note(protocol::Obstacle::kDeviceMalloc);
  if (kernel.writes_variables || (kernel.writes_through_parameters && addresses_told_)) about_to_run(sequence);
  if (kernel.tells_addresses) tell_addresses();
}

void Variables::tell_addresses() {
  addresses_told_ = true;
  if (!stay_) note(protocol::Obstacle::kAddresses);
}

void Variables::save_if_due(uint64_t sequence, TimePoint now) {
  if (!to_be_saved() || now < due_) return;
  if (!save(sequence)) return note(protocol::Obstacle::kNotSaved);
  const TimePoint after = MonotonicClock().now();
  due_ = after + kRest * (after - now);
}

bool Variables::save_now(uint64_t sequence) {
  if (to_be_saved() && !save(sequence)) note(protocol::Obstacle::kNotSaved);
  return !obstructed_;
}

void Variables::commit(uint64_t sequence, TimePoint now, bool always) {
  if (always) {
    (void)save_now(sequence);
  } else {
    save_if_due(sequence, now);
  }
  note_uncommitted();
}

bool Variables::save(uint64_t sequence) {
  const uint64_t counts = commit_.log().variables_saved;
  if (!move(Way::kSave, noted_, saved_.begin(counts))) return false;
  saved_.publish(counts, noted_, sequence);
  kept_ = sequence;
  progress_.saved_variables(sequence);
  return true;
}

Checked<void> Variables::restore(const protocol::LogState& log) {
  if (stay_) tell_addresses();  // its forerunner's records may have; else they were in the way
  for (uint64_t index = 0; index < log.modules; ++index) {
    if (auto loaded = load_again(index); !loaded) return loaded;
  }
  noted_ = log.modules;
  written_ = log.variables_written;
  kept_ = log.variables_saved;
  if (log.variables_written == 0 && log.variables_saved == 0) return {};
  if (log.obstacle != protocol::Obstacle::kNone)
    return refused(kCudaLaunchFailure,
                   "its worker ended between two tasks, and no other can have what its modules' variables held");
  const auto saved = saved_.at(log.variables_saved);
  if (!log.variables_are_saved() || !saved)
    return refused(kCudaLaunchFailure, "its worker ended, and what the variables of its modules held was not saved");
  // Read only; a copy's source is no span of constants.
  const std::span area(const_cast<std::byte*>(saved->bytes.data()), saved->bytes.size());
  if (!move(Way::kRestore, std::min(saved->modules, log.modules), area))
    return refused(kCudaLaunchFailure, "its worker ended, and the next one could not write its modules' variables");
  return {};
}

Checked<void> Variables::load_again(uint64_t index) {
  const protocol::LoadedModule before = commit_.loaded_module(index);
  if (before.module == 0 || !modules_.known(before.module))
    return malformed("the worker before had loaded module %u, which there is not", before.module);
  if (auto loaded = modules_.load(before.module); !loaded) return loaded;
  if (index >= modules_.loaded_count() || modules_.loaded_at(index).id != before.module)
    return malformed("the worker before had loaded module %u twice", before.module);
  if (!stay_ || modules_.loaded_at(index).addresses == before.addresses) return {};
  return refused(kCudaLaunchFailure,
                 "its worker ended, and in the next one the variables of module %u have other addresses than those "
                 "that the program may know (cudaGetSymbolAddress)",
                 before.module);
}

bool Variables::move(Way way, uint64_t count, std::span<std::byte> area) {
  uint64_t at = 0;
  for (uint64_t index = 0; index < count && index < modules_.loaded_count(); ++index) {
    for (const device::Variable& variable : modules_.loaded_at(index).variables) {
      if (at > area.size() || variable.bytes > area.size() - at) return false;
      std::byte* const place = area.data() + at;
      void* const there = reinterpret_cast<void*>(variable.address);  // NOLINT(performance-no-int-to-ptr): the device's
      const Result<device::Tag> copied =
          way == Way::kSave ? copies_.copy(0, device::CopyDirection::kToHost, there, place, variable.bytes)
                            : copies_.copy(0, device::CopyDirection::kToDevice, place, there, variable.bytes);
      if (!copied) {
        logger("worker")->warn("the variables of module {}: {}", modules_.loaded_at(index).id, copied.error().text);
        (void)copies_.wait();
        return false;
      }
      at = round_up(at + variable.bytes, kAlignment);
    }
  }
  return copies_.wait();
}

void Variables::note(protocol::Obstacle obstacle) {
  if (std::exchange(obstructed_, true)) return;
  commit_.obstructed(obstacle);
}

}  // namespace heddle::worker
