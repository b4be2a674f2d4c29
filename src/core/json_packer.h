// Writes canonical JSON while it is parsed, without a tree of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hapax {

// Takes the parts of one array or object in order. Its text must be shorter than 4 GiB.
class JsonPacker {
 public:
  void open(bool object);
  void key(std::string_view name);
  void add(std::string_view canonical_scalar);
  // False: the object has a duplicate member name.
  bool close();

  bool is_open() const { return !levels_.empty(); }
  std::string take();  // when everything is closed

 private:
  struct Member {
    std::uint32_t name_begin, name_end;  // in names_
    std::uint32_t begin, end;            // in text_
  };
  struct Level {
    bool object;
    bool empty = true;
    bool sorted = true;
    std::size_t begin;        // in text_
    std::size_t names_begin;  // in names_
    std::vector<Member> members;
  };

  void separate();
  void value_done();
  std::string_view name_of(const Member& member) const;
  bool sort_members(Level& level);

  std::string text_;
  std::string names_;  // of the members of open objects, unescaped
  std::vector<Level> levels_;
};

}  // namespace hapax
