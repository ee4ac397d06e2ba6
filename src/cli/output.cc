#include "cli/output.h"

#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "core/printable.h"
#include "core/units.h"

namespace heddle::cli {
namespace {

bool looks_like_a_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_of("0123456789") == (cell[0] == '-' || cell[0] == '+' ? 1u : 0u);
}

std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string text;
  for (size_t column = 0; column < cells.size(); ++column) {
    const std::string padding(widths[column] - std::min(widths[column], cells[column].size()), ' ');
    if (column) text += "  ";
    text += looks_like_a_number(cells[column]) ? padding + cells[column] : cells[column] + padding;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const std::string& cell : header_) widths.push_back(cell.size());
  for (const auto& row : rows_) {
    for (size_t column = 0; column < widths.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  }
  std::string text = line(header_, widths);
  for (const auto& row : rows_) text += line(row, widths);
  return text;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void print_json(const Json& json) {
  print(json_text(json, 2) + "\n");
}

int report(const Error& error) {
  std::fprintf(stderr, "heddle: %s\n", error.text.c_str());
  return kFailure;
}

std::string string_of(const Json& object, const char* key, const std::string& fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

uint64_t count_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? static_cast<uint64_t>(found->get<int64_t>()) : 0;
}

double number_of(const Json& object, const char* key, double fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : fallback;
}

std::string bytes_of(const Json& object, const char* key) {
  return to_string(Bytes{static_cast<uint64_t>(number_of(object, key))});
}

}  // namespace heddle::cli
