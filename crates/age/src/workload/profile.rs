//! A workload that ends with the files of a profile: their ages, sizes and depths.
//!
//! The files of the end are planned first: sizes and depths drawn from the profile until they fill
//! the asked share of the capacity, and an age for each, so that the age distribution at the end is
//! that of the profile, to within the chance of the draw. Before, the rest of the share is held by
//! files that come and go (guests): the file system is filled at once, and from then on the
//! allocation stays at the asked share, at most the room of one file below it. A file of the end
//! that is born takes the place of guests; between births guests are replaced by other guests, as
//! often as `overwrites` asks for. All guests are gone at the end.
//!
//! The nearest tool (Geriatrix; Kadekodi et al. 2018) draws creation or removal by a coin, so that
//! an asked 80 % drifts to 93 %, and only approaches the ages after hundreds of overwrites.
//!
//! Chosen by us: the unit of a profile's ages is not stated, so the oldest class reaches back to the
//! beginning, `days` before the end; sizes lie within their class, each doubling equally likely
//! (`exact_sizes`: only the ends of classes, as that tool has it); guests are replaced in proportion
//! to how many there are; directories are made with their first file. Allocation counts whole
//! blocks of files alone: metadata of the target comes on top.
//!
//! Cost: O(log n) to plan a file, O(1) a replacement, each a few draws; memory is 24 bytes a file of the end.

mod distributions;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use agewell_core::{DAY_NS, RandomStreams, Stream, uniform_below};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use distributions::{Classes, Profile};

use super::{OperationSink, OperationWriter, SourceFacts, WorkloadFacts};
use crate::AgeError;

/// A file may take this part of the room that is to be filled; larger ones are drawn again, because
/// no share could be held with them. Chosen by us.
const LARGEST_PART: u64 = 50;
/// Draws for a file that fits below the share. Chosen by us: more would hold the share closer and
/// give more small files.
const FITTING_DRAWS: u32 = 8;
/// So much of a profile must fit, or drawing again would take for ever. Chosen by us.
const FITTING_SHARE: f64 = 0.001;

/// What the workload is made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileParameters {
    /// Bytes that files can take on the target.
    #[serde(deserialize_with = "super::quantity::bytes")]
    pub capacity_bytes: u64,
    /// Share of them to be held, percent.
    pub utilization_pct: f64,
    /// Bytes of a block: a file takes whole ones.
    #[serde(deserialize_with = "super::quantity::bytes")]
    pub block_bytes: u64,
    /// How long it lasts.
    pub days: f64,
    /// Bytes that are allocated to guests after the target is full, in multiples of the capacity.
    pub overwrites: f64,
    /// Only the ends of the profile's classes of sizes.
    pub exact_sizes: bool,
    /// Operations between two syncs; 0 for none.
    pub sync_every_operations: u64,
}

impl Default for ProfileParameters {
    fn default() -> Self {
        Self {
            capacity_bytes: 2 << 30,
            utilization_pct: 80.0,
            block_bytes: 4_096,
            days: 365.0,
            overwrites: 5.0,
            exact_sizes: false,
            sync_every_operations: 0,
        }
    }
}

impl ProfileParameters {
    fn check(&self) -> Result<(), AgeError> {
        let checks = [
            (
                ((1 << 20)..=(1 << 50)).contains(&self.capacity_bytes),
                "capacity_bytes must be from 1 MiB to 1 PiB",
            ),
            (
                self.utilization_pct >= 1.0 && self.utilization_pct <= 99.0,
                "utilization_pct must be from 1 to 99",
            ),
            (
                (512..=(1 << 20)).contains(&self.block_bytes),
                "block_bytes must be from 512 to 1 MiB",
            ),
            (self.days >= 0.001 && self.days <= 100_000.0, "days must be from 0.001 to 100,000"),
            (
                self.overwrites >= 0.0 && self.overwrites <= 100_000.0,
                "overwrites must be from 0 to 100,000",
            ),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(AgeError::Input(format!("profile: {what}"))),
            None => Ok(()),
        }
    }

