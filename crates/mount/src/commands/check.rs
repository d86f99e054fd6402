//! `check PATH [--data] [--repair]`: what is wrong with a file system that is not
//! mounted, as JSON.

use std::fmt::Display;
use std::io::Write as _;
use std::sync::Arc;

use agewell_fs::{CheckOptions, Checked, check, repair};
use agewell_store::device::{FileDisk, FileOptions};
use agewell_store::{OpenOptions, Store};
use serde_json::{Value, json};

use super::words::{CommandError, Words, unknown};

pub(super) fn run(mut words: Words) -> Result<(), CommandError> {
    let (mut options, mut repairs) = (CheckOptions::default(), false);
    while let Some(option) = words.option() {
        match option.as_str() {
            "--data" => options.reads_data = true,
            "--repair" => repairs = true,
            option => return Err(unknown(option)),
        }
    }
    let [path] = words.exactly("the path of a file system")?;
    let failed = |error: &dyn Display| CommandError::failed(format!("{}: {error}", path.display()));
    // What is write-protected is looked at as well, if nothing is to be set right.
    let is_protected = !repairs && FileDisk::is_write_protected(&path);
    let disk = super::opened(&path, FileOptions::default(), is_protected)?;
    let store = Store::open(disk, &OpenOptions::default()).map_err(|error| failed(&error))?;
    let was_closed = store.opened().was_closed;
    let store = Arc::new(store);
    let mut repaired = 0;
    if repairs {
        repaired = repair(&store).map_err(|error| failed(&error))?.mended;
    }
    let checked = check(&store, &options).map_err(|error| failed(&error))?;
    store.leave().map_err(|error| failed(&error))?;
    let document = json!({
        "clean": checked.is_clean(),
        "was_unmounted": was_closed,
        "repaired": repaired,
        "inodes": checked.inodes,
        "nodes": checked.nodes,
        "data_blocks": checked.data_blocks,
        "further": checked.further,
        "findings": findings(&checked),
    });
    writeln!(std::io::stdout(), "{document}").map_err(|error| failed(&error))
}

fn findings(checked: &Checked) -> Vec<Value> {
    let shown = checked.findings.iter().map(|finding| {
        json!({
            "text": finding.to_string(),
            "inode": finding.inode,
            "path": finding.path.as_ref().map(|path| String::from_utf8_lossy(path)),
            "repair": finding.problem.mend(),
        })
    });
    shown.collect()
}
