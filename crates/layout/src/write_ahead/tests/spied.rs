//! A file system behind the seam whose transfers are recorded: what they hold, and what users have.
//!
//! What metadata holds is what the file system says when the call ends in which it was sent.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::block_layout::{BlockCounts, BlockLayout, FileBlock, LayoutError, Place};
use crate::ffs::{FastFileSystem, InodeKind};
use crate::file_system_blocks::FileSystemBlocks;
use agewell_log::{BlockDevice, Purpose, Transfer, pass_batches_on};

/// A file, and how often one of its number had been removed before it was made.
pub(super) type FileName = (u32, u32);

/// A block of it.
pub(super) type BlockName = (FileName, u32);

/// Bytes of an inode.
const INODE_BYTES: u32 = 128;

/// Blocks that an inode names itself.
const DIRECT_BLOCKS: u32 = 12;

/// The owner of what waits, if it is not known.
const NO_CLIENT: u32 = u32::MAX;

/// Contents of an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inode {
    pub(super) file: FileName,
    /// Blocks and where they are.
    pub(super) direct: Vec<(u32, u32)>,
    /// Where the indirect block is.
    pub(super) indirect: Option<u32>,
}

/// Contents of all metadata at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Description {
    /// By number.
    pub(super) inodes: BTreeMap<u32, Inode>,
    /// Indirect blocks by their places: the blocks they name and where those are.
    pub(super) indirect: BTreeMap<u32, Vec<(u32, u32)>>,
}

impl Description {
    fn of(system: &FastFileSystem, names: &BTreeMap<u32, FileName>) -> Self {
        let mut all = Self::default();
        for (number, kind, _) in system.inodes() {
            if kind != InodeKind::File {
                continue;
            }
            let record = &system.inodes.records[number as usize];
            assert_eq!(record.double, 0, "files of the test are small");
            let blocks = system.geometry.blocks_of(record.size_bytes);
            let places = (0..blocks).map(|block| (block, system.address(number, block)));
            let (direct, behind): (Vec<_>, Vec<_>) = places
                .filter(|(_, place)| *place != 0)
                .partition(|(block, _)| *block < DIRECT_BLOCKS);
            let indirect = record.single.map(|single| single.address);
            if let Some(place) = indirect {
                all.indirect.insert(place, behind);
            }
            all.inodes.insert(number, Inode { file: names[&number], direct, indirect });
        }
        all
    }

    /// The blocks of the layout, each of `pieces` of the file system, that have a place.
    fn block_names(&self, pieces: u32) -> BTreeSet<BlockName> {
        let mut names = BTreeSet::new();
        for inode in self.inodes.values() {
            let behind = inode.indirect.map(|place| &self.indirect[&place]);
            let blocks = inode.direct.iter().chain(behind.into_iter().flatten());
            names.extend(blocks.map(|(block, _)| (inode.file, *block / pieces)));
        }
        names
    }
}

/// Contents of a place.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// A version of a block.
    Data(BlockName, u64),
    Metadata(Rc<Description>),
}

/// What a crash must find.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// What users have, and its versions.
    pub(super) versions: BTreeMap<BlockName, u64>,
    /// What they have deleted in the middle of a file, which has it still.
    pub(super) holes: BTreeSet<BlockName>,
    /// In which version each block was sent last, and to which places.
    pub(super) placed: BTreeMap<BlockName, (u64, Vec<u32>)>,
}

/// What users have written and what has been sent of it.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Blocks of the file system in one of the layout.
    pieces: u32,
    state: State,
    description: Rc<Description>,
    /// Of each block of the layout.
    names: Vec<Option<BlockName>>,
    /// How often each file has been removed.
    removals: BTreeMap<u32, u32>,
    inode_names: BTreeMap<u32, FileName>,
    written: u64,
    /// The client in whose buffer a block waits.
    waiting: BTreeMap<BlockName, u32>,
    /// What has been sent since the last commit, each place once; nothing yet for metadata of the
    /// call that is being made.
    sent: Vec<(u32, Option<Content>)>,
    sent_at: BTreeMap<u32, usize>,
    /// Blocks that have been sent in the call that is being made.
    sent_in_call: BTreeSet<BlockName>,
}

impl Heard {
    pub(super) fn new(pieces: u32) -> Self {
        Self { pieces, ..Self::default() }
    }

