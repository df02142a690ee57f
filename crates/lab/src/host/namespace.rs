//! An unnamed network namespace.

use std::io::ErrorKind;
use std::path::Path;

use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::HostError;
use crate::plan::KernelSetting;

/// Moves this process into a new network namespace.
pub(super) fn leave() -> Result<(), HostError> {
    // SAFETY: this process has one thread, and no descriptor table, memory or stack is unshared.
    let left = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
    left.map_err(|errno| match errno {
        Errno::INVAL => HostError::system(
            "this kernel has no network namespaces (CONFIG_NET_NS), without which there is no live lab",
        )(errno.into()),
        errno => HostError::system("making a network namespace")(errno.into()),
    })
}

/// Writes the settings; returns those that this kernel does not have.
pub(super) fn set(settings: &[KernelSetting]) -> Result<Vec<String>, HostError> {
    let mut refused = Vec::new();
    for setting in settings {
        let path = Path::new("/proc/sys/net").join(&setting.path);
        match std::fs::write(&path, &setting.value) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => refused.push(setting.path.clone()),
            Err(error) => {
                let doing = format!("setting {} to {}", path.display(), setting.value);
                return Err(HostError::system(doing)(error));
            }
        }
    }
    Ok(refused)
}
