// SPDX-License-Identifier: Apache-2.0
use std::fmt;

/// What went wrong, as `tendon/err.h` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it, as they do there
pub enum Code {
    Invalid = 1,
    NoMem,
    Full,
    Empty,
    Busy,
    Closed,
    Timeout,
    NotFound,
    Exists,
    Denied,
    Io,
    Format,
    Limit,
    Version,
    Mismatch,
    Unsupported,
    Cancelled,
    Internal,
}

impl Code {
    /// Of a number; one that is not known is [`Code::Internal`].
    pub(crate) fn of(number: i32) -> Self {
        const CODES: [Code; 18] = [
            Code::Invalid,
            Code::NoMem,
            Code::Full,
            Code::Empty,
            Code::Busy,
            Code::Closed,
            Code::Timeout,
            Code::NotFound,
            Code::Exists,
            Code::Denied,
            Code::Io,
            Code::Format,
            Code::Limit,
            Code::Version,
            Code::Mismatch,
            Code::Unsupported,
            Code::Cancelled,
            Code::Internal,
        ];
        let index = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
        CODES.get(index).copied().unwrap_or(Code::Internal)
    }
}

/// A code, and a text for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    text: String,
}

impl Error {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        let text = text.into();
        Error { code, text }
    }

    /// What kind of thing went wrong.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What it was.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_internal() {
        assert_eq!(Code::of(1), Code::Invalid);
        assert_eq!(Code::of(18), Code::Internal);
        for number in [-1, 0, 19, i32::MAX] {
            assert_eq!(Code::of(number), Code::Internal);
        }
    }
}
