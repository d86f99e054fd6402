//! One request, answered.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rustix::io::Errno;

use super::pages::Pages;
use crate::device::Device;
use crate::directory::DirectorySink;
use crate::file_system::{Entry, FileSystem};
use crate::protocol::{self, BadRequest, Dialect, LookedAt, Operation, Request, Validity};
use crate::reply::{DataReply, Reply};

/// Operations that are not answered: `FORGET` and `BATCH_FORGET`.
const SILENT: [u32; 2] = [2, 42];

/// What a thread reads into and answers out of.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) request: Pages,
    pub(super) reply: Pages,
    pub(super) value: Vec<u8>,
    pub(super) validity: Validity,
}

/// What the file system's answer to the last request comes out of.
type Ended = Receiver<Result<(), Errno>>;

impl Worker {
    /// Answers the request of `size` bytes that was read, or hands the answer on; if it is the last one,
    /// gives where its answer is heard.
    pub(super) fn answer(
        &mut self,
        size: usize,
        dialect: Dialect,
        device: &Arc<Device>,
        file_system: &impl FileSystem,
    ) -> Option<Ended> {
        let request = match protocol::parse(&self.request.bytes()[..size], dialect) {
            Ok(request) => request,
            Err(BadRequest { unique, operation, .. }) => {
                if let (Some(unique), Some(operation)) = (unique, operation)
                    && !SILENT.contains(&operation)
                {
                    device.send_result(unique, Err(Errno::INVAL));
                }
                return None;
            }
        };
        let unique = request.unique;
        if matches!(request.operation, Operation::Destroy) {
            let (reply, ended) = Reply::heard(Some((Arc::clone(device), unique)));
            file_system.destroy(reply);
            return Some(ended);
        }
        let buffers =
            Answer { reply: &mut self.reply, value: &mut self.value, validity: self.validity };
        if let Err(error) = buffers.give(&request, device, file_system) {
            device.send_result(unique, Err(error));
        }
        None
    }
}

struct Answer<'a> {
    reply: &'a mut Pages,
    value: &'a mut Vec<u8>,
    validity: Validity,
}

