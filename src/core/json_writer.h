// Writes JSON text directly into a string, without a tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hapax {

// The writer adds commas; the caller nests: every begin needs its end.
class JsonWriter {
 public:
  JsonWriter() { out_.reserve(1024); }  // most answers fit

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);
  JsonWriter& integer(std::int64_t number);
  JsonWriter& number(double number);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // text that already is JSON

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void separate();

  std::string out_;
  bool first_ = true;  // this level is still empty
};

}  // namespace hapax
