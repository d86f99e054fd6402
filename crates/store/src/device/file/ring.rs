//! Several requests in flight through io_uring.

#![expect(unsafe_code, reason = "the kernel is given pointers that it reads later")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;

use super::requests::{IN_FLIGHT, Request};

/// How often it is looked whether requests are done that cannot be waited for.
const LOOK: Duration = Duration::from_micros(100);

/// A pair of queues shared with the kernel.
pub(super) struct Ring {
    ring: IoUring,
    /// Whether it must not be used again.
    is_broken: bool,
}

/// Whether a request or call may simply be made again.
fn is_passing(error: &io::Error) -> bool {
    let again = [Errno::INTR, Errno::AGAIN, Errno::BUSY].map(|errno| Some(errno.raw_os_error()));
    again.contains(&error.raw_os_error())
}

impl Ring {
    /// New queues.
    ///
    /// # Errors
    /// If the kernel has no io_uring or refuses it.
    pub(super) fn new() -> io::Result<Self> {
        // Completions wait for the thread that asks for them, which no interrupt has to wake up for each;
        // Linux before 5.19 does not know that.
        let quiet = IoUring::builder().setup_coop_taskrun().build(IN_FLIGHT as u32);
        let ring = quiet.or_else(|_| IoUring::new(IN_FLIGHT as u32))?;
        Ok(Self { ring, is_broken: false })
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Writes `requests` to `file`, in any order.
    ///
    /// # Errors
    /// The first error of any; all are done or have failed when it returns.
    pub(super) fn write(&mut self, file: &File, requests: &[Request<'_>]) -> io::Result<()> {
        let fd = types::Fd(file.as_raw_fd());
        let lengths: Vec<usize> = requests.iter().map(|request| request.bytes).collect();
        let entry = |number: usize, done: usize| {
            let Request { offset, slices, .. } = &requests[number];
            if done == 0 && slices.len() > 1 {
                let entry = opcode::Writev::new(fd, slices.as_ptr().cast(), slices.len() as u32);
                return entry.offset(*offset).build();
            }
            let mut before = 0;
            let rest = slices.iter().find_map(|slice| {
                before += slice.len();
                (before > done).then(|| &slice[slice.len() - (before - done)..])
            });
            let rest = rest.expect("some of it is yet to be done");
            let entry = opcode::Write::new(fd, rest.as_ptr(), rest.len() as u32);
            entry.offset(offset + done as u64).build()
        };
        // SAFETY: the memory of `requests` is borrowed for this call, a slice of it has the layout of an
        // `iovec`, and `file` stays open.
        unsafe { self.run(&lengths, io::ErrorKind::WriteZero, entry) }
    }

    /// Fills `requests` from `file`, in any order.
    ///
    /// # Errors
    /// The first error of any; all are done or have failed when it returns.
    pub(super) fn read(
        &mut self,
        file: &File,
        requests: &mut [(u64, &mut [u8])],
    ) -> io::Result<()> {
        let fd = types::Fd(file.as_raw_fd());
        let lengths: Vec<usize> = requests.iter().map(|(_, bytes)| bytes.len()).collect();
        let entry = |number: usize, done: usize| {
            let (offset, bytes) = &mut requests[number];
            let rest = &mut bytes[done..];
            let entry = opcode::Read::new(fd, rest.as_mut_ptr(), rest.len() as u32);
            entry.offset(*offset + done as u64).build()
        };
        // SAFETY: the memory of `requests` is borrowed for this call alone, and `file` stays open.
        unsafe { self.run(&lengths, io::ErrorKind::UnexpectedEof, entry) }
    }

    /// Has the kernel carry out requests of these lengths, in any order: `entry` makes that of a number, of
    /// which some bytes are done. One that moves nothing fails as `at_end`.
    ///
    /// # Safety
    /// Memory and file that the entries name must stay for this call, which does not return, by a
    /// panic or otherwise, before nothing is in flight.
    unsafe fn run(
        &mut self,
        lengths: &[usize],
        at_end: io::ErrorKind,
        mut entry: impl FnMut(usize, usize) -> squeue::Entry,
    ) -> io::Result<()> {
        let mut done = vec![0; lengths.len()];
        let mut waiting: Vec<usize> = (0..lengths.len()).rev().collect();
        let (mut in_flight, mut error) = (0, None);
        loop {
            while in_flight < IN_FLIGHT
                && let Some(number) = waiting.pop()
            {
                let entry = entry(number, done[number]).user_data(number as u64);
                // SAFETY: the caller answers for what the entry names.
                if unsafe { self.ring.submission().push(&entry) }.is_err() {
                    waiting.push(number);
                    break;
                }
                in_flight += 1;
            }
            if in_flight == 0 {
                return error.map_or(Ok(()), Err);
            }
            // Where nothing more can be begun until all are done, they are waited for at once.
            let wanted = if waiting.is_empty() { in_flight } else { 1 };
            match self.ring.submit_and_wait(wanted) {
                Err(problem) if !is_passing(&problem) => {
                    self.abandon(in_flight);
                    return Err(problem);
                }
                _ => {}
            }
            for completion in self.ring.completion() {
                in_flight -= 1;
                let number = completion.user_data() as usize;
                match completion.result() {
                    0 => {
                        error.get_or_insert_with(|| at_end.into());
                    }
                    bytes if bytes > 0 => {
                        done[number] += bytes as usize;
                        if done[number] < lengths[number] {
                            waiting.push(number);
                        }
                    }
                    code => {
                        let problem = io::Error::from_raw_os_error(-code);
                        if is_passing(&problem) {
                            waiting.push(number);
                        } else {
                            error.get_or_insert(problem);
                        }
                    }
                }
            }
            if error.is_some() {
                waiting.clear();
            }
        }
    }

    /// The kernel takes no more, and cannot be waited for: looks on until it has done what it took.
    fn abandon(&mut self, in_flight: usize) {
        self.is_broken = true;
        let mut done = 0;
        while done + self.ring.submission().len() < in_flight {
            std::thread::sleep(LOOK);
            done += self.ring.completion().count();
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ring").field("is_broken", &self.is_broken).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::IoSlice;

    use super::*;

    /// More requests than are in flight; of a file that cannot be written every one fails.
    #[test]
    fn an_error_is_reported_when_nothing_is_in_flight_and_the_queues_go_on() {
        // Where the kernel refuses queues, threads write.
        let Ok(mut ring) = Ring::new() else { return };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let writable = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        let readable = File::open(&path).unwrap();
        let blocks: Vec<Vec<u8>> = (0..200).map(|at| vec![at as u8; 512]).collect();
        let requests: Vec<Request<'_>> = (0..)
            .step_by(1024)
            .zip(blocks.chunks(2))
            .map(|(offset, two)| {
                let slices = two.iter().map(|block| IoSlice::new(block)).collect();
                Request { offset, bytes: 1024, slices }
            })
            .collect();
        for _ in 0..3 {
            let error = ring.write(&readable, &requests).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()));
            assert!(!ring.is_broken());
            assert_eq!(ring.ring.submission().len(), 0);
            assert_eq!(ring.ring.completion().count(), 0);
        }
        assert!(std::fs::read(&path).unwrap().is_empty());
        ring.write(&writable, &requests).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), blocks.concat());
        ring.write(&writable, &[]).unwrap();

        // The same read again; what begins at the end of the file fails.
        let mut read = vec![0; 200 * 512];
        let mut parts: Vec<(u64, &mut [u8])> =
            (0..).step_by(512).zip(read.chunks_mut(512)).collect();
        ring.read(&readable, &mut parts).unwrap();
        assert_eq!(read, blocks.concat());
        let mut beyond = [0; 512];
        let error = ring.read(&readable, &mut [(200 * 512, &mut beyond)]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
