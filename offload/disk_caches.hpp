// Rows of the cache whose home is a file.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "offload/cache_layout.hpp"
#include "offload/disk_file.hpp"
#include "offload/disk_tail.hpp"

namespace hydrant {

// The rows of a (layer, group) are read whole into a slot of a ring of images on the host. What a
// step changes is written into the image by whoever computes, and taken from there to the tails
// and, now and then, to the file. One lane does all of that, in the order of the layers, so what it
// reads of a row it has written before; of one slot's rows, several requests are under way at a
// time.
//
// A request that fails costs the row that it is of its cache, and no other.
class DiskCaches {
 public:
  // `images` holds slots times the layout's image_bytes, `tails` tail_bytes; both lie on borders of
  // File::kBlock. Without a lane of its own the callers' do the work. The others outlive this.
  DiskCaches(std::unique_ptr<DiskFile> file, const std::string& folder, Device& device,
             const CacheLayout& layout, int slots, bool own_lane, std::byte* images,
             std::byte* tails, CacheTraffic& traffic);

  static size_t tail_bytes(const CacheLayout& layout);

  void admit(int32_t group, int32_t place);
  std::string failure(int32_t group, int32_t place) const;

  // For the (layer, group)s that have rows here, in the order of the step:
  // Enqueues. `caller` may be null where there is a lane. Returns the number of this use.
  int64_t fetch(int32_t layer, const ActiveGroup& group, Stream* caller);
  // The reader's later work sees the rows' image.
  void begin_read(int64_t use, Stream& reader) const;
  std::byte* image(int64_t use) const;
  // The rest is of the earliest use that was not released.
  int64_t front() const { return first_use_; }
  // The stream's earlier work has put into the image what decoding these rows, and the prompt,
  // stored there.
  void stored(std::span<const Segment> decode, const CacheView& view, Stream& by);
  void stored(const PromptSegment& prompt, const CacheView& view);
  // `last` has done, or waited for, all that used the image.
  void release(Stream& last);

 private:
  // A row's part in a step. Copied, for the lane may come to it when the step is over.
  struct Row {
    int32_t place, position;  // a prompt: its length
    policy::SlotLayout slots;
    int64_t life;
  };
  struct Use {
    int32_t layer = 0, group = 0;
    std::byte* image = nullptr;
    std::vector<Row> read, decode, prompts;
    std::vector<int32_t> victims;  // [row on disk, kv head]
  };
  struct Slot {
    std::unique_ptr<Event> ready, stored;
  };
  const Slot& slot(int64_t use) const { return slots_[size_t(use) % slots_.size()]; }
  Stream& lane(Stream* caller) { return lane_ ? *lane_ : *caller; }
  size_t index(int32_t group, int32_t place) const;
  Row row(const Use& use, int32_t place, int32_t position, const policy::SlotLayout& slots) const;
  DiskTail& tail(const Use& use, const Row& row);
  // Where the row's block lies among those of its group.
  size_t block_at(const Use& use, const Row& row) const;
  void read(const Use& use);
  void write(const Use& use);
  std::vector<size_t> changed(const Use& use, const Row& row) const;  // units of its block
  void write_prompt(const Use& use, const Row& row);
  // Of bytes [at, at + bytes) of the row's block.
  void request(const Use& use, const Row& row, bool write, size_t at, std::byte* data,
               size_t bytes);
  void run_requests(const Use& use);
  void lose(const Use& use, const Row& row, std::string why);
  bool is_lost(const Use& use, const Row& row) const;

  std::unique_ptr<DiskFile> file_;
  std::string folder_;
  const CacheLayout& layout_;
  CacheTraffic& traffic_;
  std::byte* images_;
  std::vector<Slot> slots_;
  std::deque<std::shared_ptr<Use>> uses_;  // fetched and not released
  int64_t first_use_ = 0;                  // the front one's number

  mutable std::mutex rows_;        // guards the next two
  std::vector<int64_t> lives_;     // [group, place]: rows that the place has had
  std::vector<std::string> lost_;  // [group, place]: why its present row has lost its cache

  // The lane's own.
  std::vector<DiskTail> tails_;    // [layer, row of those on disk]
  std::vector<size_t> first_row_;  // [group, and behind the last]
  std::vector<DiskRequest> requests_;
  std::vector<const Row*> requested_by_;

  std::unique_ptr<Stream> lane_;  // may be null; last: its work ends before what that uses
};

}  // namespace hydrant