    fn allocated(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.block_bytes)
    }

    fn held_bytes(&self) -> u64 {
        (self.capacity_bytes as f64 * self.utilization_pct / 100.0) as u64
    }

    fn last_ns(&self) -> u64 {
        (self.days * DAY_NS as f64) as u64
    }
}

/// Makes the workload of the profile in the folder `path`.
///
/// # Errors
/// If the profile cannot be read or the parameters make no sense, or as the sink.
pub fn from_profile<S: OperationSink>(
    path: &Path,
    parameters: &ProfileParameters,
    seed: u64,
    sink: S,
) -> Result<(WorkloadFacts, S), AgeError> {
    parameters.check()?;
    let profile = Profile::read(path)?;
    check_sizes(&profile, parameters)?;
    let mut aging = Aging::new(&profile, parameters, seed, sink);
    let births = aging.plan_end();
    aging.fill(&births)?;
    aging.age(&births)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(aging.finish(&name, seed))
}

/// Whether enough files of the profile take room, and little enough.
fn check_sizes(profile: &Profile, parameters: &ProfileParameters) -> Result<(), AgeError> {
    let largest = (parameters.held_bytes() / LARGEST_PART) as f64;
    let classes = profile.sizes.ends().iter().zip(profile.sizes.shares());
    let fits = |end: f64| end >= 1.0 && parameters.allocated(end as u64) as f64 <= largest;
    let share: f64 = classes.filter(|(end, _)| fits(**end)).map(|(_, share)| share).sum();
    if share >= FITTING_SHARE {
        return Ok(());
    }
    Err(AgeError::Input(format!(
        "profile: hardly any of its files has from 1 to {largest:.0} bytes, a {LARGEST_PART}th of \
         what is to be filled; raise capacity_bytes or take another profile"
    )))
}

/// A file of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Birth {
    at_ns: u64,
    bytes: u64,
}

/// A file that comes and goes.
#[derive(Debug, Clone, Copy)]
struct Guest {
    number: u32,
    allocated: u64,
}

struct Aging<'a, S> {
    profile: &'a Profile,
    parameters: &'a ProfileParameters,
    writer: OperationWriter<S>,
    sizes: Stream,
    ages: Stream,
    places: Stream,
    victims: Stream,
    /// Numbers of the directories at each depth, the root alone at depth 0; those not made yet
    /// are none.
    directories: Vec<Vec<Option<u32>>>,
    guests: Vec<Guest>,
    allocated_bytes: u64,
    drawn_again: u64,
    planned_bytes: u64,
    replaced_bytes: u64,
    since_sync: u64,
}

impl<'a, S: OperationSink> Aging<'a, S> {
    fn new(profile: &'a Profile, parameters: &'a ProfileParameters, seed: u64, sink: S) -> Self {
        let streams = RandomStreams::new(seed);
        let mut directories = vec![vec![Some(0)]];
        directories.extend(profile.directories.iter().map(|&count| vec![None; count as usize]));
        Self {
            profile,
            parameters,
            writer: OperationWriter::new(sink),
            sizes: streams.stream("sizes"),
            ages: streams.stream("ages"),
            places: streams.stream("directories"),
            victims: streams.stream("victims"),
            directories,
            guests: Vec::new(),
            allocated_bytes: 0,
            drawn_again: 0,
            planned_bytes: 0,
            replaced_bytes: 0,
            since_sync: 0,
        }
    }

    /// The files of the end by the time of their birth.
    fn plan_end(&mut self) -> Vec<Birth> {
        let last_ns = self.parameters.last_ns();
        let ns_per_age = last_ns as f64 / self.profile.ages.end();
        let mut births = Vec::new();
        let mut sum = 0;
        while let Some(bytes) = self.draw_fitting(sum) {
            sum += self.parameters.allocated(bytes);
            let age_ns = (self.profile.ages.even(&mut self.ages) * ns_per_age) as u64;
            births.push(Birth { at_ns: last_ns - age_ns.min(last_ns), bytes });
        }
        births.sort_unstable();
        births
    }

