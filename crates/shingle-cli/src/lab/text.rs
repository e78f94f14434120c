//! Tables and paragraphs.

use crate::commands::ledger::plain_table;
use comfy_table::CellAlignment;

const COLUMNS: usize = 112;

/// Columns of text; `plain_table` has numbers to the right.
pub fn texts(header: &[&str]) -> comfy_table::Table {
    let mut table = plain_table(header);
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Left));
    table
}

/// `text` in lines of a page, those after the first behind `indent`.
pub fn wrapped(text: &str, indent: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines += &line;
            lines.push('\n');
            line.clear();
            line += indent;
        } else if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_items_are_broken_between_words() {
        let text = wrapped(&format!("- {} end", "word ".repeat(40)), "  ");
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.len() <= super::COLUMNS));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(text.split_whitespace().count(), 42);
    }
}
