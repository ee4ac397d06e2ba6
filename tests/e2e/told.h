#pragma once

#include <algorithm>
#include <iterator>

#include "node.h"

namespace heddle::e2e {

// Whether a program that has failed was told a reason for which its work may be lost (docs/revocation.md).
inline bool is_told_why(const Finished& finished) {
  static constexpr const char* kReasons[] = {
      "work of the program's was under way",       // that cannot be run again
      "variables were written and not saved yet",  // for some milliseconds
      "before it ended at the same place",         // as others did there
      "the GPU's keeper was lost twice"            // while it made or copied the same memory
  };
  return finished.status == 1 && std::any_of(std::begin(kReasons), std::end(kReasons), [&](const char* reason) {
           return finished.err.find(reason) != std::string::npos;
         });
}

}  // namespace heddle::e2e
