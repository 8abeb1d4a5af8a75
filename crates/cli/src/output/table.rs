//! Plain tables, and the small texts that go into them.

use super::changes::printable;
pub use avfs_api::wire::human_size as size;
use comfy_table::{CellAlignment, Table, presets};

/// Rows under headings, without lines. Cell text is escaped, so that it stays in its row.
pub fn table(headings: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !headings.is_empty() {
        table.set_header(headings);
    }
    let rows = rows.into_iter();
    table.add_rows(rows.map(|row| {
        row.into_iter()
            .map(|cell| printable(&cell))
            .collect::<Vec<_>>()
    }));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Aligns a column to the right.
pub fn align_right(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A timestamp of the API without its fraction of a second.
pub fn time(stamp: &str) -> String {
    let whole = stamp.split_once('.').map_or(stamp, |(whole, _)| whole);
    whole.trim_end_matches('Z').replace('T', " ")
}

/// `1 file`, `2 files`.
pub fn count(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_in_its_row() {
        let rows = vec![vec!["a\nb".to_owned(), "\u{1b}[2J\u{202e}".to_owned()]];
        let shown = table(&["A", "B"], rows).trim_fmt();
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains("a\\nb  \\u{1b}[2J\\u{202e}"), "{shown}");
    }

    #[test]
    fn sizes_and_times_are_short() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
        assert_eq!(time("2026-01-02T03:04:05.678Z"), "2026-01-02 03:04:05");
        assert_eq!(time("2026-01-02T03:04:05Z"), "2026-01-02 03:04:05");
    }
}
