#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::client {

// A map from addresses to objects for the launch path: lookups take no lock and touch one or two cache lines.
//
// Thread safety: find() from any thread at any time; insert() under the owner's lock. Linear probing in a power-of-two
// table, at most half full. Growth publishes a new table; old ones are kept, because a reader may still be in one.
// Keys are never removed; a key that comes back (another object loaded at the same place) gets the new value.
template <class Value>
class FlatMap {
 public:
  FlatMap() = default;
  FlatMap(const FlatMap&) = delete;
  FlatMap& operator=(const FlatMap&) = delete;
  ~FlatMap() {
    for (Table* table : tables_) delete table;
  }

  // Null where `key` is not there.
  Value* find(const void* key) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (!table) return nullptr;
    for (size_t i = hash(key);; ++i) {
      const Entry& entry = table->entries[i & table->mask];
      const void* there = entry.key.load(std::memory_order_acquire);
      if (there == key) return entry.value.load(std::memory_order_acquire);
      if (!there) return nullptr;
    }
  }

  void insert(const void* key, Value* value) {
    Table* table = table_.load(std::memory_order_relaxed);
    if (!table || 2 * (count_ + 1) > table->entries.size()) table = grow(table);
    if (put(*table, key, value)) ++count_;
  }

 private:
  struct Entry {
    std::atomic<const void*> key{nullptr};
    std::atomic<Value*> value{nullptr};
  };
  struct Table {
    explicit Table(size_t size) : entries(size), mask(size - 1) {}
    std::vector<Entry> entries;
    size_t mask;
  };

  static size_t hash(const void* key) {
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15u) >> 32);
  }

  // The value before the key: a reader that sees the key finds it.
  static bool put(Table& table, const void* key, Value* value) {
    for (size_t i = hash(key);; ++i) {
      Entry& entry = table.entries[i & table.mask];
      const void* there = entry.key.load(std::memory_order_relaxed);
      if (there && there != key) continue;
      entry.value.store(value, std::memory_order_release);
      entry.key.store(key, std::memory_order_release);
      return !there;
    }
  }

  Table* grow(const Table* old) {
    auto* table = new Table(old ? old->entries.size() * 2 : 64);
    tables_.push_back(table);
    if (old) {
      for (const Entry& entry : old->entries) {
        if (const void* key = entry.key.load(std::memory_order_relaxed)) put(*table, key, entry.value.load());
      }
    }
    table_.store(table, std::memory_order_release);
    return table;
  }

  std::atomic<Table*> table_{nullptr};
  std::vector<Table*> tables_;
  size_t count_ = 0;
};

}  // namespace heddle::client
