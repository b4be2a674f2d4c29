// The head of a request: Beast's fields into a Request.
#pragma once

#include <string_view>

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>

#include "http/message.h"
#include "http/negotiation.h"

namespace hapax::http {

using RequestHeader = boost::beast::http::header<true, boost::beast::http::fields>;

// Fills in everything from the head. The views point into `header`. `bytes` is the head as it was sent. Throws
// RequestError.
void read_head(Request& request, const RequestHeader& header, std::string_view bytes);

// The form of answer that the head asks for. Does not throw.
Preferences read_preferences(const boost::beast::http::fields& fields);

}  // namespace hapax::http
