#pragma once

#include <optional>

#include "protocol/ring_reader.h"

namespace heddle::worker {

// Whether the ring holds work of other streams behind a record that has to wait: then these wait for no reason of their
// own, as where a program fills one stream after the other. Reads each record once, and changes nothing. Issuer's
// thread only.
class LookAhead {
 public:
  // Behind `waiting`, which was the last that `reader` took.
  bool others_follow(const protocol::Record& waiting, const protocol::RingReader& reader);
  // The same of records that the device never sees, too: the program may wait for what they are answered.
  bool anything_else_follows(const protocol::Record& waiting, const protocol::RingReader& reader);

 private:
  void read_on(const protocol::Record& waiting, const protocol::RingReader& reader);
  struct Seen {
    uint64_t sequence = 0;
    uint32_t stream = 0;
  };

  std::optional<protocol::RingReader> ahead_;
  protocol::Record record_{};
  Seen latest_, other_;  // of all work that was seen; of streams other than that one's
  uint64_t plain_ = 0;   // sequence of the latest record that was no work
};

}  // namespace heddle::worker
