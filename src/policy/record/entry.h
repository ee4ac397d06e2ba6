#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "policy/decision.h"
#include "policy/device_spec.h"
#include "policy/dispatch/dispatch.h"
#include "policy/placement/history.h"
#include "policy/scheduler.h"

// Lines of an input log: a time in nanoseconds, what happened, and its fields, with a space between them. Numbers are
// decimal, texts begin with ' and have %XX for what is no plain character. What a value's fields are stands once, for
// writing and for reading.
namespace heddle::policy {

template <class Entry>
void fields(Entry& entry, ComputeNeed& need) {
  entry(need.blocks, need.threads_per_block, need.registers_per_thread, need.shared_per_block);
}
template <class Entry>
void fields(Entry& entry, TaskRequest& request) {
  entry(request.id, request.session, request.job, request.virtual_device, request.model, request.memory,
        request.compute, request.on_host);
}
template <class Entry>
void fields(Entry& entry, Service& service) {
  entry(service.busy, service.copies, service.bursts, service.longest_burst, service.merged_burst, service.longest_gap);
}
template <class Entry>
void fields(Entry& entry, KnownApp& known) {
  entry(known.app, known.entry.jobs, known.entry.busy, known.entry.utilization, known.entry.by_host);
}
template <class Entry>
void fields(Entry& entry, Lessee& lessee) {
  entry(lessee.session, lessee.virtual_device);
}
template <class Entry>
void fields(Entry& entry, Tenant& tenant) {
  entry(tenant.job, tenant.weight, tenant.request, tenant.limit, tenant.app);
}
template <class Entry>
void fields(Entry& entry, SmShare& share) {
  entry(share.blocks, share.warps, share.registers, share.shared);
}
template <class Entry>
void fields(Entry& entry, DeviceSpec& spec) {
  entry(spec.id, spec.name, spec.model, spec.memory, spec.context_memory, spec.sms, spec.sm.whole, spec.sm.warp_size,
        spec.sm.reserved_shared_bytes, spec.weight, spec.max_clients);
}
template <class Entry>
void fields(Entry& entry, Options& options) {
  entry(options.age_limit, options.memory_per_user, options.swaps);
}
template <class Entry>
void fields(Entry& entry, Decision& decision) {
  entry(decision.kind, decision.request, decision.task, decision.device, decision.memory, decision.error,
        decision.reason, decision.waited, decision.session, decision.virtual_device, decision.on_host);
}
template <class Entry>
void fields(Entry& entry, Lend& lend) {
  entry(lend.to, lend.until, lend.whole_bursts);
}
template <class Entry>
void fields(Entry& entry, Withdraw& withdraw) {
  entry(withdraw.from);
}

template <class T, class Entry>
concept HasFields = requires(Entry& entry, T& value) {
  fields(entry, value);
};

class EntryWriter {
 public:
  EntryWriter(TimePoint at, std::string_view event) {
    (*this)(at);
    line_ += ' ';
    line_ += event;
  }
  template <class... Values>
  EntryWriter& operator()(const Values&... values) {
    (put(values), ...);
    return *this;
  }
  const std::string& line() const { return line_; }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (HasFields<T, EntryWriter>) {
      fields(*this, const_cast<T&>(value));  // which only reads it here
    } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      number(static_cast<int64_t>(value));
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      text(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      number(value);
    } else if constexpr (std::is_same_v<T, Duration>) {
      number(value.count());
    } else if constexpr (std::is_same_v<T, TimePoint>) {
      number(value.time_since_epoch().count());
    } else {
      number(value.value);
    }
  }
  template <class T>
  void number(T value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    if (!line_.empty()) line_ += ' ';
    line_.append(digits, end);
  }
  void text(std::string_view value);

  std::string line_;
};

class EntryReader {
 public:
  // Of a line without its end.
  explicit EntryReader(std::string_view line) : rest_(line) {
    (*this)(at_);
    event_ = word();
  }
  TimePoint at() const { return at_; }
  std::string_view event() const { return event_; }

  template <class... Values>
  EntryReader& operator()(Values&... values) {
    (get(values), ...);
    return *this;
  }
  // Whether all that was asked for was there, and nothing else.
  bool complete() const { return good_ && rest_.empty(); }

 private:
  template <class T>
  void get(T& value) {
    if constexpr (HasFields<T, EntryReader>) {
      fields(*this, value);
    } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      int64_t code = 0;
      number(code);
      value = static_cast<T>(code);
    } else if constexpr (std::is_same_v<T, std::string>) {
      text(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      number(value);
    } else if constexpr (std::is_same_v<T, Duration>) {
      int64_t count = 0;
      number(count);
      value = Duration(count);
    } else if constexpr (std::is_same_v<T, TimePoint>) {
      int64_t count = 0;
      number(count);
      value = TimePoint(Duration(count));
    } else {
      number(value.value);
    }
  }
  template <class T>
  void number(T& value) {
    const std::string_view digits = word();
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    good_ = good_ && read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  }
  void text(std::string& value);
  std::string_view word();

  std::string_view rest_, event_;
  TimePoint at_{};
  bool good_ = true;
};

}  // namespace heddle::policy
