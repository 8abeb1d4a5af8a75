//! For developers only: tidy checks and benchmarks
