// transactions/{id}: the outcome of a transaction.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/s3/transaction/transaction.h"

namespace hapax::s3 {

struct WrittenObject {
  std::string name;
  std::string content;
  bool created = false;          // was not locked
  std::optional<Etag> replaces;  // where created over a grave
};

struct CommittedDocument {
  bool committed = false;  // otherwise aborted
  std::vector<WrittenObject> writes;
  std::vector<std::string> dropped;  // hints
};

struct Bucket::Committed {
  CommittedDocument document;
};

std::string write(const CommittedDocument& document);
CommittedDocument read_committed(std::string_view content);

}  // namespace hapax::s3