    fn draw_size(&mut self) -> u64 {
        let largest = self.parameters.held_bytes() / LARGEST_PART;
        loop {
            let classes = &self.profile.sizes;
            let drawn = if self.parameters.exact_sizes {
                classes.exact(&mut self.sizes)
            } else {
                classes.doubling(&mut self.sizes)
            };
            if self.parameters.allocated(drawn as u64) <= largest {
                return drawn as u64;
            }
            self.drawn_again += 1;
        }
    }

    /// A size whose file fits below the asked share, if some draws find one.
    fn draw_fitting(&mut self, allocated_bytes: u64) -> Option<u64> {
        let parameters = self.parameters;
        let room = parameters.held_bytes() - allocated_bytes;
        if room < parameters.block_bytes {
            // Empty files alone would fit, without end.
            return None;
        }
        (0..FITTING_DRAWS).find_map(|_| {
            Some(self.draw_size()).filter(|&bytes| parameters.allocated(bytes) <= room)
        })
    }

    /// Fills the target at once: the files that are as old as it, and guests.
    fn fill(&mut self, births: &[Birth]) -> Result<(), AgeError> {
        for birth in births.iter().take_while(|birth| birth.at_ns == 0) {
            self.create(birth.bytes)?;
        }
        self.add_guests()
    }

    /// Births and replacements until the end.
    fn age(&mut self, births: &[Birth]) -> Result<(), AgeError> {
        let first = births.partition_point(|birth| birth.at_ns == 0);
        let replacements = self.plan_replacements(&births[first..]);
        let mut replacements = replacements.into_iter().peekable();
        for birth in &births[first..] {
            while let Some(&(from_ns, count)) = replacements.peek()
                && from_ns < birth.at_ns
            {
                replacements.next();
                self.replace(from_ns, birth.at_ns, count)?;
            }
            self.writer.set_time(birth.at_ns);
            let allocated = self.parameters.allocated(birth.bytes);
            self.make_room(allocated)?;
            self.create(birth.bytes)?;
        }
        self.writer.set_time(self.parameters.last_ns());
        while let Some(guest) = self.guests.pop() {
            self.remove(&guest)?;
        }
        Ok(())
    }

    /// How many bytes of guests are replaced from each birth (or the beginning) on, in proportion to
    /// the room that guests have then and to the time until the next birth.
    fn plan_replacements(&self, births: &[Birth]) -> Vec<(u64, u64)> {
        let held = self.parameters.held_bytes();
        let wanted = self.parameters.capacity_bytes as f64 * self.parameters.overwrites;
        let mut room = held - (self.allocated_bytes - self.guest_bytes());
        let mut from_ns = 0;
        let mut spans = Vec::with_capacity(births.len());
        let mut all = 0.0;
        for birth in births {
            let area = room as f64 * (birth.at_ns - from_ns) as f64;
            all += area;
            spans.push((from_ns, area));
            room -= self.parameters.allocated(birth.bytes).min(room);
            from_ns = birth.at_ns;
        }
        // A carried remainder, so that many short spans do not each lose a part.
        let (mut carried, mut planned) = (0.0, Vec::with_capacity(spans.len()));
        for (from_ns, area) in spans {
            carried += if all > 0.0 { wanted * area / all } else { 0.0 };
            let bytes = carried as u64;
            if bytes >= self.parameters.block_bytes {
                planned.push((from_ns, bytes));
                carried -= bytes as f64;
            }
        }
        planned
    }

    fn guest_bytes(&self) -> u64 {
        self.guests.iter().map(|guest| guest.allocated).sum()
    }

