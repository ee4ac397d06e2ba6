#include "core/toml_table.h"

namespace heddle {

const toml::node* TomlTable::find(const char* key) {
  known_.insert(key);
  return table_.get(key);
}

std::string TomlTable::place(const toml::node* node, const char* key) const {
  const unsigned line = node ? node->source().begin.line : table_.source().begin.line;
  return stringf("%s:%u: %s.%s", file_.c_str(), line, section_.c_str(), key);
}

void TomlTable::wrong(const char* key, const std::string& what) {
  if (!status_) return;
  status_ = fail(ErrorCode::kInvalidArgument, "%s: %s", place(table_.get(key), key).c_str(), what.c_str());
}

void TomlTable::read(const char* key, std::string& value) {
  const toml::node* node = find(key);
  if (!node) return;
  if (const auto text = node->value_exact<std::string>()) {
    value = *text;
  } else {
    wrong(key, "a text in quotes is wanted");
  }
}

void TomlTable::read(const char* key, bool& value) {
  const toml::node* node = find(key);
  if (!node) return;
  if (const auto truth = node->value_exact<bool>()) {
    value = *truth;
  } else {
    wrong(key, "true or false is wanted");
  }
}

void TomlTable::read(const char* key, double& value) {
  const toml::node* node = find(key);
  if (!node) return;
  const auto number = node->is_number() ? node->value<double>() : std::nullopt;
  if (number && *number >= 0 && *number < std::numeric_limits<double>::infinity()) {
    value = *number;
  } else {
    wrong(key, "a number from 0 is wanted");
  }
}

void TomlTable::read(const char* key, Bytes& value) {
  const toml::node* node = find(key);
  if (!node) return;
  if (const auto number = node->value_exact<int64_t>()) {
    if (*number < 0) return wrong(key, stringf("%ld bytes make no sense", static_cast<long>(*number)));
    value = Bytes{static_cast<uint64_t>(*number)};
    return;
  }
  const auto parsed = parse_bytes(node->value_or(std::string()));
  if (!parsed) return wrong(key, parsed.error().text);
  value = *parsed;
}

void TomlTable::read(const char* key, Duration& value) {
  const toml::node* node = find(key);
  if (!node) return;
  const auto parsed = parse_duration(node->value_or(std::string()));
  if (!parsed) return wrong(key, parsed.error().text);
  value = *parsed;
}

void TomlTable::read(const char* key, uint32_t& value, uint32_t least, uint32_t most) {
  const toml::node* node = find(key);
  if (!node) return;
  const auto number = node->value_exact<int64_t>();
  if (number && *number >= least && *number <= most) {
    value = static_cast<uint32_t>(*number);
    return;
  }
  const std::string seen = number ? stringf("it is %ld, but ", static_cast<long>(*number)) : "";
  wrong(key, seen + stringf("a whole number from %u to %u is wanted", least, most));
}

void TomlTable::read_address(const char* key, uint64_t& value) {
  const toml::node* node = find(key);
  if (!node) return;
  const auto number = node->value_exact<int64_t>();
  if (!number || *number <= 0) return wrong(key, "an address like 0x10000000000 is wanted");
  value = static_cast<uint64_t>(*number);
}

Status TomlTable::finish() {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (!known_.contains(name) && status_)
      status_ = fail(ErrorCode::kInvalidArgument, "%s: no such key", place(&node, name.c_str()).c_str());
  }
  return status_;
}

}  // namespace heddle
