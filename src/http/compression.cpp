#include "http/compression.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <stdexcept>

#include "http/error.h"

namespace hapax::http {

namespace {

constexpr int kWindowBits = 15, kGzipHeader = 16;  // added to the window bits: a gzip header instead of zlib's
constexpr int kMemoryLevel = 8;
constexpr std::size_t kFirstBytes = 16 * 1024;

int window_bits(Coding coding) { return coding == Coding::gzip ? kWindowBits + kGzipHeader : kWindowBits; }

// zlib takes its input by a non-const pointer, and does not write through it.
Bytef* input_of(std::string_view bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // NOLINT
}

Bytef* output_of(std::string& bytes, std::size_t from) { return reinterpret_cast<Bytef*>(bytes.data() + from); }

class Inflater {
 public:
  explicit Inflater(Coding coding) : coding_(coding) {
    if (inflateInit2(&stream_, window_bits(coding)) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Nothing if it is damaged or ends early. Reads one byte over the limit to detect more.
  std::optional<std::string> run(std::string_view bytes, std::size_t limit) {
    std::string out;
    stream_.next_in = input_of(bytes);
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (out.size() <= limit) {
      const std::size_t had = out.size();
      out.resize(std::min(std::max(kFirstBytes, 2 * had), limit + 1));
      stream_.next_out = output_of(out, had);
      stream_.avail_out = static_cast<uInt>(out.size() - had);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const bool full = stream_.avail_out == 0;
      out.erase(out.size() - stream_.avail_out);  // GCC 12 warns that a resize might grow it
      if (result == Z_STREAM_END) {
        if (stream_.avail_in == 0) return out;
        // A gzip file is a series of members (RFC 1952).
        if (coding_ != Coding::gzip || inflateReset(&stream_) != Z_OK) return std::nullopt;
        continue;
      }
      if (result != Z_OK || !full) return std::nullopt;
    }
    return out;
  }

 private:
  const Coding coding_;
  z_stream stream_{};
};

}  // namespace

std::string_view to_string(Coding coding) {
  switch (coding) {
    case Coding::gzip: return "gzip";
    case Coding::deflate: return "deflate";
    case Coding::identity: break;
  }
  return "identity";
}

std::optional<Coding> parse_coding(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "x-gzip") return Coding::gzip;
  for (const Coding coding : {Coding::identity, Coding::gzip, Coding::deflate}) {
    if (lower == to_string(coding)) return coding;
  }
  return std::nullopt;
}

std::string compress(std::string_view bytes, Coding coding) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits(coding), kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = input_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = output_of(out, 0);
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::logic_error("an answer could not be compressed");
  return out;
}

std::string decode_body(std::string body, std::string_view content_encoding, std::size_t limit) {
  if (content_encoding.empty()) return body;
  const auto coding = parse_coding(content_encoding);
  if (!coding) {
    throw RequestError(415, "UnsupportedMediaType",
                       "The body's Content-Encoding is not supported: send it as gzip, deflate or identity.")
        .with("header", "Content-Encoding")
        .with_header("Accept-Encoding", "gzip, deflate");
  }
  if (*coding == Coding::identity || body.empty()) return body;
  auto decoded = Inflater(*coding).run(body, limit);
  if (!decoded)
    throw invalid_header("Content-Encoding", "says " + std::string(to_string(*coding)) + ", but the body is not");
  if (decoded->size() > limit) throw payload_too_large(limit);
  return *std::move(decoded);
}

}  // namespace hapax::http
