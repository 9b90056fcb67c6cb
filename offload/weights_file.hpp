// Weights that are made up, really on disk.
#pragma once
#include <string>

#include "runtime/model/checkpoint.hpp"
#include "runtime/model/panel_reader.hpp"

namespace hydrant {

// The same tensors in a file of their own in `folder`, on the disk and not in the page cache. It
// has no name, and is gone when the checkpoint is, however the process ends. Its space is reserved
// before anything is written. Throws io, naming folder and bytes.
Checkpoint write_weights(const Checkpoint& made, const std::string& folder,
                         const LoadProgress& progress = {});

}  // namespace hydrant
