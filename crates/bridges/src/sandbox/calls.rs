//! The system calls that a sandboxed command is denied, and why.
//!
//! Listed calls fail with EPERM. Calls newer than this list fail with ENOSYS, as if the kernel did not have them, so
//! that nothing is allowed that was never reviewed. So do a few others, because programs then fall back to something
//! else. The lists come from reviewing all calls below [`FIRST_UNKNOWN`].
//!
//! In bubblewrap's namespaces a process cannot even name most of what it could attack. The built-in sandbox shares
//! the machine with other processes, and [`Strictness`] says what else must be denied there.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

/// What must also be denied in the built-in sandbox, where the command shares the machine with other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strictness {
    /// Landlock blocks signals to processes outside (Linux 6.12).
    pub(super) signals_are_kept_in: bool,
    /// The command can read a folder of the user's.
    pub(super) sees_a_folder: bool,
}

/// The first call that was not reviewed. The last reviewed one is `mseal`, from Linux 6.10. From here on the numbers
/// are the same on every architecture. The numbers of the x32 ABI, which would bypass a list by number, are larger
/// still.
const FIRST_UNKNOWN: i64 = 463;

// `libc` does not name these two for musl on every processor.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: i64 = 320;
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: i64 = 294;
const FCHMODAT2: i64 = 452;

/// Fail with ENOSYS. The filter cannot see the flags of `clone3`, and the memory of a memfd is charged to no process.
const UNKNOWN: &[i64] = &[libc::SYS_clone3, libc::SYS_memfd_create, libc::SYS_memfd_secret];
/// Fail with ENOSYS in the built-in sandbox: inotify reveals what happens to files that cannot be read.
#[cfg(target_arch = "x86_64")]
const UNKNOWN_BUILT_IN: &[i64] = &[libc::SYS_inotify_init, libc::SYS_inotify_init1];
#[cfg(not(target_arch = "x86_64"))]
const UNKNOWN_BUILT_IN: &[i64] = &[libc::SYS_inotify_init1];

