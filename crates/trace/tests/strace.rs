//! strace's text to file operations: descriptors, offsets, names, processes, and everything that
//! can be wrong.

#![allow(clippy::format_push_string, reason = "text is built for reading, not for speed")]

use std::io::Cursor;

use agewell_trace::{
    FileOperation, FileOperationBatch, StraceOptions, StraceTrace, TIME_MISSING, TraceError,
    VALUE_MISSING,
};
use proptest::prelude::*;

fn read(
    text: &str,
    options: &StraceOptions,
) -> Result<(FileOperationBatch, StraceTrace), TraceError> {
    let bytes = text.as_bytes().to_vec();
    let mut trace = StraceTrace::read("sample.strace", Box::new(Cursor::new(bytes)), options)?;
    let mut all = FileOperationBatch::default();
    let mut batch = FileOperationBatch::default();
    while trace.next_batch(&mut batch)? {
        all.time_ns.append(&mut batch.time_ns);
        all.finish_ns.append(&mut batch.finish_ns);
        all.client.append(&mut batch.client);
        all.operation.append(&mut batch.operation);
        all.file.append(&mut batch.file);
        all.directory.append(&mut batch.directory);
        all.offset.append(&mut batch.offset);
        all.length.append(&mut batch.length);
        all.path.append(&mut batch.path);
        all.new_path.append(&mut batch.new_path);
    }
    Ok((all, trace))
}

fn below() -> StraceOptions {
    StraceOptions { below: Some("/mnt".to_owned()), skip_bad: false }
}

/// One line a row: client, operation, path, offset+length, new path.
fn told(text: &str) -> Vec<String> {
    let (batch, _) = read(text, &below()).expect("a good trace");
    (0..batch.len())
        .map(|row| {
            let operation = FileOperation::from_code(batch.operation[row]).expect("a known code");
            let mut line =
                format!("{} {} {}", batch.client[row], operation.name(), batch.path[row]);
            let number = |value: u64| match value {
                VALUE_MISSING => "?".to_owned(),
                known => known.to_string(),
            };
            if batch.length[row] != VALUE_MISSING {
                line += &format!(" {}+{}", number(batch.offset[row]), batch.length[row]);
            }
            if let Some(new) = &batch.new_path[row] {
                line += &format!(" -> {new}");
            }
            line
        })
        .collect()
}

