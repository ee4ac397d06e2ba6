#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>

namespace heddle::daemon {

// What is with the vault: (kind, key) -> note and descriptor, in the order in which each pair first came. The vault
// owns its descriptors (Handle = Fd); heddled keeps the same list over borrowed ones (Handle = int), to fill a new
// vault.
template <class Handle>
class Deposits {
 public:
  struct Item {
    uint64_t kind, key;
    std::string note;
    Handle handle;
  };

  // A pair that is there already keeps its place and gets the new note and handle.
  void put(uint64_t kind, uint64_t key, std::string note, Handle handle) {
    const auto found = index_.find({kind, key});
    if (found != index_.end()) {
      found->second->note = std::move(note);
      found->second->handle = std::move(handle);
      return;
    }
    items_.push_back({kind, key, std::move(note), std::move(handle)});
    index_[{kind, key}] = std::prev(items_.end());
  }
  // Nothing where there is none.
  void take_away(uint64_t kind, uint64_t key) {
    const auto found = index_.find({kind, key});
    if (found == index_.end()) return;
    items_.erase(found->second);
    index_.erase(found);
  }
  // Null where there is none; stays valid until the pair is taken away.
  const Item* find(uint64_t kind, uint64_t key) const {
    const auto found = index_.find({kind, key});
    return found == index_.end() ? nullptr : &*found->second;
  }
  const std::list<Item>& items() const { return items_; }

 private:
  std::list<Item> items_;
  std::map<std::pair<uint64_t, uint64_t>, typename std::list<Item>::iterator> index_;
};

}  // namespace heddle::daemon
