// Where results go. Whole lines are appended; whole documents appear by rename. A write that fails
// is an io error with the file's name, never lost.
#pragma once
#include <string>
#include <string_view>

namespace hydrant {

// A file, or standard output for "".
class Output {
 public:
  // Adds to a regular file that is there, or empties it before the first write, or when it is
  // closed: a run that fails before it has anything to say leaves it as it was. Throws io when it
  // cannot be opened for writing.
  explicit Output(const std::string& path, bool emptied = false);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Everything in one write call where the system allows it. Throws io.
  void write(std::string_view bytes);
  void line(std::string text) { write(text += '\n'); }
  // The last errors of buffered and remote file systems. Throws io.
  void close();
  const std::string& name() const { return name_; }

 private:
  void empty();

  std::string name_;
  int descriptor_ = -1;
  bool owned_ = false;
  bool full_ = false;  // of what is to go
};

// Replaces the file's content at once: a new file beside it, on disk before it takes the name; the
// mode stays, and so does a link that leads to it. Special files such as /dev/full are written in
// place. Throws io.
void write_file(const std::string& path, std::string_view content);
// Throws io naming `key` when write_file could not work there: found before a long run.
void check_writable(const std::string& path, const std::string& key);

}  // namespace hydrant