#[test]
fn offsets_follow_reads_writes_and_seeks() {
    let rows = told(
        r#"5 1.000000 openat(AT_FDCWD</mnt>, "a", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</mnt/a>
5 1.000001 write(3</mnt/a>, ""..., 100) = 100
5 1.000002 write(3</mnt/a>, ""..., 100) = 50
5 1.000003 lseek(3</mnt/a>, 10, SEEK_SET) = 10
5 1.000004 read(3</mnt/a>, ""..., 4096) = 140
5 1.000005 read(3</mnt/a>, "", 4096) = 0
5 1.000006 pread64(3</mnt/a>, ""..., 20, 7) = 20
5 1.000007 pwrite64(3</mnt/a>, ""..., 8, 1000) = 8
5 1.000008 write(3</mnt/a>, ""..., 1) = 1
5 1.000009 ftruncate(3</mnt/a>, 20) = 0
5 1.000010 fdatasync(3</mnt/a>) = 0
5 1.000011 fallocate(3</mnt/a>, 0, 0, 65536) = 0
5 1.000012 close(3</mnt/a>) = 0
5 1.000013 read(0</dev/tty>, ""..., 5) = 5
5 1.000014 unlink("/etc/passwd") = -1 EACCES (Permission denied)
"#,
    );
    let expected = [
        "5 create a",
        "5 write a 0+100",
        "5 write a 100+50",
        "5 read a 10+140",
        "5 read a 7+20",
        "5 write a 1000+8",
        "5 write a 150+1",
        "5 truncate a ?+20",
        "5 sync a",
        "5 allocate a 0+65536",
        "5 close a",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn copies_of_a_descriptor_share_its_offset_and_appends_go_to_the_end() {
    let rows = told(
        r#"5 1.000000 openat(AT_FDCWD</mnt>, "log", O_WRONLY|O_CREAT, 0666) = 3</mnt/log>
5 1.000001 write(3</mnt/log>, ""..., 10) = 10
5 1.000002 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 6
6 1.000003 dup2(3</mnt/log>, 1</dev/tty>) = 1</mnt/log>
6 1.000004 write(1</mnt/log>, ""..., 5) = 5
5 1.000005 write(3</mnt/log>, ""..., 1) = 1
5 1.000006 openat(AT_FDCWD</mnt>, "log", O_WRONLY|O_APPEND) = 4</mnt/log>
5 1.000007 write(4</mnt/log>, ""..., 4) = 4
5 1.000008 openat(AT_FDCWD</mnt>, "old", O_WRONLY|O_APPEND) = 7</mnt/old>
5 1.000009 write(7</mnt/old>, ""..., 4) = 4
5 1.000010 lseek(7</mnt/old>, 0, SEEK_END) = 900
5 1.000011 write(7</mnt/old>, ""..., 4) = 4
5 1.000012 write(9</mnt/inherited>, ""..., 4) = 4
5 1.000013 fcntl(9</mnt/inherited>, F_DUPFD_CLOEXEC, 10) = 11</mnt/inherited>
5 1.000014 lseek(11</mnt/inherited>, 0, SEEK_CUR) = 44
5 1.000015 write(9</mnt/inherited>, ""..., 6) = 6
"#,
    );
    let expected = [
        "5 create log",
        "5 write log 0+10",
        "6 write log 10+5",
        "5 write log 15+1",
        "5 open log",
        "5 write log 16+4",
        "5 open old",
        "5 write old ?+4",
        "5 write old 900+4",
        "5 write inherited ?+4",
        "5 write inherited 44+6",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_descriptor_that_means_something_else_by_now_is_believed() {
    // Descriptor 3 was closed by exec, which is not traced, and is a pipe, then another file.
    let rows = told(
        r#"5 1.000000 openat(AT_FDCWD</mnt>, "a", O_RDONLY|O_CLOEXEC) = 3</mnt/a>
5 1.000001 read(3</mnt/a>, ""..., 10) = 10
5 1.000002 read(3<pipe:[77]>, ""..., 10) = 10
5 1.000003 read(3</mnt/b>, ""..., 10) = 10
5 1.000004 read(3</elsewhere/b>, ""..., 10) = 10
"#,
    );
    assert_eq!(rows, ["5 open a", "5 read a 0+10", "5 read b ?+10"]);
}

#[test]
fn interrupted_calls_are_joined_and_rows_stand_in_the_order_of_their_beginning() {
    let text = r#"5 1.000000 openat(AT_FDCWD</mnt>, "a", O_RDONLY) = 3</mnt/a> <0.000004>
5 1.000010 read(3</mnt/a>,  <unfinished ...>
6 1.000020 openat(AT_FDCWD</mnt>, "b", O_RDONLY) = 3</mnt/b>
5 1.000030 <... read resumed>""..., 8) = 8
5 1.000040 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
5 1.000050 +++ exited with 0 +++
"#;
    assert_eq!(told(text), ["5 open a", "5 read a 0+8", "6 open b"]);
    let (batch, trace) = read(text, &below()).expect("a good trace");
    assert_eq!(batch.time_ns, [0, 10_000, 20_000]);
    assert_eq!(batch.finish_ns, [4_000, 30_000, TIME_MISSING]);
    assert_eq!(trace.metadata.clock_start_ns, 1_000_000_000);
}

#[test]
fn a_child_that_speaks_before_its_parents_fork_returned_inherits_all_the_same() {
    let rows = told(
        r#"5 1.000000 chdir("/mnt/d") = 0
5 1.000001 openat(AT_FDCWD</mnt/d>, "../x", O_RDONLY) = 3</mnt/x>
5 1.000002 vfork( <unfinished ...>
6 1.000003 read(3</mnt/x>, ""..., 10) = 10
6 1.000004 unlink("gone") = 0
5 1.000005 <... vfork resumed>)         = 6
6 1.000006 mkdir("new", 0777) = 0
5 1.000007 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, exit_signal=0}, 88) = 7
7 1.000008 openat(AT_FDCWD</mnt/d>, "y", O_RDONLY) = 4</mnt/d/y>
5 1.000009 read(4</mnt/d/y>, ""..., 3) = 3
"#,
    );
    let expected = [
        "5 open x",
        "6 read x 0+10",
        "6 delete d/gone",
        "6 mkdir d/new",
        "7 open d/y",
        "5 read d/y 0+3",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn names_move_with_renames_links_and_directories() {
    let text = r#"5 1.000000 chdir("/mnt") = 0
5 1.000001 openat(AT_FDCWD</mnt>, "tmp/o1", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3</mnt/tmp/o1>
5 1.000002 link("tmp/o1", "objects/aa") = 0
5 1.000003 unlink("tmp/o1") = 0
5 1.000004 write(3</mnt/objects/aa>, ""..., 7) = 7
5 1.000005 renameat2(AT_FDCWD</mnt>, "objects", AT_FDCWD</mnt>, "store", RENAME_NOREPLACE) = 0
5 1.000006 openat(AT_FDCWD</mnt>, "store/aa", O_RDWR|O_CREAT|O_TRUNC, 0600) = 4</mnt/store/aa>
5 1.000007 unlinkat(6</mnt/store>, "aa", 0) = 0
5 1.000008 write(4</mnt/store/aa (deleted)>, ""..., 7) = 7
5 1.000009 openat(AT_FDCWD</mnt>, "store/aa", O_RDWR|O_CREAT, 0600) = 5</mnt/store/aa>
5 1.000010 rename("store/aa", "/other/place") = 0
5 1.000011 rmdir("store") = 0
5 1.000012 symlink("x", "y") = 0
5 1.000013 sync() = 0
"#;
    let expected = [
        "5 create tmp/o1",
        "5 rename tmp/o1 -> objects/aa",
        "5 write objects/aa 0+7",
        "5 rename objects -> store",
        "5 open store/aa",
        "5 truncate store/aa ?+0",
        "5 delete store/aa",
        "5 write store/aa 0+7",
        "5 create store/aa",
        "5 delete store/aa",
        "5 rmdir store",
    ];
    assert_eq!(told(text), expected);
    let (batch, trace) = read(text, &below()).expect("a good trace");
    assert_eq!(batch.file[0], batch.file[4], "renamed, the same file");
    assert_ne!(batch.file[6], batch.file[8], "made again, another file");
    assert_eq!(trace.metadata.warnings.len(), 2, "{:?}", trace.metadata.warnings);
}

#[test]
fn a_directory_that_is_a_link_is_the_directory_it_leads_to() {
    let rows = told(
        r#"1 1.0 openat(AT_FDCWD</mnt/data>, "link/a", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</mnt/real/a>
1 1.1 pwrite64(3</mnt/real/a>, ""..., 10, 0) = 10
1 1.2 unlink("link/a") = 0
1 1.3 rename("link/b", "/mnt/data/link/c") = 0
1 1.4 rmdir("link") = 0
1 1.5 mkdir("link", 0700) = 0
1 1.6 openat(AT_FDCWD</mnt/data>, "link/a", O_RDWR|O_CREAT|O_EXCL, 0600) = 4</mnt/data/link/a>
1 1.7 unlink("link/a") = 0
1 1.8 openat(AT_FDCWD</mnt/data>, "to-a-file", O_RDONLY) = 5</mnt/real/d>
1 1.9 unlink("other") = 0"#,
    );
    assert_eq!(
        rows,
        [
            "1 create real/a",
            "1 write real/a 0+10",
            "1 delete real/a",
            "1 rename real/b -> real/c",
            "1 rmdir data/link",
            "1 mkdir data/link",
            "1 create data/link/a",
            "1 delete data/link/a",
            "1 open real/d",
            "1 delete data/other",
        ]
    );
}

#[test]
fn copies_inside_the_kernel_are_a_read_and_a_write() {
    let rows = told(
        r#"5 1.000000 openat(AT_FDCWD</mnt>, "a", O_RDONLY) = 3</mnt/a>
5 1.000001 openat(AT_FDCWD</mnt>, "b", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4</mnt/b>
5 1.000002 copy_file_range(3</mnt/a>, NULL, 4</mnt/b>, NULL, 9223372035781033984, 0) = 512
5 1.000003 copy_file_range(3</mnt/a>, [0] => [100], 4</mnt/b>, NULL, 100, 0) = 100
5 1.000004 sendfile(4</mnt/b>, 3</mnt/a>, NULL, 8) = 8
"#,
    );
    let expected = [
        "5 open a",
        "5 create b",
        "5 read a 0+512",
        "5 write b 0+512",
        "5 read a 0+100",
        "5 write b 512+100",
        "5 read a 512+8",
        "5 write b 612+8",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn header_lines_become_metadata_and_without_a_directory_every_file_counts() {
    let text = "# agewell kernel: Linux 6.18\n# a remark\n5 1.5 close(3</etc/hosts>) = 0\n";
    let (batch, trace) = read(text, &StraceOptions::default()).expect("a good trace");
    assert_eq!(batch.path, ["/etc/hosts"]);
    assert_eq!(trace.metadata.header["kernel"], "Linux 6.18");
}

#[test]
fn a_bad_line_is_one_error_with_its_place_or_is_counted() {
    let good = "5 1.000000 openat(AT_FDCWD</mnt>, \"a\", O_RDONLY) = 3</mnt/a>\n";
    for (bad, what) in [
        ("5 1.000001 openat(AT_FDCWD, \"a\", O_RDONLY) = 3", "strace -y"),
        ("5 1.000001 close(3</mnt/a>", "do not end"),
        ("5 1.000001 close(3</mnt/a>) 0", "no result"),
        ("5 1.000001 <... read resumed>) = 0", "beginning is missing"),
        ("5 12:00:01 close(3) = 0", "-ttt"),
        ("5 1.000001 unlink(\"a\"...) = 0", "in quotes"),
        ("5 1.000001 pread64(3</mnt/a>, \"\", 1) = 1", "argument 4"),
        ("nonsense", "-ttt"),
    ] {
        let text = format!("{good}{bad}\n");
        let error = read(&text, &below()).err().expect("refused").to_string();
        assert!(error.contains(what), "{bad}: {error}");
        let place = format!("record 2, line 2, byte {}", good.len());
        assert!(error.contains(&place), "{bad}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let lenient = StraceOptions { skip_bad: true, ..below() };
        let (batch, trace) = read(&text, &lenient).expect("skipped");
        assert_eq!((batch.len(), trace.metadata.skipped_records), (1, 1), "{bad}");
    }
    assert!(matches!(read("", &below()), Err(TraceError::Empty { .. })));
    let elsewhere = "5 1.000001 close(3</etc/a>) = 0\n";
    assert!(matches!(read(elsewhere, &below()), Err(TraceError::Empty { .. })));
}

const LINES: &str = r#"5 1.000000 openat(AT_FDCWD</mnt>, "a", O_RDWR|O_CREAT, 0666) = 3</mnt/a>
5 1.000002 vfork( <unfinished ...>
6 1.000003 write(3</mnt/a>, ""..., 10) = 10
5 1.000005 <... vfork resumed>) = 6
6 1.000006 link("/mnt/a", "/mnt/b") = 0
6 1.000007 unlink("/mnt/a") = 0
5 1.000008 rename("/mnt/b", "/mnt/d/c") = 0
5 1.000009 copy_file_range(3</mnt/d/c>, [5] => [9], 3</mnt/d/c>, NULL, 100, 0) = 4 <0.000100>
"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the bytes, the reader ends with rows or one error, never a panic, and its rows are
    /// in order.
    #[test]
    fn mangled_text_never_panics(
        edits in prop::collection::vec((0..LINES.len(), any::<u8>(), 0..3_u8), 1..8),
        skip_bad: bool,
    ) {
        let mut bytes = LINES.as_bytes().to_vec();
        for (at, byte, kind) in edits {
            let at = at % bytes.len().max(1);
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let options = StraceOptions { skip_bad, ..below() };
        if let Ok(mut trace) = StraceTrace::read("mangled", Box::new(Cursor::new(bytes)), &options) {
            let mut batch = FileOperationBatch::default();
            while let Ok(true) = trace.next_batch(&mut batch) {
                prop_assert!(batch.time_ns.is_sorted());
            }
        }
    }
}
