#pragma once

#include <string>
#include <vector>

#include "cli/json.h"

namespace heddle::cli {

// A table for people: columns as wide as their widest cell, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  // Cells may be tenants' texts: what a terminal would obey is shown instead.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

void print(const std::string& text);  // to stdout
void print_json(const Json& json);    // indented, to stdout
int report(const Error& error);       // "heddle: text" to stderr; returns kFailure

// Fields of heddled's answers; the fallback where a field is missing or of another type.
std::string string_of(const Json& object, const char* key, const std::string& fallback = "");
double number_of(const Json& object, const char* key, double fallback = 0);
// A whole number; 0 if there is none. -1, which heddled answers for "no device", becomes the largest.
uint64_t count_of(const Json& object, const char* key);
std::string bytes_of(const Json& object, const char* key);

}  // namespace heddle::cli