const REFUSED: &[i64] = &[
    // All sockets: the network, the session bus, Kai itself.
    libc::SYS_socket,
    libc::SYS_socketpair,
    // Performs operations without system calls that could be filtered.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes' memory and files.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // The kernel's keyring.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Other roots, mounts and namespaces, which would allow more.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The kernel itself: much to break, nothing a command needs.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_personality,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

const REFUSED_BUILT_IN: &[i64] = &[
    // Would let a process leave the process group that is killed as one.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // Memory and queues that outlive a process and are shared by all processes of the user.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // What Landlock does not check: permissions and timestamps of any of the user's files, by path.
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// The same by file descriptor: harmless as long as the command can open only its own files.
const REFUSED_WITH_FOLDER: &[i64] =
    &[libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_fsetxattr, libc::SYS_fremovexattr, libc::SYS_utimensat];

/// Signals to any process of the same user, including Kai.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Calls that are denied only with a certain argument. The first number is the argument's index.
#[derive(Clone, Copy)]
enum With {
    Is(u8, u32),
    IsNot(u8, u32),
    /// A pointer that is not null.
    Some(u8),
    /// All bits of a mask are set.
    Bits(u8, u32),
}

const REFUSED_WITH: &[(i64, With)] = &[
    // Inserting input into a terminal as if it had been typed there.
    (libc::SYS_ioctl, With::Is(1, 0x5412)),
    (libc::SYS_ioctl, With::Is(1, 0x541c)),
    // New namespaces: mount, cgroup, uts, ipc, user, pid, net.
    (libc::SYS_clone, With::Bits(0, 0x0002_0000)),
    (libc::SYS_clone, With::Bits(0, 0x0200_0000)),
    (libc::SYS_clone, With::Bits(0, 0x0400_0000)),
    (libc::SYS_clone, With::Bits(0, 0x0800_0000)),
    (libc::SYS_clone, With::Bits(0, 0x1000_0000)),
    (libc::SYS_clone, With::Bits(0, 0x2000_0000)),
    (libc::SYS_clone, With::Bits(0, 0x4000_0000)),
];

const REFUSED_BUILT_IN_WITH: &[(i64, With)] = &[
    // Limits and CPU scheduling of any process but itself.
    (libc::SYS_prlimit64, With::IsNot(0, 0)),
    (libc::SYS_sched_setaffinity, With::IsNot(0, 0)),
    (libc::SYS_sched_setattr, With::IsNot(0, 0)),
    (libc::SYS_sched_setparam, With::IsNot(0, 0)),
    (libc::SYS_sched_setscheduler, With::IsNot(0, 0)),
    (libc::SYS_setpriority, With::IsNot(0, 0)),
    (libc::SYS_setpriority, With::IsNot(1, 0)),
    (libc::SYS_ioprio_set, With::IsNot(0, 1)),
    (libc::SYS_ioprio_set, With::IsNot(1, 0)),
    // A signal to the whole process group. All processes share one group, so `timeout` would kill the shell that
    // started it.
    (libc::SYS_kill, With::Is(0, 0)),
    // Signals through a file's owner setting: F_SETOWN, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP.
    (libc::SYS_fcntl, With::Is(1, 8)),
    (libc::SYS_fcntl, With::Is(1, 15)),
    (libc::SYS_ioctl, With::Is(1, 0x8901)),
    (libc::SYS_ioctl, With::Is(1, 0x8902)),
    // Timestamps of a file by path. Without a path the call is about an open file.
    (libc::SYS_utimensat, With::Some(1)),
    // Attributes of an open file: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR.
    (libc::SYS_ioctl, With::Is(1, 0x4008_6602)),
    (libc::SYS_ioctl, With::Is(1, 0x401c_5820)),
];

/// Applies the filter to this process and everything it starts, permanently.
pub(super) fn refuse(strictness: Option<Strictness>) -> Result<(), String> {
    apply_filter(&filter(strictness)?).map_err(|e| format!("seccomp: {e}"))
}

/// The BPF program that the kernel runs before every system call. `None` is the filter for bubblewrap.
pub(super) fn filter(strictness: Option<Strictness>) -> Result<BpfProgram, String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, with) in conditional(strictness) {
        rules.entry(call).or_default().push(rule(with).map_err(|e| e.to_string())?);
    }
    // An empty list of rules means that the call is always denied.
    rules.extend(listed(strictness).map(|call| (call, vec![])));
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| e.to_string())?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).map_err(|e| e.to_string())?;
    let refusing: BpfProgram = filter.try_into().map_err(|e: seccompiler::BackendError| e.to_string())?;
    let mut program = unknown(strictness);
    program.extend(refusing);
    Ok(program)
}

fn listed(strictness: Option<Strictness>) -> impl Iterator<Item = i64> {
    let when = |wanted: bool, calls: &'static [i64]| if wanted { calls } else { &[] };
    let built_in = when(strictness.is_some(), REFUSED_BUILT_IN);
    let folder = when(strictness.is_some_and(|it| it.sees_a_folder), REFUSED_WITH_FOLDER);
    let signals = when(strictness.is_some_and(|it| !it.signals_are_kept_in), SIGNALS);
    [REFUSED, built_in, folder, signals].into_iter().flatten().copied()
}

fn conditional(strictness: Option<Strictness>) -> impl Iterator<Item = (i64, With)> {
    let built_in = if strictness.is_some() { REFUSED_BUILT_IN_WITH } else { &[] };
    REFUSED_WITH.iter().chain(built_in).copied()
}

fn rule(with: With) -> Result<SeccompRule, seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    let condition = match with {
        With::Is(at, value) => SeccompCondition::new(at, Dword, SeccompCmpOp::Eq, value.into()),
        With::IsNot(at, value) => SeccompCondition::new(at, Dword, SeccompCmpOp::Ne, value.into()),
        With::Some(at) => SeccompCondition::new(at, Qword, SeccompCmpOp::Ne, 0),
        With::Bits(at, mask) => {
            SeccompCondition::new(at, Dword, SeccompCmpOp::MaskedEq(mask.into()), mask.into())
        }
    };
    SeccompRule::new(vec![condition?])
}

