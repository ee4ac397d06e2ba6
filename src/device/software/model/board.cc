#include "device/software/model/board.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <mutex>

#include "core/clock.h"
#include "core/sanitizer.h"

namespace heddle::software {
namespace {

// The lock is held for microseconds. A process that was stopped inside of it holds everybody up until then.
constexpr int kLockPatienceSeconds = 20;

timespec to_timespec(TimePoint at) {
  int64_t ns = std::max<int64_t>(at.time_since_epoch().count(), 0);
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

void make_robust(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

// Excludes other processes (by a record lock, which the kernel drops when its holder dies) and other threads of this
// one, while a fresh board is made.
class MakingLock {
 public:
  explicit MakingLock(int fd) : threads_(mutex()), fd_(fd) {
    while ((held_ = set(F_WRLCK, F_SETLKW)) == false && errno == EINTR) {
    }
  }
  ~MakingLock() {
    if (held_) set(F_UNLCK, F_SETLK);
  }
  explicit operator bool() const { return held_; }

 private:
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  bool set(short type, int command) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_len = 1;
    return fcntl(fd_, command, &range) == 0;
  }

  std::lock_guard<std::mutex> threads_;
  int fd_;
  bool held_ = false;
};

constexpr size_t offset_of_clients() {
  return round_up(sizeof(BoardHeader), 64);
}
constexpr size_t offset_of_sms() {
  return round_up(offset_of_clients() + kMostClients * sizeof(ClientRecord), 64);
}
size_t offset_of_slots(const DeviceModel& model) {
  return round_up(offset_of_sms() + model.sms * sizeof(SmRecord), 64);
}

template <class T>
std::span<T> records(const Mapping& mapping, size_t offset, size_t count) {
  return {reinterpret_cast<T*>(static_cast<std::byte*>(mapping.data()) + offset), count};
}

}  // namespace

Bytes Board::bytes(const DeviceModel& model) {
  size_t slots = size_t{model.sms} * model.max_blocks_per_sm * sizeof(SlotRecord);
  return Bytes{round_up(offset_of_slots(model) + slots, 4 * kKiB)};
}

Board::Board(const DeviceModel& model, Mapping mapping)
    : mapping_(std::move(mapping)),
      whole_sm_(sm_of(model).whole),
      sms_(model.sms),
      slots_per_sm_(model.max_blocks_per_sm),
      clients_(records<ClientRecord>(mapping_, offset_of_clients(), kMostClients)),
      sm_records_(records<SmRecord>(mapping_, offset_of_sms(), sms_)),
      slots_(records<SlotRecord>(mapping_, offset_of_slots(model), size_t{sms_} * slots_per_sm_)) {}

Result<Board> Board::open(const DeviceModel& model, const Fd& memory) {
  auto size = sealed_size(memory);
  if (!size) return tl::unexpected(size.error());
  if (*size < bytes(model))
    return fail(ErrorCode::kInvalidArgument, "the board of device '%.63s' has %llu bytes, it needs %llu", model.name,
                static_cast<unsigned long long>(size->value), static_cast<unsigned long long>(bytes(model).value));
  auto mapping = map_shared(memory, bytes(model));
  if (!mapping) return tl::unexpected(mapping.error());
  Board board(model, std::move(*mapping));
  HEDDLE_TRY(board.prepare(memory));
  return board;
}

Status Board::prepare(const Fd& memory) {
  MakingLock making(memory.get());
  if (!making) return fail_errno(-1, "locking the board of the device");
  BoardHeader& board = header();
  if (board.state == 0) make_fresh();
  if (board.version != kBoardVersion || board.sms != sms_ || board.slots_per_sm != slots_per_sm_)
    return fail(ErrorCode::kInvalidArgument,
                "the board is of version %u for %u SMs of %u blocks; this device needs version %u for %u of %u",
                board.version, board.sms, board.slots_per_sm, kBoardVersion, sms_, slots_per_sm_);
  return {};
}

// Killed half-way, the next process begins again: `state` comes last, and nobody uses the board before.
void Board::make_fresh() {
  BoardHeader& board = header();
  make_robust(board.lock);
  for (ClientRecord& client : clients_) make_robust(client.life);
  board.version = kBoardVersion;
  board.sms = sms_;
  board.slots_per_sm = slots_per_sm_;
  __atomic_store_n(&board.state, 1, __ATOMIC_RELEASE);
}

Status Board::attach(uint32_t sms) {
  auto locked = lock();
  if (!locked) return tl::unexpected(locked.error());
  TimePoint now = MonotonicClock().now();
  locked->sweep(now);
  for (uint32_t i = 0; i < kMostClients; ++i) {
    if (clients_[i].attached) continue;
    int taken = pthread_mutex_trylock(&clients_[i].life);
    if (taken == EOWNERDEAD) taken = pthread_mutex_consistent(&clients_[i].life);
    if (taken != 0) continue;
    clients_[i].attached = 1;
    clients_[i].sms = sms == 0 ? sms_ : std::min(sms, sms_);
    self_ = i;
    locked->reclaim(i, now);  // of a client that died before it could say that it was there
    return {};
  }
  return fail(ErrorCode::kLimitExceeded, "the device has %u contexts already", kMostClients);
}

void Board::detach() {
  if (self_ == kMostClients) return;
  auto locked = lock();
  if (!locked) return;  // whoever gets the lock will find this client gone
  locked->reclaim(self_, MonotonicClock().now());
  clients_[self_].attached = 0;
  pthread_mutex_unlock(&clients_[self_].life);
  self_ = kMostClients;
}

Result<BoardLock> Board::lock() {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);  // a clock that is set meanwhile only changes how patient we are
  until.tv_sec += kLockPatienceSeconds;
  int error = pthread_mutex_timedlock(&header().lock, &until);
  if (error == EOWNERDEAD) {
    tell_sanitizer_of_lock(header().lock);
    repair();
    error = pthread_mutex_consistent(&header().lock);
  }
  if (error == ETIMEDOUT)
    return fail(ErrorCode::kTimeout, "the board of the device has been locked for %d s by another process",
                kLockPatienceSeconds);
  if (error != 0) return fail_errno(error, "locking the board of the device");
  return BoardLock(*this);
}

// Sums and hints, from the slots and the waiting lists.
void Board::repair() {
  for (uint32_t sm = 0; sm < sms_; ++sm) {
    SmShare used;
    for (const SlotRecord& slot : slots_.subspan(size_t{sm} * slots_per_sm_, slots_per_sm_)) {
      if (slot.holder != 0) used = together(used, slot.held);
    }
    sm_records_[sm].used = sm_records_[sm].used_before = used;
  }
  for (ClientRecord& client : clients_) client.uncollected = 1;
}

uint32_t Board::bell() const {
  return __atomic_load_n(&clients_[self_].doorbell, __ATOMIC_ACQUIRE);
}

void Board::ring(uint32_t client) {
  if (client >= kMostClients) return;
  uint32_t* bell = &clients_[client].doorbell;
  __atomic_add_fetch(bell, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Board::sleep(uint32_t seen, TimePoint until) {
  timespec deadline = to_timespec(until);
  syscall(SYS_futex, &clients_[self_].doorbell, FUTEX_WAIT_BITSET, seen, &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace heddle::software
