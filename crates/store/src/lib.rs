//! Bytes by hash, named roots, transactions: packs, SQLite, the on-disk format