/// The start of the program: loads the call's number and returns ENOSYS for unknown calls.
fn unknown(strictness: Option<Strictness>) -> BpfProgram {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    let built_in = if strictness.is_some() { UNKNOWN_BUILT_IN } else { &[] };
    let named = UNKNOWN.iter().chain(built_in).map(|call| (IF_EQUAL, *call));
    let step = |code, jf, k: u32| sock_filter { code, jt: 0, jf, k };
    let mut program = vec![step(LOAD, 0, 0)];
    for (test, call) in named.chain([(IF_AT_LEAST, FIRST_UNKNOWN)]) {
        program.push(step(test, 1, u32::try_from(call).unwrap_or(u32::MAX)));
        program.push(step(RETURN, 0, ERRNO | libc::ENOSYS.unsigned_abs()));
    }
    program
}

/// The program as bytes, in the form that bubblewrap reads.
pub(super) fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let step = |step: &sock_filter| {
        [&step.code.to_ne_bytes()[..], &[step.jt, step.jf], &step.k.to_ne_bytes()].concat()
    };
    program.iter().flat_map(step).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions, set_permissions};
    use std::io;
    use std::net::UdpSocket;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::thread;

    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::process::{getpid, setpgid, test_kill_process};

    use super::*;

    #[cfg(target_env = "gnu")]
    #[test]
    fn calls_without_a_name_have_the_right_number() {
        assert_eq!((KEXEC_FILE_LOAD, FCHMODAT2), (libc::SYS_kexec_file_load, libc::SYS_fchmodat2));
    }

    /// The error code of each attempt, made in a new thread because a filter cannot be removed.
    fn tried(strictness: Option<Strictness>, file: &Path) -> [(&'static str, Option<i32>); 7] {
        let file = file.to_owned();
        let all = move || {
            refuse(strictness).unwrap();
            let open = Permissions::from_mode(0o600);
            let code = |done: io::Result<()>| done.err().and_then(|error| error.raw_os_error());
            [
                ("a datagram", code(UdpSocket::bind("127.0.0.1:0").map(drop))),
                ("a pair", code(UnixStream::pair().map(drop))),
                ("a memfd", code(memfd_create("x", MemfdFlags::CLOEXEC).map(drop).map_err(Into::into))),
                ("a mode by name", code(set_permissions(&file, open.clone()))),
                (
                    "a mode of an open file",
                    code(File::open(&file).and_then(|file| file.set_permissions(open))),
                ),
                ("a group", code(setpgid(Some(getpid()), None).map_err(Into::into))),
                ("a signal", code(test_kill_process(getpid()).map_err(Into::into))),
            ]
        };
        thread::spawn(all).join().unwrap()
    }

    #[test]
    fn each_sandbox_refuses_what_it_must() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (no, unknown) = (Some(libc::EPERM), Some(libc::ENOSYS));
        let strict =
            |signals_are_kept_in, sees_a_folder| Some(Strictness { signals_are_kept_in, sees_a_folder });
        for (strictness, expected) in [
            (None, [no, no, unknown, None, None, None, None]),
            (strict(true, false), [no, no, unknown, no, None, no, None]),
            (strict(true, true), [no, no, unknown, no, no, no, None]),
            (strict(false, false), [no, no, unknown, no, None, no, no]),
        ] {
            for ((what, got), expected) in tried(strictness, file.path()).into_iter().zip(expected) {
                assert_eq!(got, expected, "{what}, {strictness:?}");
            }
        }
    }

    #[test]
    fn every_call_of_the_future_is_unknown() {
        let head = unknown(None);
        let last = &head[head.len() - 2];
        assert_eq!(
            (last.code, last.jt, last.jf, last.k),
            (0x35, 0, 1, 463),
            "at least 463: the next step; else one more"
        );
        assert_eq!(bytes(&head).len(), head.len() * 8);
        assert!(filter(None).unwrap().len() < 4_096, "the kernel takes no more");
    }
}
