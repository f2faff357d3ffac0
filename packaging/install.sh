#!/bin/sh
# Installs Kai for you alone, without root; see --help. scripts/package fills in the next three lines.
version=@VERSION@
arch=@ARCH@
libc=@LIBC@ # the oldest glibc that it runs with, or "none" if it needs no library
set -eu

usage() {
  cat << HELP
Installs Kai $version for you alone. Nothing needs root, and nothing outside the folder below changes.

  ./install.sh [--prefix DIR] [--service]
  ./install.sh --uninstall [--prefix DIR]

  --prefix DIR   where to install it [default: ~/.local; on Termux: \$PREFIX]
  --service      also start Kai whenever you log in (kai service install)
  --uninstall    remove everything that this script installed; your data stays
HELP
}

stop() {
  echo "install.sh: $*" >&2
  exit 1
}

prefix='' uninstall='' service=''
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -gt 1 ] || stop "--prefix needs a folder."; prefix=$2; shift ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --uninstall) uninstall=yes ;;
    --service) service=yes ;;
    -h | --help) usage; exit 0 ;;
    *) stop "$1 is unknown. See ./install.sh --help" ;;
  esac
  shift
done

termux=''
if [ -n "${TERMUX_VERSION:-}" ]; then termux=yes; fi
if [ -z "$prefix" ]; then
  if [ -n "$termux" ]; then prefix=${PREFIX:?}; else prefix=${HOME:?}/.local; fi
fi
case $prefix in
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac
case $prefix in
  *[\"\`\$\\\|\&%]*) stop "The folder $prefix has characters in its name that a desktop entry cannot have. Choose another with --prefix." ;;
esac
doc=$prefix/share/doc/kai
list=$doc/installed # what was installed, a path below the prefix in each line; folders end with a slash

# Is this line in the file?
has() { [ -f "$2" ] && grep -qxF -- "$1" "$2"; }

# Removes what stands in a list, files before the folders that we made for them. A folder with files of others stays.
remove_listed() {
  while IFS= read -r path; do
    case $path in
      '' | */ | /* | *..*) ;;
      *) rm -f -- "$prefix/$path" ;;
    esac
  done < "$1"
  sed -n '/\/$/p' "$1" | sort -r | while IFS= read -r path; do
    case $path in
      /* | *..*) ;;
      *) rmdir -- "$prefix/$path" 2> /dev/null || true ;;
    esac
  done
}

if [ -n "$uninstall" ]; then
  [ -f "$list" ] || stop "Kai is not installed in $prefix. If it is elsewhere, name the folder with --prefix."
  unit=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/kai.service
  boot=$HOME/.termux/boot/start-kai
  if grep -qsF -- "$prefix/bin/kai" "$unit" "$boot"; then "$prefix/bin/kai" service remove; fi
  old=$(mktemp)
  trap 'rm -f "$old"' EXIT
  cat "$list" > "$old"
  rm -f -- "$list"
  remove_listed "$old"
  echo "Removed Kai from $prefix. Your data is untouched: ${XDG_DATA_HOME:-$HOME/.local/share}/kai"
  exit 0
fi

here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/files/bin/kai" ] || stop "The files to install are missing. Unpack the whole archive, and start install.sh in it."

machine=$(uname -m)
[ "$machine" = "$arch" ] || stop "This package is for $arch, and this machine is $machine. Nothing was installed."
if [ "$libc" != none ]; then
  [ -z "$termux" ] || stop "This package does not run on Termux. Use the one for Termux. Nothing was installed."
  found=$(getconf GNU_LIBC_VERSION 2> /dev/null) || found=''
  found=${found#glibc }
  [ -n "$found" ] || stop "This package needs glibc $libc or newer, and this system has another C library. Nothing was installed."
  rest=${found#*.}
  if [ "${found%%.*}" -lt "${libc%%.*}" ] ||
    { [ "${found%%.*}" -eq "${libc%%.*}" ] && [ "${rest%%.*}" -lt "${libc#*.}" ]; }; then
    stop "This package needs glibc $libc or newer, and this system has $found. Nothing was installed."
  fi
fi

new=$(mktemp)
trap 'rm -f "$new"' EXIT
(cd "$here/files" && find . -type f | sed 's|^\./||' | sort) > "$new"
while IFS= read -r path; do
  if [ -e "$prefix/$path" ] && ! has "$path" "$list"; then
    stop "$prefix/$path exists, and this script did not install it. Move it away, or choose another folder with --prefix. Nothing was installed."
  fi
done < "$new"

# Makes a folder below the prefix, and notes those that did not exist.
folder() {
  [ ! -d "$prefix/$1" ] || return 0
  case $1 in */*) folder "${1%/*}" ;; esac
  mkdir "$prefix/$1"
  echo "$1/" >> "$new"
}

mkdir -p "$prefix"
files=$(mktemp)
trap 'rm -f "$new" "$files"' EXIT
cat "$new" > "$files"
while IFS= read -r path; do
  folder "$(dirname "$path")"
  case $path in bin/*) mode=755 ;; *) mode=644 ;; esac
  # Beside its place first: a kai that runs keeps the file it was started from.
  beside=$prefix/$path.new
  case $path in
    *.desktop) sed "s|^Exec=kai|Exec=\"$prefix/bin/kai\"|; s|^TryExec=.*|TryExec=$prefix/bin/kai|" "$here/files/$path" > "$beside" ;;
    *) cat "$here/files/$path" > "$beside" ;;
  esac
  chmod "$mode" "$beside"
  mv -f -- "$beside" "$prefix/$path"
done < "$files"

# What an older version installed and this one does not have.
if [ -f "$list" ]; then
  while IFS= read -r path; do
    if ! has "$path" "$new"; then
      case $path in
        */) echo "$path" >> "$new" ;;
        /* | *..*) ;;
        *) rm -f -- "$prefix/$path" ;;
      esac
    fi
  done < "$list"
fi
sort -u "$new" > "$list.new"
mv -f -- "$list.new" "$list"

echo "Installed Kai $version in $prefix."
case :$PATH: in
  *":$prefix/bin:"*) echo "Start it: kai" ;;
  *) echo "Your shell does not look for programs in $prefix/bin yet. Start it: $prefix/bin/kai" ;;
esac
echo "Completions for bash and fish are ready in new shells; for zsh, if $prefix/share/zsh/site-functions is in its fpath."
echo "To remove it: sh \"$doc/install.sh\" --uninstall --prefix \"$prefix\""
if [ -n "$service" ]; then "$prefix/bin/kai" service install; fi
