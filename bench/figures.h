// The results of a benchmark run: a table for people, JSON for scripts.
#pragma once

#include <string>
#include <vector>

namespace hapax::bench {

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string against;  // what the ratio compares with; empty: none
  double ratio = 0;
  std::string target;  // as text; empty: none
  bool met = true;
};

class Figures {
 public:
  void add(Figure figure);  // also prints it, to show the progress of a long run
  void print() const;
  std::string to_json() const;
  bool all_met() const;

 private:
  std::vector<Figure> figures_;
};

double median(std::vector<double> values);
double seconds_now();

}  // namespace hapax::bench
