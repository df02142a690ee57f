//! Where the kernel's file systems of control groups and of BPF objects are mounted.

#[cfg(bpf_programs)]
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A kind of file system, by its name in mountinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Control groups, version 2.
    Cgroup2,
    /// Objects of BPF.
    Bpf,
}

/// Where a file system is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The mount point, for this process or for init.
    pub(crate) point: PathBuf,
    /// The path by which this process reaches it.
    pub(crate) path: PathBuf,
}

impl FileSystem {
    fn name(self) -> &'static str {
        match self {
            Self::Cgroup2 => "cgroup2",
            Self::Bpf => "bpf",
        }
    }

    /// Returns where it is mounted: for this process, or else for init (`ip netns exec` hides the mounts
    /// below /sys). Mounts nothing.
    pub(crate) fn find(self) -> Option<Mount> {
        let own = || {
            let point = PathBuf::from(self.find_in("/proc/self/mountinfo")?);
            let path = point.clone();
            Some(Mount { point, path })
        };
        let inits = || {
            let point = PathBuf::from(self.find_in("/proc/1/mountinfo")?);
            let path = Path::new("/proc/1/root").join(point.strip_prefix("/").ok()?);
            Some(Mount { point, path })
        };
        own().or_else(inits)
    }

    fn find_in(self, mounts: &str) -> Option<String> {
        mount_point(&std::fs::read_to_string(mounts).ok()?, self.name())
    }
}

/// Returns where the cgroup2 hierarchy is mounted.
pub(crate) fn cgroup_root() -> io::Result<Mount> {
    FileSystem::Cgroup2
        .find()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no cgroup2 file system is mounted"))
}

/// Opens the root of the cgroup2 hierarchy.
#[cfg(bpf_programs)]
pub(crate) fn open_cgroup_root() -> io::Result<File> {
    let path = cgroup_root()?.path;
    File::open(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Returns where the whole of a file system is mounted, or else some part of it (proc_pid_mountinfo(5)).
fn mount_point(mounts: &str, kind: &str) -> Option<String> {
    let found: Vec<_> = of_kind(mounts, kind).collect();
    let whole = found.iter().find(|(root, _)| *root == "/");
    whole.or(found.first()).map(|(_, point)| point.clone())
}

/// Returns the root and the mount point of each mount of a kind.
fn of_kind<'m>(mounts: &'m str, kind: &'m str) -> impl Iterator<Item = (&'m str, String)> {
    mounts.lines().filter_map(move |line| {
        let (place, rest) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (rest.split(' ').next() == Some(kind)).then(|| (root, unescaped(point)))
    })
}

/// Returns the places to which network namespaces are bound, for this process.
pub(crate) fn bound_namespaces() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let bound = of_kind(&mounts, "nsfs").filter(|(root, _)| root.starts_with("net:"));
    bound.map(|(_, point)| PathBuf::from(point)).collect()
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
34 30 0:4 net:[4026532221] /run/netns/a rw - nsfs nsfs rw
";
        let place = |mounts| mount_point(mounts, FileSystem::Cgroup2.name());
        assert_eq!(place(mounts).as_deref(), Some("/sys/fs/two words"));
        let part: String = mounts
            .lines()
            .take(3)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(place(&part).as_deref(), Some("/srv/part"));
        assert_eq!(place("22 1 0:20 / /sys rw - sysfs sysfs rw"), None);
        assert_eq!(place("nonsense"), None);
        let spaces: Vec<_> = of_kind(mounts, "nsfs").collect();
        assert_eq!(spaces, [("net:[4026532221]", "/run/netns/a".to_owned())]);
    }
}
