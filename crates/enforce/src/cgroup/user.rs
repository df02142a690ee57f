//! The users of this machine, by name.

use weir_policy::User;

/// Returns the number of a user of this machine.
pub(super) fn user_id(user: &User) -> Option<u32> {
    match user {
        User::Id(id) => Some(*id),
        User::Name(name) => named_user(name),
    }
}

fn named_user(name: &str) -> Option<u32> {
    /// Longer entries than any that exists.
    const LONGEST: usize = 1 << 16;
    let name = std::ffi::CString::new(name).ok()?;
    let mut buffer = vec![0; LONGEST];
    // SAFETY: a structure of numbers and pointers, for which zeros are valid.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: the name ends with a zero, the buffer has the length given, and all live during the call.
    let result = unsafe {
        libc::getpwnam_r(
            name.as_ptr(),
            &raw mut entry,
            buffer.as_mut_ptr(),
            buffer.len(),
            &raw mut found,
        )
    };
    (result == 0 && !found.is_null()).then_some(entry.pw_uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_looked_up_by_name() {
        assert_eq!(user_id(&"root".parse().unwrap()), Some(0));
        assert_eq!(user_id(&User::Id(1234)), Some(1234));
        assert_eq!(user_id(&"no_such_user_".parse().unwrap()), None);
    }
}
