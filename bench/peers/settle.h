// Bringing a database to rest before a measure.
#pragma once

#include <string>

namespace hapax::bench {

// VACUUM ANALYZE and CHECKPOINT, where the URL is PostgreSQL's; nothing for others.
void settle(const std::string& store_url);

}  // namespace hapax::bench
