#pragma once

#include "daemon/registry.h"

namespace heddle::daemon {

// Which programs have a device to themselves.
//
// What protects a program's work from its neighbours, and from being taken back, is of no use to one that has none on a
// device that nobody takes back, and costs it time with every launch and every wait: copies, commits before anything is
// shown. At durability level `auto` such a program's worker does without (ControlPage::is_alone, worker/epoch.h) until
// somebody comes.
//
// To be called whenever the scheduler has decided: the rings' control pages follow. `spares`: programs that are alone
// do without protection. O(sessions).
void note_who_is_alone(Registry& registry, bool spares);

}  // namespace heddle::daemon
