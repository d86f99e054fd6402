//! Numbers that a structure may say: sequences, generations, numbers of ring records, incarnations.

/// Incarnations are below this.
const INCARNATIONS_END: u32 = 1 << 31;

/// The others are below this.
const NUMBERS_END: u64 = 1 << 63;

/// Refuses a structure that says what no store gets to.
pub(crate) fn refuse_impossible(numbers: &[u64], incarnation: u32) -> Result<(), String> {
    if let Some(number) = numbers.iter().find(|number| **number >= NUMBERS_END) {
        return Err(format!("its checksum is right, but it says {number}, to which no store gets"));
    }
    if incarnation >= INCARNATIONS_END {
        return Err(format!("its checksum is right, but it is of incarnation {incarnation}"));
    }
    Ok(())
}
