// The head of a request: Beast's fields into a Request.
#pragma once

#include <string_view>

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>

#include "http/message.h"
#include "http/negotiation.h"

namespace hapax::http {

using RequestHeader = boost::beast::http::header<true, boost::beast::http::fields>;

// Fills in all that the head says. The views are into `header`. `bytes` is the head as it was sent. Throws
// RequestError.
void read_head(Request& request, const RequestHeader& header, std::string_view bytes);

// What the head asks of the answer. Does not throw.
Preferences read_preferences(const boost::beast::http::fields& fields);

}  // namespace hapax::http
