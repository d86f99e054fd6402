//! The grammar of one line of strace: who, when, which call with which arguments, and what came of
//! it.
//!
//! `[pid] seconds.fraction name(argument, ...) = result [<duration>]`, as written by `strace -f
//! -ttt -y -o FILE`. A call that another process interrupts is cut in two, `name(... <unfinished
//! ...>` and `<... name resumed>...`, which are joined before they are parsed. With `-y` a
//! descriptor is followed by what it stands for: `3</etc/passwd>`, `1<pipe:[42]>`,
//! `AT_FDCWD</home>`.

use crate::error::Problem;
use crate::fields::{scaled, try_integer};

/// One line, taken apart as far as the call's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) process: u32,
    pub(crate) time_ns: u64,
    pub(crate) text: Text<'a>,
}

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    /// A whole call.
    Call(&'a [u8]),
    /// The beginning of a call, without its mark.
    Unfinished(&'a [u8]),
    /// The end of a call: its name and what follows the mark.
    Resumed(&'a [u8], &'a [u8]),
    /// The process has ended.
    Exit,
    /// A signal, or a remark of strace.
    Other,
}

/// Takes a line apart.
pub(crate) fn line(bytes: &[u8]) -> Result<Line<'_>, Problem> {
    let (first, rest) = word(bytes);
    let (process, time, rest) = if let Some(number) = try_integer(first) {
        let process = u32::try_from(number).map_err(|_| Problem::field("process number", first))?;
        let (time, rest) = word(rest);
        (process, time, rest)
    } else {
        // Without -f there is one process and no number.
        (0, first, rest)
    };
    if !time.contains(&b'.') {
        let what = "expected a process number and a time in seconds (strace -f -ttt -o FILE), not";
        return Err(Problem::field(what, time));
    }
    let time_ns = scaled(time, 9, "time")?;
    let text = rest.trim_ascii();
    let text = if text.starts_with(b"+++ exited") || text.starts_with(b"+++ killed") {
        Text::Exit
    } else if text.starts_with(b"---") || text.starts_with(b"+++") || text.starts_with(b"strace:") {
        Text::Other
    } else if let Some(resumed) = text.strip_prefix(b"<... ") {
        let mark = b" resumed>";
        let end = memchr::memmem::find(resumed, mark)
            .ok_or_else(|| Problem::field("'<...' without 'resumed>' in", text))?;
        Text::Resumed(&resumed[..end], &resumed[end + mark.len()..])
    } else if let Some(begun) = text.strip_suffix(b"<unfinished ...>") {
        Text::Unfinished(begun)
    } else {
        Text::Call(text)
    };
    Ok(Line { process, time_ns, text })
}

fn word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let bytes = bytes.trim_ascii_start();
    let end = bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len());
    bytes.split_at(end)
}

/// What a call returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome<'a> {
    /// A value, and for a descriptor what it stands for.
    Value(u64, Option<&'a [u8]>),
    /// An error, or nothing because the process ended.
    Failed,
}

/// A call, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) arguments: Vec<&'a [u8]>,
    pub(crate) outcome: Outcome<'a>,
    /// Time in the call, where strace was asked for it (`-T`).
    pub(crate) duration_ns: Option<u64>,
}

/// The name of a call, if the text is one.
pub(crate) fn name(text: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b'(', text)?;
    let name = &text[..end];
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    (!name.is_empty() && name.iter().all(fits)).then_some(name)
}

/// Takes a whole call apart.
pub(crate) fn call(text: &[u8]) -> Result<Call<'_>, Problem> {
    let name = name(text).ok_or_else(|| Problem::field("expected a system call, not", text))?;
    let (arguments, rest) = arguments(&text[name.len() + 1..])
        .ok_or_else(|| Problem::field("arguments that do not end, in", text))?;
    let rest = rest.trim_ascii();
    let result =
        rest.strip_prefix(b"=").ok_or_else(|| Problem::field("no result in", text))?.trim_ascii();
    let (result, duration_ns) = duration(result)?;
    Ok(Call { name, arguments, outcome: outcome(result)?, duration_ns })
}

