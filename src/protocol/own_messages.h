#pragma once

// Messages between heddled and processes of its own that no program's work reaches: the vault and the keepers. Types
// and rules are those of messages.h.

#include "protocol/messages.h"

namespace heddle::protocol {

// The vault keeps (key, note, descriptor); it understands none of them. Deposits and withdrawals come in groups: with
// `more` another of the same group follows, and the vault changes nothing before it has all of it.
inline constexpr uint32_t kMaxNoteBytes = 512;
struct Deposit {
  static constexpr MessageType kType = MessageType::kDeposit;
  uint64_t kind = 0, key = 0;
  uint32_t note_bytes = 0, more = 0;
  char note[kMaxNoteBytes] = {};
};
struct Restored : Deposit {
  static constexpr MessageType kType = MessageType::kRestored;
};
struct Withdraw {
  static constexpr MessageType kType = MessageType::kWithdraw;
  uint64_t kind = 0, key = 0;
  uint32_t more = 0, reserved = 0;
};
struct AllRestored {
  static constexpr MessageType kType = MessageType::kAllRestored;
  uint64_t reserved = 0;
};
// heddled -> keeper: `bytes` of device memory, a multiple of 2 MiB, or of this machine's memory that the GPU reaches;
// all zero, but for swap space, which programs never map. Answers come in order.
struct MakeMemory {
  static constexpr MessageType kType = MessageType::kMakeMemory;
  uint64_t bytes = 0;
  uint32_t on_host = 0, reserved = 0;
  // Of swap space: a number that nothing else had. The keeper has it mapped under this number until UnmapMemory.
  uint64_t mapping = 0;
};
// keeper -> heddled. Descriptor: the memory, unless `error` (an ErrorCode) says why there is none.
struct MemoryMade {
  static constexpr MessageType kType = MessageType::kMemoryMade;
  uint64_t bytes = 0;
  uint32_t error = 0, reserved = 0;
  char text[256] = {};
};
// heddled -> keeper. Descriptor: `bytes` of memory that the keeper made and that nobody can touch any more. No answer.
struct TakeBack {
  static constexpr MessageType kType = MessageType::kTakeBack;
  uint64_t bytes = 0;
};
// heddled -> keeper: of what it has back it keeps so much ready, and gives the rest to the driver. No answer.
struct KeepAtMost {
  static constexpr MessageType kType = MessageType::kKeepAtMost;
  uint64_t bytes = 0;
};
// keeper -> heddled, about once a second, between the answers: what the GPU has left, whoever uses the rest. What the
// keeper has back is left.
struct MemoryLeft {
  static constexpr MessageType kType = MessageType::kMemoryLeft;
  uint64_t bytes = 0;
};

// heddled -> keeper, of the destination's GPU. Descriptors: the two segments' memory. Addresses count from their
// starts. Copies take their time, other requests are answered meanwhile, and one copy's answer may overtake another's.
struct CopyMemory {
  static constexpr MessageType kType = MessageType::kCopyMemory;
  uint64_t copy = 0;  // its number
  uint64_t to_bytes = 0, from_bytes = 0;
  PeerEnd to, from;
  uint64_t width = 0, height = 0, depth = 0;
  // The numbers of swap space that the keeper may have mapped; what it has not it maps, and keeps. 0: not to be kept.
  uint64_t to_mapping = 0, from_mapping = 0;
};
// heddled -> keeper: the copy is not wanted any more; it is answered, done or not, as soon as nothing of it runs.
struct CancelCopy {
  static constexpr MessageType kType = MessageType::kCancelCopy;
  uint64_t copy = 0;
};
// heddled -> keeper: the swap space is not used any more. Nothing happens where it is not mapped. No answer.
struct UnmapMemory {
  static constexpr MessageType kType = MessageType::kUnmapMemory;
  uint64_t mapping = 0;
};
// keeper -> heddled. `error` (an ErrorCode) and `text` say why it was not done.
struct MemoryCopied {
  static constexpr MessageType kType = MessageType::kMemoryCopied;
  uint64_t copy = 0;
  uint32_t error = 0, reserved = 0;
  char text[256] = {};
};

// heddled ends on purpose: the vault ends too instead of starting another.
struct Shutdown {
  static constexpr MessageType kType = MessageType::kShutdown;
  uint64_t reserved = 0;
};

}  // namespace heddle::protocol
