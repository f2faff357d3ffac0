//! `kai __sandbox inmate`: drops its own rights, then becomes the shell. Neither it nor anything it starts can get
//! them back.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::process::{Signal, set_parent_process_death_signal, setsid};

use super::calls::{self, Strictness};
use super::{Order, environment, system};

/// Exit code if the shell could not be started. The command has not run.
const FAILED: u8 = 125;
/// The oldest Landlock version that can prevent truncating a read-only file.
const LEAST: ABI = ABI::V3;
/// The newest Landlock version that was reviewed.
const NEWEST: ABI = ABI::V9;

pub(super) fn serve() -> ExitCode {
    let Err(why) = become_the_shell();
    super::guard::complain(&format!("the sandbox could not be set up: {why}\n"));
    ExitCode::from(FAILED)
}

fn become_the_shell() -> Result<std::convert::Infallible, String> {
    let mut order = String::new();
    io::stdin().read_to_string(&mut order).map_err(|e| e.to_string())?;
    let order: Order = serde_json::from_str(&order).map_err(|e| e.to_string())?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| e.to_string())?;
    setsid().map_err(|e| e.to_string())?;
    // When the machine runs out of memory, the kernel kills this process first.
    std::fs::write("/proc/self/oom_score_adj", "1000").map_err(|e| e.to_string())?;
    let mut shell = Command::new(system::SHELL);
    shell.arg("-c").arg(&order.command).env_clear().envs(environment(&order, &order.scratch));
    shell.current_dir(order.folder.as_ref().unwrap_or(&order.scratch)).stdin(Stdio::null());
    let status = only_these_files(&order).map_err(|e| format!("Landlock: {e}"))?;
    let strictness =
        Strictness { signals_are_kept_in: keeps_signals_in(&status), sees_a_folder: order.folder.is_some() };
    calls::refuse(Some(strictness))?;
    Err(shell.exec().to_string())
}

fn only_these_files(order: &Order) -> Result<RestrictionStatus, RulesetError> {
    let (reading, all) = (AccessFs::from_read(NEWEST), AccessFs::from_all(NEWEST));
    let reading_and_writing = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let facts = system::SETTINGS.iter().chain(system::FACTS);
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        // Newer kernels can do more. On older ones, denied system calls make up for it.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(system::PROGRAMS, reading))?
        .add_rules(path_beneath_rules(facts, reading & !AccessFs::Execute))?
        .add_rules(path_beneath_rules(system::DEVICES, reading_and_writing))?
        .add_rules(path_beneath_rules(order.folder.iter(), reading))?
        .add_rules(path_beneath_rules([&order.scratch], all))?
        .restrict_self()
}

fn keeps_signals_in(status: &RestrictionStatus) -> bool {
    matches!(status.landlock, LandlockStatus::Available { effective_abi, .. } if effective_abi >= ABI::V6)
}
