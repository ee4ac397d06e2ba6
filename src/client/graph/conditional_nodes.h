#pragma once

#include "client/graph/node_lists.h"

// Nodes that choose between graphs; condition.h says by what.
namespace heddle::client {

// As cudaGraphAddNode has it: `p.phGraph_out` becomes the node's bodies, which are empty. cudaErrorInvalidValue for a
// handle that is none, and for a number of bodies that the type does not have.
Done add_choice(const NewNode& at, cudaConditionalNodeParams& p);

}  // namespace heddle::client
