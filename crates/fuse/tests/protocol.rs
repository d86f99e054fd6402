//! Requests out of bytes: laid out by hand, and arbitrary.

use agewell_fuse::protocol::{Dialect, Operation, REQUEST_HEADER, Request, WRITE_HEADER, parse};
use agewell_fuse::{Caller, Copy, Make, Read, Seek, SetAttributes, SetTime, Time, Write};
use proptest::prelude::*;
use rustix::fs::{FallocateFlags, RenameFlags, XattrFlags};

const EXTENDED: Dialect = Dialect { setxattr_extended: true };

/// A body, field by field.
#[derive(Default, Clone)]
struct Body(Vec<u8>);

impl Body {
    fn u32(mut self, number: u32) -> Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    fn u64(mut self, number: u64) -> Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

fn body() -> Body {
    Body::default()
}

/// Inode 77, asked by user 1, group 2, process 3.
#[allow(clippy::needless_pass_by_value, reason = "it is made for it")]
fn message(operation: u32, body: Body) -> Vec<u8> {
    let size = (REQUEST_HEADER + body.0.len()) as u32;
    let head = Body::default().u32(size).u32(operation).u64(5).u64(77).u32(1).u32(2).u32(3).u32(0);
    head.bytes(&body.0).0
}

/// One of each that has fields, as the header of the kernel lays it out, and what it means.
fn examples() -> Vec<(Vec<u8>, Operation<'static>)> {
    let make = |name| Make { parent: 77, name, mode: 0o100_644, mask: 0o22 };
    let set = body()
        .u32(0b1101_1111_1111)
        .u32(0)
        .u64(9)
        .u64(1000)
        .u64(9)
        .u64(-1_i64 as u64)
        .u64(2)
        .u64(3)
        .u32(4)
        .u32(5)
        .u32(6)
        .u32(0o644)
        .u32(0)
        .u32(10)
        .u32(20)
        .u32(0);
    let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
    vec![
        (message(1, body().bytes(b"name\0")), Operation::Lookup { name: b"name" }),
        (message(2, body().u64(3)), Operation::Forget { count: 3 }),
        (message(3, body().u32(0).u32(0).u64(0)), Operation::GetAttributes),
        (
            message(4, set),
            Operation::SetAttributes(SetAttributes {
                mode: Some(0o644),
                user: Some(10),
                group: Some(20),
                size: Some(1000),
                accessed: Some(SetTime::Now),
                modified: Some(SetTime::Now),
                changed: Some(time(3, 6)),
                kills_privileges: true,
            }),
        ),
        (
            message(6, body().bytes(b"name\0a/target\0")),
            Operation::SymbolicLink { name: b"name", target: b"a/target" },
        ),
        (
            message(8, body().u32(0o100_644).u32(0x105).u32(0o22).u32(0).bytes(b"node\0")),
            Operation::MakeNode { make: make(b"node"), device: 0x105 },
        ),
        (
            message(9, body().u32(0o100_644).u32(0o22).bytes(b"d\0")),
            Operation::MakeDirectory(make(b"d")),
        ),
        (message(10, body().bytes(b"u\0")), Operation::Unlink { name: b"u" }),
        (message(11, body().bytes(b"r\0")), Operation::RemoveDirectory { name: b"r" }),
        (
            message(12, body().u64(78).bytes(b"old\0new\0")),
            Operation::Rename {
                name: b"old",
                to_parent: 78,
                to_name: b"new",
                flags: RenameFlags::empty(),
            },
        ),
        (
            message(45, body().u64(78).u32(2).u32(0).bytes(b"old\0new\0")),
            Operation::Rename {
                name: b"old",
                to_parent: 78,
                to_name: b"new",
                flags: RenameFlags::EXCHANGE,
            },
        ),
        (message(13, body().u64(80).bytes(b"l\0")), Operation::Link { inode: 80, name: b"l" }),
        (
            message(15, body().u64(0).u64(8192).u32(4096).u32(0).u64(0).u32(0).u32(0)),
            Operation::Read(Read { inode: 77, offset: 8192, size: 4096 }),
        ),
        (
            message(16, body().u64(0).u64(10).u32(4).u32(4).u64(0).u32(0).u32(0).bytes(b"data")),
            Operation::Write(Write {
                inode: 77,
                offset: 10,
                data: b"data",
                kills_privileges: true,
                is_delayed: false,
            }),
        ),
        (message(20, body().u64(0).u32(1).u32(0)), Operation::SyncFile { data_only: true }),
        (message(30, body().u64(0).u32(0).u32(0)), Operation::SyncDirectory { data_only: false }),
        (
            message(21, body().u32(3).u32(1).u32(1).u32(0).bytes(b"user.a\0val")),
            Operation::SetExtendedAttribute {
                name: b"user.a",
                value: b"val",
                flags: XattrFlags::CREATE,
                kills_set_group: true,
            },
        ),
        (
            message(22, body().u32(100).u32(0).bytes(b"user.a\0")),
            Operation::GetExtendedAttribute { name: b"user.a", size: 100 },
        ),
        (message(23, body().u32(9).u32(0)), Operation::ListExtendedAttributes { size: 9 }),
        (
            message(24, body().bytes(b"user.a\0")),
            Operation::RemoveExtendedAttribute { name: b"user.a" },
        ),
        (
            message(44, body().u64(0).u64(12).u32(4096).u32(0).u64(0).u32(0).u32(0)),
            Operation::ReadDirectory { cookie: 12, size: 4096, with_attributes: true },
        ),
        (
            message(35, body().u32(2).u32(0o100_644).u32(0o22).u32(0).bytes(b"c\0")),
            Operation::Create(make(b"c")),
        ),
        (
            message(51, body().u32(2).u32(0o600).u32(0o22).u32(0).bytes(b"#1\0")),
            Operation::CreateUnnamed { mode: 0o600, mask: 0o22 },
        ),
        (
            message(43, body().u64(0).u64(1).u64(2).u32(3).u32(0)),
            Operation::Allocate {
                offset: 1,
                size: 2,
                flags: FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE,
            },
        ),
        (
            message(46, body().u64(0).u64(1).u32(4).u32(0)),
            Operation::Seek { offset: 1, seek: Seek::Hole },
        ),
        (
            message(47, body().u64(0).u64(1).u64(79).u64(0).u64(2).u64(1 << 40).u64(0)),
            Operation::Copy {
                copy: Copy {
                    from: 77,
                    from_offset: 1,
                    to: 79,
                    to_offset: 2,
                    size: u64::from(u32::MAX),
                },
                wide: false,
            },
        ),
        (message(50, body().u64(0)), Operation::SyncAll),
        (message(52, body().u64(0).u64(0).u64(0)), Operation::Statx),
        (message(38, body()), Operation::Destroy),
        (message(40, body().u64(0).u64(0).u64(0)), Operation::Unknown(40)),
    ]
}

#[test]
fn requests_mean_what_the_header_of_the_kernel_says() {
    for (message, operation) in examples() {
        let caller = Caller { user: 1, group: 2, process: 3 };
        let expected = Request { unique: 5, inode: 77, caller, operation };
        assert_eq!(parse(&message, EXTENDED), Ok(expected));
    }
}

#[test]
fn commands_and_forgotten_inodes_have_as_much_behind_them_as_they_say() {
    let head = |size| body().u64(0).u32(0).u32(0xc018_5879).u64(0).u32(size).u32(24);
    let whole = message(39, head(3).bytes(b"abc"));
    let Ok(Request { operation: Operation::Command(command), .. }) = parse(&whole, EXTENDED) else {
        panic!("a command");
    };
    assert_eq!((command.number, command.input, command.output_max), (0xc018_5879, &b"abc"[..], 24));
    assert!(parse(&message(39, head(4).bytes(b"abc")), EXTENDED).is_err());

    let whole = message(42, body().u32(2).u32(0).u64(3).u64(4).u64(5).u64(6));
    let Ok(Request { operation: Operation::BatchForget(forget), .. }) = parse(&whole, EXTENDED)
    else {
        panic!("inodes to forget");
    };
    assert_eq!(forget.pairs().collect::<Vec<_>>(), [(3, 4), (5, 6)]);
    assert!(parse(&message(42, body().u32(3).u32(0).u64(3).u64(4)), EXTENDED).is_err());
    assert!(parse(&message(42, body().u32(u32::MAX).u32(0)), EXTENDED).is_err());
}

#[test]
fn what_an_older_kernel_sends_is_shorter() {
    let old = message(21, body().u32(1).u32(0).bytes(b"user.a\0v"));
    let operation = parse(&old, Dialect::default()).unwrap().operation;
    let Operation::SetExtendedAttribute { name, value, kills_set_group, .. } = operation else {
        panic!("an attribute");
    };
    assert_eq!((name, value, kills_set_group), (&b"user.a"[..], &b"v"[..], false));
    let old = message(26, body().u32(7).u32(31).u32(131_072).u32(3));
    let Operation::Initialise(offer) = parse(&old, EXTENDED).unwrap().operation else {
        panic!("the first request");
    };
    assert_eq!((offer.major, offer.minor, offer.capabilities), (7, 31, 3));
    let new = message(26, body().u32(7).u32(45).u32(131_072).u32(3).u32(1).bytes(&[0; 44]));
    let Operation::Initialise(offer) = parse(&new, EXTENDED).unwrap().operation else {
        panic!("the first request");
    };
    assert_eq!(offer.capabilities, 3 | 1 << 32);
}

#[test]
fn every_request_that_is_cut_off_is_refused() {
    for (whole, operation) in examples() {
        for size in 0..whole.len() {
            // With a size that is not true, and with one that is.
            assert!(parse(&whole[..size], EXTENDED).is_err(), "{operation:?}");
            let mut cut = whole[..size].to_vec();
            if let Some(head) = cut.first_chunk_mut() {
                *head = (size as u32).to_ne_bytes();
            }
            if let Ok(request) = parse(&cut, EXTENDED) {
                // What is cut off was behind all that is looked at.
                assert_eq!(request.operation, operation);
            }
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let read = |offset| body().u64(0).u64(offset).u32(1).u32(0).u64(0).u32(0).u32(0);
    assert!(parse(&message(15, read(i64::MAX as u64)), EXTENDED).is_ok());
    assert!(parse(&message(15, read(1 << 63)), EXTENDED).is_err());
    let write = |offset| {
        message(16, body().u64(0).u64(offset).u32(1).u32(0).u64(0).u32(0).u32(0).bytes(b"x"))
    };
    assert!(parse(&write(i64::MAX as u64 - 1), EXTENDED).is_ok());
    assert!(parse(&write(i64::MAX as u64), EXTENDED).is_err());
    assert_eq!(write(0).len(), WRITE_HEADER + 1);
    for name in [&b"\0"[..], b"a/b\0", b"a", b""] {
        assert!(parse(&message(1, body().bytes(name)), EXTENDED).is_err(), "{name:?}");
    }
}

#[test]
fn extensions_are_left_out() {
    let mut whole = message(1, body().bytes(b"name\0").bytes(&[0xff; 8]));
    whole[36..38].copy_from_slice(&1_u16.to_ne_bytes());
    let operation = parse(&whole, EXTENDED).unwrap().operation;
    assert_eq!(operation, Operation::Lookup { name: b"name" });
    whole[36..38].copy_from_slice(&3_u16.to_ne_bytes());
    assert!(parse(&whole, EXTENDED).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        operation in 0_u32..60,
        body in proptest::collection::vec(any::<u8>(), 0..200),
        setxattr_extended: bool,
    ) {
        let dialect = Dialect { setxattr_extended };
        let _ = parse(&body, dialect);
        let _ = parse(&message(operation, Body(body)), dialect);
    }

    #[test]
    fn no_change_of_a_request_makes_it_panic(
        which: prop::sample::Index,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let examples = examples();
        let mut bytes = which.get(&examples).0.clone();
        for (place, byte) in changes {
            *place.get_mut(&mut bytes) = byte;
        }
        if let Ok(request) = parse(&bytes, EXTENDED) {
            let known = !matches!(request.operation, Operation::Unknown(_));
            prop_assert!(known || request.unique != 0 || request.inode != u64::MAX);
        }
    }
}
