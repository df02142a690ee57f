//! The root of the control groups, at which programs of sockets are attached.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Opens the root of the cgroup2 hierarchy where it is mounted: for this process, or else for init (`ip
/// netns exec` hides the mounts below /sys). Mounts nothing.
pub(super) fn open_root() -> io::Result<File> {
    let own = find("/proc/self/mountinfo").map(PathBuf::from);
    let inits = || {
        let place = find("/proc/1/mountinfo")?;
        Some(Path::new("/proc/1/root").join(place.trim_start_matches('/')))
    };
    let path = own.or_else(inits).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "no cgroup2 file system is mounted")
    })?;
    File::open(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn find(mounts: &str) -> Option<String> {
    mount_point(&std::fs::read_to_string(mounts).ok()?)
}

/// Returns where the whole cgroup2 hierarchy is mounted, or else some part of it (proc_pid_mountinfo(5)).
fn mount_point(mounts: &str) -> Option<String> {
    let of = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        kind.starts_with("cgroup2 ")
            .then(|| (root == "/", unescaped(point)))
    };
    let found: Vec<_> = mounts.lines().filter_map(of).collect();
    let whole = found.iter().find(|(is_whole, _)| *is_whole);
    whole.or(found.first()).map(|(_, point)| point.clone())
}

/// Replaces the octal escapes of a blank, a tab, a line feed and a backslash.
fn unescaped(path: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let replace = |path: String, (escape, plain): (&str, &str)| path.replace(escape, plain);
    escapes.into_iter().fold(path.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_hierarchy_is_preferred() {
        let mounts = "\
22 1 0:20 / /sys rw - sysfs sysfs rw
30 22 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 /user.slice /srv/part rw shared:4 - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
33 30 0:27 / /sys/fs/two\\040words rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw
";
        assert_eq!(mount_point(mounts).as_deref(), Some("/sys/fs/two words"));
        let part: String = mounts
            .lines()
            .take(3)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(mount_point(&part).as_deref(), Some("/srv/part"));
        assert_eq!(mount_point("22 1 0:20 / /sys rw - sysfs sysfs rw"), None);
        assert_eq!(mount_point("nonsense"), None);
    }
}
