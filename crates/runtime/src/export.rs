//! stand-in
use avfs_vault::*;
#[derive(Debug, Clone)]
pub struct ImportReport {
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    pub skipped: Vec<Skipped>,
}
#[derive(Debug, Clone)]
pub struct Skipped {
    pub path: Vec<u8>,
    pub reason: String,
}
#[derive(Debug, Clone)]
pub struct ExportReport {
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
}
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct TransferError;
impl TransferError {
    pub fn kind(&self) -> crate::ErrorKind {
        crate::ErrorKind::Bug
    }
}
pub fn import_directory(
    _: &Trees,
    _: &mut Edit,
    _: &std::path::Path,
    _: &VaultPath,
    _: (u32, u32),
) -> Result<ImportReport, TransferError> {
    todo!()
}
pub fn export_directory(
    _: &Trees,
    _: RootId,
    _: &VaultPath,
    _: &std::path::Path,
) -> Result<ExportReport, TransferError> {
    todo!()
}
