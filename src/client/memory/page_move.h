#pragma once

#include <cstdint>
#include <string>

// Pages of this process that change places without changing contents.
namespace heddle::client {

// Why [address, address + bytes), whole pages, may not be moved: it is not mapped, not private, not writable, or a
// stack that is in use. Empty: nothing is against it.
std::string obstacle_to_move(uint64_t address, uint64_t bytes);

// The contents go to `to`, which is shared memory, and that is then mapped at `address` as well. False, and nothing has
// changed, where the system refuses. Other threads that write there wait for the end.
bool move_pages_out(uint64_t address, uint64_t bytes, void* to);
// The other way: private memory with what lies there now. False where the pages are not there any more.
bool move_pages_back(uint64_t address, uint64_t bytes);

}  // namespace heddle::client
