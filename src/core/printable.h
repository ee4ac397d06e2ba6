#pragma once

#include <string>
#include <string_view>

namespace heddle {

// The text as one line that a terminal or a log shows and does not obey: control characters (those of ASCII and of
// Latin 1 in UTF-8) and bytes that are no UTF-8 become "\n", "\t" or "\x1b" in letters. For names and texts that come
// from tenants.
std::string printable(std::string_view text);

}  // namespace heddle
