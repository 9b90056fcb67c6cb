// The spelling of each token, both ways.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrant::text {

inline constexpr int32_t kHighestId = (1 << 24) - 1;  // a file with a larger one is damaged

class Vocabulary {
 public:
  void reserve(size_t tokens);
  // False: the spelling or the id is taken already. The id must be 0..kHighestId.
  bool add(std::string_view token, int32_t id);

  std::optional<int32_t> find(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;
  int32_t size() const { return int32_t(by_id_.size()); }  // highest id + 1
  size_t count() const { return entries_.size(); }

 private:
  struct Entry {
    size_t offset;
    uint32_t length, hash;
    int32_t id;
  };
  std::string_view spelling(const Entry& e) const {
    return std::string_view(bytes_).substr(e.offset, e.length);
  }
  size_t slot_of(std::string_view token, uint32_t hash) const;
  void rehash(size_t slots);

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // open addressing; entry + 1, 0: free
  std::vector<uint32_t> by_id_;  // entry + 1, 0: no such token
};

}  // namespace hydrant::text
