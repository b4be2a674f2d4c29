// Tables for people: aligned columns, a heading, and no line wider than the terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/paint.h"

namespace hapax {

struct Cell {
  Cell(std::string cell_text, Colour cell_colour = Colour::none) : text(std::move(cell_text)), colour(cell_colour) {}
  Cell(const char* cell_text) : text(cell_text) {}

  std::string text;
  Colour colour = Colour::none;
};

class Table {
 public:
  // A heading that starts with ">" is for a column of numbers, aligned to the right.
  explicit Table(std::vector<std::string> headings);

  // As many cells as headings.
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }

  // Lines with newlines. If a width is given, the last column is cut to fit.
  std::string render(const Paint& paint, std::optional<std::size_t> width = {}) const;

 private:
  struct Column {
    std::string heading;
    bool right = false;
  };

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// The width of the terminal on standard output; nothing if it is not a terminal.
std::optional<std::size_t> terminal_width();
std::optional<std::size_t> terminal_height();

// Labels and values, one per line: "status     completed".
std::string render_fields(const Paint& paint, const std::vector<std::pair<std::string, Cell>>& fields);

}  // namespace hapax
