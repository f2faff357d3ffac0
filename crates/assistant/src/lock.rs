//! A lock that outlives a panic. What it guards is small and whole at every moment, so whoever panicked while holding it
//! left nothing half done.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
