#include "cli/json.h"

namespace heddle::cli {

Result<Json> parse_json(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(ErrorCode::kProtocol, "not JSON: '%.60s'", text.c_str());
  return json;
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace heddle::cli
