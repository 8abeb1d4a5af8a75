//! For tests only: temporary homes, the avfs binary driven as a user would, independent scans
