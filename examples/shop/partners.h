// The payment provider and the carrier, as the shop sees them: each request carries a key, and the same key again does
// nothing more. Here they are a file with one line for each thing that really happened, which outlives the service.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace shop {

class Partners {
 public:
  explicit Partners(const std::string& file);

  // Returns the payment's number. Throws hapax::FinalError if the card is declined: above 1,000.00.
  std::string charge(const std::string& key, const std::string& order, std::int64_t cents);
  void refund(const std::string& key, const std::string& order);       // nothing, if there was no charge
  std::string ship(const std::string& key, const std::string& order);  // returns the parcel's number

 private:
  void book(const std::string& key, const std::string& what, const std::string& order);

  std::mutex mutex_;
  const std::string file_;
  std::set<std::string> keys_, charged_;
};

}  // namespace shop
