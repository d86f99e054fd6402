//! Operations on a store in memory, everything compared.

use agewell_core::mix;
use agewell_fs::Time;
use agewell_store::device::MemoryDisk;

use super::compare::{compare, is_clean};
use super::load::{Draw, Operation, Shape, close, step};
use super::model::Model;

/// Operations between two comparisons of everything; chosen by us.
const COMPARED_EVERY: usize = 24;

/// Carries the operations out on a store of that shape; how many found no room.
pub(crate) fn hold(shape: Shape, draws: &[Draw], size_max: u64) -> Result<u64, String> {
    let text = |error: agewell_fs::FsError| error.to_string();
    let mut fs = shape.make(MemoryDisk::new(shape.device_bytes())).map_err(text)?;
    let mut model = Model::new(u64::from(shape.block_bytes));
    let mut refused = 0;
    let mut now = Time::default();
    for (number, draw) in draws.iter().enumerate() {
        now.seconds += 1;
        if draw.0 == 255 {
            // Orphans are gone when it is opened again.
            let disk = close(fs).map_err(text)?;
            fs = shape.open(disk).map_err(text)?;
            while fs.work().map_err(text)? {}
            model = model.without_orphans();
            compare(&fs, &model, None).map_err(|what| format!("{number}, opened: {what}"))?;
            is_clean(&fs)?;
            continue;
        }
        let operation = Operation::of(&model, *draw, size_max);
        step(&fs, &mut model, &operation, now, &mut refused)
            .map_err(|what| format!("operation {number}: {what}"))?;
        if number % COMPARED_EVERY == COMPARED_EVERY - 1 {
            compare(&fs, &model, None).map_err(|what| format!("after {number}: {what}"))?;
        }
    }
    compare(&fs, &model, None).map_err(|what| format!("at the end: {what}"))?;
    is_clean(&fs)?;
    let disk = close(fs).map_err(text)?;
    let fs = shape.open(disk).map_err(text)?;
    compare(&fs, &model.without_orphans(), None).map_err(|what| format!("opened: {what}"))?;
    is_clean(&fs)?;
    Ok(refused)
}

/// Draws of a seed.
pub(crate) fn drawn(seed: u64, count: u64) -> Vec<Draw> {
    let draw = |at: u64| {
        let (first, second) = (mix(seed << 32 | at << 1), mix(seed << 32 | at << 1 | 1));
        let bytes = first.to_le_bytes();
        let numbers = [second as u32, (second >> 32) as u32];
        (bytes[0], [bytes[1], bytes[2], bytes[3], bytes[4]], numbers)
    };
    (0..count).map(draw).collect()
}
