// What a benchmark run found: a table for people, JSON for scripts.
#pragma once

#include <string>
#include <vector>

namespace hapax::bench {

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string against;  // what the ratio compares with; empty: nothing
  double ratio = 0;
  std::string target;  // in words; empty: none
  bool met = true;
};

class Figures {
 public:
  void add(Figure figure);  // prints it, too: a long run shows how far it is
  void print() const;
  std::string to_json() const;
  bool all_met() const;

 private:
  std::vector<Figure> figures_;
};

double median(std::vector<double> values);
double seconds_now();

}  // namespace hapax::bench
