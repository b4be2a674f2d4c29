#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace hapax {

namespace {

constexpr std::size_t kGap = 2;

std::string pad(std::string_view painted, std::size_t columns, std::size_t width, bool right) {
  const std::string blanks(width > columns ? width - columns : 0, ' ');
  return right ? blanks + std::string(painted) : std::string(painted) + blanks;
}

std::optional<winsize> window() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return size;
}

}  // namespace

std::optional<std::size_t> terminal_width() {
  const auto size = window();
  return size ? std::optional<std::size_t>(size->ws_col) : std::nullopt;
}

std::optional<std::size_t> terminal_height() {
  const auto size = window();
  return size ? std::optional<std::size_t>(size->ws_row) : std::nullopt;
}

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    const bool right = heading.starts_with('>');
    columns_.push_back({right ? heading.substr(1) : std::move(heading), right});
  }
}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::string Table::render(const Paint& paint, std::optional<std::size_t> width) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(columns_of(column.heading));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i].text));
  }
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + kGap;
  constexpr std::size_t kLeastForLast = 10;
  if (width) widths.back() = std::min(widths.back(), std::max(kLeastForLast, *width - std::min(*width, before_last)));

  std::string out;
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string shown = shorten(cells[i].text, widths[i]);
      const bool last = i + 1 == cells.size();
      text += last && !columns_[i].right
                  ? paint(cells[i].colour, shown)
                  : pad(paint(cells[i].colour, shown), columns_of(shown), widths[i], columns_[i].right);
      if (!last) text += std::string(kGap, ' ');
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::vector<Cell> headings;
  for (const Column& column : columns_) headings.push_back({column.heading, Colour::bold});
  line(headings);
  for (const auto& row : rows_) line(row);
  return out;
}

std::string render_fields(const Paint& paint, const std::vector<std::pair<std::string, Cell>>& fields) {
  std::size_t width = 0;
  for (const auto& [label, value] : fields) width = std::max(width, columns_of(label));
  std::string out;
  for (const auto& [label, value] : fields) {
    out += pad(paint(Colour::dim, label), columns_of(label), width + kGap, false);
    out += paint(value.colour, printable(value.text)) + "\n";
  }
  return out;
}

}  // namespace hapax
