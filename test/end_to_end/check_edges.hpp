// That the events between lanes are enough, and each of them is needed.
#pragma once
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/end_to_end/recording_device.hpp"

namespace hydrant::test {

// run(device) does the same work each time; it is ordered by so many edges.
template <class Run>
void check_edges(size_t edges, const Run& run) {
  RecordingDevice whole;
  run(whole);
  CHECK(whole.races() == std::vector<std::string>{});
  CHECK(whole.edges().size() == edges);
  for (const RecordingDevice::Edge& edge : whole.edges()) {
    RecordingDevice without;
    without.ignore(edge);
    run(without);
    CAPTURE(edge.first, edge.second);
    CHECK(!without.races().empty());
  }
}

}  // namespace hydrant::test
