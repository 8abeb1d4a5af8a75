//! What a program outside the workspace can do with the library alone.

use agentvfs::{Avfs, ErrorKind, Result};

fn main() -> Result<()> {
    agentvfs::init();
    let home = std::env::args_os().nth(1).expect("a directory");
    let avfs = Avfs::embedded(home)?;
    let vault = avfs.create_vault("outside")?;
    let missing = vault.read("/missing").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let result = vault.command("touch").arg("/made").run()?;
    println!("{} {:?}", result.exit_code, result.changed_files);
    Ok(())
}