    /// Replaces guests until `bytes` were written, evenly between two times.
    fn replace(&mut self, from_ns: u64, to_ns: u64, bytes: u64) -> Result<(), AgeError> {
        self.planned_bytes += bytes;
        let behind = self.planned_bytes.saturating_sub(self.replaced_bytes);
        while self.replaced_bytes < self.planned_bytes && !self.guests.is_empty() {
            let left = self.planned_bytes - self.replaced_bytes;
            let part = 1.0 - left as f64 / behind as f64;
            let at_ns = from_ns + ((to_ns - from_ns) as f64 * part) as u64;
            self.writer.set_time(at_ns.clamp(self.writer.time_ns(), to_ns));
            // The new one is drawn first and others make room for it: were sizes drawn to fit the
            // room that one leaves, there would be more small files every time.
            let bytes = self.draw_size();
            let allocated = self.parameters.allocated(bytes);
            self.make_room(allocated)?;
            if self.allocated_bytes + allocated <= self.parameters.held_bytes() {
                let number = self.create(bytes)?;
                self.guests.push(Guest { number, allocated });
            }
            // An empty file counts a block, so that this ends.
            self.replaced_bytes += allocated.max(self.parameters.block_bytes);
        }
        Ok(())
    }

    fn pick_guest(&mut self) -> Guest {
        let place = uniform_below(&mut self.victims, self.guests.len() as u64) as usize;
        self.guests.swap_remove(place)
    }

    fn make_room(&mut self, allocated: u64) -> Result<(), AgeError> {
        while self.allocated_bytes + allocated > self.parameters.held_bytes()
            && !self.guests.is_empty()
        {
            let guest = self.pick_guest();
            self.remove(&guest)?;
        }
        Ok(())
    }

    /// Adds guests until some draws find none that fits.
    fn add_guests(&mut self) -> Result<(), AgeError> {
        while let Some(bytes) = self.draw_fitting(self.allocated_bytes) {
            let number = self.create(bytes)?;
            self.guests.push(Guest { number, allocated: self.parameters.allocated(bytes) });
        }
        Ok(())
    }

    fn create(&mut self, bytes: u64) -> Result<u32, AgeError> {
        let directory = self.directory()?;
        let number = self.writer.create_whole(directory, bytes)?;
        self.allocated_bytes += self.parameters.allocated(bytes);
        self.count()?;
        Ok(number)
    }

    fn remove(&mut self, guest: &Guest) -> Result<(), AgeError> {
        self.allocated_bytes -= guest.allocated;
        self.writer.delete(guest.number)?;
        self.count()
    }

    fn count(&mut self) -> Result<(), AgeError> {
        let every = self.parameters.sync_every_operations;
        self.since_sync += 1;
        if every > 0 && self.since_sync >= every {
            self.since_sync = 0;
            self.writer.sync()?;
        }
        Ok(())
    }

    /// A directory at a depth drawn from the profile, made if it is not there.
    fn directory(&mut self) -> Result<u32, AgeError> {
        let depth = self.profile.depths.exact(&mut self.places) as usize;
        let places = self.directories[depth].len() as u64;
        let mut place = uniform_below(&mut self.places, places);
        // Up to the first directory that is there: a place's parent is the one above in proportion.
        let mut missing = Vec::new();
        let mut level = depth;
        let mut number = loop {
            if let Some(number) = self.directories[level][place as usize] {
                break number;
            }
            missing.push((level, place as usize));
            let below = self.directories[level].len() as u64;
            level -= 1;
            place = place * self.directories[level].len() as u64 / below;
        };
        for (level, place) in missing.into_iter().rev() {
            number = self.writer.make_directory(number)?;
            self.directories[level][place] = Some(number);
        }
        Ok(number)
    }

    fn finish(self, name: &str, seed: u64) -> (WorkloadFacts, S) {
        let described = serde_json::to_value(self.parameters).expect("plain data with text keys");
        let mut parameters: BTreeMap<String, Value> = match described {
            Value::Object(parameters) => parameters.into_iter().collect(),
            _ => unreachable!("a struct is an object"),
        };
        parameters.insert("profile".to_owned(), json!(name));
        let mut notes = BTreeMap::new();
        if self.drawn_again > 0 {
            notes.insert(
                "sizes too large for the capacity, drawn again".to_owned(),
                self.drawn_again,
            );
        }
        self.writer.finish(SourceFacts {
            source: "profile".to_owned(),
            seed,
            parameters,
            notes,
            ..SourceFacts::default()
        })
    }
}