    fn send(&mut self, place: u32, content: Option<Content>) {
        if let Some(index) = self.sent_at.get(&place) {
            self.sent[*index].1 = content;
        } else {
            self.sent_at.insert(place, self.sent.len());
            self.sent.push((place, content));
        }
    }

    fn hear(&mut self, transfer: &Transfer, contents: &[u32]) {
        for (index, place) in (transfer.slot..transfer.slot + transfer.blocks).enumerate() {
            let Some(block) = contents.get(index) else {
                self.send(place, None);
                continue;
            };
            let name = self.names[*block as usize].expect("what is sent has a name");
            let version = self.state.versions[&name];
            if self.sent_in_call.insert(name) {
                self.state.placed.insert(name, (version, Vec::new()));
                self.waiting.remove(&name);
            }
            self.state.placed.entry(name).or_default().1.push(place);
            self.send(place, Some(Content::Data(name, version)));
        }
    }

    /// What has been sent for the next `records` of a journal.
    pub(super) fn take_sent(&mut self, records: u32) -> Vec<(u32, Content)> {
        let taken: Vec<_> = self.sent.drain(..records as usize).collect();
        self.sent_at = (0..).zip(&self.sent).map(|(index, (place, _))| (*place, index)).collect();
        let content = |content: Option<Content>| content.expect("the call has ended");
        taken.into_iter().map(|(place, sent)| (place, content(sent))).collect()
    }

    pub(super) fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    pub(super) fn description(&self) -> Rc<Description> {
        Rc::clone(&self.description)
    }

    /// What a crash must find if it comes behind a commit now.
    pub(super) fn state(&self) -> State {
        let mut state = self.state.clone();
        state.holes = self.description.block_names(self.pieces);
        state.holes.retain(|name| !state.versions.contains_key(name));
        state
    }

    pub(super) fn name_of(&self, file: u32, block: u32) -> BlockName {
        ((file, self.removals.get(&file).copied().unwrap_or(0)), block)
    }

    /// Versions of the blocks that do not wait.
    pub(super) fn versions_sent(&self) -> BTreeMap<BlockName, u64> {
        let mut versions = self.state.versions.clone();
        versions.retain(|name, _| !self.waiting.contains_key(name));
        versions
    }

    pub(super) fn waits_for(&self, client: u32) -> bool {
        self.waiting.values().any(|waits_for| *waits_for == client)
    }

    /// A call has ended, which was about `file` if about any.
    fn end_call(&mut self, system: &FastFileSystem, file: Option<u32>) {
        let is_file = |(number, kind, _)| (kind == InodeKind::File).then_some(number);
        let numbers: BTreeSet<u32> = system.inodes().filter_map(is_file).collect();
        self.inode_names.retain(|number, _| numbers.contains(number));
        for number in numbers {
            if !self.inode_names.contains_key(&number) {
                let name = self.name_of(file.expect("only for a file one is made"), 0).0;
                self.inode_names.insert(number, name);
            }
        }
        let description = Rc::new(Description::of(system, &self.inode_names));
        for (_, content) in self.sent.iter_mut().filter(|(_, content)| content.is_none()) {
            *content = Some(Content::Metadata(Rc::clone(&description)));
        }
        self.description = description;
        self.sent_in_call.clear();
    }
}

/// The place of inode `number`.
pub(super) fn inode_place(system: &FastFileSystem, number: u32) -> u32 {
    let per_block = system.geometry.block_bytes / INODE_BYTES;
    let per_group = system.geometry.inodes_per_group;
    let within = number % per_group % per_block * INODE_BYTES;
    system.geometry.inode_address(number) + within / system.geometry.fragment_bytes
}

/// Records everything and passes it on.
struct Ear<'a, D> {
    heard: &'a mut Heard,
    device: &'a mut D,
}

impl<D: BlockDevice> BlockDevice for Ear<'_, D> {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        if transfer.purpose.writes() {
            self.heard.hear(transfer, contents);
        }
        self.device.transfer(transfer, contents);
    }

    fn commit(&mut self) {
        self.device.commit();
    }

    pass_batches_on!();
}

/// The layout whose transfers are recorded.
pub(super) struct Spied {
    pub(super) inner: FileSystemBlocks<FastFileSystem>,
    pub(super) heard: Rc<RefCell<Heard>>,
}