/// The arguments up to the closing parenthesis, and what follows it.
fn arguments(text: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut at = 0;
    let mut depth = 0_u32;
    loop {
        match *text.get(at)? {
            b'"' => at = quote_end(text, at)?,
            b'<' => at = annotation_end(text, at)?,
            b'/' if text[at..].starts_with(b"/*") => {
                at += memchr::memmem::find(&text[at..], b"*/")? + 1;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text[start..at].trim_ascii();
                if !last.is_empty() || !found.is_empty() {
                    found.push(last);
                }
                return Some((found, &text[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                found.push(text[start..at].trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Position of the quote that ends the string beginning at `at`.
fn quote_end(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    loop {
        match *text.get(end)? {
            b'\\' => end += 2,
            b'"' => return Some(end),
            _ => end += 1,
        }
    }
}

/// Position of the `>` that ends the annotation beginning at `at`. `<<` and `<` before a blank are
/// operators of a flag expression, and `->` within a socket's description ends nothing.
fn annotation_end(text: &[u8], at: usize) -> Option<usize> {
    if matches!(*text.get(at + 1)?, b'<' | b' ') {
        return Some(at + 1);
    }
    let mut end = at + 1;
    loop {
        end += memchr::memchr(b'>', text.get(end..)?)?;
        if text[end - 1] != b'-' || text[at + 1] == b'/' {
            return Some(end);
        }
        end += 1;
    }
}

/// Separates a trailing `<0.000123>`.
fn duration(result: &[u8]) -> Result<(&[u8], Option<u64>), Problem> {
    let Some(inner) = result.strip_suffix(b">") else { return Ok((result, None)) };
    let Some(open) = memchr::memrchr(b'<', inner) else { return Ok((result, None)) };
    let text = &inner[open + 1..];
    // A blank before it distinguishes it from a descriptor's annotation.
    if open == 0 || inner[open - 1] != b' ' || !text.first().is_some_and(u8::is_ascii_digit) {
        return Ok((result, None));
    }
    Ok((inner[..open].trim_ascii(), Some(scaled(text, 9, "duration")?)))
}

fn outcome(result: &[u8]) -> Result<Outcome<'_>, Problem> {
    if result.starts_with(b"-1") || result.starts_with(b"?") {
        return Ok(Outcome::Failed);
    }
    let digits = result.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(result.len());
    if result.starts_with(b"0x") {
        // An address: no call that is followed here returns one.
        return Ok(Outcome::Value(0, None));
    }
    let value = try_integer(&result[..digits])
        .ok_or_else(|| Problem::field("expected a result, not", result))?;
    Ok(Outcome::Value(value, annotation(result)))
}

/// A descriptor's number and what it stands for: `3</etc/passwd>`.
pub(crate) fn descriptor(argument: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    let digits = argument.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(argument.len());
    Some((try_integer(&argument[..digits])?, annotation(argument)))
}

/// What stands between `<` and `>`.
pub(crate) fn annotation(argument: &[u8]) -> Option<&[u8]> {
    let open = memchr::memchr(b'<', argument)?;
    let end = annotation_end(argument, open)?;
    Some(&argument[open + 1..end])
}

/// A quoted string with its escapes undone; `None` if it is not a whole string.
pub(crate) fn quoted(argument: &[u8]) -> Option<String> {
    let inner = argument.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(unescaped(inner))
}

/// Undoes strace's escapes, which are those of C. Bytes that are no UTF-8 become U+FFFD.
pub(crate) fn unescaped(text: &[u8]) -> String {
    if !text.contains(&b'\\') {
        return String::from_utf8_lossy(text).into_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some(&escape) = text.get(at) else { break };
        at += 1;
        let (base, most) = match escape {
            b'0'..=b'7' => {
                at -= 1;
                (8, 3)
            }
            b'x' => (16, 2),
            other => {
                bytes.push(match other {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'a' => 0x07,
                    b'b' => 0x08,
                    literal => literal,
                });
                continue;
            }
        };
        let mut value = 0_u32;
        for _ in 0..most {
            let Some(digit) = text.get(at).and_then(|&byte| char::from(byte).to_digit(base)) else {
                break;
            };
            value = value * base + digit;
            at += 1;
        }
        bytes.push(value as u8);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Vec<String>, Outcome<'_>, Option<u64>) {
        let call = call(text.as_bytes()).expect("a call");
        let texts = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let arguments = call.arguments.iter().map(|argument| texts(argument)).collect();
        (texts(call.name), arguments, call.outcome, call.duration_ns)
    }

    #[test]
    fn lines_of_every_kind() {
        let read = line(b"17 1795255499.550900 read(3</a>, \"\"..., 832) = 832").expect("a line");
        assert_eq!((read.process, read.time_ns), (17, 1_795_255_499_550_900_000));
        assert_eq!(read.text, Text::Call(b"read(3</a>, \"\"..., 832) = 832"));
        let text = |bytes| line(bytes).expect("a line").text;
        assert_eq!(text(b"17 1.5 close(4 <unfinished ...>"), Text::Unfinished(b"close(4 "));
        assert_eq!(text(b"17 1.5 <... close resumed>) = 0"), Text::Resumed(b"close", b") = 0"));
        assert_eq!(text(b"17 1.5 +++ exited with 0 +++"), Text::Exit);
        assert_eq!(text(b"17 1.5 --- SIGCHLD {si_signo=SIGCHLD} ---"), Text::Other);
        assert_eq!(line(b"1.25 sync() = 0").expect("without -f").process, 0);
        assert_eq!(line(b"17 1.123456789 sync() = 0").expect("ns").time_ns, 1_123_456_789);
        assert!(line(b"17 12:30:00 sync() = 0").is_err());
        assert!(line(b"").is_err());
    }

    #[test]
    fn arguments_split_at_their_own_commas_only() {
        let (name, arguments, outcome, duration) = parsed(
            r#"openat(AT_FDCWD</a,b>, "x\", )", O_RDONLY|O_CLOEXEC) = 3</a,b/x\", )> <0.000015>"#,
        );
        assert_eq!(name, "openat");
        assert_eq!(arguments, ["AT_FDCWD</a,b>", r#""x\", )""#, "O_RDONLY|O_CLOEXEC"]);
        assert_eq!(outcome, Outcome::Value(3, Some(br#"/a,b/x\", )"#)));
        assert_eq!(duration, Some(15_000));
        let (_, arguments, ..) = parsed("vfork()         = 10721");
        assert!(arguments.is_empty());
        let (_, arguments, outcome, _) =
            parsed("readv(3<TCP:[1.2.3.4:5->6.7.8.9:10]>, [{iov_base=\"\", iov_len=4}], 1) = 4");
        assert_eq!(arguments.len(), 3);
        assert_eq!(outcome, Outcome::Value(4, None));
        let (_, arguments, ..) = parsed("clone3({flags=CLONE_VM|1<<7, x=[1, 2]} => {y=3}, 88) = 9");
        assert_eq!(arguments.len(), 2);
    }

    #[test]
    fn failures_and_ends_are_no_values() {
        assert_eq!(parsed("unlink(\"x\") = -1 ENOENT (No such file)").2, Outcome::Failed);
        assert_eq!(parsed("read(3</a>,  = 5, 6) = ?").2, Outcome::Failed);
        for broken in ["close(3", "close(3) 0", "close(3) = zero", "3</a>", "(3) = 0", ""] {
            assert!(call(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn escapes_are_those_of_c() {
        assert_eq!(quoted(br#""a\"b\\c\n\101\x42\7""#).expect("whole"), "a\"b\\c\nAB\x07");
        assert_eq!(quoted(br#""cut"..."#), None);
        assert_eq!(unescaped(br"\303\244\74"), "\u{e4}<");
    }
}
