// Settles a database before a measure.
#pragma once

#include <string>

namespace hapax::bench {

// VACUUM ANALYZE and CHECKPOINT if the URL is PostgreSQL's; nothing for others.
void settle(const std::string& store_url);

}  // namespace hapax::bench
