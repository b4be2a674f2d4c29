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
  // A heading that starts with ">" stands over a column of numbers, aligned to the right.
  explicit Table(std::vector<std::string> headings);

  // As many cells as there are headings.
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }

  // Lines with their ends. Where a width is given the last column is cut to fit it.
  std::string render(const Paint& paint, std::optional<std::size_t> width = {}) const;

 private:
  struct Column {
    std::string heading;
    bool right = false;
  };

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// The columns of the terminal that standard output is; nothing if it is none.
std::optional<std::size_t> terminal_width();
std::optional<std::size_t> terminal_height();

// Labels and values, one to a line: "status     completed".
std::string render_fields(const Paint& paint, const std::vector<std::pair<std::string, Cell>>& fields);

}  // namespace hapax
