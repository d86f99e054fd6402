//! Fields of text lines, parsed in place: no string is made for a field.

use crate::error::Problem;

/// A cursor over one line.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    /// A separator was just passed, so one more field (perhaps empty) follows.
    more: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self { rest: line, more: true }
    }

    /// The next comma-separated field, without blanks around it; `None` after the last.
    #[inline]
    pub(crate) fn comma(&mut self) -> Option<&'a [u8]> {
        if !self.more {
            return None;
        }
        let field = if let Some(end) = self.rest.iter().position(|&byte| byte == b',') {
            let field = &self.rest[..end];
            self.rest = &self.rest[end + 1..];
            field
        } else {
            self.more = false;
            std::mem::take(&mut self.rest)
        };
        // Blanks around a field are rare; looking at its two ends is cheaper than trimming.
        match field {
            [first, .., last] if *first > b' ' && *last > b' ' => Some(field),
            _ => Some(field.trim_ascii()),
        }
    }

    /// The next blank-separated field; `None` after the last.
    #[inline]
    pub(crate) fn word(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.rest[start..];
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(&rest[..end])
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.trim_ascii()
    }
}

/// `field`, or the problem that the line has no such column.
#[inline]
pub(crate) fn need<'a>(field: Option<&'a [u8]>, name: &str) -> Result<&'a [u8], Problem> {
    field.ok_or_else(|| Problem::new(format!("no {name} column; the line is too short")))
}

/// A decimal integer.
#[inline]
pub(crate) fn integer(field: &[u8], name: &str) -> Result<u64, Problem> {
    try_integer(field).ok_or_else(|| {
        Problem::field(&format!("{name} must be a whole number from 0 to 2^64 - 1, not"), field)
    })
}

/// A decimal integer, or nothing.
#[inline]
pub(crate) fn try_integer(field: &[u8]) -> Option<u64> {
    if field.is_empty() || field.len() > 20 {
        return None;
    }
    let mut value: u64 = 0;
    if field.len() <= 19 {
        // Nineteen digits cannot overflow 64 bits.
        for &byte in field {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    for &byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A decimal integer of at most 32 bits.
#[inline]
pub(crate) fn integer32(field: &[u8], name: &str) -> Result<u32, Problem> {
    try_integer(field).and_then(|value| u32::try_from(value).ok()).ok_or_else(|| {
        Problem::field(&format!("{name} must be a whole number from 0 to 2^32 - 1, not"), field)
    })
}

/// A decimal number times `10^digits` as a whole number, exactly; further digits are rounded to
/// nearest. Accepts `12`, `12.5`, `.5`, `1.25e3`; refuses signs on the number, `nan`, `inf`.
#[inline]
pub(crate) fn try_scaled(field: &[u8], digits: u32) -> Option<u64> {
    let mut value: u64 = 0;
    let mut fraction_digits: Option<u32> = None;
    let mut any = false;
    for (index, &byte) in field.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if let Some(count) = fraction_digits.as_mut() {
                    *count += 1;
                    if *count > digits {
                        // One digit beyond the unit decides the rounding; the rest must be digits.
                        if *count == digits + 1 && byte >= b'5' {
                            value = value.checked_add(1)?;
                        }
                        continue;
                    }
                }
                value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            }
            b'.' if fraction_digits.is_none() => fraction_digits = Some(0),
            b'e' | b'E' if any => return exponential(field, index, digits),
            _ => return None,
        }
    }
    if !any {
        return None;
    }
    let have = fraction_digits.unwrap_or(0).min(digits);
    value.checked_mul(10_u64.pow(digits - have))
}

