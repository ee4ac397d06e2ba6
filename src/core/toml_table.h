#pragma once

#include <toml++/toml.h>

#include <limits>
#include <set>
#include <string>

#include "core/result.h"
#include "core/units.h"

namespace heddle {

// Reads one TOML table key by key. The first thing wrong is kept, with its file, line and key, and told by finish(),
// which also refuses keys that nobody asked for.
class TomlTable {
 public:
  TomlTable(const toml::table& table, std::string file, std::string section)
      : table_(table), file_(std::move(file)), section_(std::move(section)) {}

  // Each leaves the value as it is where the key is absent.
  void read(const char* key, std::string& value);
  void read(const char* key, bool& value);
  void read(const char* key, double& value);    // not below 0
  void read(const char* key, Bytes& value);     // "512M", or a number of bytes
  void read(const char* key, Duration& value);  // "200ms"
  void read(const char* key, uint32_t& value, uint32_t least = 0, uint32_t most = UINT32_MAX);
  void read_address(const char* key, uint64_t& value);

  // Somebody else reads `key`.
  void leave(const char* key) { known_.insert(key); }
  // Records an error about `key`.
  void wrong(const char* key, const std::string& what);
  Status finish();

 private:
  const toml::node* find(const char* key);
  std::string place(const toml::node* node, const char* key) const;

  const toml::table& table_;
  std::string file_, section_;
  std::set<std::string, std::less<>> known_;
  Status status_;
};

}  // namespace heddle