impl Answer<'_> {
    /// Asks the file system and sends what it gives; an error is sent by who called.
    fn give(
        self,
        request: &Request<'_>,
        device: &Arc<Device>,
        file_system: &impl FileSystem,
    ) -> Result<(), Errno> {
        let Self { reply, value, validity } = self;
        let &Request { unique, inode, ref caller, operation } = request;
        let send = |body: &[u8]| device.send_pieces(unique, &[IoSlice::new(body)]);
        let send_entry = |entry: &Entry| send(&protocol::entry(entry, validity));
        value.clear();
        match operation {
            Operation::Lookup { name } => match file_system.lookup(caller, inode, name) {
                Ok(entry) => send(&protocol::looked_at(&LookedAt::Found(&entry), validity)),
                Err(Errno::NOENT) => send(&protocol::looked_at(&LookedAt::Absent, validity)),
                Err(error) => return Err(error),
            },
            Operation::Forget { count } => file_system.forget(inode, count),
            Operation::BatchForget(forget) => {
                forget.pairs().for_each(|(inode, count)| file_system.forget(inode, count));
            }
            Operation::GetAttributes => {
                let attributes = file_system.attributes(caller, inode)?;
                send(&protocol::attributes(&attributes, validity));
            }
            Operation::Statx => {
                let attributes = file_system.attributes(caller, inode)?;
                send(&protocol::statx(&attributes, validity));
            }
            Operation::SetAttributes(set) => {
                let attributes = file_system.set_attributes(caller, inode, &set)?;
                send(&protocol::attributes(&attributes, validity));
            }
            Operation::ReadLink => {
                file_system.read_link(caller, inode, value)?;
                send(value);
            }
            Operation::SymbolicLink { name, target } => {
                send_entry(&file_system.symbolic_link(caller, inode, name, target)?);
            }
            Operation::MakeNode { make, device } => {
                send_entry(&file_system.make_node(caller, &make, device)?);
            }
            Operation::MakeDirectory(make) => {
                send_entry(&file_system.make_directory(caller, &make)?);
            }
            Operation::Create(make) => {
                let entry = file_system.create(caller, &make)?;
                send(&protocol::created(&entry, validity));
            }
            Operation::CreateUnnamed { mode, mask } => {
                let entry = file_system.create_unnamed(caller, inode, mode, mask)?;
                send(&protocol::created(&entry, validity));
            }
            Operation::Unlink { name } => {
                file_system.unlink(caller, inode, name)?;
                send(&[]);
            }
            Operation::RemoveDirectory { name } => {
                file_system.remove_directory(caller, inode, name)?;
                send(&[]);
            }
            Operation::Rename { name, to_parent, to_name, flags } => {
                file_system.rename(caller, (inode, name), (to_parent, to_name), flags)?;
                send(&[]);
            }
            Operation::Link { inode: linked, name } => {
                send_entry(&file_system.link(caller, linked, inode, name)?);
            }
            Operation::Read(read) => {
                let buffer = reply.bytes_mut().get_mut(..read.size).ok_or(Errno::INVAL)?;
                let reply = DataReply::new(device, unique, buffer);
                let _sent = file_system.read(caller, &read, reply)?;
            }
            Operation::Write(write) => {
                let written = file_system.write(caller, &write)?;
                assert!(written <= write.data.len(), "no more is written than was sent");
                send(&protocol::size_only(written as u32));
            }
            Operation::Space => send(&protocol::space(&file_system.space(caller, inode)?)),
            Operation::SyncFile { data_only } => {
                file_system.sync_file(caller, inode, data_only, Reply::to(device, unique));
            }
            Operation::SyncDirectory { data_only } => {
                file_system.sync_directory(caller, inode, data_only, Reply::to(device, unique));
            }
            Operation::SyncAll => file_system.sync_all(Reply::to(device, unique)),
            Operation::SetExtendedAttribute { name, value, flags, kills_set_group } => {
                file_system.set_extended_attribute(
                    caller,
                    inode,
                    name,
                    value,
                    flags,
                    kills_set_group,
                )?;
                send(&[]);
            }
            Operation::GetExtendedAttribute { name, size } => {
                file_system.extended_attribute(caller, inode, name, value)?;
                send_sized(value, size, send)?;
            }
            Operation::ListExtendedAttributes { size } => {
                file_system.extended_attributes(caller, inode, value)?;
                send_sized(value, size, send)?;
            }
            Operation::RemoveExtendedAttribute { name } => {
                file_system.remove_extended_attribute(caller, inode, name)?;
                send(&[]);
            }
            Operation::ReadDirectory { cookie, size, with_attributes } => {
                let buffer = reply.bytes_mut();
                let size = size.min(buffer.len());
                let entries = with_attributes.then_some(validity);
                let mut sink = DirectorySink::new(&mut buffer[..size], entries);
                file_system.read_directory(caller, inode, cookie, &mut sink)?;
                let used = sink.used();
                send(&buffer[..used]);
            }
            Operation::Command(command) => {
                let result = file_system.command(caller, &command, value)?;
                assert!(value.len() <= command.output_max, "no more comes out than has room");
                let result = protocol::command_result(result);
                device.send_pieces(unique, &[IoSlice::new(&result), IoSlice::new(value)]);
            }
            Operation::Allocate { offset, size, flags } => {
                file_system.allocate(caller, inode, offset, size, flags)?;
                send(&[]);
            }
            Operation::Seek { offset, seek } => {
                let found = file_system.seek(caller, inode, offset, seek)?;
                send(&protocol::position(found));
            }
            Operation::Copy { copy, wide } => {
                let copied = file_system.copy(caller, &copy)?;
                assert!(copied <= copy.size, "no more is copied than was asked for");
                if wide {
                    send(&protocol::position(copied));
                } else {
                    send(&protocol::size_only(copied as u32));
                }
            }
            // Before the kernel has found out that files are opened without a request.
            Operation::Release | Operation::ReleaseDirectory => send(&[]),
            // `NOSYS` is an answer: opening needs no request, nor does closing; the kernel checks
            // permissions itself; what it would interrupt goes on to its end, which is near.
            Operation::Open
            | Operation::OpenDirectory
            | Operation::Flush
            | Operation::Access
            | Operation::Interrupt
            | Operation::Unknown(_) => return Err(Errno::NOSYS),
            // The kernel says these once, and elsewhere.
            Operation::Initialise(_) | Operation::Destroy => return Err(Errno::INVAL),
        }
        Ok(())
    }
}

/// Sends a value where there is room for it, or how long it is where that is asked.
fn send_sized(value: &[u8], room: usize, send: impl Fn(&[u8])) -> Result<(), Errno> {
    match room {
        0 => send(&protocol::size_only(value.len() as u32)),
        room if value.len() > room => return Err(Errno::RANGE),
        _ => send(value),
    }
    Ok(())
}