fn exponential(field: &[u8], mark: usize, digits: u32) -> Option<u64> {
    let (mantissa, exponent) = (&field[..mark], &field[mark + 1..]);
    let exponent: i32 = std::str::from_utf8(exponent).ok()?.parse().ok()?;
    let shift = i32::try_from(digits).ok()?.checked_add(exponent)?;
    if (0..=18).contains(&shift) {
        return try_scaled(mantissa, shift as u32);
    }
    let value = try_scaled(mantissa, 0)?;
    // Digits lost here lie below a tenth of the unit unless the mantissa itself is long.
    match shift {
        -18..0 => {
            let divisor = 10_u64.pow(shift.unsigned_abs());
            Some(value / divisor + u64::from(value % divisor >= divisor / 2))
        }
        _ if shift < 0 || value == 0 => Some(0),
        _ => None,
    }
}

/// As [`try_scaled`], naming the column.
#[inline]
pub(crate) fn scaled(field: &[u8], digits: u32, name: &str) -> Result<u64, Problem> {
    try_scaled(field, digits)
        .ok_or_else(|| Problem::field(&format!("{name} must be a number, not"), field))
}

/// `count` units of `unit_ns` in ns.
#[inline]
pub(crate) fn times(count: u64, unit_ns: u64, name: &str) -> Result<u64, Problem> {
    count
        .checked_mul(unit_ns)
        .filter(|&ns| ns < u64::MAX / 2)
        .ok_or_else(|| Problem::new(format!("{name} {count} is beyond 292 years")))
}

/// Sectors that cover `bytes` bytes from byte `first`, rounding both ends outward; and whether that
/// changed anything.
#[inline]
pub(crate) fn covering(first: u64, bytes: u64) -> Result<(u64, u32, bool), Problem> {
    let end = first
        .checked_add(bytes)
        .ok_or_else(|| Problem::new(format!("offset {first} is beyond any device")))?;
    let sector = first / 512;
    let sectors = end.div_ceil(512) - sector;
    let aligned = (first | bytes).is_multiple_of(512);
    let sectors = if bytes == 0 { 0 } else { sectors };
    let sectors = u32::try_from(sectors)
        .map_err(|_| Problem::new(format!("a request of {bytes} bytes is beyond 2 TiB")))?;
    Ok((sector, sectors, aligned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_rounded_to_nearest() {
        assert_eq!(try_scaled(b"5265.313", 6), Some(5_265_313_000));
        assert_eq!(try_scaled(b"0.0000004", 6), Some(0));
        assert_eq!(try_scaled(b"0.0000005", 6), Some(1));
        assert_eq!(try_scaled(b"1.5e3", 6), Some(1_500_000_000));
        assert_eq!(try_scaled(b"1.5e-3", 6), Some(1500));
        assert_eq!(try_scaled(b".5", 3), Some(500));
        assert_eq!(try_scaled(b"7.", 3), Some(7000));
        for bad in [&b""[..], b".", b"-1", b"+1", b"1.2.3", b"nan", b"inf", b"1e", b"0x10", b"1 2"]
        {
            assert_eq!(try_scaled(bad, 6), None, "{bad:?}");
        }
        assert_eq!(try_scaled(b"99999999999999999999", 6), None);
    }

    #[test]
    fn integers_neither_wrap_nor_guess() {
        assert_eq!(try_integer(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(try_integer(b"18446744073709551616"), None);
        assert_eq!(try_integer(b""), None);
        assert_eq!(try_integer(b"-1"), None);
        assert_eq!(try_integer(b"12a"), None);
    }

    #[test]
    fn an_empty_last_comma_field_is_a_field() {
        let mut fields = Fields::new(b"1, 2,");
        assert_eq!(fields.comma(), Some(&b"1"[..]));
        assert_eq!(fields.comma(), Some(&b"2"[..]));
        assert_eq!(fields.comma(), Some(&b""[..]));
        assert_eq!(fields.comma(), None);
    }

    #[test]
    fn ranges_are_rounded_outward() {
        assert_eq!(covering(256, 256), Ok((0, 1, false)));
        assert_eq!(covering(256, 512), Ok((0, 2, false)));
        assert_eq!(covering(1024, 512), Ok((2, 1, true)));
    }
}