impl Spied {
    fn within<D: BlockDevice, R>(
        &mut self,
        file: Option<u32>,
        device: &mut D,
        act: impl FnOnce(&mut FileSystemBlocks<FastFileSystem>, &mut Ear<'_, D>) -> R,
    ) -> R {
        let heard = &mut *self.heard.borrow_mut();
        let done = act(&mut self.inner, &mut Ear { heard, device });
        heard.end_call(self.inner.system(), file);
        done
    }
}

impl BlockLayout for Spied {
    fn ensure_blocks(&mut self, blocks: u32) {
        self.inner.ensure_blocks(blocks);
        self.heard.borrow_mut().names.resize(blocks as usize, None);
    }

    fn preload(&mut self, _block: u32, _name: FileBlock) -> Result<(), LayoutError> {
        unreachable!("the disk of the test is empty")
    }

    fn fragment(&mut self, _: u32, _: u32, _: u32) -> Result<(), LayoutError> {
        unreachable!("the disk of the test is empty")
    }

    fn create(
        &mut self,
        file: u32,
        directory: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        self.within(Some(file), device, |inner, ear| inner.create(file, directory, ear))
    }

    fn remove(&mut self, file: u32, device: &mut impl BlockDevice) {
        self.within(None, device, |inner, ear| inner.remove(file, ear));
        *self.heard.borrow_mut().removals.entry(file).or_default() += 1;
    }

    fn write(
        &mut self,
        block: u32,
        name: FileBlock,
        client: u32,
        device: &mut impl BlockDevice,
    ) -> Result<(), LayoutError> {
        let (named, before, waited) = {
            let heard = &mut *self.heard.borrow_mut();
            let named = heard.name_of(name.file, name.block);
            heard.names[block as usize] = Some(named);
            heard.written += 1;
            let before = heard.state.versions.insert(named, heard.written);
            let waited = heard.waiting.contains_key(&named);
            // A block that waits already, perhaps because it was moved, stays in its buffer.
            let is_waiting = self.inner.place_of(block) == Place::Memory;
            heard.waiting.entry(named).or_insert(if is_waiting { NO_CLIENT } else { client });
            (named, before, waited)
        };
        let file = Some(name.file);
        let done = self.within(file, device, |inner, ear| inner.write(block, name, client, ear));
        if done.is_err() {
            let heard = &mut *self.heard.borrow_mut();
            if !waited {
                heard.waiting.remove(&named);
            }
            if let Some(before) = before {
                heard.state.versions.insert(named, before);
            } else {
                heard.state.versions.remove(&named);
            }
        }
        done
    }

    fn read(&mut self, blocks: &[u32], purpose: Purpose, device: &mut impl BlockDevice) {
        self.within(None, device, |inner, ear| inner.read(blocks, purpose, ear));
    }

    fn delete(&mut self, block: u32, device: &mut impl BlockDevice) {
        {
            let heard = &mut *self.heard.borrow_mut();
            if let Some(name) = heard.names[block as usize].take() {
                heard.state.versions.remove(&name);
                heard.state.placed.remove(&name);
                heard.waiting.remove(&name);
            }
        }
        self.within(None, device, |inner, ear| inner.delete(block, ear));
    }

    fn sync(&mut self, client: u32, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        self.within(None, device, |inner, ear| inner.sync(client, ear))
    }

    fn sync_all(&mut self, device: &mut impl BlockDevice) -> Result<(), LayoutError> {
        self.within(None, device, |inner, ear| inner.sync_all(ear))
    }

    fn settle(&mut self, device: &mut impl BlockDevice) {
        self.within(None, device, |inner, ear| inner.settle(ear));
    }

    fn unsettled_places(&self) -> u64 {
        self.inner.unsettled_places()
    }

    fn place_of(&self, block: u32) -> Place {
        self.inner.place_of(block)
    }

    fn recover(&self, device: &mut impl BlockDevice) {
        self.inner.recover(device);
    }

    fn counts(&self) -> BlockCounts {
        self.inner.counts()
    }

    fn live_blocks(&self) -> u64 {
        self.inner.live_blocks()
    }

    fn unit_bytes(&self, block_bytes: u64) -> u64 {
        self.inner.unit_bytes(block_bytes)
    }

    fn verify(&self) {
        self.inner.verify();
    }
}
